"""Tables in a terminal: nothing is dropped, however narrow the window is."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from itertools import pairwise

import pytest

from tests.cli.command import Command
from tests.support.builders import boom
from tests.support.parking import Stage
from unstuck.cli import output
from unstuck.cli.columns import fitted
from unstuck.store.sql_store import SqlStore

HEADERS = ["JOB", "STATE", "WORKFLOW", "CREATED", "TOOK", "ERROR"]


def test_what_fits_is_left_as_it_is() -> None:
    assert fitted(HEADERS, [36, 9, 20, 7, 6, 20], 108) == [36, 9, 20, 7, 6, 20]


def test_texts_give_way_before_names_and_names_before_ids() -> None:
    natural = [36, 9, 33, 7, 6, 60]
    assert fitted(HEADERS, natural, 150) == [36, 9, 33, 7, 6, 49]
    assert fitted(HEADERS, natural, 130) == [36, 9, 32, 7, 6, 30]
    assert fitted(HEADERS, natural, 110) == [24, 9, 24, 7, 6, 30]
    assert fitted(HEADERS, natural, 80) == [23, 9, 13, 7, 6, 12]


def test_numbers_states_and_times_never_give_way() -> None:
    for room in range(40, 200):
        widths = fitted(HEADERS, [36, 9, 33, 7, 6, 60], room)
        assert widths is None or (widths[1], widths[3], widths[4]) == (9, 7, 6)
        assert widths is None or sum(widths) + 10 <= room


def test_a_wider_window_never_shows_less() -> None:
    found = [fitted(HEADERS, [36, 9, 33, 7, 6, 60], room) for room in range(20, 200)]
    for narrow, wide in pairwise(found):
        assert narrow is None or (wide is not None and all(a <= b for a, b in zip(narrow, wide, strict=True)))
    assert found[0] is None
    assert found[-1] == [36, 9, 33, 7, 6, 60]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_list_of_jobs_shows_every_column_at_80_and_its_ids_can_be_pasted(
    unstuck: Command, store: SqlStore
) -> None:
    stage = Stage(store)
    failed = stage.begun(workflow="release_the_shop_frontend", retries=0)
    stage.end(failed, boom("connection to registry.example.com refused after 30 seconds"))

    shown = in_terminal(unstuck, 80, "jobs", "list")
    headers, row = shown[0].split(), shown[1].split()
    assert headers == HEADERS
    assert "FAILED" in row
    assert "ago" in row
    assert failed.id.startswith(row[0])
    assert unstuck("jobs", "show", row[0], "--json").object["id"] == failed.id
    assert max(map(len, shown)) <= 80

    tiny = in_terminal(unstuck, 30, "jobs", "list")
    assert f"JOB       {failed.id}"[:30] in "\n".join(tiny)
    assert "STATE     FAILED" in tiny


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_the_doctor_breaks_sentences_between_words_and_no_command(unstuck: Command, store: SqlStore) -> None:
    store.notify("A piece of news that is longer than the terminal", "and nobody took note of it", "/")
    shown = in_terminal(unstuck, 60, "doctor", "--only", "notifications")
    told = [line for line in shown if line.startswith("           ")]
    assert told[0].strip() == "1 that nobody took note of, the newest: A piece"
    assert told[1].startswith("           of news that is longer than the terminal")
    assert max(map(len, told)) <= 60
    assert "           do   unstuck notifications" in shown


def in_terminal(unstuck: Command, width: int, *words: str) -> list[str]:
    """What a person sees in a window of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen(
        unstuck.words(*words),
        cwd=unstuck.directory,
        env=unstuck.environment(NO_COLOR="1"),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.STDOUT,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how Linux says that nobody holds the other end any more
        pass
    os.close(ours)
    assert process.wait(30) == 0
    return shown.decode().splitlines()


def test_a_pipe_gets_what_a_screen_with_room_for_everything_would_show(capsys: pytest.CaptureFixture[str]) -> None:
    """`rich` is loaded for screens only; the two must not differ in anything else."""
    headers = ["JOB", "STATE", "WORKFLOW", "ERROR"]
    cells = [
        ["01a1ef02-a78a", "QUEUED", "send", "-"],
        ["01a1ef02-b32b", "COMPLETED", "寄る", "ValueError: [bold]no[/bold] :smile:"],
        ["x", "FAILED", "e\u0301te\u0301 " * 20, "trailing   "],
    ]
    widths = output._widths(headers, cells)
    assert widths is not None
    output._print_for_a_screen(headers, cells, widths)
    screen = capsys.readouterr().out
    output._print_for_a_pipe([headers, *cells], widths)
    assert capsys.readouterr().out == screen
    assert "寄る" in screen
