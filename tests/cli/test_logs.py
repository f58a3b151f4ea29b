"""unstuck jobs logs: what a running job says, for people, pipes and programs."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import Command, ended
from tests.support.eventually import eventually

APP = "tests.cli.chatter:app"
HERE = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ")


@pytest.fixture
def worker(unstuck: Command) -> Iterator[None]:
    process = subprocess.Popen(
        unstuck.words("worker", APP, "--processes", "1", "--concurrency", "2", "--drain", "5s", "--name", "w1"),
        cwd=unstuck.directory,
        env=unstuck.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with ended(process, within=20):
        yield


def chat(unstuck: Command, go_on: Path) -> str:
    answer = unstuck("enqueue", "chat", str(go_on), "--app", APP)
    assert answer.code == 0, answer.err
    return answer.word


def terminal(unstuck: Command, *words: str) -> str:
    """What a terminal would show."""
    ours, theirs = pty.openpty()
    try:
        subprocess.run(
            unstuck.words(*words),
            cwd=unstuck.directory,
            env=unstuck.environment(NO_COLOR="1"),
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=True,
        )
        return os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_running_job_is_followed_record_by_record(unstuck: Command, worker: None, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    job = chat(unstuck, go_on)
    follower = subprocess.Popen(
        unstuck.words("jobs", "logs", "--follow", "--json", job),
        cwd=unstuck.directory,
        env=unstuck.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert follower.stdout is not None
        begun = [json.loads(follower.stdout.readline()) for _ in range(2)]
        go_on.touch()
        ended = [json.loads(line) for line in follower.communicate(timeout=30)[0].splitlines()]
    finally:
        follower.kill()
        follower.wait(10)
    assert follower.returncode == 0

    nothing = {"at": None, "level": None, "logger": None, "message": None, "fields": None}
    assert begun[0] == {"attempt": 1, "worker": "w1", "text": "half a line\n"} | nothing
    assert HERE.fullmatch(begun[1].pop("at"))
    assert begun[1] == {
        "attempt": 1,
        "worker": "w1",
        "text": 'paid order=7 by="ada lovelace"\n',
        "level": "info",
        "logger": None,
        "message": "paid",
        "fields": {"order": 7, "by": "ada lovelace"},
    }
    warned, red = ended
    assert (warned["level"], warned["logger"], warned["message"]) == ("warning", "chatter", "low on paper")
    assert warned["fields"] == {"sheets": 3}
    assert red == {"attempt": 1, "worker": "w1", "text": "\x1b[31mred"} | nothing


def test_of_a_long_output_both_ends_are_shown(unstuck: Command, worker: None) -> None:
    """The whole way: executor, supervisor, store, reader."""
    job = unstuck("enqueue", "flood", "--app", APP).word
    told = unstuck("jobs", "logs", "--follow", job).out

    assert told.startswith("printed 0\nlogged n=0\nprinted 1\n")
    assert told.endswith("printed 4999\nlogged n=4999\nthe end\n")
    assert told == unstuck("jobs", "logs", job).out
    assert len(re.findall(r"\n… [0-9,]+ characters cut …\n", told)) == 1
    assert re.sub(r"(printed \d+|logged n=\d+|the end|… .* …)\n", "", told) == "\n"
    assert len(unstuck("jobs", "logs", job, "--level", "info", "--json").lines) > 100
    absent = unstuck("jobs", "logs", job, "--attempt", "99")
    assert (absent.code, f"job {job} has no attempt 99; it has 1" in absent.err) == (2, True)


def test_pipes_get_what_was_said_and_terminals_nothing_that_they_would_obey(
    unstuck: Command, worker: None, tmp_path: Path
) -> None:
    go_on = tmp_path / "go on"
    go_on.touch()
    job = chat(unstuck, go_on)
    eventually(lambda: unstuck("jobs", "show", job, "--json").object["state"] == "COMPLETED", timeout=30)
    records = ['paid order=7 by="ada lovelace"', "WARNING chatter: low on paper sheets=3"]

    told = unstuck("jobs", "logs", job)
    assert told.out == "half a line\n" + "\n".join(records) + "\n\x1b[31mred\n"
    assert told.err == "--- attempt #1 on w1\n"
    assert terminal(unstuck, "jobs", "logs", job) == "half a line\n" + "\n".join(records) + "\n\\x1b[31mred\n"

    assert unstuck("jobs", "logs", job, "--level", "warning").word == records[1]
    timed = unstuck("jobs", "logs", job, "--times").out.splitlines()
    assert timed[0] == "half a line"
    assert [HERE.sub("at", line) for line in timed[1:3]] == [f"at  {line}" for line in records]
    none = unstuck("jobs", "logs", job, "--level", "critical")
    assert (none.code, none.out, none.err) == (0, "", "it has said nothing like that\n")
    wrong = unstuck("jobs", "logs", job, "--level", "loud")
    assert (wrong.code, wrong.out) == (2, "")
    assert "there is no level 'loud'; known: debug, info" in wrong.err

    shown = unstuck("jobs", "show", job).out
    assert "\n  " + "\n  ".join(["half a line", *records, "\\x1b[31mred"]) + "\n" in shown
    [attempt] = unstuck("jobs", "show", job, "--json").object["attempt_list"]
    assert attempt["output"] == told.out.removesuffix("\n")
    assert "framed" not in attempt
