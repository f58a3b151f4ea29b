"""What both drivers promise: transactions, deadlines, typed failures, hints, and a fork that harms nobody."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator

import pytest

from tests.conftest import StoreClock
from tests.support import notes
from tests.support.eventually import eventually
from unstuck.model.errors import SchemaMismatch, StoreBusy, StoreError, StoreUnavailable
from unstuck.store.database import Database, Transaction
from unstuck.store.drivers.connect import open_database
from unstuck.store.hint import ANYWHERE, Hint


@pytest.fixture
def notebook(store_url: str) -> Iterator[Database]:
    opened = notes.open_notes(store_url)
    notes.make(opened)
    yield opened
    opened.close()


def test_a_write_commits_and_rows_are_read_by_name(notebook: Database) -> None:
    assert notes.add(notebook, 1, "100 % sure") == 1

    row = notebook.read(lambda tx: tx.one("notes", id=1))

    assert row is not None
    assert dict(row) == {"id": 1, "text": "100 % sure", "label": "50 % :off"}


def test_an_exception_rolls_everything_back_and_reaches_the_caller(notebook: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.run("add_note", id=1, text="gone")
        raise ValueError("changed my mind")

    with pytest.raises(ValueError, match="changed my mind"):
        notebook.write(work)
    assert notes.ids(notebook) == []


def test_run_answers_how_many_rows_were_affected(notebook: Database) -> None:
    notes.add(notebook, 1)

    assert notebook.write(lambda tx: tx.run("change_note", id=1, text="new")) == 1
    assert notebook.write(lambda tx: tx.run("change_note", id=2, text="new")) == 0


def test_more_than_one_row_where_one_was_expected_is_a_mistake(notebook: Database) -> None:
    notes.add(notebook, 1)
    notes.add(notebook, 2)

    with pytest.raises(LookupError, match="2 rows"):
        notebook.read(lambda tx: tx.one("notes", id=None))


def test_lists_reach_the_statement(notebook: Database) -> None:
    for id in (1, 2, 3):
        notes.add(notebook, id)

    assert [row["id"] for row in notebook.read(lambda tx: tx.all("notes_of", ids=[1, 3]))] == [1, 3]


def test_a_missing_table_names_the_command_that_mends_it(notebook: Database) -> None:
    with pytest.raises(SchemaMismatch, match="unstuck db migrate"):
        notebook.read(lambda tx: tx.all("missing_table"))
    notes.add(notebook, 1)


def test_an_unknown_statement_says_where_it_was_looked_for(notebook: Database) -> None:
    with pytest.raises(LookupError, match=r"neither a file of that name nor a line `-- name: no_such`"):
        notebook.read(lambda tx: tx.all("no_such"))


def test_a_statement_that_runs_for_ever_ends_by_its_deadline(notebook: Database) -> None:
    began = time.monotonic()

    with pytest.raises(StoreError):
        notebook.read(lambda tx: tx.all("long_query"), within=0.5)

    assert time.monotonic() - began < 1.5
    assert notes.add(notebook, 1) == 1


def test_a_write_that_runs_for_ever_leaves_nothing_and_holds_nobody_up(notebook: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.run("add_note", id=1, text="never")
        tx.all("long_query")

    began = time.monotonic()
    with pytest.raises(StoreError):
        notebook.write(work, within=0.5)

    assert time.monotonic() - began < 1.5
    assert eventually(lambda: notes.add(notebook, 2)) == 1
    assert notes.ids(notebook) == [2]


def test_many_threads_write_side_by_side(notebook: Database) -> None:
    def write_some(first: int) -> None:
        for id in range(first, first + 25):
            notes.add(notebook, id)

    threads = [threading.Thread(target=write_some, args=(100 * n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert notes.count(notebook) == 200


def test_one_failing_neighbour_leaves_the_others_alone(notebook: Database) -> None:
    """Group commit on SQLite: a failure rolls back its own savepoint and nothing else."""
    notes.add(notebook, 0)
    outcomes: dict[int, str] = {}
    ready = threading.Barrier(20)

    def write_one(id: int) -> None:
        ready.wait(10)
        try:
            notebook.write(
                lambda tx: (tx.run("add_note", id=id, text=""), id % 2 or tx.run("add_note", id=0, text=""))
            )
            outcomes[id] = "written"
        except Exception:
            outcomes[id] = "refused"

    threads = [threading.Thread(target=write_one, args=(id,)) for id in range(1, 21)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert outcomes == {id: "written" if id % 2 else "refused" for id in range(1, 21)}
    assert notes.ids(notebook) == [0, *range(1, 21, 2)]


def test_a_closed_database_says_so(store_url: str) -> None:
    opened = notes.open_notes(store_url)
    notes.make(opened)
    opened.close()

    with pytest.raises(StoreUnavailable, match="closed"):
        notes.count(opened)
    with pytest.raises(StoreUnavailable, match="closed"):
        notes.add(opened, 1)


def test_a_child_of_a_fork_uses_connections_of_its_own(notebook: Database) -> None:
    """Parent and child both write and read after the fork; neither harms the other's session."""
    notes.add(notebook, 1)
    assert notes.count(notebook) == 1

    child = os.fork()
    if child == 0:
        code = 1
        try:
            for id in range(100, 120):
                notes.add(notebook, id)
            code = 0 if notes.count(notebook) >= 21 else 2
        finally:
            os._exit(code)
    for id in range(200, 220):
        notes.add(notebook, id)
    eventually(lambda: _has_ended(child), timeout=20)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert notes.ids(notebook) == [1, *range(100, 120), *range(200, 220)]


def _has_ended(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def mark_idle(database: Database) -> None:
    """The first wait marks this process idle and says at once: look once more."""
    eventually(lambda: database.wait(1.0))


def test_the_first_wait_says_look_once_more(database: Database) -> None:
    """What came before the mark, and after the look, was hinted to nobody: it must not wait for the poll."""
    database.hint()
    began = time.monotonic()

    assert database.wait(20.0)

    assert time.monotonic() - began < 10


def test_a_hint_wakes_a_waiting_process_at_once(database: Database, store_url: str) -> None:
    other = open_database(store_url)
    heard: list[tuple[Hint | None, float]] = []

    mark_idle(other)

    def sleep() -> None:
        began = time.monotonic()
        answer = other.wait(20.0)
        heard.append((answer, time.monotonic() - began))

    sleeper = threading.Thread(target=sleep)
    sleeper.start()

    def hint_until_heard() -> bool:
        database.hint()
        return bool(heard)

    eventually(hint_until_heard, every=0.05)
    sleeper.join(10)
    other.close()
    assert heard[0][0]
    assert heard[0][1] < 10


def test_without_a_hint_a_wait_lasts_its_timeout(database: Database) -> None:
    mark_idle(database)
    began = time.monotonic()

    assert database.wait(0.3) is None

    assert 0.25 < time.monotonic() - began < 2


def test_hints_of_before_the_wait_do_not_pile_up(database: Database) -> None:
    mark_idle(database)
    for _ in range(50):
        database.hint()

    assert [database.wait(0.05) for _ in range(4)][-1] is None


def test_a_hint_names_its_route_unless_it_may_be_any(database: Database, store_url: str) -> None:
    other = open_database(store_url)
    mark_idle(other)
    heard = []
    for hint in (Hint(frozenset({7})), ANYWHERE, Hint(frozenset({2**40}))):
        database.hint(hint)
        heard.append(other.wait(20.0))
    other.close()
    assert heard == [Hint(frozenset({7})), ANYWHERE, Hint(frozenset({2**40}))]


def test_of_more_hints_than_there_is_room_for_none_is_lost(database: Database, store_url: str) -> None:
    """A thousand at one route, and then one at another, while nobody listens: whoever wakes up looks at both."""
    other = open_database(store_url)
    mark_idle(other)
    for route in [1] * 1000 + [2]:
        database.hint(Hint(frozenset({route})))
    hints: list[Hint] = []

    def has_heard_of_both() -> bool:
        if (hint := other.wait(0.05)) is not None:
            hints.append(hint)
        return any(hint.routes is None or 2 in hint.routes for hint in hints)

    eventually(has_heard_of_both)
    other.close()


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ([], None),
        ([b"7"], Hint(frozenset({7}))),
        ([b"7", b"8"], Hint(frozenset({7, 8}))),
        ([b"7", b""], ANYWHERE),
        ([b"!"], ANYWHERE),
        ([b"7,8"], ANYWHERE),
        ([b"%d" % route for route in range(101)], ANYWHERE),
    ],
)
def test_what_is_heard_means_these_routes_or_any(words: list[bytes], hint: Hint | None) -> None:
    assert Hint.heard(words) == hint


def test_the_clock_of_the_store_can_be_moved(clock: StoreClock) -> None:
    before = clock.now()

    clock.advance(minutes=5)

    assert 299 < (clock.now() - before).total_seconds() < 310


def test_contention_is_busy_and_nothing_was_written(store_url: str) -> None:
    """Somebody else holds the lock for longer than the deadline."""
    holder = notes.open_notes(store_url)
    notes.make(holder)
    notes.add(holder, 1, "old")
    blocked = notes.open_notes(store_url, store_call=1.5)
    entered, leave = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        tx.run("change_note", id=1, text="held")
        entered.set()
        leave.wait(10)

    thread = threading.Thread(target=holder.write, args=(hold, 10.0))
    thread.start()
    assert entered.wait(10)
    began = time.monotonic()
    try:
        with pytest.raises(StoreBusy):
            blocked.write(lambda tx: tx.run("change_note", id=1, text="mine"))
        waited = time.monotonic() - began
    finally:
        leave.set()
        thread.join(10)

    assert waited < 2.5
    assert blocked.write(lambda tx: tx.run("change_note", id=1, text="mine")) == 1
    blocked.close()
    holder.close()
