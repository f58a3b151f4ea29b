"""One SQLite file under many writers, foreign locks, kills, full disks and forks."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import notes
from tests.support.eventually import eventually
from tests.tiers import slow
from unstuck.model.errors import InvalidSettings, OutcomeUnknown, StoreBusy, StoreError, StoreUnavailable
from unstuck.store.database import Database, Transaction
from unstuck.store.drivers.connect import open_database, sqlite_path
from unstuck.store.drivers.filesystems import network_filesystem
from unstuck.store.drivers.sqlite import SqliteDatabase

ROOT = Path(__file__).parent.parent.parent

WRITER = """
import sys
from tests.support import notes
url, first, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
database = notes.open_notes(url, store_call=20.0)
for id in range(first, first + many):
    notes.add(database, id, "x" * 200)
    print(id, flush=True)
database.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


@pytest.fixture
def notebook(path: Path) -> Iterator[Database]:
    opened = notes.open_notes(str(path))
    notes.make(opened)
    yield opened
    opened.close()


def writer(path: Path, first: int, many: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(first), str(many)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def is_sound(path: Path) -> bool:
    with sqlite3.connect(path) as connection:
        answer = connection.execute("PRAGMA integrity_check").fetchone()
    connection.close()
    return bool(answer == ("ok",))


@slow
def test_eight_processes_write_one_file_and_it_stays_sound(path: Path, notebook: Database) -> None:
    """Each checkpoints on its own account; SQLite below 3.51.3 forgives no mistake here."""
    writers = [writer(path, n * 10_000, 700) for n in range(1, 9)]
    largest = 0
    while any(process.poll() is None for process in writers):
        wal = Path(f"{path}-wal")
        largest = max(largest, wal.stat().st_size if wal.exists() else 0)
        time.sleep(0.02)
        notes.count(notebook)
    for process in writers:
        said, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert len(said.split()) == 700

    assert notes.count(notebook) == 8 * 700
    assert is_sound(path)
    assert largest < 200 * 1024 * 1024


def test_what_was_acknowledged_survives_kill_9(path: Path, notebook: Database) -> None:
    acknowledged: set[int] = set()
    for round in range(4):
        writers = [writer(path, (round * 10 + n) * 10_000, 9_999) for n in (1, 2, 3)]
        before = notes.count(notebook)
        eventually(lambda before=before: notes.count(notebook) > before + 60, timeout=30)  # type: ignore[misc]
        for process in writers:
            process.send_signal(signal.SIGKILL)
        for process in writers:
            said, _ = process.communicate(timeout=10)
            acknowledged.update(int(word) for word in said.split("\n")[:-1])

    assert notes.add(notebook, 1) == 1
    assert acknowledged <= set(notes.ids(notebook))
    assert is_sound(path)


def test_a_foreign_writer_makes_it_busy_by_the_deadline_and_the_closure_never_runs(
    path: Path, notebook: Database
) -> None:
    """F50: somebody holds BEGIN IMMEDIATE in a shell. The caller was told that nothing was written: so it must be."""
    foreign = sqlite3.connect(path, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    ran: list[int] = []
    began = time.monotonic()

    with pytest.raises(StoreBusy, match="nothing was written"):
        notebook.write(lambda tx: ran.append(tx.run("add_note", id=1, text="late")), within=0.4)

    assert time.monotonic() - began < 1.2
    assert notes.ids(notebook) == []  # readers are never held up
    foreign.execute("ROLLBACK")
    foreign.close()
    assert notes.add(notebook, 2) == 1
    assert ran == []
    assert notes.ids(notebook) == [2]


def test_a_caller_who_left_in_the_middle_is_told_that_the_outcome_is_unknown(notebook: Database) -> None:
    entered, leave = threading.Event(), threading.Event()

    def slow(tx: Transaction) -> None:
        tx.run("add_note", id=1, text="")
        entered.set()
        leave.wait(10)

    with pytest.raises(OutcomeUnknown):
        notebook.write(slow, within=0.3)
    assert entered.is_set()
    ran: list[int] = []
    with pytest.raises(StoreUnavailable, match="nothing was written"):
        notebook.write(lambda tx: ran.append(1), within=0.3)
    leave.set()

    assert notes.add(notebook, 2) == 1
    assert ran == []


def test_an_endless_statement_does_not_take_its_neighbours_down(notebook: Database) -> None:
    """SQLite rolls the whole transaction back when a statement is interrupted: neighbours run again, alone."""
    entered, leave = threading.Event(), threading.Event()

    def first(tx: Transaction) -> None:
        entered.set()
        leave.wait(10)

    def endless(tx: Transaction) -> None:
        tx.run("add_note", id=99, text="never")
        tx.all("long_query")

    outcomes: dict[int, str] = {}

    def write(id: int) -> None:
        try:
            notebook.write(endless, within=0.8) if id == 3 else notes.add(notebook, id)
            outcomes[id] = "written"
        except StoreError:
            outcomes[id] = "refused"

    holder = threading.Thread(target=notebook.write, args=(first,))
    holder.start()
    assert entered.wait(10)
    threads = [threading.Thread(target=write, args=(id,)) for id in range(1, 6)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)  # so that they stand in line in this order, all behind the holder
    leave.set()
    for thread in [holder, *threads]:
        thread.join(20)

    assert outcomes == {1: "written", 2: "written", 3: "refused", 4: "written", 5: "written"}
    assert notes.ids(notebook) == [1, 2, 4, 5]


def test_waiting_writers_share_one_commit(path: Path, notebook: Database) -> None:
    entered, leave = threading.Event(), threading.Event()

    def first(tx: Transaction) -> None:
        entered.set()
        leave.wait(10)

    holder = threading.Thread(target=notebook.write, args=(first,))
    holder.start()
    assert entered.wait(10)
    watcher = sqlite3.connect(path)
    before = watcher.execute("PRAGMA data_version").fetchone()[0]
    threads = [threading.Thread(target=notes.add, args=(notebook, id)) for id in range(20)]
    for thread in threads:
        thread.start()
    seen: set[int] = set()
    leave.set()
    while any(thread.is_alive() for thread in threads):
        seen.add(watcher.execute("SELECT COUNT(*) FROM notes").fetchone()[0])
    for thread in [holder, *threads]:
        thread.join(20)
    seen.add(watcher.execute("SELECT COUNT(*) FROM notes").fetchone()[0])
    after = watcher.execute("PRAGMA data_version").fetchone()[0]
    watcher.close()

    assert after > before
    assert seen <= {0, 20}


def test_the_wal_is_folded_back_when_nothing_happens(path: Path, notebook: Database) -> None:
    for id in range(50):
        notes.add(notebook, id, "x" * 1000)
    assert Path(f"{path}-wal").stat().st_size > 0

    eventually(lambda: Path(f"{path}-wal").stat().st_size == 0)


def test_nobody_checkpoints_while_another_process_writes(path: Path, notebook: Database) -> None:
    """The file lock of a transaction keeps every checkpoint of others out."""
    import fcntl

    notes.add(notebook, 1)
    with open(f"{path}-lock", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(1.0)  # longer than the idle time after which it would checkpoint
        assert Path(f"{path}-wal").stat().st_size > 0
        fcntl.flock(held, fcntl.LOCK_UN)
    eventually(lambda: Path(f"{path}-wal").stat().st_size == 0)


FULL_DISK = """
import os, resource, sqlite3, sys
from tests.support import notes
from unstuck.model.errors import StoreError
database = notes.open_notes(sys.argv[1])
notes.make(database)
notes.add(database, 0, "kept")
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
refused, written = [], [0]
for id in range(1, 200):
    try:
        notes.add(database, id, "x" * 20_000)
        written.append(id)
    except StoreError as error:
        refused.append(type(error).__name__)
assert refused, "the disk never got full"
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
notes.add(database, 1000, "goes on")
assert set(written) | {1000} <= set(notes.ids(database)), "something acknowledged was lost"
database.close()
assert sqlite3.connect(sys.argv[1]).execute("PRAGMA integrity_check").fetchone() == ("ok",)
print(sorted(set(refused)))
"""


def test_a_file_that_cannot_grow_is_refused_and_goes_on_when_it_can(path: Path) -> None:
    """F54: a full disk, played by a limit on the size of files."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "StoreError" not in done.stdout


def test_a_full_database_is_busy_and_takes_up_again(tmp_path: Path) -> None:
    """F54: SQLite's own word for it."""
    opened = SmallDatabase(tmp_path / "small.db")
    opened.write(lambda tx: tx.run("migration_table"))

    def fill(tx: Transaction) -> None:
        tx.run("migration_record", number=1, name="x" * 4_000_000, checksum="")

    with pytest.raises(StoreBusy, match="full"):
        opened.write(fill)
    opened.write(lambda tx: tx.run("migration_record", number=2, name="small", checksum=""))
    assert [row["number"] for row in opened.read(lambda tx: tx.all("migrations_applied"))] == [2]
    opened.close()


class SmallDatabase(SqliteDatabase):
    """A disk of 200 pages."""

    def _set_up(self, connection: sqlite3.Connection, deadline: float) -> None:
        super()._set_up(connection, deadline)
        connection.execute("PRAGMA max_page_count = 200")


def test_a_fork_in_the_middle_of_a_read_is_refused_in_the_child_only(path: Path) -> None:
    opened = notes.open_notes(str(path), store_call=2.0)
    notes.make(opened)
    entered, leave = threading.Event(), threading.Event()

    def look(tx: Transaction) -> None:
        tx.all("notes", id=None)
        entered.set()
        leave.wait(10)

    reader = threading.Thread(target=opened.read, args=(look, 10.0))
    reader.start()
    assert entered.wait(10)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            notes.count(opened)
        except StoreUnavailable as error:
            code = 0 if "fork" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    leave.set()
    reader.join(10)

    assert notes.add(opened, 1) == 1
    assert notes.ids(opened) == [1]
    opened.close()


def test_a_child_that_was_refused_stays_refused_after_forks_of_its_own(path: Path) -> None:
    opened = notes.open_notes(str(path), store_call=0.5)
    notes.make(opened)
    entered, leave = threading.Event(), threading.Event()

    def look(tx: Transaction) -> None:
        tx.all("notes", id=None)
        entered.set()
        leave.wait(10)

    reader = threading.Thread(target=opened.read, args=(look, 10.0))
    reader.start()
    assert entered.wait(10)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            grandchild = os.fork()
            if grandchild:
                os.waitpid(grandchild, 0)
            notes.count(opened)
        except StoreUnavailable as error:
            code = 0 if "fork" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    leave.set()
    reader.join(10)
    opened.close()


def open_on(path: Path) -> list[str]:
    """What this process has open of that database."""
    links = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        except OSError:
            continue
    return [link for link in links if link.startswith(str(path)) and not link.endswith("-lock")]


def test_a_read_that_comes_while_a_fork_is_prepared_waits_for_it(path: Path, notebook: Database) -> None:
    """The child would inherit its connection, and with it locks that only the parent has."""
    assert isinstance(notebook, SqliteDatabase)
    notes.add(notebook, 1)
    assert notes.count(notebook) == 1
    answers: list[int] = []
    reader = threading.Thread(target=lambda: answers.append(notes.count(notebook)))
    notebook.before_fork()
    try:
        reader.start()
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="fork"):
            notebook.read(lambda tx: tx.all("notes", id=None), 0.2)
        assert time.monotonic() - began < 1
        assert (answers, open_on(path)) == ([], [])
    finally:
        notebook.after_fork_in_parent()
    reader.join(10)
    assert answers == [1]


def test_forks_among_busy_readers_disturb_neither_side(path: Path, notebook: Database) -> None:
    """Reads that never leave a gap: the fork must not wait for one, and its child must not be refused."""
    over = threading.Event()
    problems: list[BaseException] = []

    def look(tx: Transaction) -> None:
        tx.all("notes", id=None)
        time.sleep(0.02)

    def read_on() -> None:
        while not over.is_set():
            try:
                notebook.read(look)
            except BaseException as problem:
                problems.append(problem)

    readers = [threading.Thread(target=read_on) for _ in range(4)]
    for reader in readers:
        reader.start()
    codes = []
    for id in range(5):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 3 if open_on(path) else 2
                notes.add(notebook, id)
                code = code if code == 3 else 0
            finally:
                os._exit(code)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    over.set()
    for reader in readers:
        reader.join(10)

    assert (codes, problems) == ([0] * 5, [])
    assert notes.ids(notebook) == list(range(5))


def test_the_parent_can_close_while_its_child_goes_on(path: Path) -> None:
    """SQLite deletes the WAL with the last connection it knows of: the child's must be known."""
    opened = notes.open_notes(str(path))
    notes.make(opened)
    ready_read, ready_write = os.pipe()
    go_read, go_write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            notes.add(opened, 1)
            os.write(ready_write, b"1")
            os.read(go_read, 1)
            notes.add(opened, 2)
            code = 0 if notes.ids(opened) == [1, 2] else 2
        finally:
            os._exit(code)
    assert os.read(ready_read, 1) == b"1"
    notes.add(opened, 3)
    notes.count(opened)
    opened.close()
    again = sqlite3.connect(path, isolation_level=None)
    again.execute("DELETE FROM notes WHERE id = 3")
    again.close()
    os.write(go_write, b"1")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    assert is_sound(path)
    for end in (ready_read, ready_write, go_read, go_write):
        os.close(end)


def test_sockets_of_the_dead_are_taken_away(path: Path, notebook: Database) -> None:
    code = (
        f"import os; from tests.support import notes; d = notes.open_notes({str(path)!r}); d.wait(0.01); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=30)
    assert isinstance(notebook, SqliteDatabase)
    assert len(notebook.wake.waiting()) == 1

    notebook.hint()

    assert notebook.wake.waiting() == []


def test_who_waits_is_found_again_after_somebody_cleaned_the_temporary_directory(notebook: Database) -> None:
    assert isinstance(notebook, SqliteDatabase)
    notebook.wait(0.0)
    shutil.rmtree(notebook.wake._folder)
    assert notebook.wake.waiting() == []

    notebook.wait(0.01)
    notebook.wait(0.01)

    notebook.hint()
    began = time.monotonic()
    assert notebook.wait(20.0) is not None
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:///a%20b.db", "a b.db"),
        ("./unstuck.db", "unstuck.db"),
    ],
)
def test_urls_name_files(url: str, path: str) -> None:
    assert sqlite_path(url) == Path(path)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "", "mysql://me:hunter2@host/db", ":memory:"])
def test_urls_that_name_no_database_are_refused(url: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        open_database(url)
    assert "hunter2" not in str(refused.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="nowhere"):
        open_database(str(tmp_path / "nowhere" / "unstuck.db"))


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear database, " * 1000)
    opened = open_database(str(tmp_path / "letter.txt"))

    with pytest.raises(StoreUnavailable, match="not a database"):
        opened.schema_version()
    with pytest.raises(StoreUnavailable, match="not a database"):
        opened.migrate()
    opened.close()


MOUNTS = """
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /srv rw - nfs4 server:/srv rw
31 30 8:2 / /srv/me/local rw - xfs /dev/sdb rw
32 22 0:41 / /mnt/with\\040space rw - fuse.sshfs me@host:/ rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/unstuck.db", None),
        ("/srv/me/unstuck.db", "nfs4"),
        ("/srv/me/local/unstuck.db", None),
        ("/homely/unstuck.db", None),
        ("/mnt/with space/unstuck.db", "fuse.sshfs"),
    ],
)
def test_network_filesystems_are_recognised(path: str, kind: str | None) -> None:
    """F55"""
    assert network_filesystem(Path(path), MOUNTS) == kind
