"""unstuck why: the verdict first, then the reasons, and a command that helps when it is typed."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.command import Command
from tests.support.eventually import eventually
from tests.support.outage import database_away

KEYS = {"job", "state", "is_runnable", "verdict", "reasons", "at"}
REASON_KEYS = {"code", "sentence", "actor", "since_at", "until_at", "remedy", "details"}


def test_the_verdict_comes_first_and_then_who_must_do_what(unstuck: Command) -> None:
    """A57"""
    job = unstuck.enqueue("add", "1")
    answer = unstuck("why", job)
    assert (answer.code, answer.err) == (0, "")
    head, verdict, blank, *rest = answer.out.splitlines()
    assert head == f"{job}  QUEUED"
    assert verdict == "not runnable: no live worker serves queue default; none ever did"
    assert blank == ""
    assert rest == [
        "  no_worker  no live worker serves queue default; none ever did",
        "    who    an operator",
        "    do     unstuck worker MODULE:APP --queues default",
    ]


def test_programs_get_the_same_document(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    found = unstuck("why", job[:30], "--json").object
    assert found.keys() == KEYS
    assert (found["job"], found["state"], found["is_runnable"]) == (job, "QUEUED", False)
    [reason] = found["reasons"]
    assert reason.keys() == REASON_KEYS
    assert (reason["code"], reason["actor"], reason["until_at"]) == ("no_worker", "an operator", None)
    assert found["at"].endswith("Z")


def test_the_command_that_it_names_helps(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    assert unstuck("jobs", "interrupt", job).code == 0
    [reason] = unstuck("why", job, "--json").object["reasons"]
    assert reason["code"] == "paused"
    program, *words = reason["remedy"].split()
    assert program == "unstuck"
    assert unstuck(*words).code == 0
    assert [r["code"] for r in unstuck("why", job, "--json").object["reasons"]] == ["no_worker"]


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_file_that_answers_and_cannot_be_written_is_told_beside_the_reasons(
    unstuck: Command, store_url: str
) -> None:
    """Its gates say when it would run; until the outage is over nothing does."""
    job = unstuck.enqueue("add", "1")
    with database_away(store_url):
        answer = unstuck("why", job)
    assert (answer.code, answer.out.splitlines()[0]) == (0, f"{job}  QUEUED")
    assert "nothing moves until the database can be written again: another process (" in answer.err


@pytest.mark.parametrize("name", ["ffffffff", "no-such-job"])
def test_a_job_that_does_not_exist_is_code_3(unstuck: Command, name: str) -> None:
    answer = unstuck("why", name)
    assert (answer.code, answer.out) == (3, "")
    assert f"there is no job {name}" in answer.err


def test_watch_tells_what_changes_and_stops_at_the_end(unstuck: Command) -> None:
    job = unstuck.enqueue("add", "1")
    watcher = subprocess.Popen(
        unstuck.words("why", job, "--watch", "--json"),
        cwd=unstuck.directory,
        env=unstuck.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert watcher.stdout is not None
        assert '"no_worker"' in watcher.stdout.readline()
        assert unstuck("jobs", "cancel", job).code == 0
        assert '"ended"' in watcher.stdout.readline()
        assert eventually(lambda: watcher.poll() is not None, 20)
        assert watcher.returncode == 0
        assert watcher.stdout.read() == ""
    finally:
        watcher.kill()
        watcher.wait(10)
        if watcher.stdout is not None:
            watcher.stdout.close()
