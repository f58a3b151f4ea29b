"""Sessions of ours whose answers nobody reads end by themselves, with the locks they hold; those of others stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.budgets import endless
from tests.support.builders import a_worker, claim_all, submitted
from tests.support.eventually import eventually
from tests.support.postgres import server_on_tcp
from unstuck.clock import boot
from unstuck.janitor.unread import UnreadDuty
from unstuck.model.times import Times
from unstuck.store.drivers.postgres_pool import Dialler, PooledConnection, conninfo_of
from unstuck.store.drivers.statements import MARK
from unstuck.store.drivers.watchdog import CallWatchdog
from unstuck.store.sql_store import SqlStore

only_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
HASTY = replace(Times(), store_call=0.05)
LARGE = "SELECT repeat('x', 1000000) FROM generate_series(1, 50)"


def connected(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True)


def ask(connection: psycopg.Connection[Any], text: str) -> int:
    """And never read; the pid of the session that tries to answer."""
    connection.pgconn.send_query(text.encode())
    while connection.pgconn.flush():
        pass
    return connection.info.backend_pid


def waits_to_send(url: str, pid: int) -> bool:
    with psycopg.connect(url) as watcher:
        row = watcher.execute(
            "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND wait_event = 'ClientWrite'",
            (pid,),
        ).fetchone()
        return row is not None


def is_there(url: str, pid: int) -> bool:
    with psycopg.connect(url) as watcher:
        return watcher.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone() is not None


@only_postgres
def test_a_session_that_nobody_reads_is_ended_and_its_rows_are_free(store: SqlStore, store_url: str) -> None:
    """As a claim of a worker that was frozen in the middle of it, before claims were bounded."""
    job = submitted(store)
    bob, duty = a_worker(store, "bob"), UnreadDuty(store, HASTY)
    with closing(connected(store_url)) as frozen:
        pid = ask(frozen, f"{MARK} WITH gone AS (DELETE FROM unstuck_ready RETURNING job) {LARGE}, gone")
        eventually(lambda: waits_to_send(store_url, pid))
        assert claim_all(store, bob) == []
        eventually(lambda: [session.pid for session in store.unread_sessions(0.2)] == [pid])

        assert duty.tick(0.0, endless()) == 0, "it was seen only once"
        assert duty.tick(0.0, endless()) == 1

        eventually(lambda: not is_there(store_url, pid))
        assert [claimed.id for claimed in claim_all(store, bob)] == [job.id]
        assert duty.tick(0.0, endless()) == 0


@only_postgres
def test_sessions_of_others_and_young_ones_are_left_alone(store: SqlStore, store_url: str) -> None:
    duty = UnreadDuty(store, HASTY)
    with closing(connected(store_url)) as others, closing(connected(store_url)) as young:
        theirs, ours = ask(others, LARGE), ask(young, f"{MARK} {LARGE}")
        eventually(lambda: waits_to_send(store_url, theirs) and waits_to_send(store_url, ours))
        patient = UnreadDuty(store, Times())
        assert [patient.tick(0.0, endless()) for _ in range(3)] == [0, 0, 0]
        eventually(lambda: [session.pid for session in store.unread_sessions(0.2)] == [ours])

        assert sum(duty.tick(0.0, endless()) for _ in range(3)) == 1

        eventually(lambda: not is_there(store_url, ours))
        assert waits_to_send(store_url, theirs)


@only_postgres
def test_a_session_that_went_on_meanwhile_is_not_ended(store: SqlStore, store_url: str) -> None:
    with closing(connected(store_url)) as slow:
        pid = ask(slow, f"{MARK} {LARGE}")
        (seen,) = eventually(lambda: store.unread_sessions(0.0))
        while slow.pgconn.get_result() is not None:
            pass
        ask(slow, f"{MARK} {LARGE}")
        eventually(lambda: waits_to_send(store_url, pid))

        assert not store.end_unread_session(seen)
        assert is_there(store_url, pid)


def test_sqlite_has_no_sessions(store: SqlStore, store_url: str) -> None:
    assert UnreadDuty(store, HASTY).tick(0.0, endless()) == 0


# --- over TCP -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tcp_url() -> Iterator[str]:
    with server_on_tcp() as (near, far):
        yield far.url(str(conninfo_to_dict(near.create())["dbname"]))


def dialled(url: str, store_call: float) -> PooledConnection:
    dialler = Dialler(conninfo_of(url, store_call, "unstuck"), store_call, None, CallWatchdog())
    return dialler.dial(boot() + 10, lambda late: late.close())


def test_over_tcp_the_server_itself_gives_up_after_a_store_call(tcp_url: str) -> None:
    connection = dialled(tcp_url, store_call=1.0)
    pid = ask(connection.driver, LARGE)
    eventually(lambda: waits_to_send(tcp_url, pid))

    eventually(lambda: not is_there(tcp_url, pid), timeout=15)
    connection.close()


def test_a_call_that_is_cut_ends_a_server_that_is_sending(tcp_url: str) -> None:
    """The line alone only says goodbye; closed with unread bytes in it, the connection is reset."""
    connection = dialled(tcp_url, store_call=60.0)
    pid = ask(connection.driver, LARGE)
    eventually(lambda: waits_to_send(tcp_url, pid))

    connection.line.cut()
    connection.close()

    eventually(lambda: not is_there(tcp_url, pid), timeout=10)
