"""The settler on a real store whose answers are spoiled now and then: every job ends, no hold stays behind."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.builders import TENANT, a_worker, claimed, record
from tests.support.eventually import eventually
from unstuck import telemetry
from unstuck.clock import MachineClock
from unstuck.model.errors import OutcomeUnknown, StoreError, StoreUnavailable
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Returned, Stuck
from unstuck.store.port import AttemptOutput, Report, Settled, Verdict
from unstuck.store.sql_store import SqlStore
from unstuck.worker.ledger import Ledger
from unstuck.worker.settle import Settler

HUGE = "9" * 100_000


class Spoiled:
    """The store, except that some calls never get through."""

    def __init__(self, store: SqlStore, *, refuses: Callable[[Sequence[Report]], bool] = lambda _: False) -> None:
        self._store = store
        self.refuses = refuses
        self.before_remark: Callable[[], object] = lambda: None
        self.lost_answers = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
        if self.refuses(reports):
            raise StoreUnavailable("it took too long")
        return self._store.settle(worker, reports)

    def keep_output(self, remarks: Sequence[AttemptOutput]) -> list[Verdict]:
        self.before_remark()
        answers = self._store.keep_output(remarks)
        if self.lost_answers:
            self.lost_answers -= 1
            raise OutcomeUnknown("the connection was lost")
        return answers


def a_settler(store: Any, worker: int) -> Settler:
    return Settler(store, worker, Ledger(), MachineClock(), settled=lambda _: None)


def run(settler: Settler, ticks: int) -> None:
    for _ in range(ticks):
        settler.wake()  # one that finds nothing to do would rest for a second
        try:
            settler.tick()
        except StoreError:
            pass


def test_a_result_that_no_call_can_carry_fails_its_own_job_and_keeps_nobody_else_waiting(store: SqlStore) -> None:
    worker = a_worker(store)
    bad, good = claimed(store, worker, workflow="w"), claimed(store, worker, workflow="v")
    spoiled = Spoiled(store, refuses=lambda reports: any(r.outcome == Returned(HUGE) for r in reports))
    settler = a_settler(spoiled, worker.number)
    settler.report([Report(bad.ref, Returned(HUGE)), Report(good.ref, Returned("1"))])

    run(settler, 25)

    assert record(store, good.id).state is JobState.COMPLETED
    assert (record(store, bad.id).state, record(store, bad.id).error_type) == (JobState.FAILED, "ResultNotStorable")


def test_a_large_result_that_is_under_way_or_fails_makes_nobody_wait(store: SqlStore) -> None:
    """BUSY while it is sent; three times the link breaks, then its job is told."""
    worker = a_worker(store)
    large = claimed(store, worker, workflow="w")
    answers = iter([None, None, OutcomeUnknown("cut"), None, OutcomeUnknown("cut"), None, OutcomeUnknown("cut")])

    class Uploading(Spoiled):
        def settle(self, worker: int, reports: Sequence[Report]) -> list[Settled]:
            others = [report for report in reports if report.outcome != Returned(HUGE)]
            answered = super().settle(worker, others) if others else []
            if len(others) == len(reports):
                return answered
            if (error := next(answers, None)) is not None:
                raise error
            return [*answered, Settled(large.ref, Verdict.BUSY)]

    settler = a_settler(Uploading(store), worker.number)
    settler.report([Report(large.ref, Returned(HUGE))])
    numbers = itertools.count()

    def failed() -> None:
        small = claimed(store, worker, workflow=f"v{next(numbers)}")
        settler.report([Report(small.ref, Returned("1"))])
        settler.wake()
        settler.tick()  # raises nothing: a loop that fails rests
        assert record(store, small.id).state is JobState.COMPLETED
        assert record(store, large.id).error_type == "ResultNotStorable"

    eventually(failed, timeout=30)
    assert next(answers, "all were told") == "all were told"


def test_results_are_kept_while_the_store_is_away_however_long(store: SqlStore) -> None:
    worker = a_worker(store)
    job = claimed(store, worker)
    away = threading.Event()

    class Away(Spoiled):
        def probe(self) -> None:
            if not away.is_set():
                raise StoreUnavailable("away")

    settler = a_settler(Away(store, refuses=lambda _: not away.is_set()), worker.number)
    settler.report([Report(job.ref, Returned("1"))])
    run(settler, 8)
    assert record(store, job.id).state is JobState.RUNNING

    away.set()
    run(settler, 2)

    assert (record(store, job.id).state, record(store, job.id).result) == (JobState.COMPLETED, "1")


def test_a_body_mark_is_lifted_after_its_verdict_was_written_never_before(store: SqlStore) -> None:
    worker = a_worker(store)
    others = [claimed(store, worker, workflow=f"w{n}") for n in range(3)]
    stuck = claimed(store, worker, workflow="stuck")
    refusals = [3]

    def refuses(reports: Sequence[Report]) -> bool:
        refusals[0] -= 1
        return refusals[0] >= 0

    settler = a_settler(Spoiled(store, refuses=refuses), worker.number)
    settler.report([Report(job.ref, Returned("1")) for job in others])
    settler.report([Report(stuck.ref, Stuck(ErrorInfo("ExecutionStuck", "…")))])
    settler.body_gone(stuck.ref.job)

    run(settler, 12)

    assert record(store, stuck.id).state is JobState.FAILED
    assert not record(store, stuck.id).held


def test_a_handler_that_never_stops_talking_keeps_no_other_from_ending(store: SqlStore) -> None:
    worker = a_worker(store)
    chatty, quiet = claimed(store, worker, workflow="w"), claimed(store, worker, workflow="v")
    spoiled = Spoiled(store)
    settler = a_settler(spoiled, worker.number)
    spoiled.before_remark = lambda: settler.say(chatty.ref, "progress", "1")
    settler.say(chatty.ref, "progress", "0")
    settler.report([Report(quiet.ref, Returned("1"))])

    settler.tick()

    assert record(store, quiet.id).state is JobState.COMPLETED


def test_what_a_handler_said_is_stored_before_the_report_that_ends_it(store: SqlStore) -> None:
    """A52, as far as it reaches here."""
    worker = a_worker(store)
    job = claimed(store, worker)
    settler = a_settler(store, worker.number)
    settler.say(job.ref, "output", "first\n")
    settler.say(job.ref, "output", "second\n")
    settler.say(job.ref, "progress", "0.5")
    settler.report([Report(job.ref, Returned("1"))])

    settler.tick()

    [attempt] = store.attempts(TENANT, job.id)
    assert attempt.output == "first\nsecond\n"
    assert store.progress_of(TENANT, job.id) == "0.5"


def test_what_a_handler_said_stands_once_although_the_answer_to_it_was_lost(store: SqlStore) -> None:
    """What is new by then is said together with what may be there already."""
    worker = a_worker(store)
    job, other = claimed(store, worker, workflow="w"), claimed(store, worker, workflow="v")
    spoiled = Spoiled(store)
    settler = a_settler(spoiled, worker.number)
    settler.say(job.ref, "output", "first\n")
    settler.tick()
    for word in ("sécond\n", "third\n"):
        settler.say(job.ref, "output", word)
        settler.say(other.ref, "output", word)
        spoiled.lost_answers = 1
        run(settler, 1)
    settler.report([Report(job.ref, Returned("1"), output="fourth\n"), Report(other.ref, Returned("1"))])

    run(settler, 2)

    assert [attempt.output for attempt in store.attempts(TENANT, job.id)] == ["first\nsécond\nthird\nfourth\n"]
    assert [attempt.output for attempt in store.attempts(TENANT, other.id)] == ["sécond\nthird\n"]


def test_a_report_that_came_too_late_is_told_with_the_id_that_people_know(store: SqlStore) -> None:
    heard: list[dict[str, object]] = []
    end = telemetry.subscribe(lambda name, facts: heard.append(facts) if name == "fenced" else None)
    worker, ledger = a_worker(store), Ledger()
    job = claimed(store, worker)
    job = job._replace(ref=job.ref._replace(claim="an older one"))
    ledger.admit(job.ref.claim, [job], 0.0)
    ledger.end(job.ref)
    settler = Settler(store, worker.number, ledger, MachineClock(), settled=lambda _: None)
    try:
        settler.report([Report(job.ref, Returned("2"))])
        run(settler, 2)
    finally:
        end()
    assert [(facts["job"], facts["token"]) for facts in heard] == [(job.id, job.ref.token)]


def test_a_line_per_job_is_told_to_whoever_asked_for_it_and_made_for_nobody_else(store: SqlStore) -> None:
    def told(*, every_job: bool) -> list[tuple[object, object]]:
        heard: list[tuple[object, object]] = []
        end = telemetry.subscribe(
            lambda name, facts: heard.append((facts["job"], facts["state"])) if name == "job_ended" else None,
            every_job=every_job,
        )
        try:
            job, ledger = claimed(store, worker, workflow="w"), Ledger()
            ledger.admit(job.ref.claim, [job], 0.0)
            ledger.end(job.ref)
            settler = Settler(store, worker.number, ledger, MachineClock(), settled=lambda _: None)
            settler.report([Report(job.ref, Returned("1"))])
            run(settler, 2)
            assert record(store, job.id).state is JobState.COMPLETED
        finally:
            end()
        ids.append(job.id)
        return heard

    worker, ids = a_worker(store), list[str]()
    assert told(every_job=False) == []
    assert told(every_job=True) == [(ids[1], "COMPLETED")]


@pytest.mark.parametrize("batches", [1, 2])
def test_an_end_that_is_reported_twice_is_told_once(store: SqlStore, batches: int) -> None:
    heard: list[object] = []
    end = telemetry.subscribe(
        lambda name, facts: heard.append((facts["job"], facts["state"])) if name == "job_ended" else None,
        every_job=True,
    )
    worker, ledger = a_worker(store), Ledger()
    job = claimed(store, worker)
    ledger.admit(job.ref.claim, [job], 0.0)
    ledger.end(job.ref)
    settler = Settler(store, worker.number, ledger, MachineClock(), settled=lambda _: None)
    twice = [Report(job.ref, Returned("1")), Report(job.ref, Returned("1"))]
    try:
        for batch in [twice] if batches == 1 else [[report] for report in twice]:
            settler.report(batch)
            run(settler, 2)
    finally:
        end()
    assert heard == [(job.id, "COMPLETED")]
