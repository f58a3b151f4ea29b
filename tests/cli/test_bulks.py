"""unstuck bulks: one verb over the jobs that a filter wants, on both databases, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
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
    started = unstuck("bulks", "start", "cancel", *asked, "--json").object
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
    refused = unstuck("bulks", "start", "cancel", "--workflow", "crawl")
    assert refused.code == 2
    assert "cancel 3 jobs (--workflow crawl)? Nobody is there to be asked: say --yes" in refused.err
    everything = unstuck("bulks", "start", "cancel", "--yes")
    assert everything.code == 2
    assert "a filter that matches everything needs to say so" in everything.err
    assert unstuck("bulks", "start", "explode", "--workflow", "crawl", "--yes").code == 2
    assert unstuck("bulks", "list", "--json").lines == []
    assert unstuck("bulks", "start", "cancel", "--everything", "--yes").code == 0


def test_a_bulk_is_cancelled_once(unstuck: Command, store: SqlStore, jobs: list[str]) -> None:
    number = str(unstuck("bulks", "start", "retry", "--state", "QUEUED", "--yes", "--json").object["number"])
    gone = unstuck("bulks", "cancel", number, "--by", "eve", "--json").object
    assert (gone["state"], gone["ended_by"]) == ("CANCELLED", "eve")
    assert unstuck("bulks", "show", "12345").code == 3
    assert unstuck("bulks", "show", "many").code == 2
    done = str(unstuck("bulks", "start", "cancel", "--tag", "nobody", "--yes", "--json").object["number"])
    store.carry_bulks()
    assert unstuck("bulks", "cancel", done).code == 4
