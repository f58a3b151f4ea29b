"""What `health` asks the store: what nobody sweeps, what nobody ingests, who holds what; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_worker, begin, claimed, record, submitted
from tests.support.eventually import eventually
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

LATE = 20.0


def kinds(store: SqlStore) -> list[str]:
    return [found.what for found in store.overdue(LATE, backstop=35.0)]


def test_timers_that_nobody_sweeps_are_overdue_after_a_while(store: SqlStore, clock: StoreClock) -> None:
    job = submitted(store, delay=10.0)
    submitted(store, expires_after=60.0)
    clock.advance(29)
    assert kinds(store) == []
    clock.advance(2)
    [found] = store.overdue(LATE, backstop=35.0)
    assert (found.what, found.job, found.tenant) == ("start", job.id, "default")
    clock.advance(120)
    assert kinds(store) == ["start", "expire"]
    store.release_due()
    assert kinds(store) == []


def test_attempts_of_a_lost_worker_are_overdue_until_they_are_recovered(store: SqlStore, clock: StoreClock) -> None:
    a_worker(store, "old")
    ada, zoe = a_worker(store, "ada", lease=30.0), a_worker(store, "zoe", lease=40.0)
    jobs = [claimed(store, ada), claimed(store, zoe), claimed(store, zoe)]
    clock.advance(49)
    assert kinds(store) == []
    clock.advance(12)
    [first, second] = store.overdue(LATE, backstop=35.0)
    assert (first.what, first.worker, first.job) == ("lost", "ada", jobs[0].id)
    assert (second.what, second.worker) == ("lost", "zoe")
    store.recover_lost(0)
    assert kinds(store) == []


def test_attempts_beyond_their_backstop_are_overdue(store: SqlStore, clock: StoreClock) -> None:
    ada = a_worker(store, "ada")
    job = claimed(store, ada, timeout=10.0, grace=10.0)
    begin(store, ada, job)
    clock.advance(20 + 35 + LATE - 2)
    assert kinds(store) == []
    clock.advance(4)
    [found] = store.overdue(LATE, backstop=35.0)
    assert (found.what, found.worker, found.job) == ("backstop", "ada", job.id)


def test_what_is_in_quarantine_is_not_told_twice(store: SqlStore, clock: StoreClock) -> None:
    ada = a_worker(store, "ada", lease=30.0)
    lost, late = claimed(store, ada), submitted(store, delay=10.0)
    clock.advance(100)
    assert kinds(store) == ["start", "lost"]
    store.quarantine("recover", {lost.ref.job: "it raises"}, by="w1")
    assert kinds(store) == ["start"]
    store.quarantine("start", {record(store, late.id).number: "it raises"}, by="w1")
    assert kinds(store) == []


def test_an_entry_of_the_inbox_knows_since_when_it_stands_there(store: SqlStore, clock: StoreClock) -> None:
    assert (store.inbox_stand().since_at, store.inbox_stand().entries) == (None, 0)
    before = clock.now()
    for number in range(5):
        submitted(store, target=f"t{number}")
    stand = store.inbox_stand()
    assert stand.since_at is not None
    assert (stand.entries, store.inbox_stand(ceiling=3).entries) == (5, 3)
    assert 0 <= (stand.since_at - before).total_seconds() < 30
    store.ingest()
    assert store.inbox_stand().entries == 0


# --- who holds what -----------------------------------------------------------------------------------------------


def test_where_nobody_holds_anything_nobody_is_named(store: SqlStore) -> None:
    assert store.lock_holders(0.0) == []


@pytest.fixture
def server(server_url: str) -> Iterator[SqlStore]:
    opened = SqlStore(open_database(server_url, application="unstuck-test"))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "statement",
    ["SELECT 1 FROM unstuck_limits FOR UPDATE", "LOCK TABLE unstuck_limits", "UPDATE unstuck_limits SET rate = 1"],
)
def test_a_session_that_holds_something_of_ours_is_told_with_what_and_for_how_long(
    server: SqlStore, server_url: str, statement: str
) -> None:
    assert server.lock_holders(0.0) == []
    with psycopg.connect(server_url, application_name="lunch") as person:
        person.execute(statement.encode())
        assert server.lock_holders(600.0) == []
        [found] = eventually(lambda: server.lock_holders(0.5))
        assert (found.session.pid, found.session.application) == (person.info.backend_pid, "lunch")
        assert (found.held, found.waiting, found.session.doing) == (("unstuck_limits",), 0, "idle in transaction")
        assert found.held_for is not None
        assert 0.5 <= found.held_for < 60
    assert server.lock_holders(0.0) == []


def test_those_who_wait_for_a_holder_are_counted(server: SqlStore, server_url: str) -> None:
    with (
        psycopg.connect(server_url, application_name="lunch") as person,
        psycopg.connect(server_url, autocommit=True) as waiter,
    ):
        person.execute("LOCK TABLE unstuck_jobs")
        waiter.pgconn.send_query(b"SELECT COUNT(*) FROM unstuck_jobs")
        eventually(lambda: [found.waiting for found in server.lock_holders(0.0)] == [1])
        person.rollback()
        while waiter.pgconn.get_result() is not None:
            pass


def test_a_long_look_holds_nobody_up(server: SqlStore, server_url: str) -> None:
    """A dump, a report: reading locks no row."""
    with psycopg.connect(server_url) as reader:
        reader.execute("SELECT COUNT(*) FROM unstuck_jobs")
        assert server.lock_holders(0.0) == []


def test_a_long_look_that_an_alter_waits_for_is_told(server: SqlStore, server_url: str) -> None:
    """Everybody waits behind the one who wants the table, and he for the reader."""
    with (
        psycopg.connect(server_url, application_name="report") as reader,
        psycopg.connect(server_url, autocommit=True) as person,
    ):
        reader.execute("SELECT COUNT(*) FROM unstuck_jobs")
        person.pgconn.send_query(b"ALTER TABLE unstuck_jobs ADD COLUMN note TEXT")
        [found] = eventually(lambda: server.lock_holders(0.0))
        assert (found.session.pid, found.session.application) == (reader.info.backend_pid, "report")
        assert ("unstuck_jobs" in found.held, found.waiting) == (True, 1)
        reader.rollback()
        while person.pgconn.get_result() is not None:
            pass
    assert server.lock_holders(0.0) == []


def test_sessions_of_ours_are_told_only_when_no_call_takes_so_long(server: SqlStore, server_url: str) -> None:
    """On a busy machine ours are at work for seconds: whoever is paged for them finds nothing."""
    with (
        psycopg.connect(server_url, application_name="unstuck 0a1b2c3d") as named,
        psycopg.connect(server_url, application_name="shop") as marked,
    ):
        named.execute("LOCK TABLE unstuck_limits IN SHARE MODE")
        marked.execute("/* unstuck */ SELECT 1 FROM unstuck_jobs FOR UPDATE")
        with psycopg.connect(server_url, application_name="lunch") as person:
            person.execute("SELECT 1 FROM unstuck_jobs FOR UPDATE")
            assert [found.session.application for found in server.lock_holders(0.0)] == ["lunch"]
        with closing(open_database(server_url)) as database:
            rows = database.read(lambda t: t.all("lock_holders", longer=0, ours=0))
        assert {row["application_name"] for row in rows} == {"unstuck 0a1b2c3d", "shop"}


@pytest.mark.parametrize("how", ["pg_advisory_xact_lock_shared", "pg_advisory_xact_lock"])
def test_a_session_that_keeps_the_guard_is_told_shared_or_not(server: SqlStore, server_url: str, how: str) -> None:
    """Who has it shared keeps out whoever wants to make an entry of the blacklist."""
    with psycopg.connect(server_url, application_name="lunch") as person:
        person.execute(f"SELECT {how}(1970173813)".encode())
        [found] = server.lock_holders(0.0)
        assert (found.session.pid, found.held) == (person.info.backend_pid, ("the guard",))


def test_a_session_that_keeps_the_guard_outside_of_a_transaction_is_told(server: SqlStore, server_url: str) -> None:
    with psycopg.connect(server_url, application_name="lunch", autocommit=True) as person:
        person.execute("SELECT pg_advisory_lock(1970173813)")
        assert server.lock_holders(600.0) == []
        [found] = eventually(lambda: server.lock_holders(0.5))
        assert (found.session.pid, found.held) == (person.info.backend_pid, ("the guard",))
        assert found.held_for is not None
        assert 0.5 <= found.held_for < 60


def test_an_advisory_lock_is_told_once_a_session_of_ours_waits_for_it(server: SqlStore, server_url: str) -> None:
    """That of migrations, say, or the address of an event; what others agree upon is none of ours."""
    with (
        psycopg.connect(server_url, application_name="lunch") as person,
        psycopg.connect(server_url, autocommit=True) as ours,
    ):
        person.execute("SELECT pg_advisory_xact_lock(1970173812)")
        assert server.lock_holders(0.0) == []
        ours.pgconn.send_query(b"/* unstuck */ SELECT pg_advisory_xact_lock(1970173812)")
        [found] = eventually(lambda: server.lock_holders(0.0))
        assert (found.session.pid, found.held, found.waiting) == (
            person.info.backend_pid,
            ("an advisory lock",),
            1,
        )
        person.rollback()
        while ours.pgconn.get_result() is not None:
            pass
