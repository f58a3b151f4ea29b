"""unstuck series: what ended, minute by minute, on both databases, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.support.builders import a_job, a_worker, boom, claim_all, settle_all
from tests.support.troubles import execute
from unstuck.model.settlement import Returned
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


@pytest.fixture
def ended(store: SqlStore, store_url: str) -> None:
    """Twenty minutes ago: 3 mails and a crawl that failed; and one of acme."""
    ada = a_worker(store)
    mails = [a_job(workflow="mail", queue="io") for _ in range(3)]
    store.submit([*mails, a_job(workflow="crawl", queue="web", retries=0), a_job(workflow="mail", tenant="acme")])
    reports = [
        Report(attempt.ref, boom() if attempt.workflow == "crawl" else Returned("1"), duration_ms=200)
        for attempt in claim_all(store, ada)
    ]
    settle_all(store, ada.number, reports)
    execute(store_url, f"UPDATE unstuck_done SET finished_at = finished_at - {20 * 60_000_000}")
    assert store.count_ends(60.0) == 5


@pytest.mark.usefixtures("ended")
def test_a_series_is_shown_to_people(unstuck: Command) -> None:
    shown = unstuck("series", "--step", "1h", "--since", "2h")
    header, *lines = shown.out.splitlines()
    assert header.split()[:6] == ["UTC", "ENDED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD"]
    (line,) = lines
    assert line.split()[1:7] == ["4", "########!!", "1", "0", "0", "0"]
    assert line.endswith("300ms 300ms 300ms")
    assert "counted until" in shown.err

    per = unstuck("series", "--per", "workflow", "--step", "1h", "--all-tenants").out.splitlines()
    assert [line.split()[0] for line in per] == ["WORKFLOW", "crawl", "mail"]
    assert per[2].split()[2] == "4"
    assert "nothing ended in that time" in unstuck("series", "--since", "5m").err


@pytest.mark.usefixtures("ended")
def test_a_series_is_told_to_programs(unstuck: Command) -> None:
    told = unstuck("series", "--per", "queue", "--json").object
    assert (told["per"], told["tenant"], told["step"]) == ("queue", "default", 60)
    assert told["buckets_ms"][-2:] == [1_800_000, None]
    io, web = told["points"]
    assert (io["name"], io["ended"], io["completed"], io["run_p95_ms"], io["run"][3]) == ("io", 3, 3, 300, 3)
    assert (web["name"], web["failed"], sum(web["wait"])) == ("web", 1, 1)
    assert len(io["wait"]) == len(told["buckets_ms"])
    assert unstuck("series", "--tenant", "acme", "--json").object["points"][0]["ended"] == 1


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--per", "job"], "per='job' is none of: total, queue, workflow"),
        (["--step", "90s"], "not a number of whole minutes"),
        (["--since", "7d"], "10,081 steps, and 750 is the most"),
        (["--since", "-1"], "not a duration"),
        (["--limit", "21"], "21"),
    ],
)
def test_what_cannot_be_asked_is_refused(unstuck: Command, asked: list[str], says: str) -> None:
    refused = unstuck("series", *asked)
    assert refused.code == 2
    assert says in refused.err.replace("\n", " ")
