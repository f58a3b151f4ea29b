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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.support import notes
from tests.support.eventually import eventually
from unstuck.model.errors import StoreBusy, StoreLocked, StoreUnavailable
from unstuck.store.database import Database

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
