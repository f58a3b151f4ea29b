"""unstuck top: the frame and the keys by themselves, then the window in a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Command
from tests.cli.test_server import serving
from tests.store.test_why import serve
from tests.support.builders import begin, claimed, record, submitted
from tests.support.eventually import eventually
from tests.support.parking import Stage
from tests.tiers import slow
from unstuck.cli.asking import Asker
from unstuck.cli.top.frame import Seen, frame, shared, whole
from unstuck.cli.top.looking import Looker, done
from unstuck.cli.top.rows import rows_of
from unstuck.cli.top.state import Sheet, TopAction, TopState, keys_in, press
from unstuck.config import Settings
from unstuck.model.errors import StoreUnavailable
from unstuck.operations import queues, top
from unstuck.operations.table import Caller
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.port import AttemptOutput
from unstuck.store.sql_store import SqlStore
from unstuck.views.top import NeedView, TopView

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
SQLITE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
SIZES = [(80, 24), (200, 60), (40, 12), (20, 5), (1, 1)]


def need(kind: Any = "approval", **facts: Any) -> NeedView:
    base: dict[str, Any] = {
        "about": "release", "text": "Deploy?", "since_at": NOW - timedelta(minutes=3), "until_at": None,
        "job": "019b-1", "key": "approval#1", "command": None, "urgent": False,
    }  # fmt: skip
    return NeedView(kind=kind, **{**base, **facts})


@pytest.fixture
def view(store: SqlStore) -> TopView:
    """As a database gave it: three running jobs, two queues, a worker, a question."""
    stage = Stage(store)
    serve(store, stage.worker, "greet")
    jobs = [claimed(store, stage.worker, workflow=f"import_{number}") for number in range(3)]
    begin(store, stage.worker, *jobs)
    store.keep_output([AttemptOutput(jobs[0].ref, progress=json.dumps({"done": 6, "of": 12}))])
    submitted(store, workflow="greet", queue="reports")
    stage.asks("Deploy?\x1b[2J", of={"workflow": "release"})
    return top.get(Caller(store, "ada"))


def text_of(seen: Seen, state: TopState | None = None, size: tuple[int, int] = (100, 30)) -> str:
    return "\n".join(line.plain for line in frame(seen, state or TopState(), size))


# --- the frame ----------------------------------------------------------------------------------------------------


@SQLITE
@pytest.mark.parametrize("size", SIZES)
def test_a_frame_is_exactly_as_large_as_the_terminal(view: TopView, size: tuple[int, int]) -> None:
    states = [TopState(), TopState(sheet=Sheet("s", ("x" * 500,) * 100)), TopState(words="import", is_writing=True)]
    for seen in (Seen("db", view), Seen("db"), Seen("db", view, "gone", 12.0)):
        for state in states:
            lines = frame(seen, state, size)
            assert len(lines) == size[1]
            assert all(line.cell_len <= size[0] for line in lines)


@SQLITE
def test_a_frame_shows_needs_queues_jobs_with_progress_and_workers(view: TopView) -> None:
    text = text_of(Seen("sqlite:///x.db", view), size=(120, 40))
    assert "sqlite:///x.db  tenant default" in text
    assert "━━━━━━┄┄┄┄┄┄ 6/12" in text
    assert re.search(r"^approval +release +\d+s +Deploy\?", text, re.M)
    assert re.search(r"^reports +1 +0 +0 +\d+s", text, re.M)
    assert re.search(r"^ada +active +3", text, re.M)
    assert "RUNNING 3" in text
    assert view.running[0].id in text, "an id that is whole can be pasted"


@SQLITE
def test_what_is_asked_or_told_is_told_whole(view: TopView) -> None:
    """In a small window, too: nobody says yes to a question that is cut."""
    question = "approve “" + "is this really what you want, " * 4 + "yes or no?” of release 0199?"
    asked = TopState(asked=(TopAction("approve", "0199"), question))
    for size in ((80, 24), (40, 12)):
        lines = [line.plain for line in frame(Seen("db", view), asked, size)]
        assert len(lines) == size[1]
        assert " ".join(" ".join(lines).split()).endswith(f"[y/n] {question}")
    told = TopState(note="stack: " + "job 0199 is RUNNING and has no stack to show, since its worker is silent " * 9)
    assert [line.plain for line in frame(Seen("db", view), told, (80, 24))][-1].endswith("…")
    assert len(frame(Seen("db", view), told, (20, 5))) == 5


@SQLITE
def test_what_a_terminal_would_obey_is_spelt_out(view: TopView) -> None:
    text = text_of(Seen("db", view), size=(160, 40))
    assert "\x1b" not in text
    assert "Deploy?\\x1b[2J" in text


@SQLITE
def test_a_database_that_does_not_answer_is_told_and_the_last_look_stays(view: TopView) -> None:
    text = text_of(Seen("db", view, "PostgreSQL was lost", 12.4), size=(120, 40))
    assert "no answer for 12 s, trying again: PostgreSQL was lost (db)" in text
    assert "import_0" in text
    assert "looking …" in text_of(Seen("db"))


def test_rows_are_shared_among_the_panes() -> None:
    assert shared(10, {"needs": 0, "queues": 0, "jobs": 50, "workers": 0}) == {
        "needs": 1, "queues": 1, "jobs": 7, "workers": 1,
    }  # fmt: skip
    given = shared(20, {"needs": 50, "queues": 50, "jobs": 50, "workers": 50})
    assert sum(given.values()) == 20
    assert given["jobs"] > given["needs"]
    assert shared(3, {"needs": 9, "queues": 9, "jobs": 9, "workers": 9}) == dict.fromkeys(given, 1)


@SQLITE
def test_a_chosen_row_stays_in_sight_and_stays_chosen_when_others_move(view: TopView) -> None:
    rows = rows_of(view)
    state = TopState(chosen={"jobs": rows["jobs"][2].name})
    assert state.place("jobs", rows["jobs"]) == 2
    assert state.place("jobs", rows["jobs"][1:]) == 1
    low = frame(Seen("db", view), state, (100, 12))
    assert any("import_2" in line.plain and "reverse" in str(line.style) for line in low)


@SQLITE
def test_a_filter_shows_only_what_has_all_its_words(view: TopView) -> None:
    assert [row.cells[0] for row in rows_of(view, "IMPORT_1 ada")["jobs"]] == ["import_1"]
    assert rows_of(view, "nothing of that")["jobs"] == []


@SQLITE
def test_all_there_is_goes_into_a_pipe(view: TopView) -> None:
    text = "\n".join(line.plain for line in whole(Seen("db", view), 160))
    assert all(f"import_{number}" in text for number in range(3))
    assert "▶" not in text


# --- keys ---------------------------------------------------------------------------------------------------------


def pressed(view: TopView, keys: str, state: TopState | None = None) -> tuple[TopState, list[TopAction]]:
    state, asked = state or TopState(), []
    for key in keys_in(keys):
        state, action = press(state, key, rows_of(view, state.words))
        asked += [action] if action else []
    return state, asked


def test_keys_are_read_as_terminals_send_them() -> None:
    assert keys_in("j\x1b[A\x1bOB\t\x1b[Z\r\x7f\x1b") == [
        "j", "up", "down", "tab", "back-tab", "enter", "backspace", "esc",
    ]  # fmt: skip
    assert keys_in("\x1b[200~ü\x1b[201~\x00") == ["ü"], "what we do not know is left out"


@SQLITE
def test_what_changes_something_asks_first_and_only_y_is_a_yes(view: TopView) -> None:
    jobs = [row.name for row in rows_of(view)["jobs"]]
    state, asked = pressed(view, "jc")
    assert asked == []
    assert state.asked is not None
    assert jobs[1] in state.asked[1]
    for key in "nqc\x1b\r ":
        after, asked = pressed(view, key, state)
        assert (asked, after.asked, after.note) == ([], None, "left as it is")
    assert pressed(view, "y", state)[1] == [TopAction("cancel", jobs[1])]


@SQLITE
def test_every_key_does_its_part(view: TopView) -> None:
    jobs = [row.name for row in rows_of(view)["jobs"]]
    asks = next(each for each in view.needs if each.kind == "approval")
    assert pressed(view, "s")[1] == [TopAction("stack", jobs[0])]
    assert pressed(view, "\x1b[B\r")[1] == [TopAction("why", jobs[1])]
    assert pressed(view, "\x1b[Fw")[1] == [TopAction("why", jobs[-1])]
    assert pressed(view, "\x1b[D\x1b[Day")[1] == [TopAction("approve", str(asks.job), asks.key)]
    assert pressed(view, "\t\try")[1] == [TopAction("reject", str(asks.job), asks.key)]
    assert pressed(view, "\x1b[Dpy")[1] == [TopAction("pause", "default")]
    assert pressed(view, "q")[1] == [TopAction("quit")]
    assert pressed(view, "\x03")[1] == [TopAction("quit")]
    assert pressed(view, " ")[0].is_still
    assert pressed(view, "?")[0].sheet is not None
    assert pressed(view, "?\x1b")[0].sheet is None


@SQLITE
def test_a_key_that_does_not_fit_says_what_to_choose(view: TopView) -> None:
    assert "choose a queue first" in pressed(view, "p")[0].note
    assert "choose a question first" in pressed(view, "a")[0].note
    assert "choose a running job first" in pressed(view, "\tc")[0].note
    assert "? tells the keys" in pressed(view, "x")[0].note


@SQLITE
def test_a_filter_is_written_and_taken_back(view: TopView) -> None:
    state, asked = pressed(view, "/import_2q\x7f\r")
    assert (state.words, asked) == ("import_2", [])
    assert pressed(view, "s", state)[1] == [TopAction("stack", rows_of(view)["jobs"][2].name)]
    assert pressed(view, "\x1b", state)[0].words == ""


@SQLITE
def test_a_pause_for_every_tenant_is_not_said_to_be_lifted(store: SqlStore) -> None:
    caller = Caller(store, "ada")

    def ask(operation: Any, /, *args: Any, **more: Any) -> Any:
        return operation(caller, *args, **more)

    asker, lift = Asker(ask, "db", Settings(), store), TopAction("unpause", "io")
    assert done(asker, lift) == "queue io was not paused"
    queues.pause(caller, "io")
    assert done(asker, lift) == "the pause of queue io was lifted"
    queues.pause(caller.about("*"), "io")
    assert done(asker, lift) == "still paused for every tenant: unstuck queues unpause io --all-tenants"


# --- looking ------------------------------------------------------------------------------------------------------


@SQLITE
def test_an_answer_that_takes_long_is_told_and_a_look_that_fails_keeps_the_last(view: TopView) -> None:
    let_go, answers = threading.Event(), iter([view, None])

    def ask(operation: Any, /, **_: Any) -> Any:
        if (answer := next(answers, None)) is not None:
            return answer
        let_go.wait(30)
        raise StoreUnavailable("gone")

    looker = Looker(Asker(ask, "db", Settings(), None), None, None, lambda: None)
    looker.start()
    eventually(lambda: looker.seen.view is view)
    looker.look_soon()
    eventually(lambda: looker.seen.error == "it takes its time")
    let_go.set()
    eventually(lambda: looker.seen.error == "gone")
    assert looker.seen.view is view
    looker.stop(5)


# --- without a terminal -------------------------------------------------------------------------------------------


def test_without_a_terminal_one_look_is_printed_and_said_so(unstuck: Command, view: TopView) -> None:
    answer = unstuck("top")
    assert answer.code == 0
    assert "import_2" in answer.out
    assert "\x1b[" not in answer.out
    assert "this is no terminal" in answer.err
    assert unstuck("top", "--once").err == ""
    seen = unstuck("top", "--json").object
    assert [job["workflow"] for job in seen["running"]] == ["import_0", "import_1", "import_2"]


@slow
@SQLITE
def test_over_a_server_it_is_the_same(unstuck: Command, tmp_path: Path, view: TopView) -> None:
    with serving(unstuck, tmp_path) as (_, url):
        alone = Command(None, tmp_path)
        seen = alone("top", "--json", "--server", url).object
        assert [job["workflow"] for job in seen["running"]] == ["import_0", "import_1", "import_2"]
        assert f"unstuck top  {url}" in alone("top", "--once", "--server", url).out
        assert alone("doctor", "--server", url, "--only", "schema", "--json").object["findings"] == []
    assert alone("top", "--once", "--server", url).code == 6
    assert alone("top", "--once", "--key", "usk_x").code == 2


# --- in a terminal ------------------------------------------------------------------------------------------------


@dataclass
class Terminal:
    """What a person has: a screen of a size, and keys."""

    process: subprocess.Popen[bytes]
    ours: int
    text: str = ""
    raw: bytes = b""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> None:
        while select.select([self.ours], [], [], 0)[0]:
            try:
                piece = os.read(self.ours, 65536)
            except OSError:
                return
            if not piece:
                return
            self.raw += piece
        self.text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.raw.decode(errors="replace"))

    def shows(self, words: str, within: float = 20.0) -> None:
        """From now on."""
        self.raw = b""

        def is_there() -> bool:
            self.read()
            return words in self.text

        eventually(is_there, timeout=within, every=0.05)

    def is_left(self, within: float = 10.0) -> None:
        """Read to its end, as terminals do: who writes to one that nobody reads waits, and hears no key."""

        def has_ended() -> bool:
            self.read()
            return self.process.poll() is not None

        eventually(has_ended, timeout=within, every=0.05)
        self.read()

    def types(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)


@contextmanager
def terminal(unstuck: Command, tmp_path: Path, *words: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen(
        unstuck.words("top", *words),
        cwd=tmp_path,
        env=unstuck.environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    before = termios.tcgetattr(theirs)
    screen = Terminal(process, ours)
    try:
        yield screen
        screen.is_left()
        assert process.wait() == 0
        assert termios.tcgetattr(theirs) == before, "the terminal is as it was"
        assert b"\x1b[?1049l" in screen.raw, "the alternate screen was left"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
        os.close(ours)
        os.close(theirs)


@slow
@pytest.mark.timeout(120)
def test_in_a_terminal_it_is_a_window_with_keys(
    unstuck: Command, tmp_path: Path, store: SqlStore, view: TopView
) -> None:
    first = view.running[0].id
    with terminal(unstuck, tmp_path) as screen:
        screen.shows("━━━━━━┄┄┄┄┄┄ 6/12")
        screen.resize(60, 20)
        screen.shows("─ workers")
        screen.types("w")
        screen.shows("any other key: back")
        screen.types("\x1b")
        screen.shows("needs you")
        screen.resize(120, 30)
        screen.types("c")
        screen.shows("[y/n] cancel import_0")
        screen.types("y")
        screen.shows("asked to stop (cancel)")
        assert record(store, first).request is not None
        screen.types("\x1b[Dp")
        screen.shows("[y/n] pause queue default?")
        screen.types("y")
        screen.shows("PAUSED")
        screen.types("\x1b[Da")
        screen.shows("[y/n] approve")
        screen.types("y")
        eventually(lambda: store.open_waits("default", kind="approval") == [])
        screen.types("q")


@slow
@SQLITE
@pytest.mark.timeout(120)
def test_it_goes_on_when_the_database_is_back(
    unstuck: Command, tmp_path: Path, store_url: str, view: TopView, store: SqlStore
) -> None:
    file = sqlite_path(store_url)
    store.close()
    away = tmp_path / "away"
    away.mkdir()
    with terminal(unstuck, tmp_path) as screen:
        screen.shows("import_2")
        for part in list(tmp_path.glob(f"{file.name}*")):
            shutil.move(part, away / part.name)
        screen.shows("trying again")
        screen.shows("import_2")  # the last look stays
        for part in list(away.iterdir()):
            shutil.move(part, tmp_path / part.name)
        screen.shows("healthy")
        screen.process.send_signal(signal.SIGTERM)


@slow
@SQLITE
@pytest.mark.timeout(60)
def test_somebody_who_closes_the_terminal_ends_it(unstuck: Command, tmp_path: Path, view: TopView) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        unstuck.words("top"),
        cwd=tmp_path,
        env=unstuck.environment(),
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(theirs)
    assert os.read(ours, 1), "it has begun to draw"
    os.close(ours)
    assert process.wait(15) is not None
