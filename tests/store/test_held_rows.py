"""A person in psql holds one row: what serves everybody goes on, and comes back for it. PostgreSQL's own trouble."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.store.test_bad_rows import MANY, fifty_one, states
from tests.support.builders import TENANT, a_job, a_worker, begin, boom, claim_all, claimed, record
from unstuck.model.errors import StoreBusy
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import Outcome, Returned
from unstuck.store.port import HELD, AttemptOutput, NewChild, NewStep, Report, Verdict
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def store_url(postgres_url: str) -> str:
    return postgres_url


HELD_ROWS = {
    "running": "SELECT 1 FROM unstuck_running WHERE job = %s FOR UPDATE",
    "jobs": "SELECT 1 FROM unstuck_jobs WHERE id = %s FOR UPDATE",
    "target": "SELECT 1 FROM unstuck_targets WHERE id = (SELECT target FROM unstuck_jobs WHERE id = %s) FOR UPDATE",
}


@contextmanager
def holding(url: str, what: str, job: int) -> Iterator[None]:
    with psycopg.connect(url) as person:
        person.execute(HELD_ROWS[what].encode(), (job,))
        yield
        person.rollback()


@contextmanager
def quickly(seconds: float = 3.0) -> Iterator[None]:
    """Well below what waiting for a lock would take: 1.2 s, twice, for each call."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < seconds


def on_targets(store: SqlStore, worker: object, count: int = MANY) -> list[ClaimedJob]:
    store.submit([a_job(target=f"t{n}", retries=0) for n in range(count)])
    store.ingest()
    attempts = claim_all(store, worker)  # type: ignore[arg-type]
    assert len(attempts) == count
    return attempts


@pytest.mark.parametrize("outcome", [Returned("42"), boom()], ids=["returned", "raised"])
@pytest.mark.parametrize("what", HELD_ROWS)
def test_a_report_whose_row_is_held_is_busy_and_all_others_settle(
    store: SqlStore, store_url: str, what: str, outcome: Outcome
) -> None:
    worker = a_worker(store)
    attempts = on_targets(store, worker)
    reports = [Report(attempt.ref, outcome, duration_ms=1, has_target=True) for attempt in attempts]
    held = attempts[17]
    with holding(store_url, what, held.ref.job), quickly():
        answers = {answer.ref: answer for answer in store.settle(worker.number, reports)}
        busy = [ref for ref, answer in answers.items() if answer.verdict is not Verdict.DONE]
    if what == "jobs" and isinstance(outcome, Returned):
        assert busy == []  # nothing is written there
        return
    assert busy == [held.ref]
    assert (answers[held.ref].verdict, answers[held.ref].problem) == (Verdict.BUSY, HELD)
    assert {answer.verdict for answer in store.settle(worker.number, reports)} == {Verdict.DONE}
    assert len(states(store)) == 1


def test_a_plain_report_whose_row_is_held_is_busy_and_all_others_settle(store: SqlStore, store_url: str) -> None:
    """By one statement, the hottest of all."""
    worker = a_worker(store)
    attempts = fifty_one(store, worker)
    reports = [Report(attempt.ref, Returned("42"), duration_ms=1) for attempt in attempts]
    with holding(store_url, "running", attempts[17].ref.job), quickly():
        answers = store.settle(worker.number, reports)
    assert [answer.verdict for answer in answers].count(Verdict.DONE) == MANY - 1
    assert {answer.verdict for answer in store.settle(worker.number, reports)} == {Verdict.DONE}
    assert record(store, attempts[17].id).result == "42"


def test_a_lock_that_cannot_be_skipped_is_found_within_about_a_second(store: SqlStore, store_url: str) -> None:
    """A child of one of four hundred that fail is held: its end wants to write there."""
    worker = a_worker(store)
    store.submit([a_job(retries=0, workflow="w") for _ in range(400)])
    attempts = claim_all(store, worker)
    parent = attempts[123]
    store.spawn(NewChild(parent.ref, "kid", 1, a_job(workflow="kid")))
    reports = [Report(attempt.ref, boom(), duration_ms=1) for attempt in attempts]
    with psycopg.connect(store_url) as person:
        person.execute("SELECT 1 FROM unstuck_children WHERE parent = %s FOR UPDATE", (parent.ref.job,))
        with quickly(8.0):  # on a crowded machine; 400 settlements in nine parts are most of it
            answers = {answer.ref: answer for answer in store.settle(worker.number, reports)}
        assert [ref for ref, answer in answers.items() if answer.verdict is Verdict.BUSY] == [parent.ref]
        person.rollback()
    (answer,) = store.settle(worker.number, [Report(parent.ref, boom())])
    assert answer.verdict is Verdict.DONE


def test_a_stale_report_is_fenced_and_never_busy(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    clock.advance(seconds=60)
    store.recover_lost(0)
    with holding(store_url, "jobs", attempt.ref.job):
        (answer,) = store.settle(worker.number, [Report(attempt.ref, boom())])
    assert answer.verdict is Verdict.FENCED


@pytest.mark.parametrize("what", HELD_ROWS)
def test_a_lost_job_whose_row_is_held_keeps_no_other_lost(
    store: SqlStore, store_url: str, clock: StoreClock, what: str
) -> None:
    attempts = on_targets(store, a_worker(store))
    clock.advance(seconds=60)
    with holding(store_url, what, attempts[17].ref.job), quickly():
        assert len(store.recover_lost(0)) == MANY - 1
        assert store.recover_lost(0) == []
    assert [found.id for found in store.recover_lost(0)] == [attempts[17].id]
    assert store.quarantined() == []


def test_a_worker_whose_row_is_held_keeps_no_other_workers_jobs_lost(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    held = a_worker(store)
    mine, others = claimed(store, held), [claimed(store, a_worker(store, name=f"w{n}")) for n in range(3)]
    clock.advance(seconds=60)
    with psycopg.connect(store_url) as person:
        person.execute("SELECT 1 FROM unstuck_workers WHERE id = %s FOR UPDATE", (held.number,))
        with quickly():
            assert {found.id for found in store.recover_lost(0)} == {attempt.id for attempt in others}
        person.rollback()
    assert [found.id for found in store.recover_lost(0)] == [mine.id]


@pytest.mark.parametrize("what", HELD_ROWS)
def test_a_stuck_job_whose_row_is_held_keeps_no_other_running(
    store: SqlStore, store_url: str, clock: StoreClock, what: str
) -> None:
    worker = a_worker(store, lease=1e6)
    store.submit([a_job(target=f"t{n}", timeout=10.0, grace=1.0) for n in range(9)])
    store.ingest()
    attempts = claim_all(store, worker)
    begin(store, worker, *attempts)
    clock.advance(seconds=60)
    with holding(store_url, what, attempts[4].ref.job), quickly():
        assert len(store.convict_overdue(5, 30)) == 8
    assert [found.id for found in store.convict_overdue(5, 30)] == [attempts[4].id]


@pytest.mark.parametrize("what", ["jobs", "target", "timer"])
def test_a_timer_or_a_stay_whose_row_is_held_keeps_no_other_waiting(
    store: SqlStore, store_url: str, clock: StoreClock, what: str
) -> None:
    jobs = [a_job(expires_after=10.0, target=f"t{n}") for n in range(9)]
    later = [a_job(delay=10.0, workflow="later") for _ in range(9)]
    store.submit([*jobs, *later])
    store.ingest()
    clock.advance(seconds=20)
    with psycopg.connect(store_url) as person:
        if what == "timer":
            number = record(store, later[4].id).number
            person.execute("SELECT 1 FROM unstuck_timers WHERE job = %s FOR UPDATE", (number,))
        else:
            person.execute(HELD_ROWS[what].encode(), (record(store, jobs[4].id).number,))
        with quickly():
            assert store.release_due() == 17
        person.rollback()
    assert store.release_due() == 1
    assert store.quarantined() == []


def test_timers_that_somebody_holds_do_not_hide_those_behind_them(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    store.submit([a_job(delay=10.0) for _ in range(30)])
    clock.advance(seconds=20)
    with psycopg.connect(store_url) as person:
        person.execute(
            "SELECT 1 FROM unstuck_timers WHERE job IN (SELECT job FROM unstuck_timers ORDER BY due_at, job LIMIT 10)"
            " FOR UPDATE"
        )
        assert store.release_due(batch=5) == 10  # five of the first that are free, and five of the last
        person.rollback()


def test_an_orphan_or_a_barred_job_whose_target_is_held_keeps_no_other_waiting(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    store.submit([a_job(target=f"t{n}", workflow="unheard-of") for n in range(9)])
    store.ingest()
    (orphans,) = {front.route for front in store.open_routes()}
    store.submit([a_job(target=f"b{n}", workflow="bad") for n in range(9)])
    store.ingest()
    store.blacklist_add(TENANT, "bad", "x", "kim")
    clock.advance(hours=2)
    with psycopg.connect(store_url) as person:
        person.execute("SELECT 1 FROM unstuck_targets WHERE name IN ('t4', 'b4') FOR UPDATE")
        with quickly():
            assert store.fail_orphans(orphans, 3600) == 8
            assert store.tend_guard() == 8
        person.rollback()
    assert (store.fail_orphans(orphans, 3600), store.tend_guard()) == (1, 1)


@pytest.mark.parametrize("what", HELD_ROWS)
def test_a_held_row_costs_no_lease(store: SqlStore, store_url: str, clock: StoreClock, what: str) -> None:
    worker = a_worker(store)
    held, *strays = on_targets(store, worker, 9)
    starts = {held.ref.job: clock.now()}
    with holding(store_url, what, strays[4].ref.job), holding(store_url, "running", held.ref.job), quickly():
        beat = store.beat(worker.number, 30, [held.ref], started=starts)
    assert (beat.alive, beat.gone, beat.unstarted) == (True, (), frozenset({held.ref.job}))
    assert set(beat.unheld) == {stray.ref for stray in strays} - {strays[4].ref}
    again = store.beat(worker.number, 30, [held.ref], started=starts)
    assert (again.unheld, again.unstarted) == ((strays[4].ref,), frozenset())


def test_words_and_steps_of_a_held_attempt_are_busy_and_those_of_others_are_written(
    store: SqlStore, store_url: str
) -> None:
    worker = a_worker(store)
    held, free = claimed(store, worker), claimed(store, worker)
    steps = [NewStep(attempt.ref, "s", 1, "1", 1) for attempt in (held, free)]
    remarks = [AttemptOutput(attempt.ref, output="said\n", at=0) for attempt in (held, free)]
    with holding(store_url, "running", held.ref.job), quickly():
        assert store.record_steps(steps) == [Verdict.BUSY, Verdict.DONE]
        assert store.keep_output(remarks) == [Verdict.BUSY, Verdict.DONE]
        with pytest.raises(StoreBusy):
            store.spend(held.ref, 1, {"tokens": 1})
        with pytest.raises(StoreBusy):
            store.ask(held.ref, RequestKind.TIMEOUT, "late")
    assert store.record_steps(steps) == [Verdict.DONE, Verdict.DONE]
    assert store.keep_output(remarks) == [Verdict.DONE, Verdict.DONE]
    assert record(store, held.id).state is JobState.RUNNING
