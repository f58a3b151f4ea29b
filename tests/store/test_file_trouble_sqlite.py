"""What can happen to a SQLite file under those that use it: it cannot be written for a while, is moved away and back,
is replaced. All is well again by itself, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support import notes
from tests.support.eventually import eventually
from unstuck.model.errors import StoreBusy, StoreLocked, StoreUnavailable
from unstuck.store.database import Database

ROOT = Path(__file__).parents[2]
NOBODY = 65534


@pytest.fixture
def path() -> Iterator[Path]:
    """In a folder that another user can read, and not write."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder) / "notes.db"


@pytest.fixture
def notebook(path: Path) -> Iterator[Database]:
    opened = notes.open_notes(str(path))
    notes.make(opened)
    notes.add(opened, 1)
    yield opened
    opened.close()


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Whoever opens it now can only read it. Root may write everything, so meanwhile this process is nobody."""
    user, files = os.geteuid(), [path, Path(f"{path}-wal"), Path(f"{path}-shm")]
    Path(f"{path}-lock").chmod(0o666)
    for file in files:
        file.chmod(0o444)
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)
        for file in files:
            file.chmod(0o644)


def test_who_opened_it_while_it_could_not_be_written_writes_it_when_it_can(path: Path, notebook: Database) -> None:
    other = notes.open_notes(str(path))
    with closing(other):
        with read_only(path):
            for _ in range(2):
                with pytest.raises(StoreBusy, match="readonly"):
                    notes.add(other, 2)
            assert notes.ids(other) == [1]

        notes.add(other, 3)

        assert notes.ids(other) == notes.ids(notebook) == [1, 3]


@pytest.mark.parametrize("with_wal", [False, True], ids=["alone", "with its log"])
def test_a_file_that_is_moved_away_is_missed_and_goes_on_when_it_is_back(
    path: Path, notebook: Database, with_wal: bool
) -> None:
    """Nobody makes an empty one meanwhile: what is beside it would be taken for its log, and lost."""
    moved = [path, *(Path(f"{path}{end}") for end in ("-wal", "-shm") if with_wal)]
    notes.add(notebook, 2)
    for file in moved:
        file.rename(f"{file}.away")

    with pytest.raises(StoreUnavailable, match="not there any more"):
        notes.add(notebook, 3)
    with pytest.raises(StoreUnavailable, match="not there any more"):
        notes.ids(notebook)
    assert not path.exists()

    for file in moved:
        Path(f"{file}.away").rename(file)
    notes.add(notebook, 4)
    assert notes.ids(notebook) == [1, 2, 4]


def test_a_file_that_was_replaced_is_the_one_that_is_used(path: Path, notebook: Database) -> None:
    """From a backup, say: who goes on with the old one works for nobody."""
    copy = path.with_name("backup.db")
    eventually(lambda: Path(f"{path}-wal").stat().st_size == 0)  # else what is in the log belongs to the new one
    shutil.copyfile(path, copy)
    notes.add(notebook, 2)
    assert notes.ids(notebook) == [1, 2]
    eventually(lambda: Path(f"{path}-wal").stat().st_size == 0)

    copy.rename(path)

    notes.add(notebook, 3)
    assert notes.ids(notebook) == [1, 3]
    with closing(sqlite3.connect(path)) as person:
        assert [row[0] for row in person.execute("SELECT id FROM notes ORDER BY id")] == [1, 3]
        assert person.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def copy_it(path: Path) -> None:
    """What a backup in this very process does, and whoever else opens a file of the database and closes it: with that
    POSIX gives up all locks that this process has on it."""
    path.with_name("copy.db").write_bytes(path.read_bytes())


def note(path: Path, id: int) -> None:
    """Somebody comes, writes and goes; if he believes to be the last, he folds the log in and takes it away."""
    words = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=20)\n"
    words += "c.execute('INSERT INTO notes (id, text) VALUES (?, ?)', (int(sys.argv[2]), '')); c.commit(); c.close()"
    subprocess.run([sys.executable, "-c", words, str(path), str(id)], check=True, timeout=30)


def is_sound(path: Path, *expected: int) -> None:
    with closing(sqlite3.connect(path)) as person:
        assert person.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert [row[0] for row in person.execute("SELECT id FROM notes ORDER BY id")] == [*expected]


def test_a_neighbour_who_copies_the_file_lets_nobody_take_its_log_away(path: Path, notebook: Database) -> None:
    """What was written then was in no log that anybody read, and the file was damaged."""
    copy_it(path)
    note(path, 2)
    assert Path(f"{path}-wal").exists()

    notes.add(notebook, 3)
    note(path, 4)
    assert notes.ids(notebook) == [1, 2, 3, 4]
    notes.add(notebook, 5)
    notebook.close()
    assert not Path(f"{path}-wal").exists()
    is_sound(path, 1, 2, 3, 4, 5)


def test_nor_that_of_a_process_which_only_reads(path: Path, notebook: Database) -> None:
    with closing(notes.open_notes(str(path))) as reader:
        assert notes.ids(reader) == [1]
        notebook.close()
        copy_it(path)
        note(path, 2)
        note(path, 3)

        assert notes.ids(reader) == [1, 2, 3]
    assert not Path(f"{path}-wal").exists()


def test_a_store_that_is_closed_takes_no_lock_from_a_stranger_in_its_process(path: Path, notebook: Database) -> None:
    with closing(sqlite3.connect(path)) as stranger:
        assert stranger.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
        notebook.close()
        note(path, 2)

        assert Path(f"{path}-wal").exists()
        with stranger:
            stranger.execute("INSERT INTO notes (id, text) VALUES (3, '')")
    is_sound(path, 1, 2, 3)


def test_stores_that_are_closed_leave_no_descriptor_behind(path: Path, notebook: Database) -> None:
    """Not even where several had the file, or a stranger has it still while they are closed."""
    for _ in range(2):
        others = [notes.open_notes(str(path)) for _ in range(3)]
        for other in others:
            assert notes.ids(other) == [1]
        for other in others:
            other.close()
    with closing(sqlite3.connect(path)) as stranger:
        assert stranger.execute("SELECT * FROM notes").fetchone()
        notebook.close()
    beside = path.with_name("beside.db")
    other = notes.open_notes(str(beside))
    notes.make(other)
    other.close()
    assert [name for name in map(_opened, os.listdir("/proc/self/fd")) if name.startswith(str(path.parent))] == []


def _opened(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:  # the listing's own
        return ""


@pytest.mark.parametrize("ends", [["-shm"], ["-wal", "-shm"]], ids=["index", "log and index"])
def test_a_log_that_was_deleted_costs_nothing_that_was_written(
    path: Path, notebook: Database, ends: list[str]
) -> None:
    notes.add(notebook, 2)
    eventually(lambda: Path(f"{path}-wal").stat().st_size == 0)
    for end in ends:
        Path(f"{path}{end}").unlink()

    note(path, 3)
    notes.add(notebook, 4)
    assert notes.ids(notebook) == [1, 2, 3, 4]
    note(path, 5)
    notebook.close()
    is_sound(path, 1, 2, 3, 4, 5)


def test_what_was_acknowledged_stays_whatever_is_copied_and_closed_meanwhile(path: Path, notebook: Database) -> None:
    """Who believes to be the last folds the log in without a lock."""
    told = [1]
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            notes.add(notebook, told[-1] + 1, "x" * 500)
            told.append(told[-1] + 1)

    writer = threading.Thread(target=write)
    writer.start()
    for round in range(15):
        copy_it(path)
        note(path, -1 - round)
    over.set()
    writer.join(30)
    notebook.close()
    is_sound(path, *range(-15, 0), *told)
    assert len(told) > 15


WRITER = """
import sys
from tests.support import notes
database = notes.open_notes(sys.argv[1], store_call=20.0)
for id in range(100_000, 100_500):
    notes.add(database, id)
database.close()
"""


def test_who_opens_and_closes_every_file_lets_no_two_write_at_once(path: Path, notebook: Database) -> None:
    """A backup of the whole folder, in one of two processes that write."""
    over = threading.Event()

    def back_up() -> None:
        while not over.wait(0.0005):
            for end in ("", "-wal", "-shm"):
                Path(f"{path}{end}").read_bytes()

    neighbour = threading.Thread(target=back_up)
    neighbour.start()
    told = [1]
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], cwd=ROOT) as other:
        while other.poll() is None:
            notes.add(notebook, told[-1] + 1, within=20.0)
            told.append(told[-1] + 1)
    over.set()
    neighbour.join()
    assert other.returncode == 0
    notebook.close()
    is_sound(path, *told, *range(100_000, 100_500))


def test_a_log_that_a_stranger_in_this_process_keeps_open_is_not_written(path: Path, notebook: Database) -> None:
    """A connection that is not ours shares the lost log with whatever is opened beside it."""
    with closing(sqlite3.connect(path)) as stranger:
        assert stranger.execute("SELECT COUNT(*) FROM notes").fetchone() == (1,)
        eventually(lambda: Path(f"{path}-wal").stat().st_size == 0)
        Path(f"{path}-shm").unlink()
        note(path, 2)

        with pytest.raises(StoreUnavailable, match="was taken away"):
            notes.add(notebook, 3, within=0.5)
    notes.add(notebook, 4)
    assert notes.ids(notebook) == [1, 2, 4]


HOLDER = """
import fcntl, sqlite3, sys
if sys.argv[2] == "writer":
    held = sqlite3.connect(sys.argv[1], isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
else:
    held = open(f"{sys.argv[1]}-lock", "rb")
    fcntl.flock(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("role", ["writer", "checkpointer"])
def test_who_keeps_everybody_from_writing_is_named(path: Path, notebook: Database, role: str) -> None:
    """Also that it is stopped, and so will not end by itself."""
    words = [sys.executable, "-c", HOLDER, str(path), role]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as person:
        assert person.stdout is not None
        assert person.stdout.readline() == "held\n"
        with pytest.raises(StoreLocked, match=rf"another process \({person.pid}, python.*\) holds"):
            notes.add(notebook, 2, within=0.5)
        person.send_signal(signal.SIGSTOP)
        with pytest.raises(StoreLocked, match="which is stopped, holds"):
            notes.add(notebook, 2, within=0.5)
        person.kill()
    notes.add(notebook, 3)
    assert notes.ids(notebook) == [1, 3]
