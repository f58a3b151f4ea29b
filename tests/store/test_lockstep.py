"""A Hypothesis state machine drives SQLite, PostgreSQL and the model of `support/model_store.py` in lockstep.

Every rule is one verb. After each one the typed outcomes and all jobs, as each store shows them, must be equal.
Instants are multiples of 100 s and limits lie 20 s or more beside them: the seconds that really pass do not matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.builders import all_routes
from tests.support.model_store import ModelStore
from tests.tiers import in_tiers
from unstuck.model.errors import Conflict
from unstuck.model.job import AttemptRef, NewJob
from unstuck.model.lifecycle import JobState, RequestKind, fold
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Raised, Returned, Stopped
from unstuck.store.port import NewWorker, Pause, Report, Share, Store

LEASE, MARGIN, KILL_GRACE, BACKSTOP_LEASE = 1050.0, 30.0, 5.0, 35.0
TENANT = "default"

LIMITED = Policy(timeout=600.0, retries=1, max_lost=1, backoff_base=150.0, backoff_factor=1.0)
POLICIES = [
    LIMITED,
    replace(LIMITED, retries=0, max_lost=0),
    replace(LIMITED, on_lost="pause"),
    replace(LIMITED, on_lost="fail"),
    replace(LIMITED, timeout="unlimited", expires_after=1950.0, suspect_runs=1),
    replace(LIMITED, on_failure="continue", retries=0),
]
OUTCOMES: list[Outcome] = [
    Returned("1"),
    Returned(None),
    Raised(ErrorInfo("ValueError", "boom")),
    Raised(ErrorInfo("ValueError", "boom"), retry=False),
    Stopped(),
    Stopped(asked=RequestKind.TIMEOUT),
    NotStarted(),
    Lost(ErrorInfo("ProcessDied", "signal 9"), "own"),
    Lost(ErrorInfo("ProcessDied", "signal 9"), "suspect"),
    Lost(ErrorInfo("ProcessDied", "signal 9"), "neighbour"),
]

#: A store under test and the hand that moves its clock.
Twin = tuple[Store, Callable[[float], None]]
Twins = Callable[[], AbstractContextManager[list[Twin]]]


class Lockstep(RuleBasedStateMachine):
    open_twins: Twins

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = self.open_twins()
        self.twins = self.cleanup.__enter__()
        self.stores = [store for store, _ in self.twins]
        self.model = ModelStore()
        self.numbers = itertools.count(1)
        #: per worker of the model, its number in each store
        self.workers: dict[int, list[int]] = {}
        #: every attempt ever opened: (worker, job id, token, claim id)
        self.attempts: list[tuple[int, str, int, str]] = []

    def teardown(self) -> None:
        self.cleanup.__exit__(None, None, None)

    @initialize()
    def two_workers_register(self) -> None:
        self.a_worker_registers()
        self.a_worker_registers()

    @rule()
    @precondition(lambda self: len(self.workers) < 5)
    def a_worker_registers(self) -> None:
        worker = len(self.workers) + 1
        self.model.register(worker, LEASE)
        self.workers[worker] = [
            store.register_worker(
                NewWorker(f"inc-{worker}", f"w{worker}", "host", "boot", "ns", 1, 1, ("default",), "v1", LEASE)
            ).number
            for store in self.stores
        ]

    @rule(
        priority=st.sampled_from([-1000, 0, 1000]),
        delay=st.sampled_from([0.0, 0.0, 50.0, 450.0]),
        key=st.sampled_from([None, None, "k1", "k2"]),
        fingerprint=st.sampled_from(["a", "b"]),
        policy=st.sampled_from(POLICIES),
        on=st.sampled_from([None, "a", "a", "b"]),
    )
    def submit(
        self, priority: int, delay: float, key: str | None, fingerprint: str, policy: Policy, on: str | None
    ) -> None:
        job = f"00000000-0000-7000-8000-{next(self.numbers):012d}"
        new = NewJob(
            id=job, tenant=TENANT, queue="default", workflow="w", payload="{}", policy=policy, priority=priority,
            delay=delay, key=key, fingerprint=fingerprint, target=on,
        )  # fmt: skip

        def ask(store: Store) -> Any:
            [submitted] = store.submit([new])
            return submitted.id, submitted.created

        self.agree(lambda: self.model.submit(job, policy, priority, delay, key, fingerprint, on), ask)
        self.ingest()

    @rule(worker=st.integers(1, 5), limit=st.integers(1, 3))
    @precondition(lambda self: self.model.jobs)
    def claim(self, worker: int, limit: int) -> None:
        worker = (worker - 1) % len(self.workers) + 1
        self.claim_as(worker, f"claim-{next(self.numbers)}", limit)

    @rule(index=st.integers(0, 1000))
    @precondition(lambda self: self.attempts)
    def the_answer_was_lost_and_the_claim_is_repeated(self, index: int) -> None:
        worker, _, _, claim = self.attempts[index % len(self.attempts)]
        if any(job.claim == claim for job in self.model.jobs.values()):
            self.claim_as(worker, claim, 3)

    def claim_as(self, worker: int, claim: str, limit: int) -> None:
        expected = self.model.claim(worker, claim, limit)
        for place, store in enumerate(self.stores):
            shares = [Share(route.number, limit) for route in all_routes(store)]
            claimed = store.claim(self.workers[worker][place], claim, shares)
            assert {job.id for job in claimed} == expected
            assert all(job.ref.token == self.model.jobs[job.id].token for job in claimed)
        known = {(job, claim) for _, job, _, claim in self.attempts}
        self.attempts += [
            (worker, job, self.model.jobs[job].token, claim) for job in sorted(expected) if (job, claim) not in known
        ]

    @rule(index=st.integers(0, 1000), outcome=st.sampled_from(OUTCOMES))
    @precondition(lambda self: self.attempts)
    def settle(self, index: int, outcome: Outcome) -> None:
        """Any attempt that was ever open: the current one, a stale one, one that was settled before."""
        worker, job, token, claim = self.attempts[index % len(self.attempts)]
        expected = self.model.settle(worker, job, AttemptRef(0, token, claim), outcome)
        for place, store in enumerate(self.stores):
            report = Report(AttemptRef(self.number(store, job), token, claim), outcome, duration_ms=5)
            [settled] = store.settle(self.workers[worker][place], [report])
            assert settled.verdict is expected
        self.ingest()

    @rule(worker=st.integers(1, 5), forgets=st.booleans(), begins=st.booleans())
    def beat(self, worker: int, forgets: bool, begins: bool) -> None:
        worker = (worker - 1) % len(self.workers) + 1
        held = [] if forgets else [
            (job.id, job.token, job.claim or "") for job in self.model.jobs.values() if job.worker == worker
        ]  # fmt: skip
        begun = [job for job, _, _ in held] if begins else []
        expected = self.model.beat(worker, LEASE, held, begun)
        for place, store in enumerate(self.stores):
            refs = [AttemptRef(self.number(store, job), token, claim) for job, token, claim in held]
            started = {self.number(store, job): store.now() for job in begun}
            assert store.beat(self.workers[worker][place], LEASE, refs, started=started).alive is expected
        self.ingest()

    @rule(index=st.integers(0, 1000), verb=st.sampled_from(["cancel", "interrupt", "resume", "resolve"]))
    @precondition(lambda self: self.model.jobs)
    def a_person_asks(self, index: int, verb: str) -> None:
        job = list(self.model.jobs)[index % len(self.model.jobs)]
        asks: dict[str, tuple[Callable[[], object], Callable[[Store], object]]] = {
            "cancel": (lambda: self.model.cancel(job), lambda s: s.cancel(TENANT, job, "me")),
            "interrupt": (lambda: self.model.interrupt(job), lambda s: s.interrupt(TENANT, job, "me")),
            "resume": (lambda: self.model.resume(job), lambda s: s.resume(TENANT, job, "me")),
            "resolve": (lambda: self.model.resolve(job, "7"), lambda s: s.resolve(TENANT, job, "me", "7")),
        }
        ask_model, ask_store = asks[verb]
        self.agree(lambda: ask_model() and None, lambda store: ask_store(store) and None)
        self.ingest()

    @rule(index=st.integers(0, 1000))
    @precondition(lambda self: self.model.jobs)
    def a_person_skips(self, index: int) -> None:
        job = list(self.model.jobs)[index % len(self.model.jobs)]
        self.agree(lambda: self.model.skip(job), lambda store: store.skip(TENANT, job, "me") and None)
        self.ingest()

    @rule(name=st.sampled_from(["a", "b"]), seconds=st.sampled_from([150.0, 950.0]))
    def a_target_is_paused(self, name: str, seconds: float) -> None:
        if name not in self.model.targets:
            return
        self.model.pause(name, seconds)
        for store in self.stores:
            store.pause(Pause("target", name, TENANT, "me", until_at=store.now() + timedelta(seconds=seconds)))
        self.ingest()

    @rule(name=st.sampled_from(["a", "b"]))
    def a_pause_is_lifted(self, name: str) -> None:
        if name in self.model.targets:
            self.agree(lambda: self.model.unpause(name), lambda store: store.unpause("target", name, TENANT))
            self.ingest()

    @rule(seconds=st.sampled_from([100.0, 400.0, 1100.0]))
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds
        for _, advance in self.twins:
            advance(seconds)

    @rule()
    def recover_lost(self) -> None:
        expected = self.model.recover_lost()
        for store in self.stores:
            assert {recovered.id for recovered in store.recover_lost(0.0)} == expected
        self.ingest()

    @rule()
    def convict_overdue(self) -> None:
        expected = self.model.convict_overdue(KILL_GRACE, BACKSTOP_LEASE)
        for store in self.stores:
            assert {convicted.id for convicted in store.convict_overdue(KILL_GRACE, BACKSTOP_LEASE)} == expected
        self.ingest()

    @rule()
    def lift_body_marks(self) -> None:
        self.model.lift_body_marks(MARGIN)
        for store in self.stores:
            store.lift_body_marks(MARGIN)
        self.ingest()

    @rule()
    def release_due(self) -> None:
        self.model.release_due()
        for store in self.stores:
            store.release_due()
        self.ingest()

    def ingest(self) -> None:
        """Whoever works looks into the inbox first: after every verb, so that all stand at the same point."""
        self.model.ingest()
        for store in self.stores:
            while store.ingest().entries:
                pass

    @invariant()
    def a_target_has_one_head_and_none_only_while_nobody_waits(self) -> None:
        for name, target in self.model.targets.items():
            running = [j for j in self.model.jobs.values() if j.target == name and j.state is JobState.RUNNING]
            assert len(running) <= 1
            assert all(job is target.head for job in running)
            for store in self.stores:
                shown = store.target(TENANT, name)
                assert shown is not None
                assert shown.head == (target.head.id if target.head else None)
                assert shown.blocked_by == (target.blocked_by.id if target.blocked_by else None)

    @invariant()
    def all_stores_show_the_same_jobs(self) -> None:
        for job in self.model.jobs.values():
            expected = (
                job.state, job.run, job.token, job.failures, job.losses, job.suspects, job.alone,
                job.request if job.state is JobState.RUNNING else None, job.held_by is not None, tuple(job.history),
                job.error_type if job.state is JobState.FAILED else None, job.result, self.model.is_blocker(job),
            )  # fmt: skip
            for store in self.stores:
                assert self.shown(store, job.id) == expected

    def shown(self, store: Store, job: str) -> tuple[Any, ...]:
        record, events = store.get(TENANT, job), store.history(TENANT, job)
        assert record is not None
        assert [event.number for event in events] == list(range(1, len(events) + 1)), "a gap in the history (A13)"
        assert fold(event.kind for event in events) is record.state, "the history does not lead to the row (A13)"
        assert (record.worker is not None) == (record.state is JobState.RUNNING), "A2"
        return (
            record.state, record.run, record.token, record.failures, record.losses, record.suspects, record.alone,
            record.request, record.held, tuple(event.kind for event in events),
            record.error_type if record.state is JobState.FAILED else None, record.result, record.is_blocker,
        )  # fmt: skip

    def agree(self, ask_model: Callable[[], Any], ask_store: Callable[[Store], Any]) -> None:
        """The same answer, or the same kind of refusal, from everyone."""
        answers = [_answer(ask_model), *(_answer(partial(ask_store, store)) for store in self.stores)]
        assert answers.count(answers[0]) == len(answers), answers

    def number(self, store: Store, job: str) -> int:
        record = store.get(TENANT, job)
        assert record is not None
        return record.number


def _answer(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Conflict as refusal:
        return type(refusal).__name__


@pytest.mark.timeout(900)
@in_tiers("stories", 6, 100)
def test_both_databases_and_the_model_agree_verb_by_verb(twins: Twins, stories: int) -> None:
    class Machine(Lockstep):
        open_twins = staticmethod(twins)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=stories,
            stateful_step_count=50,
            deadline=None,
            derandomize=stories <= 100,
            suppress_health_check=list(HealthCheck),
        ),
    )
