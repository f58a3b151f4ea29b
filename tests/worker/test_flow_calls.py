"""Flow calls on a real store whose answers are spoiled now and then: every handler hears, every report passes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.builders import TENANT, a_job, a_worker, claimed, settle
from unstuck.clock import MachineClock
from unstuck.executor.messages import (
    ChildAnswer,
    Done,
    Fenced,
    JournalPage,
    LoadJournal,
    RecordStep,
    RefusedMessage,
    Reply,
    SpawnMessage,
    Spend,
    SpentAnswer,
)
from unstuck.model.errors import InvalidInput, StoreError, StoreUnavailable
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.settlement import Returned
from unstuck.store.port import NewStep, Report, Verdict
from unstuck.store.sql_store import SqlStore
from unstuck.worker.flow_calls import BATCH, FlowCallRunner
from unstuck.worker.ledger import Ledger
from unstuck.worker.processes import FlowCall


class Spoiled:
    """The store, except that some steps are refused, and that it may be away altogether."""

    def __init__(self, store: SqlStore) -> None:
        self._store = store
        self.is_away = False
        self.spoils: Callable[[NewStep], Exception | None] = lambda _: None
        self.batches: list[int] = []

    def __getattr__(self, name: str) -> Any:
        if self.is_away:
            raise StoreUnavailable("it is away")
        return getattr(self._store, name)

    def record_steps(self, steps: Sequence[NewStep]) -> list[Verdict]:
        if self.is_away:
            raise StoreUnavailable("it is away")
        self.batches.append(len(steps))
        for step in steps:
            if (error := self.spoils(step)) is not None:
                raise error
        return self._store.record_steps(steps)


class Desk:
    def __init__(self, store: SqlStore) -> None:
        self.store = Spoiled(store)
        self.ledger = Ledger()
        self.answers: list[tuple[AttemptRef, int, Reply]] = []
        self.revoked: list[AttemptRef] = []
        self.reports: list[Report] = []
        self.worker = a_worker(store)
        self._sql = store
        self.flow_calls = FlowCallRunner(
            self.store,
            self.ledger,
            MachineClock(),
            answered=lambda call, answer: self.answers.append((call.ref, call.serial, answer)),
            revoked=self.revoked.append,
            report=self.reports.extend,
        )

    def job(self, **options: Any) -> ClaimedJob:
        job = claimed(self._sql, self.worker, **options)
        self.ledger.admit(job.ref.claim, [job], 0.0)
        return job

    def ask(self, job: ClaimedJob, serial: int, question: Any) -> None:
        self.flow_calls.take(FlowCall(1, 1, job.ref, serial, question))

    def step(self, job: ClaimedJob, serial: int, name: str = "s") -> None:
        self.ask(job, serial, RecordStep(name, serial, str(serial), 1))

    def run(self, ticks: int = 1) -> None:
        for _ in range(ticks):
            self.flow_calls.wake()  # one that finds nothing to do would rest for a second
            try:
                self.flow_calls.tick()
            except StoreError:
                pass

    def end(self, job: ClaimedJob) -> bool:
        """As the handler of fleet events does."""
        self.ledger.end(job.ref)
        return self.flow_calls.keep_back(Report(job.ref, Returned("1")))


@pytest.fixture
def desk(store: SqlStore) -> Desk:
    return Desk(store)


def test_steps_of_many_attempts_are_recorded_in_one_call(desk: Desk, store: SqlStore) -> None:
    jobs = [desk.job() for _ in range(5)]
    for job in jobs:
        for serial in (1, 2):
            desk.step(job, serial)
    desk.run()
    assert desk.store.batches == [10]
    assert [answer for _, _, answer in desk.answers] == [Done()] * 10
    assert [s.result for s in store.steps_of(TENANT, jobs[0].id)] == ["1", "2"]


def test_each_question_has_its_answer(desk: Desk, store: SqlStore) -> None:
    job = desk.job(budget=(("tokens", 100.0),))
    child = a_job(workflow="child")
    desk.ask(job, 1, LoadJournal(0))
    desk.ask(job, 2, Spend({"tokens": 120.0}))
    desk.ask(job, 3, SpawnMessage("kid", 1, child, "cancel"))
    desk.run()
    journal, spent, spawned = (answer for _, _, answer in desk.answers)
    assert isinstance(journal, JournalPage)
    assert isinstance(spent, SpentAnswer)
    assert "120 of 100 tokens" in (spent.spent.exceeded or "")
    assert isinstance(spawned, ChildAnswer)
    assert spawned.child.id == child.id


def test_one_refused_step_does_not_cost_the_others_theirs(desk: Desk, store: SqlStore) -> None:
    good, bad = desk.job(), desk.job()
    desk.store.spoils = lambda step: InvalidInput("too many steps") if step.ref == bad.ref else None
    desk.step(good, 1)
    desk.step(bad, 1)
    desk.step(good, 2)
    desk.run(6)
    answers = {(ref, serial): answer for ref, serial, answer in desk.answers}
    assert answers[good.ref, 1] == answers[good.ref, 2] == Done()
    assert answers[bad.ref, 1] == RefusedMessage("InvalidInput", "too many steps")


def test_an_error_of_any_kind_is_an_answer(desk: Desk) -> None:
    job = desk.job()
    desk.store.spoils = lambda _: RuntimeError("a bug")
    desk.step(job, 1)
    desk.run()
    ((_, _, answer),) = desk.answers
    assert isinstance(answer, RefusedMessage)
    assert "a bug" in answer.message


def test_flow_calls_outlast_a_store_that_is_away(desk: Desk, store: SqlStore) -> None:
    job = desk.job()
    desk.store.is_away = True
    for serial in range(1, 4):
        desk.step(job, serial)
    desk.ask(job, 4, LoadJournal(0))
    desk.run(5)
    assert desk.answers == []
    desk.store.is_away = False
    desk.run(5)
    assert [serial for _, serial, _ in desk.answers] == [1, 2, 3, 4]


def test_a_flow_call_that_no_store_call_can_carry_is_refused_in_the_end(desk: Desk) -> None:
    bad, good = desk.job(), desk.job()
    desk.store.spoils = lambda step: StoreUnavailable("it took too long") if step.ref == bad.ref else None
    desk.step(bad, 1)
    desk.step(good, 1)
    desk.run(8)
    answers = {ref: answer for ref, _, answer in desk.answers}
    assert answers == {bad.ref: RefusedMessage("StoreUnavailable", "it took too long"), good.ref: Done()}


def test_an_attempt_that_is_not_ours_any_more_is_told_and_revoked(desk: Desk, store: SqlStore) -> None:
    job = desk.job()
    settle(store, desk.worker, job.ref, Returned("1"))
    desk.step(job, 1)
    desk.ask(job, 2, LoadJournal(0))
    desk.run()
    assert [answer for _, _, answer in desk.answers] == [Fenced(), Fenced()]
    assert set(desk.revoked) == {job.ref}


def test_flow_calls_of_an_attempt_that_was_dropped_are_not_carried_out(desk: Desk, store: SqlStore) -> None:
    job = desk.job()
    desk.step(job, 1)
    desk.ledger.drop(job.ref)
    desk.run()
    assert desk.answers == []
    assert store.steps_of(TENANT, job.id) == []


def test_a_report_goes_behind_the_steps_that_were_sent_before_it(desk: Desk, store: SqlStore) -> None:
    job, other = desk.job(), desk.job()
    desk.step(job, 1)
    desk.step(job, 2)
    assert desk.end(job)
    assert not desk.end(other)
    assert desk.reports == []
    desk.run()
    assert [report.ref for report in desk.reports] == [job.ref]
    assert len(store.steps_of(TENANT, job.id)) == 2
    assert not desk.flow_calls.keep_back(Report(job.ref, Returned("1")))


def test_a_report_does_not_wait_for_a_store_that_is_away(desk: Desk) -> None:
    job, other = desk.job(), desk.job()
    desk.store.is_away = True
    for serial in range(1, BATCH + 50):
        desk.step(other, serial)
    desk.step(job, 1)
    assert desk.end(job)
    desk.run()
    assert [report.ref for report in desk.reports] == [job.ref]


def test_reports_get_through_whatever_the_timing(desk: Desk) -> None:
    """The main thread takes and holds while the loop runs: no report is lost, none doubled."""
    jobs = [desk.job() for _ in range(60)]
    is_over = threading.Event()

    def loop() -> None:
        while not is_over.is_set():
            desk.run()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    direct = []
    for job in jobs:
        desk.step(job, 1)
        if not desk.end(job):
            direct.append(job.ref)
    for _ in range(500):
        if len(desk.reports) + len(direct) == len(jobs):
            break
        threading.Event().wait(0.01)
    is_over.set()
    thread.join(5)
    assert sorted([*direct, *(report.ref for report in desk.reports)]) == sorted(job.ref for job in jobs)
