"""A57: `why` says "runnable" exactly when a claim that looked at this job first would return it.

A Hypothesis machine makes random systems: tenants, targets, pauses, limits, blacklisted workflows, holds, timers,
dependencies, workers that come, drain and fall silent. After every step each job is asked about, and then, in a
rehearsal that leaves no trace, an ingest is done and every job is claimed for, each by itself. Instants are multiples
of 100 s and limits lie 20 s or more beside them: the seconds that really pass do not matter.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
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

from tests.store.conftest import NoJitter
from tests.support.builders import chance
from tests.support.lending import Lender
from tests.support.rehearsal import Stage
from tests.tiers import in_tiers
from unstuck.model.errors import UnstuckError, WorkflowBlacklisted
from unstuck.model.job import ClaimedJob, NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Raised, Returned, Stopped
from unstuck.model.why import explain
from unstuck.model.why.facts import Facts
from unstuck.store.database import Database
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.sqlite import SqliteDatabase
from unstuck.store.port import Limit, NewWorker, Pause, QuarantineDuty, Report, Share
from unstuck.store.sql_store import SqlStore

LEASE = 1550.0
PLAIN = Policy(timeout=600.0, retries=1, max_lost=1, backoff_base=150.0, backoff_factor=1.0)
HOLDS = replace(PLAIN, on_blacklist="hold")
POLICIES = [PLAIN, replace(PLAIN, on_failure="continue", retries=0), replace(PLAIN, expires_after=950.0), HOLDS]
OUTCOMES: list[Outcome] = [
    Returned("1"),
    Raised(ErrorInfo("ValueError", "boom")),
    Raised(ErrorInfo("ValueError", "boom"), retry=False),
    Stopped(),
    NotStarted(),
    Lost(ErrorInfo("ProcessDied", "signal 9"), "own"),
    Lost(ErrorInfo("ProcessDied", "signal 9"), "neighbour"),
]
TENANTS, QUEUES, WORKFLOWS, TARGETS = ("default", "other"), ("q1", "q2"), ("w1", "w2"), (None, "acme", "acme", "ajax")
KEYS = (None, None, "key:1", "key:2")
GATES = [
    *(("queue", name) for name in QUEUES),
    *(("workflow", name) for name in WORKFLOWS),
    *(("tenant", name) for name in TENANTS),
]


OPTIONS = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(["default", *TENANTS]),  # few places, so that jobs meet
        "queue": st.sampled_from(["q1", *QUEUES]),
        "workflow": st.sampled_from(WORKFLOWS),
        "target": st.sampled_from(TARGETS),
        "limit_key": st.sampled_from(KEYS),
        "priority": st.sampled_from([0, 0, 5]),
        "delay": st.sampled_from([0.0] * 5 + [150.0]),
        "policy": st.sampled_from(POLICIES),
        "on_hold": st.sampled_from([False] * 9 + [True]),
    }
)


class System:
    """A store with the hand on its clock."""

    def __init__(self, database: Database, url: str, advance: Callable[[float], None]) -> None:
        self.stage = Stage(database, url)
        self.store = SqlStore(database, NoJitter(1))
        self.advance = advance


class Runnable(RuleBasedStateMachine):
    open_system: Callable[[ExitStack], System]

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.system = self.open_system(self.stack)
        self.stack.callback(self.system.stage.close)
        self.store = self.system.store
        self.jobs: list[NewJob] = []
        self.attempts: list[tuple[int, ClaimedJob]] = []
        self.workers: dict[int, tuple[frozenset[str], frozenset[str]]] = {}
        self.unfit: set[int] = set()

    def teardown(self) -> None:
        self.stack.close()

    @initialize(
        batch=st.lists(st.tuples(OPTIONS, st.just(-1)), min_size=3, max_size=6),
        workflows=st.sampled_from([WORKFLOWS, WORKFLOWS, WORKFLOWS, ("w2",), ()]),
    )
    def begin(self, batch: list[tuple[dict[str, Any], int]], workflows: tuple[str, ...]) -> None:
        """Where everybody is served from the start, nobody ever lacks the code, or waits for an import."""
        self.a_worker_comes(QUEUES, workflows)
        self.submit(batch)

    # --- what happens ---------------------------------------------------------------------------------------------

    @rule(
        queues=st.sampled_from([QUEUES, ("q1",), ("q2",)]),
        workflows=st.sampled_from([WORKFLOWS, ("w1",), ("w2",), ()]),
    )
    def a_worker_comes(self, queues: tuple[str, ...], workflows: tuple[str, ...]) -> None:
        if len(self.workers) >= 6:
            return
        worker = self.store.register_worker(
            NewWorker(chance.nonce(), f"w{len(self.workers)}", "h", "b", "p", 1, 1, queues, "v1", LEASE)
        )
        if workflows:
            records = [WorkflowRecord(name, "v1", "q1", PLAIN, {}) for name in workflows]
            self.store.register_workflows(records, worker=worker.number, queues=queues)
        self.workers[worker.number] = (frozenset(queues if workflows else ()), frozenset(workflows))

    @rule(place=st.integers(0, 5), state=st.sampled_from(["active", "active", "draining"]))
    def a_worker_beats(self, place: int, state: str) -> None:
        self.beat(list(self.workers)[place % len(self.workers)], state)

    def beat(self, number: int, state: str = "active", *, begun: bool = False) -> None:
        """`begun`: the handlers of all it holds have. Before that nothing is ever overdue."""
        held = [attempt.ref for worker, attempt in self.attempts if worker == number]
        started = {ref.job: self.store.now() for ref in held} if begun else None
        self.store.beat(number, LEASE, held, state=state, started=started)

    @rule(place=st.integers(0, 5), role=st.sampled_from(["claim", "settle", "janitor/timers", None, None]))
    def a_worker_says_what_fails(self, place: int, role: str | None) -> None:
        """Who cannot claim, or could not write what came of it, claims nothing; it beats all the same."""
        number = list(self.workers)[place % len(self.workers)]
        held = [attempt.ref for worker, attempt in self.attempts if worker == number]
        roles = [{"name": role, "failing_for": 40.0, "failures": 9, "error": "x"}] if role else []
        if self.store.beat(number, LEASE, held, info={"roles": roles}).alive:
            (self.unfit.add if role in ("claim", "settle") else self.unfit.discard)(number)

    @rule(
        place=st.integers(0, 1000),
        duty=st.sampled_from(["settle", "recover", "start", "expire", "wait", "orphan", "children", "body_mark"]),
        is_over=st.booleans(),
    )
    @precondition(lambda self: self.jobs)
    def something_is_set_aside(self, place: int, duty: QuarantineDuty, is_over: bool) -> None:
        job = self.jobs[place % len(self.jobs)]
        number = self.facts(job).job.number
        if is_over:
            self.store.leave_quarantine(duty, number)
        else:
            self.store.quarantine(duty, {number: "it raises"}, by="w0")

    @rule(batch=st.lists(st.tuples(OPTIONS, st.integers(-20, 3)), min_size=1, max_size=4))
    def submit(self, batch: list[tuple[dict[str, Any], int]]) -> None:
        for options, after in batch[: 12 - len(self.jobs)]:
            mine = [job.id for job in self.jobs if job.tenant == options["tenant"]]
            first = (mine[after % len(mine)],) if mine and after >= 0 else ()
            job = NewJob(id=chance.job_id(), payload="{}", after=first, **options)
            try:
                self.store.submit([job])
            except WorkflowBlacklisted:
                continue
            self.jobs.append(job)

    @rule(place=st.integers(0, 5), limit=st.integers(1, 3))
    def claim(self, place: int, limit: int) -> None:
        """As a worker does it: ingest, look, claim what it serves."""
        number = list(self.workers)[place % len(self.workers)]
        queues, workflows = self.workers[number]
        if number in self.unfit:
            return
        self.store.ingest()
        self.store.release_due()
        fronts = self.store.open_routes()
        routes = {route.number: route for route in self.store.routes([front.route for front in fronts])}
        shares = [
            Share(front.route, limit, is_limited=front.is_limited)
            for front in fronts
            if routes[front.route].queue in queues and routes[front.route].workflow in workflows
        ]
        claimed = self.store.claim(number, chance.nonce(), shares)
        self.attempts += [(number, attempt) for attempt in claimed]

    @rule(place=st.integers(0, 5), limit=st.integers(1, 3), outcome=st.sampled_from(OUTCOMES))
    def claim_and_settle(self, place: int, limit: int, outcome: Outcome) -> None:
        self.claim(place, limit)
        while self.attempts:
            self.settle(-1, outcome)

    @rule(place=st.integers(0, 5), limit=st.integers(1, 3))
    def claim_and_overrun(self, place: int, limit: int) -> None:
        """Handlers that ignore their time limit are convicted, and leave a hold."""
        self.claim(place, limit)
        for number in self.workers:
            self.beat(number, begun=True)
        for _ in range(2):
            self.time_passes(400.0, False)
        self.store.convict_overdue(5.0, 35.0)

    @rule(place=st.integers(0, 1000), outcome=st.sampled_from(OUTCOMES))
    @precondition(lambda self: self.attempts)
    def settle(self, place: int, outcome: Outcome) -> None:
        worker, attempt = self.attempts.pop(place % len(self.attempts))
        self.store.settle(worker, [Report(attempt.ref, outcome, duration_ms=5)])

    @rule(
        place=st.integers(0, 1000),
        verb=st.sampled_from(["cancel", "interrupt", "resume", "resume", "resolve", "release", "skip", "run_now"]),
    )
    @precondition(lambda self: self.jobs)
    def a_person_asks(self, place: int, verb: str) -> None:
        job = self.jobs[place % len(self.jobs)]
        more: tuple[Any, ...] = ("7",) if verb == "resolve" else ()
        try:
            getattr(self.store, verb)(job.tenant, job.id, "me", *more)
        except UnstuckError:
            pass  # a refusal is an answer

    @rule(
        gate=st.sampled_from(GATES),
        tenant=st.sampled_from([*TENANTS, "*"]),
        lasts=st.sampled_from([None, 150.0]),
        lift=st.booleans(),
    )
    def an_operator_pauses(self, gate: tuple[Any, str], tenant: str, lasts: float | None, lift: bool) -> None:
        kind, name = gate
        self.pause(kind, name, name if kind == "tenant" else tenant, lasts, lift)

    @rule(
        name=st.sampled_from(["acme", "ajax"]),
        tenant=st.sampled_from(TENANTS),
        lasts=st.sampled_from([None, 150.0]),
        lift=st.booleans(),
    )
    def an_operator_pauses_a_target(self, name: str, tenant: str, lasts: float | None, lift: bool) -> None:
        self.pause("target", name, tenant, lasts, lift)

    def pause(self, kind: Any, name: str, tenant: str, lasts: float | None, lift: bool) -> None:
        try:
            if lift:
                self.store.unpause(kind, name, tenant)
            else:
                until = None if lasts is None else self.store.now() + timedelta(seconds=lasts)
                self.store.pause(Pause(kind, name, tenant, "me", until_at=until))
        except UnstuckError:
            pass  # nobody ever used that target or tenant

    @rule(
        workflow=st.sampled_from(WORKFLOWS),
        tenant=st.sampled_from([*TENANTS, "*"]),
        lift=st.sampled_from([False, True, True]),
        is_swept=st.booleans(),
    )
    def an_operator_bars(self, workflow: str, tenant: str, lift: bool, is_swept: bool) -> None:
        """Lifted more often than made: a barred workflow takes no part in anything else."""
        self.bar(workflow, None if lift else tenant, lift)
        if is_swept:
            self.store.tend_guard()

    def bar(self, workflow: str, tenant: str | None, lift: bool = False) -> None:
        try:
            if lift or tenant is None:
                self.store.blacklist_remove(tenant, workflow, "me")
            else:
                self.store.blacklist_add(tenant, workflow, "x", "me")
        except UnstuckError:
            pass  # nobody ever used that tenant

    @rule(
        gate=st.sampled_from(
            [*GATES, ("tenant", "*"), ("key", "key:1"), ("key", "*"), ("key", "key:*"), ("workflow_key", "w1")]
        ),
        tenant=st.sampled_from([*TENANTS, "*"]),
        concurrency=st.sampled_from([None, 1, 2]),
        rate=st.sampled_from([None, None, 1]),
        lift=st.booleans(),
    )
    def an_operator_limits(
        self, gate: tuple[Any, str], tenant: str, concurrency: int | None, rate: int | None, lift: bool
    ) -> None:
        kind, name = gate
        tenant = name if kind == "tenant" else tenant
        try:
            if lift or (concurrency is None and rate is None):
                self.store.remove_limit(kind, name, tenant)
            else:
                per = None if rate is None else 350.0
                self.store.set_limit(Limit(kind, name, tenant, "me", concurrency=concurrency, rate=rate, per=per))
        except UnstuckError:
            pass

    @rule(
        seconds=st.sampled_from([100.0, 400.0, 400.0, 1100.0, 1600.0]),
        is_silent=st.sampled_from([False, False, True]),
    )
    def time_passes(self, seconds: float, is_silent: bool) -> None:
        self.system.advance(seconds)
        for number in () if is_silent else tuple(self.workers):
            self.beat(number)

    @rule(
        duty=st.sampled_from(
            ["release_due", "recover_lost", "convict_overdue", "lift_body_marks", "ingest", "tend_guard"]
        )
    )
    def a_janitor_sweeps(self, duty: str) -> None:
        arguments = {"recover_lost": (0.0,), "convict_overdue": (5.0, 35.0), "lift_body_marks": (30.0,)}
        getattr(self.store, duty)(*arguments.get(duty, ()))

    # --- what must hold -------------------------------------------------------------------------------------------

    @invariant()
    def why_and_the_claim_agree(self) -> None:
        known = [self.facts(job) for job in self.jobs]
        with self.system.stage.rehearsal() as (store, rehearsed):
            live = [worker.number for worker in store.workers() if self.is_live(store, worker)]
            store.ingest()
            for facts in known:
                with rehearsed.undone():
                    is_claimed = self.is_claimed(store, facts, live)
                answer = explain(facts, facts.at)
                assert answer.reasons, f"a {answer.state} job without a reason"
                assert answer.is_runnable == is_claimed, (
                    f"why says {answer.verdict!r}, the claim {'returns it' if is_claimed else 'does not'}: {facts}"
                )

    def facts(self, job: NewJob) -> Facts:
        found = self.store.gate_facts(job.tenant, job.id)
        assert found is not None
        return found

    def is_claimed(self, store: SqlStore, facts: Facts, live: list[int]) -> bool:
        """By a worker that serves it, looking at it first."""
        job = facts.job
        fit = [n for n in live if n not in self.unfit]
        serving = [n for n in fit if job.queue in self.workers[n][0] and job.workflow in self.workers[n][1]]
        if not serving or job.state is not JobState.QUEUED:
            return False
        share = Share(facts.route, 1, (facts.rank, job.number), is_limited=True)
        return [attempt.id for attempt in store.claim(serving[0], chance.nonce(), [share])] == [job.id]

    def is_live(self, store: SqlStore, worker: WorkerRecord) -> bool:
        return worker.state == "active" and worker.lease_until > store.now()


@pytest.fixture(params=["sqlite", "postgres"])
def open_system(
    request: pytest.FixtureRequest, tmp_path: Path, sqlite_template: Path
) -> Callable[[ExitStack], System]:
    numbers = itertools.count()

    def open_sqlite(stack: ExitStack) -> System:
        url = f"sqlite:///{shutil.copyfile(sqlite_template, tmp_path / f'{next(numbers)}.db')}"
        file = open_database(url)
        assert isinstance(file, SqliteDatabase)
        stack.callback(file.close)

        def advance(seconds: float) -> None:
            file.offset_us += round(seconds * 1_000_000)

        return System(file, url, advance)

    def open_postgres(stack: ExitStack) -> System:
        databases: Lender = request.getfixturevalue("databases")
        url = databases.lend()
        stack.callback(databases.take_back, url)
        database = open_database(url, application="unstuck-test")
        stack.callback(database.close)
        hand = databases.keeper(url)

        def advance(seconds: float) -> None:
            moved = round(seconds * 1_000_000)
            hand.execute("UPDATE unstuck_test_clock SET offset_us = offset_us + %s", (moved,))

        return System(database, url, advance)

    return open_sqlite if request.param == "sqlite" else open_postgres


@pytest.mark.timeout(900)
@in_tiers("stories", 2, 15)
def test_why_says_runnable_exactly_when_a_claim_would_return_it_a57(
    open_system: Callable[[ExitStack], System], stories: int
) -> None:
    class Machine(Runnable):
        pass

    Machine.open_system = staticmethod(open_system)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=stories,
            stateful_step_count=30,
            deadline=None,
            derandomize=stories <= 15,
            suppress_health_check=list(HealthCheck),
        ),
    )
