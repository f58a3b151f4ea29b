"""PostgreSQL that freezes, dies, restarts or refuses: every call answers by its deadline and does not lie."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support import notes
from tests.support.eventually import eventually
from tests.support.postgres import Postgres, PostgresServer
from unstuck.model.errors import InvalidSettings, OutcomeUnknown, StoreBusy, StoreError, StoreUnavailable
from unstuck.store.database import Database, Transaction
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.postgres import PostgresDatabase
from unstuck.store.hint import Hint

DEADLINE = 0.6
SOON = DEADLINE + 0.6  # two shared cores: the deadline itself, and time to be scheduled


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    made = postgres_server.create()
    yield made
    postgres_server.drop(made)


@pytest.fixture
def notebook(url: str) -> Iterator[Database]:
    opened = notes.open_notes(url, store_call=DEADLINE, application="unstuck-faults")
    notes.make(opened)
    yield opened
    opened.close()


def took(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


def backend_of(tx: Transaction) -> int:
    row = tx.one("backend")
    assert row is not None
    return int(row["pid"])


def frozen(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def thawed(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


def test_a_frozen_server_cannot_hold_a_read_beyond_its_deadline(notebook: Database) -> None:
    backend = notebook.read(backend_of)
    frozen(backend)
    try:

        def ask() -> None:
            with pytest.raises(StoreUnavailable, match="in time"):
                notes.count(notebook)

        assert took(ask) < SOON
    finally:
        thawed(backend)
    assert notes.count(notebook) == 0


def test_a_server_frozen_before_the_commit_leaves_nothing(notebook: Database) -> None:
    stopped: list[int] = []

    def work(tx: Transaction) -> None:
        tx.run("add_note", id=1, text="never")
        stopped.append(backend_of(tx))
        frozen(stopped[0])
        tx.all("notes", id=None)

    def write() -> None:
        with pytest.raises(StoreUnavailable, match="nothing was written"):
            notebook.write(work)

    try:
        assert took(write) < SOON
    finally:
        thawed(stopped[0])
    assert notes.ids(notebook) == []


def test_a_server_frozen_in_the_commit_leaves_the_outcome_unknown(url: str) -> None:
    notebook = notes.open_notes(url, store_call=5.0)  # the server's own limits must not end the session first
    notes.make(notebook)
    stopped: list[int] = []

    def work(tx: Transaction) -> None:
        tx.run("add_note", id=1, text="perhaps")
        stopped.append(backend_of(tx))
        frozen(stopped[0])

    def write() -> None:
        with pytest.raises(OutcomeUnknown):
            notebook.write(work, within=DEADLINE)

    assert took(write) < SOON
    thawed(stopped[0])
    eventually(lambda: notes.ids(notebook) == [1])
    notebook.close()


def test_a_connection_that_died_in_the_pool_is_replaced_unseen(notebook: Database, url: str) -> None:
    backend = notebook.read(backend_of)
    terminate(url, backend)

    assert notes.add(notebook, 1) == 1
    assert notebook.read(backend_of) != backend


def test_a_connection_lost_before_the_commit_is_tried_again(notebook: Database, url: str) -> None:
    lost: list[int] = []

    def work(tx: Transaction) -> None:
        tx.run("add_note", id=1, text="")
        if not lost:
            lost.append(backend_of(tx))
            terminate(url, lost[0])
        tx.run("add_note", id=2, text="")

    notebook.write(work)

    assert notes.ids(notebook) == [1, 2]


def test_a_failure_that_the_closure_swallowed_is_not_reported_as_written(notebook: Database) -> None:
    """PostgreSQL answers such a COMMIT with ROLLBACK and no error."""

    def work(tx: Transaction) -> None:
        tx.run("add_note", id=1, text="")
        with pytest.raises(psycopg.errors.UniqueViolation):
            tx.run("add_note", id=1, text="")

    with pytest.raises(StoreUnavailable, match="nothing was written"):
        notebook.write(work)
    assert notes.ids(notebook) == []


def test_deadlocked_transactions_both_end_well(url: str) -> None:
    opened = notes.open_notes(url, store_call=10.0)
    notes.make(opened)
    notes.add(opened, 1)
    notes.add(opened, 2)
    met = threading.Barrier(2)
    runs: list[int] = []

    def cross(first: int, second: int) -> None:
        def work(tx: Transaction) -> None:
            runs.append(first)
            tx.one("lock_note", id=first)
            if len(runs) <= 2:
                met.wait(10)
            tx.one("lock_note", id=second)
            tx.run("change_note", id=second, text=f"from {first}")

        opened.write(work)

    threads = [threading.Thread(target=cross, args=pair) for pair in ((1, 2), (2, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    texts = [row["text"] for row in opened.read(lambda tx: tx.all("notes", id=None))]
    opened.close()
    assert texts == ["from 2", "from 1"]
    assert len(runs) == 3


def test_all_connections_busy_is_said_by_the_deadline(url: str) -> None:
    opened = notes.open_notes(url, store_call=DEADLINE, max_connections=1)
    entered, leave = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        entered.set()
        leave.wait(10)

    thread = threading.Thread(target=opened.read, args=(hold, 10.0))
    thread.start()
    assert entered.wait(10)

    def ask() -> None:
        with pytest.raises(StoreUnavailable, match="connections are busy"):
            opened.read(backend_of)

    assert took(ask) < SOON
    leave.set()
    thread.join(10)
    opened.close()


def test_nobody_listening_is_unavailable_at_once() -> None:
    opened = open_database("postgresql://nobody@127.0.0.1:1/none")

    def ask() -> None:
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            opened.schema_version()

    assert took(ask) < 2
    opened.close()


def test_a_black_hole_is_unavailable_by_the_deadline() -> None:
    """A port that accepts and never says a word: a firewall, a frozen postmaster."""
    with socket.create_server(("127.0.0.1", 0)) as hole:
        opened = open_database(f"postgresql://nobody@127.0.0.1:{hole.getsockname()[1]}/none", store_call=DEADLINE)

        def ask() -> None:
            with pytest.raises(StoreUnavailable, match="in time"):
                opened.schema_version()

        assert took(ask) < SOON
        opened.close()


def test_a_read_only_server_is_refused(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET default_transaction_read_only = on')
    opened = open_database(url)

    with pytest.raises(StoreUnavailable, match="read-only"):
        opened.schema_version()
    opened.close()


def test_no_password_reaches_an_error_message(url: str) -> None:
    opened = open_database("postgresql://me:hunter2@127.0.0.1:1/none")

    with pytest.raises(StoreUnavailable) as refused:
        opened.schema_version()
    opened.close()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(("setting", "some"), [("", True), ("&prepare=off", False), ("&prepare=50", False)])
def test_prepared_statements_can_be_turned_off_in_the_url(url: str, setting: str, some: bool) -> None:
    """A pooler that changes servers between transactions knows nothing of them."""
    opened = open_database(f"{url}{setting}")

    def prepared(tx: Any) -> int:
        for _ in range(10):
            tx.one("migration_table_exists")
        seen = tx._connection.execute("SELECT count(*) AS n FROM pg_prepared_statements", prepare=False)
        return int(seen.fetchone()["n"])

    assert (opened.write(prepared) > 0) is some
    opened.close()


def shown(url: str, setting: str) -> str:
    """A setting of the server, as a session that was opened with this URL has it."""
    opened = open_database(url)

    def ask(tx: Any) -> str:
        return str(tx._connection.execute(f"SHOW {setting}").fetchone()[setting])

    try:
        return opened.read(ask)
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("query", "setting", "value"),
    [
        ("&options=-c%20work_mem%3D5MB", "work_mem", "5MB"),
        ("&application_name=my%20app", "application_name", "my app"),
        ("&prepare=off&application_name=a%2Bb", "application_name", "a+b"),
        ("&application_name=last&prepare=off", "application_name", "last"),
    ],
)
def test_what_the_url_says_reaches_the_server_as_it_was_written(
    url: str, query: str, setting: str, value: str
) -> None:
    assert shown(f"{url}{query}", setting) == value


def test_a_url_may_leave_the_host_to_a_local_socket(url: str) -> None:
    given = conninfo_to_dict(url)
    name = given.pop("dbname")

    assert shown(f"postgresql:///{name}?prepare=off&{urlencode(given)}", "application_name") == "unstuck"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me:hunter2@localhost/x?foo=bar", 'parameter: "foo"'),
        ("postgresql://me:hunter2@[::1/x", "IPv6"),
        ("postgresql://me:hunter2%zz@localhost/x", "%25"),
        ("postgresql://me:hunter2@localhost/x?application_name=a%zz", '"a%zz"'),
        ("postgresql://me:hunter2/b@localhost/x", "%2F"),
        ("postgresql://me:p@hunter2@localhost/x", "%40"),
        ("postgresql://me@localhost:none/x", "port"),
        ("postgresql://me:hunter2@localhost:99999/x", "port"),
        ("postgresql://me:hunter2?@localhost/x?foo", "foo"),
        ("postgresql://localhost/x?password=hunter2&foo=bar", "foo"),
    ],
)
def test_a_url_that_cannot_hold_is_refused_without_its_password(url: str, told: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        open_database(url)
    assert "hunter2" not in str(refused.value)
    assert told in str(refused.value)
    assert refused.value.__cause__ is None


def test_the_session_has_its_own_limits(url: str) -> None:
    """So that the server gives up too when the client is gone, whatever its configuration says."""
    opened = notes.open_notes(url, store_call=2.0, application="unstuck-limits")

    limits = {row["name"]: row["setting"] for row in opened.read(lambda tx: tx.all("limits"))}

    opened.close()
    assert limits == {
        "application_name": "unstuck-limits",
        "client_connection_check_interval": "1000",
        "default_transaction_isolation": "read committed",
        "idle_in_transaction_session_timeout": "2000",
        "lock_timeout": "800",
        "statement_timeout": "1600",
        "synchronous_commit": "on",
    }


def test_a_transaction_with_more_time_has_it_on_the_servers_side_too(url: str) -> None:
    opened = notes.open_notes(url, store_call=2.0)

    def limits_of(tx: Transaction) -> dict[str, str]:
        return {row["name"]: row["setting"] for row in tx.all("limits")}

    longer = opened.write(limits_of, 30.0)
    usual = opened.write(limits_of)

    opened.close()
    assert (longer["statement_timeout"], longer["lock_timeout"]) == ("30000", "30000")
    assert (usual["statement_timeout"], usual["lock_timeout"]) == ("1600", "800")


def test_a_call_under_way_keeps_its_deadline_when_the_store_is_closed(notebook: Database) -> None:
    stopped: list[int] = []
    said: list[str] = []
    entered = threading.Event()

    def ask(tx: Transaction) -> None:
        stopped.append(backend_of(tx))
        frozen(stopped[0])
        entered.set()
        tx.all("notes", id=None)

    def call() -> None:
        try:
            notebook.read(ask)
        except StoreUnavailable as error:
            said.append(str(error))

    caller = threading.Thread(target=call)
    caller.start()
    assert entered.wait(10)
    try:
        notebook.close()
        caller.join(SOON + 1)
        assert not caller.is_alive()
    finally:
        thawed(stopped[0])
        caller.join(10)
    assert "in time" in said[0]


def marks(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        (found,) = connection.execute("SELECT COUNT(*) FROM unstuck_idle").fetchone() or (0,)
        return int(found)


def test_a_mark_stays_through_hints_and_what_is_hinted_between_two_waits_is_heard(url: str) -> None:
    """A worker that is given one job at a time marks itself once, and misses none of them."""
    sleeper, waker = open_database(url), open_database(url)
    assert sleeper.wait(10.0)  # the mark is new: look once more
    for _ in range(3):
        waker.hint()
        waker.hint()
        assert sleeper.wait(10.0)
        assert marks(url) == 1
    eventually(lambda: not sleeper.wait(0.01))  # the last hint may be under way; then there is none any more
    sleeper.stay_awake()
    assert marks(url) == 0
    assert sleeper.wait(10.0)  # anew
    assert marks(url) == 1
    sleeper.close()
    waker.close()
    assert marks(url) == 0


def test_a_listener_that_lost_its_connection_hears_again(url: str) -> None:
    sleeper, waker = open_database(url), open_database(url)
    eventually(lambda: sleeper.wait(1.0))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%unstuck_idle%' "
            "AND pid <> pg_backend_pid() AND datname = current_database()"
        )
    heard: list[Hint | None] = []
    eventually(lambda: sleeper.wait(1.0))  # reconnects, and says: look once more

    thread = threading.Thread(target=lambda: heard.append(sleeper.wait(20)))
    thread.start()

    def hint_until_heard() -> bool:
        waker.hint()
        return any(heard)

    eventually(hint_until_heard, timeout=20, every=0.05)
    thread.join(30)
    sleeper.close()
    waker.close()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_restarted_server_is_used_again_by_itself(own_server: Postgres, how: signal.Signals) -> None:
    """Stopped with a word to its clients, or at once without one."""
    opened = notes.open_notes(url_of(own_server), store_call=2.0)
    notes.make(opened)
    spread(opened, 4)
    own_server.stop(how)

    with pytest.raises(StoreUnavailable):
        notes.add(opened, 1)
    own_server.start()

    assert notes.add(opened, 1) == 1
    opened.close()


def test_a_frozen_postmaster_lets_nobody_wait_for_ever(own_server: Postgres) -> None:
    opened = notes.open_notes(url_of(own_server), store_call=DEADLINE)
    frozen(own_server.pid)
    try:

        def ask() -> None:
            with pytest.raises(StoreUnavailable):
                opened.read(backend_of)

        assert took(ask) < SOON
    finally:
        thawed(own_server.pid)
    assert eventually(lambda: reached(opened))
    opened.close()


def test_a_crash_among_commits_never_lies(own_server: Postgres) -> None:
    """Written means there, unavailable means not there; unknown may be either."""
    opened = notes.open_notes(url_of(own_server), store_call=2.0)
    notes.make(opened)
    said: dict[int, str] = {}
    over = threading.Event()

    def write_on(first: int) -> None:
        for id in range(first, first + 100_000):
            if over.is_set():
                return
            try:
                notes.add(opened, id)
                said[id] = "written"
            except OutcomeUnknown:
                said[id] = "unknown"
            except StoreError:
                said[id] = "nothing"

    threads = [threading.Thread(target=write_on, args=(n * 1_000_000,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        more = list(said.values()).count("written") + 200
        eventually(lambda goal=more: list(said.values()).count("written") > goal)  # type: ignore[misc]
        own_server.stop(signal.SIGQUIT)
        own_server.start()
    over.set()
    for thread in threads:
        thread.join(20)

    found = set(eventually(lambda: notes.ids(opened)))
    opened.close()
    assert {id for id, word in said.items() if word == "written"} <= found
    assert not {id for id, word in said.items() if word == "nothing"} & found
    assert "nothing" in said.values()


def terminate(url: str, backend: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s, 5000)", (backend,))


def spread(database: Database, wide: int) -> None:
    """Open several connections at once, so that the pool holds them all."""
    met = threading.Barrier(wide)
    threads = [threading.Thread(target=database.read, args=(lambda tx: met.wait(10),)) for _ in range(wide)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)


def reached(database: Database) -> bool:
    try:
        return database.read(backend_of) > 0
    except (StoreBusy, StoreUnavailable):
        return False


def url_of(server: Postgres) -> str:
    folder = re.search(r"host=(\S+)", server.dsn)
    assert folder is not None
    return f"postgresql://unstuck@/postgres?host={folder[1]}&port=5432"


def test_a_connection_that_comes_after_the_listener_has_left_is_closed(url: str) -> None:
    """A wait too short to connect, then the end of the program: nobody else would ever close what comes late."""
    database = PostgresDatabase(url)
    listener = database._listener
    made = listener._dialler._connect()
    listener.leave()

    listener._keep(made)

    assert made.driver.closed
    database.close()
