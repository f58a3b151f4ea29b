"""Row locks of others on PostgreSQL: they hold up what they lock, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    begin,
    chance,
    claim_all,
    claimed,
    record,
    settle,
    settle_all,
    submitted,
)
from tests.support.eventually import eventually
from unstuck.model.errors import StoreBusy
from unstuck.model.lifecycle import JobState
from unstuck.store.database import Transaction
from unstuck.store.drivers.connect import open_database
from unstuck.store.life import submit, sweep
from unstuck.store.port import AttemptOutput, Report, Submitted, Verdict
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """SQLite has one lock, on the file: these are PostgreSQL's own troubles."""
    return postgres_url


@pytest.fixture
def other(store_url: str) -> Iterator[SqlStore]:
    opened = SqlStore(open_database(store_url, store_call=20.0))
    yield opened
    opened.close()


def lock(connection: psycopg.Connection, job: int) -> None:
    """A person in psql, a backup, a forgotten transaction."""
    connection.execute("SELECT 1 FROM unstuck_jobs WHERE id = %s FOR UPDATE", (job,))


def test_one_locked_job_does_not_keep_the_others_of_its_worker_lost(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    worker = a_worker(store)
    store.submit([a_job() for _ in range(50)])
    attempts = claim_all(store, worker)
    clock.advance(seconds=60)
    with psycopg.connect(store_url) as person:
        lock(person, attempts[7].ref.job)

        assert len(store.recover_lost(0)) == 49

        assert store.recover_lost(0) == []
        assert record(store, attempts[7].id).state is JobState.RUNNING
        clock.advance(days=30)
        assert store.forget_workers(86400) == 0
    assert [found.id for found in store.recover_lost(0)] == [attempts[7].id]
    last = store.history(TENANT, attempts[7].id)[-1]
    assert (last.kind, last.data["error_type"], last.data["loss"]) == ("lost", "WorkerLost", 1)


def test_one_locked_job_does_not_keep_the_backstop_from_the_others(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    worker = a_worker(store, lease=1e6)
    attempts = [claimed(store, worker, timeout=10.0, grace=1.0) for _ in range(5)]
    begin(store, worker, *attempts)
    clock.advance(seconds=60)
    with psycopg.connect(store_url) as person:
        lock(person, attempts[2].ref.job)
        assert len(store.convict_overdue(5, 30)) == 4
    assert [found.id for found in store.convict_overdue(5, 30)] == [attempts[2].id]


def test_a_worker_that_leaves_while_one_of_its_jobs_is_locked_gives_that_one_back_later(
    store: SqlStore, store_url: str
) -> None:
    worker = a_worker(store)
    locked, free = claimed(store, worker, max_lost=0), claimed(store, worker, max_lost=0)
    with psycopg.connect(store_url) as person:
        lock(person, locked.ref.job)
        store.unregister_worker(worker.number)
        assert record(store, free.id).state is JobState.QUEUED
    store.recover_lost(0)
    assert (record(store, locked.id).state, record(store, locked.id).losses) == (JobState.QUEUED, 0)


def test_two_janitors_after_an_outage_convict_nothing_that_the_other_recovers(
    store: SqlStore, other: SqlStore, clock: StoreClock
) -> None:
    """Everything was down for an hour; one dead worker held many jobs; two workers start at once."""
    worker = a_worker(store)
    store.submit([a_job(timeout=10.0) for _ in range(120)])
    attempts = claim_all(store, worker)
    assert len(attempts) == 120
    begin(store, worker, *attempts, lease=30.0)
    clock.advance(hours=1)
    inside, go = threading.Event(), threading.Event()

    def recover_slowly(t: Transaction) -> None:
        lost = [sweep.LostAttempt(worker.number, attempt.ref.job) for attempt in attempts[:100]]
        sweep.recover_lost(t, other._tools, 0, worker.number, lost)
        inside.set()
        go.wait(10)

    first = threading.Thread(target=other._database.write, args=(recover_slowly,))
    first.start()
    assert inside.wait(10)

    assert store.recover_lost(0) == []
    assert store.convict_overdue(5, 30) == []

    go.set()
    first.join(20)
    assert len(store.recover_lost(0)) == 20
    assert store.counts()[JobState.QUEUED] == 120


def test_a_key_that_a_submit_has_just_taken_over_is_not_forgotten(
    store: SqlStore, other: SqlStore, clock: StoreClock
) -> None:
    """A45: the sweep sees the old key and neither waits for the submit nor takes it from under it."""
    worker = a_worker(store, lease=1e7)
    settle(store, worker, claimed(store, worker, key="k", fingerprint="f").ref)
    clock.advance(hours=25)
    new = a_job(key="k", fingerprint="f")
    numbers = other._name_ids.ensure(other._database, [new])
    inside, go = threading.Event(), threading.Event()

    def submit_slowly(t: Transaction) -> list[Submitted]:
        answer = submit.submit(t, [new], numbers, 86400.0)
        inside.set()
        go.wait(10)
        return answer

    taker = threading.Thread(target=other._database.write, args=(submit_slowly,))
    taker.start()
    assert inside.wait(10)
    assert store.forget_keys() == 0
    go.set()
    taker.join(10)

    assert store.forget_keys() == 0
    (again,) = store.submit([a_job(key="k", fingerprint="f")])
    assert (again.id, again.created) == (new.id, False)


def test_a_settle_comes_after_a_remark_under_way_and_loses_nothing_of_it(store: SqlStore, other: SqlStore) -> None:
    """The fence of a remark holds until its commit."""
    from unstuck.model.settlement import Returned
    from unstuck.store.life import output

    worker = a_worker(store)
    attempt = claimed(store, worker)
    inside, go = threading.Event(), threading.Event()

    def say_slowly(t: Transaction) -> None:
        output.write(t, [AttemptOutput(attempt.ref, output="said\n", progress="1")])
        inside.set()
        go.wait(10)

    speaker = threading.Thread(target=other._database.write, args=(say_slowly,))
    speaker.start()
    assert inside.wait(10)
    report = Report(attempt.ref, Returned("1"), output="end\n")
    (busy,) = store.settle(worker.number, [report])
    assert busy.verdict is Verdict.BUSY
    go.set()
    speaker.join(10)
    settle_all(store, worker.number, [report])

    assert record(store, attempt.id).state is JobState.COMPLETED
    assert store.attempts(TENANT, attempt.id)[0].output == "said\nend\n"


def test_a_failing_hint_is_no_failure_of_what_was_committed(store: SqlStore, store_url: str) -> None:
    """Any error of the notification itself: its queue is full, its table is broken."""
    submitted(store)
    with psycopg.connect(store_url, autocommit=True) as person:
        person.execute("DROP TABLE unstuck_idle")
        person.execute(
            "CREATE VIEW unstuck_idle AS SELECT 'x' AS listener, 1 / CAST(random() * 0 AS INTEGER) AS until"
        )
    job = a_job()

    (answer,) = store.submit([job])

    assert (answer.id, answer.created) == (job.id, True)
    assert store.cancel(TENANT, job.id, by=chance.nonce()).state is JobState.CANCELLED
    assert store.resume(TENANT, job.id, by="me").state is JobState.QUEUED


def idle_rows(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as person:
        row = person.execute("SELECT count(*) FROM unstuck_idle").fetchone()
    assert row is not None
    return int(row[0])


def test_a_listener_that_closes_takes_its_mark_away(store_url: str) -> None:
    for _ in range(3):
        listener = SqlStore(open_database(store_url))
        eventually(lambda listener=listener: listener.wait_for_work(1.0))  # type: ignore[misc]
        assert idle_rows(store_url) == 1
        listener.close()
        assert idle_rows(store_url) == 0


def test_marks_of_listeners_that_died_are_swept_once_they_are_long_past(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    listener = SqlStore(open_database(store_url))
    eventually(lambda: listener.wait_for_work(1.0))
    store.forget_workers(86400)
    assert idle_rows(store_url) == 1
    clock.advance(hours=2)
    store.forget_workers(86400)
    assert idle_rows(store_url) == 0
    listener.close()


def test_who_is_told_that_a_table_is_held_is_told_nothing_of_our_statement(store: SqlStore, store_url: str) -> None:
    """Check 25: callers over HTTP hear this sentence; PostgreSQL quotes the statement's line behind its own words."""
    impatient = SqlStore(open_database(store_url, store_call=0.5))
    with psycopg.connect(store_url) as person:
        person.execute("LOCK TABLE unstuck_pauses IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy) as told:
            impatient.pauses()
    impatient.close()
    assert "LINE" not in str(told.value)
