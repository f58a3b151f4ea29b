"""A submit in one round trip and a worker that goes idle: whoever comes second sees the other (decisions/0019)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from tests.store.test_pending import claim
from tests.support.builders import a_job, a_worker
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer
from unstuck.model.errors import StoreBusy
from unstuck.store.drivers.postgres import PostgresDatabase
from unstuck.store.drivers.postgres_flight import land
from unstuck.store.drivers.statements import Statements
from unstuck.store.sql_store import SqlStore

WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
#: Every job that is born waits here, as if its statement were slow, until the test lets go of the lock.
TURNSTILE = """
    CREATE FUNCTION turnstile() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pg_advisory_xact_lock_shared(14); RETURN NULL; END $$;
    CREATE TRIGGER turnstile AFTER INSERT ON unstuck_events FOR EACH STATEMENT EXECUTE FUNCTION turnstile()
"""


class Folded(Statements):
    """The naive way: the inserting statement looks for idle marks itself, and nothing follows its commit."""

    def __getitem__(self, name: str) -> str:
        if name == "notify_idle":
            return "SELECT 1"
        text = super().__getitem__(name)
        if name == "submit_at_once":
            look = super().__getitem__("notify_idle").replace("pg_notify('unstuck', CAST(%(word)s AS TEXT))", "1")
            hint = f"(SELECT count(pg_notify('unstuck', '')) FROM ({look}) AS look) AS told, clock.now, door.is_open"
            assert "clock.now, door.is_open" in text
            text = text.replace("clock.now, door.is_open", hint)
        return text


Opened = Callable[[Statements | None], SqlStore]


@pytest.fixture
def opened(postgres_server: PostgresServer) -> Iterator[Opened]:
    """Stores of one server, each with connections of its own."""
    url, stores = postgres_server.create(), []

    def open_store(statements: Statements | None = None) -> SqlStore:
        database = PostgresDatabase(url, application="unstuck-test", store_call=30.0, statements=statements)
        stores.append(SqlStore(database))
        return stores[-1]

    with psycopg.connect(url, autocommit=True) as hand:
        hand.execute(TURNSTILE)
    yield open_store
    for store in stores:
        store.close()
    postgres_server.drop(url)


@contextmanager
def turnstile_shut(store: SqlStore) -> Iterator[Callable[[], int]]:
    """Answers how many wait at it."""
    with psycopg.connect(store._database._conninfo, autocommit=True) as hand:  # type: ignore[attr-defined]
        hand.execute("SELECT pg_advisory_lock(14)")
        yield lambda: hand.execute(WAITING).fetchone()[0]  # type: ignore[index]
        hand.execute("SELECT pg_advisory_unlock(14)")


def is_heard(submitting: SqlStore, working: SqlStore) -> bool:
    """A submit has its snapshot; a worker marks itself idle, looks once more and sleeps; then the submit ends."""
    submitting.submit([a_job()])  # names are known, statements prepared
    worker = a_worker(working, lease=600.0)
    claim(working, worker, 10)
    with ThreadPoolExecutor(2) as threads:
        with turnstile_shut(submitting) as waiting:
            submitted = threads.submit(submitting.submit, [a_job()])
            eventually(lambda: waiting() == 1)
            assert working._database.wait(30.0), "it has just been marked: look once more"
            assert claim(working, worker, 10) == []
            asleep = threads.submit(working._database.wait, 3.0)
        submitted.result()
        return asleep.result() is not None


def test_a_submit_that_a_mark_overtakes_wakes_whoever_set_it(opened: Opened) -> None:
    assert is_heard(opened(None), opened(None))


def test_a_hint_inside_of_the_insert_would_be_missed(opened: Opened) -> None:
    """So the interleaving above is the one that matters."""
    assert not is_heard(opened(Folded("postgres")), opened(None))


def test_no_submit_of_many_is_slept_through(opened: Opened) -> None:
    """A worker that polls once in half a minute goes idle after each job; the next comes at any moment of that."""
    submitting, working = opened(None), opened(None)
    worker = a_worker(working, lease=600.0)
    jobs, taken, last = 150, threading.Semaphore(0), time.monotonic() + 25.0

    def work() -> int:
        done = 0
        while done < jobs and time.monotonic() < last:
            if found := claim(working, worker, 10):
                done += len(found)
                taken.release(len(found))
            else:
                working._database.wait(30.0)
        return done

    with ThreadPoolExecutor(1) as threads:
        worked = threads.submit(work)
        for number in range(jobs):
            submitting.submit([a_job()])
            assert taken.acquire(timeout=20.0), f"nobody heard of job {number}"
            time.sleep(number % 7 * 0.0003)
        assert worked.result() == jobs


def test_the_answer_to_a_hint_is_read_before_anything_else_is_asked(opened: Opened) -> None:
    """Of one connection: a read, a write that fails and a flight follow a flight, and none takes another's answer."""
    store = opened(None)
    for _ in range(10):
        job = a_job()
        assert [answer.created for answer in store.submit([job])] == [True]
        assert [answer.created for answer in store.submit([job])] == [False], "a repeat"
        assert store.get(job.tenant, job.id) is not None
        with pytest.raises(ZeroDivisionError):
            store._database.write(lambda t: 1 // 0)
    assert len(store._database._pool._idle) == 1  # type: ignore[attr-defined]


def test_texts_travel_as_they_are(opened: Opened) -> None:
    store = opened(None)
    texts = ["", '"', "\\", '\\"', "{}", ",", "NULL", "null", "ü\U0001f600", "a\nb\t", "'", '","', "%s %%", "$1"]
    jobs = [a_job(payload=text) for text in texts]

    assert all(answer.created for answer in store.submit(jobs))

    found = [store.get(job.tenant, job.id) for job in jobs]
    assert [job.payload for job in found if job is not None] == texts
    assert [job.number for job in found if job is not None] == sorted(job.number for job in found if job is not None)


def test_a_session_that_forgot_its_statements_prepares_them_again(opened: Opened) -> None:
    """The driver lets go of all that a session has prepared after some commands."""
    submitting, working = opened(None), opened(None)
    submitting.submit([a_job()])
    for _ in range(3):
        [connection] = submitting._database._pool._idle  # type: ignore[attr-defined]
        land(connection)
        connection.driver.execute("DEALLOCATE ALL")
        while working._database.wait(0.05):
            pass  # what was hinted before
        assert [answer.created for answer in submitting.submit([a_job()])] == [True]
        assert working._database.wait(20.0), "and the hint was heard"


REFUSAL = """
    CREATE FUNCTION refusal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'not today'; END $$;
    CREATE TRIGGER refusal BEFORE INSERT ON unstuck_events FOR EACH STATEMENT EXECUTE FUNCTION refusal()
"""


def test_a_first_submit_that_fails_spoils_its_session_for_nobody(opened: Opened) -> None:
    """Its statement was prepared all the same: to prepare it again would be refused."""
    store = opened(None)
    with psycopg.connect(store._database._conninfo, autocommit=True) as hand:  # type: ignore[attr-defined]
        hand.execute(REFUSAL)
        with pytest.raises(psycopg.Error, match="not today"):
            store.submit([a_job()])
        hand.execute("DROP TRIGGER refusal ON unstuck_events")

    job = a_job()
    assert store.submit([job])[0].created
    assert store.get(job.tenant, job.id) is not None


def test_a_statement_that_could_not_be_prepared_spoils_no_other(opened: Opened) -> None:
    """A lock on a table, as of `VACUUM FULL` or a migration, stops a statement before it is prepared. Only
    that one is prepared again: the session still knows the others, and would refuse to learn them twice."""
    working, url = opened(None), opened(None)._database._conninfo  # type: ignore[attr-defined]
    store = SqlStore(PostgresDatabase(url, application="unstuck-test", store_call=1.0))
    store.submit([a_job()])
    with psycopg.connect(url) as hand:
        hand.execute("LOCK TABLE unstuck_line IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreBusy):
            store.submit([a_job(target="t")])
    while working._database.wait(0.05):
        pass  # what was hinted before

    assert store.submit([a_job(target="t")])[0].created
    assert working._database.wait(20.0), "and the hint was heard"
    assert store.submit([a_job()])[0].created, "it was prepared before all that"
    store._database.close()
