"""A worker whose one report, word, hold, step or request cannot be written: all others go on, and nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.store.test_held_rows import holding
from tests.support.builders import TENANT, a_job, a_worker, claim_all, claimed, record
from tests.support.eventually import eventually
from tests.support.outage import database_away
from tests.support.troubles import allow, refuse, waits_for_a_lock
from tests.support.troubles import holding as person_holding
from tests.worker.test_flow_calls import Desk
from unstuck.clock import MachineClock
from unstuck.executor.messages import Done, RecordStep, RefusedMessage, Spend, SpentAnswer
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import ErrorInfo, Returned, Stuck
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import Asked, Report, Settled
from unstuck.store.sql_store import SqlStore
from unstuck.worker import flow_calls
from unstuck.worker.heartbeat import Heartbeat
from unstuck.worker.ledger import Ledger
from unstuck.worker.requests import PendingRequest, Requests
from unstuck.worker.settle import Settler

MANY = 51


class Office:
    """A worker that holds many jobs, and its settler."""

    def __init__(self, store: SqlStore, **options: Any) -> None:
        self.store = store
        self.worker = a_worker(store, lease=1e6)
        store.submit([a_job(**options) for _ in range(MANY)])
        store.ingest()
        self.jobs = claim_all(store, self.worker)
        assert len(self.jobs) == MANY
        self.ledger = Ledger()
        for job in self.jobs:
            self.ledger.admit(job.ref.claim, [job], 0.0)
        self.told: list[Settled] = []
        self.settler = Settler(store, self.worker.number, self.ledger, MachineClock(), settled=self.told.extend)

    def report(self, *jobs: ClaimedJob) -> None:
        for job in jobs:
            self.ledger.end(job.ref)
        self.settler.report([Report(job.ref, Returned('"precious"'), duration_ms=1) for job in jobs])

    def until(self, check: Callable[[], bool], within: float = 20.0) -> None:
        def done() -> bool:
            self.settler.tick()
            return check()

        eventually(done, timeout=within, every=0.0)

    def state(self, job: ClaimedJob) -> JobState:
        return record(self.store, job.id).state


@pytest.fixture
def server(postgres_url: str) -> Iterator[SqlStore]:
    opened = SqlStore(open_database(postgres_url))
    yield opened
    opened.close()


# --- the settler --------------------------------------------------------------------------------------------------


def test_a_report_that_is_refused_waits_in_quarantine_with_its_result_until_it_can_be_written(
    store: SqlStore, store_url: str
) -> None:
    office = Office(store)
    bad, others = office.jobs[17], [job for job in office.jobs if job is not office.jobs[17]]
    refuse(store_url, "unstuck_done", f"NEW.job = {bad.ref.job}")
    office.report(*office.jobs)

    office.settler.tick()

    assert {office.state(job) for job in others} == {JobState.COMPLETED}
    assert office.state(bad) is JobState.RUNNING
    (found,) = store.quarantined(TENANT, job=bad.id)
    assert (found.duty, found.by, "not for you" in found.error) == (
        "settle",
        f"worker {office.worker.number}",
        True,
    )
    assert [news.title for news in store.notifications()] == ["Set aside: settle"]
    assert office.ledger.unsettled == 1  # a beat does not take it for a stray
    office.until(lambda: store.quarantined()[0].tries >= 3)
    allow(store_url, "unstuck_done")
    office.until(lambda: office.state(bad) is JobState.COMPLETED)
    assert record(store, bad.id).result == '"precious"'
    assert (store.quarantined(), office.ledger.unsettled) == ([], 0)


def test_what_comes_behind_a_report_that_is_refused_does_not_wait_for_it(store: SqlStore, store_url: str) -> None:
    office = Office(store)
    bad, *others = office.jobs
    refuse(store_url, "unstuck_events", f"NEW.job = {bad.ref.job}")
    office.report(bad)
    for number, job in enumerate(others[:20]):
        if number < 8:  # by then it is tried as rarely as it ever is
            office.settler.tick()
        office.report(job)
        office.settler.tick()
        assert office.state(job) is JobState.COMPLETED


def test_a_report_whose_row_is_held_for_long_is_in_quarantine_and_lands_afterwards(
    server: SqlStore, postgres_url: str
) -> None:
    office = Office(server)
    bad = office.jobs[17]
    with holding(postgres_url, "running", bad.ref.job):
        office.report(*office.jobs)
        began = time.monotonic()
        office.settler.tick()
        assert time.monotonic() - began < 5
        assert server.counts(TENANT)[JobState.COMPLETED] == MANY - 1
        assert server.quarantined() == []  # most locks pass, and are no news
        office.until(lambda: server.quarantined(TENANT, job=bad.id) != [])
    office.until(lambda: office.state(bad) is JobState.COMPLETED)
    assert (record(server, bad.id).result, server.quarantined()) == ('"precious"', [])


def test_a_report_of_an_attempt_that_was_taken_away_meanwhile_goes_by_the_fence(
    store: SqlStore, store_url: str
) -> None:
    office = Office(store)
    bad = office.jobs[17]
    refuse(store_url, "unstuck_done", f"NEW.job = {bad.ref.job}")
    office.report(bad)
    office.settler.tick()
    assert store.quarantined() != []
    store.unregister_worker(office.worker.number)

    office.until(lambda: office.ledger.unsettled == 0)

    assert store.quarantined() == []
    assert office.state(bad) is JobState.QUEUED


def test_a_settler_rests_while_all_it_has_is_set_aside(store: SqlStore, store_url: str) -> None:
    office = Office(store)
    bad = office.jobs[17]
    refuse(store_url, "unstuck_done", f"NEW.job = {bad.ref.job}")
    office.report(bad)
    office.until(lambda: bool(store.quarantined()) and store.quarantined()[0].tries >= 6)
    calls = store.quarantined()[0].tries
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        office.settler.tick()
    assert store.quarantined()[0].tries - calls <= 2


def test_words_that_cannot_be_written_do_not_keep_their_handler_from_ending(store: SqlStore, store_url: str) -> None:
    office = Office(store)
    bad, other = office.jobs[:2]
    refuse(store_url, "unstuck_outputs", f"NEW.job = {bad.ref.job}")
    for job in (bad, other):
        office.settler.say(job.ref, "output", "said\n")
    office.report(bad, other)

    office.settler.tick()

    assert office.state(other) is JobState.COMPLETED
    assert store.attempts(TENANT, other.id)[0].output == "said\n"
    office.until(lambda: office.state(bad) is JobState.COMPLETED, within=5.0)


def test_words_that_could_not_be_written_for_a_moment_stand_once_and_in_order(
    server: SqlStore, postgres_url: str
) -> None:
    office = Office(server)
    job = office.jobs[0]
    with holding(postgres_url, "running", job.ref.job):
        for word in ("one\n", "two\n"):
            office.settler.say(job.ref, "output", word)
            office.settler.tick()
    office.settler.say(job.ref, "output", "three\n")
    office.until(lambda: server.attempts(TENANT, job.id)[0].output == "one\ntwo\nthree\n")


def test_a_body_mark_that_cannot_be_lifted_keeps_no_other(store: SqlStore, store_url: str) -> None:
    office = Office(store, target=None)
    bad, good = office.jobs[:2]
    for job in (bad, good):
        office.ledger.end(job.ref)
    office.settler.report([Report(job.ref, Stuck(ErrorInfo("ExecutionStuck", "…"))) for job in (bad, good)])
    office.until(lambda: record(store, good.id).held)
    refuse(store_url, "unstuck_body_marks", f"OLD.job = {bad.ref.job}", on="DELETE")
    for job in (bad, good):
        office.settler.body_gone(job.ref.job)

    office.until(lambda: not record(store, good.id).held)

    assert record(store, bad.id).held
    allow(store_url, "unstuck_body_marks")
    office.until(lambda: not record(store, bad.id).held)


# --- the beat -----------------------------------------------------------------------------------------------------


def test_a_worker_beats_on_while_somebody_holds_one_of_its_rows(server: SqlStore, postgres_url: str) -> None:
    """The start that could not be written is told again, until it is."""
    office = Office(server)
    job = office.jobs[17]
    holding_of = office.ledger.get(job.ref)
    assert holding_of is not None
    holding_of.begin(0.0, 0.0)
    holding_of.started_at = 0.0
    renewed: list[object] = []
    heart = Heartbeat(
        server,
        office.worker.number,
        office.ledger,
        Times(),
        MachineClock(),
        describe=lambda: ("active", {}),
        renewed=lambda _, beat: renewed.append(beat),
        fenced=lambda: renewed.append("fenced"),
    )
    with holding(postgres_url, "running", job.ref.job):
        heart.tick()
        assert (len(renewed), holding_of.start_reported) == (1, False)
    heart.tick()
    assert (len(renewed), holding_of.start_reported) == (2, True)
    assert record(server, job.id).started_at is not None


def test_claims_go_on_while_somebody_holds_the_row_of_their_worker(server: SqlStore, postgres_url: str) -> None:
    """The renewal waits for that row, as it must; a claim needs it for nothing."""
    office = Office(server)
    heart = Heartbeat(
        server,
        office.worker.number,
        office.ledger,
        Times(),
        MachineClock(),
        describe=lambda: ("active", {}),
        renewed=lambda _, beat: None,
        fenced=lambda: None,
    )
    with person_holding(postgres_url, "unstuck_workers", "TRUE") as person, ThreadPoolExecutor(2) as threads:
        beating = threads.submit(heart.tick)
        eventually(lambda: waits_for_a_lock(postgres_url))
        announced = threads.submit(office.ledger.announce, "c1")
        eventually(announced.done, timeout=0.5)
        assert not beating.done()
        person.rollback()
        assert beating.result(10) > 0


def until(desk: Desk, check: Callable[[], bool]) -> None:
    def done() -> bool:
        desk.run()
        return check()

    eventually(done, every=0.0)


# --- flow ---------------------------------------------------------------------------------------------------------


def test_flow_calls_of_a_held_attempt_keep_those_of_others_from_nothing(server: SqlStore, postgres_url: str) -> None:
    desk = Desk(server)
    held, free = desk.job(), desk.job()
    with holding(postgres_url, "running", held.ref.job):
        desk.ask(held, 1, Spend({"tokens": 1.0}))
        desk.step(held, 2)
        began = time.monotonic()
        for serial in range(1, 6):
            desk.ask(free, 2 * serial, Spend({"tokens": 1.0}))
            desk.step(free, 2 * serial + 1)
            desk.run()
        assert time.monotonic() - began < 5
        assert [ref for ref, _, _ in desk.answers] == [free.ref] * 10
    until(desk, lambda: len(desk.answers) == 12)
    answers = {serial: answer for ref, serial, answer in desk.answers if ref == held.ref}
    assert isinstance(answers[1], SpentAnswer)
    assert answers[2] == Done()


def test_a_handler_whose_row_stays_held_is_told_in_the_end(
    server: SqlStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_calls, "_PATIENCE", 0.5)
    desk = Desk(server)
    held = desk.job()
    with holding(postgres_url, "running", held.ref.job):
        desk.ask(held, 1, RecordStep("s", 1, "1", 1))
        until(desk, lambda: desk.answers != [])
    ((_, _, answer),) = desk.answers
    assert isinstance(answer, RefusedMessage)
    assert (answer.type, "holds one of its rows" in answer.message) == ("StoreBusy", True)


def test_a_handler_is_not_told_while_the_store_takes_nothing_from_anybody(
    store: SqlStore, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite's one lock, held: an outage, and no fault of the handler's."""
    monkeypatch.setattr(flow_calls, "_PATIENCE", 0.2)
    desk = Desk(store)
    job = desk.job()
    with database_away(store_url):
        desk.ask(job, 1, RecordStep("s", 1, "1", 1))
        desk.run(3)
        assert desk.answers == []
    until(desk, lambda: [answer for _, _, answer in desk.answers] == [Done()])


def test_a_step_that_is_refused_is_told_at_once_and_those_of_others_are_recorded(
    store: SqlStore, store_url: str
) -> None:
    desk = Desk(store)
    bad, good = desk.job(), desk.job()
    refuse(store_url, "unstuck_steps", f"NEW.job = {bad.ref.job}")
    desk.step(good, 1)
    desk.step(bad, 1)
    desk.step(good, 2)
    desk.run()
    answers = {(ref, serial): answer for ref, serial, answer in desk.answers}
    assert answers[good.ref, 1] == answers[good.ref, 2] == Done()
    assert isinstance(answers[bad.ref, 1], RefusedMessage)


# --- requests -----------------------------------------------------------------------------------------------------


def test_a_request_to_a_held_attempt_keeps_those_to_others_from_nothing(server: SqlStore, postgres_url: str) -> None:
    worker = a_worker(server)
    held, free = claimed(server, worker), claimed(server, worker)
    heard: list[Asked] = []
    requests = Requests(
        server,
        worker.number,
        Times(),
        MachineClock(),
        is_busy=lambda: False,
        heard=heard.append,
        revoked=lambda _: None,
        ordered=lambda _: None,
    )
    with holding(postgres_url, "running", held.ref.job):
        for job in (held, free):
            requests.ask(PendingRequest(job.ref, RequestKind.TIMEOUT, "late", job.id))
        began = time.monotonic()
        requests.tick()
        assert time.monotonic() - began < 2
        assert [asked.ref for asked in heard] == [free.ref]
    eventually(lambda: requests.tick() >= 0 and len(heard) == 2, every=0.0)
    assert record(server, held.id).request is RequestKind.TIMEOUT
