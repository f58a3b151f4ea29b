"""unstuck bulks: one verb over the jobs that a filter wants, on both databases, for people and for programs."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command, ended
from tests.support.builders import a_job, record
from unstuck.model.lifecycle import JobState
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


@pytest.fixture
def jobs(store: SqlStore) -> list[str]:
    wanted = [a_job(workflow="crawl") for _ in range(3)]
    store.submit([*wanted, a_job(workflow="mail")])
    return [job.id for job in wanted]


def test_a_bulk_is_counted_started_watched_and_listed(unstuck: Command, store: SqlStore, jobs: list[str]) -> None:
    counted = unstuck("bulks", "count", "--workflow", "crawl", "--json").object
    assert (counted["number"], counted["exact"], counted["filter"]["workflow"]) == (3, True, "crawl")
    assert unstuck("bulks", "count", "--state", "QUEUED").word == "4 jobs"

    asked = ("--workflow", "crawl", "--reason", "wrong list", "--by", "ada", "--yes")
    started = unstuck("jobs", "cancel", *asked, "--json").object
    assert (started["verb"], started["state"], started["by"], started["done"]) == ("cancel", "RUNNING", "ada", 0)
    store.carry_bulks()

    shown = unstuck("bulks", "show", str(started["number"]), "--watch")
    assert "(cancel) DONE: 3 done, 0 refused, 0 moved on, 0 left" in shown.out
    assert "--workflow crawl" in shown.out
    [listed] = unstuck("bulks", "--json").lines
    assert (listed["number"], listed["matched"], listed["reason"]) == (started["number"], 3, "wrong list")
    assert {record(store, job).state for job in jobs} == {JobState.CANCELLED}
    assert [line["verb"] for line in unstuck("audit", "--verb", "bulks", "--json").lines] == ["bulks.start"]


def test_nothing_is_started_unless_somebody_said_yes(unstuck: Command, store: SqlStore, jobs: list[str]) -> None:
    refused = unstuck("jobs", "cancel", "--workflow", "crawl")
    assert refused.code == 2
    assert "cancel 3 jobs (--workflow crawl)? Nobody is there to be asked: say --yes" in refused.err
    for words in ((), ("--yes",)):
        everything = unstuck("jobs", "cancel", *words)
        assert everything.code == 2
        assert "all of the tenant: --every" in everything.err
    both = unstuck("jobs", "cancel", jobs[0], "--workflow", "crawl", "--yes")
    assert (both.code, "not both" in both.err) == (2, True)
    assert {record(store, job).state for job in jobs} == {JobState.QUEUED}
    assert unstuck("bulks", "list", "--json").lines == []
    assert unstuck("jobs", "cancel", "--every", "--yes").code == 0


def test_a_bulk_is_cancelled_once(unstuck: Command, store: SqlStore, jobs: list[str]) -> None:
    number = str(unstuck("jobs", "retry", "--state", "QUEUED", "--yes", "--json").object["number"])
    gone = unstuck("bulks", "cancel", number, "--by", "eve", "--json").object
    assert (gone["state"], gone["ended_by"]) == ("CANCELLED", "eve")
    assert unstuck("bulks", "show", "12345").code == 3
    assert unstuck("bulks", "show", "many").code == 2
    done = str(unstuck("jobs", "cancel", "--tag", "nobody", "--yes", "--json").object["number"])
    store.carry_bulks()
    assert unstuck("bulks", "cancel", done).code == 4


@pytest.mark.parametrize(
    ("verb", "options", "kept"),
    [
        ("cancel", ("--reason", "r"), {"reason": "r"}),
        ("interrupt", ("--reason", "r"), {"reason": "r"}),
        ("resume", ("--from-start",), {"from_start": True}),
        ("retry", (), {}),
        ("release", ("--force",), {"force": True}),
        ("skip", (), {}),
    ],
)
def test_every_verb_takes_a_filter_in_place_of_ids(
    unstuck: Command, jobs: list[str], verb: str, options: tuple[str, ...], kept: dict[str, object]
) -> None:
    words = ("--state", "QUEUED", "--workflow", "crawl", "--older", "0s", "--by", "ada", "--yes", "--json")
    bulk = unstuck("jobs", verb, *options, *words).object
    asked = {"verb": verb, "by": "ada", "state": "RUNNING", "reason": None, "from_start": False, "force": False}
    assert {name: bulk[name] for name in asked} == asked | kept
    assert (bulk["filter"]["state"], bulk["filter"]["workflow"]) == (["QUEUED"], "crawl")


@pytest.mark.parametrize(("answer", "code", "bulks"), [("n", 2, 0), ("", 2, 0), ("y", 0, 1)])
def test_a_person_is_asked_with_the_count(
    unstuck: Command, jobs: list[str], answer: str, code: int, bulks: int
) -> None:
    ours, theirs = pty.openpty()
    words = unstuck.words("jobs", "cancel", "--workflow", "crawl")
    around = unstuck.environment(NO_COLOR="1")
    process = subprocess.Popen(
        words, cwd=unstuck.directory, env=around, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs
    )
    os.close(theirs)
    with ended(process, 30):
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 65536)
        os.write(ours, f"{answer}\n".encode())
        assert process.wait(30) == code
    os.close(ours)
    assert b"cancel 3 jobs (--workflow crawl)? [y/N]" in shown
    assert len(unstuck("bulks", "--json").lines) == bulks
