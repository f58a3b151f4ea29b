"""unstuck schedules: what runs by the clock, for people and for programs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tests.cli.command import ROOT, Command
from tests.conftest import StoreClock
from tests.support.schedules import come, made, register, seen, turn, verbs
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def unstuck(store_url: str, tmp_path: Path) -> Command:
    return Command(store_url, tmp_path, {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})


def test_one_is_made_shown_changed_paused_and_deleted(unstuck: Command, store: SqlStore) -> None:
    assert "no schedules; make one" in unstuck("schedules").err
    register(store)
    rule = ("--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--overlap", "skip", "--tag", "report")
    view = unstuck("schedules", "create", "nightly", "greet", "name=ada", *rule, "--by", "ada", "--json").object
    assert (view["name"], view["workflow"], view["state"]) == ("nightly", "greet", "ACTIVE")
    assert (view["cron"], view["zone"], view["kwargs"]) == ("30 2 * * *", "Europe/Berlin", {"name": "ada"})
    assert (view["overlap"], view["tags"], view["created_by"]) == ("skip", ["report"], "ada")

    [listed] = unstuck("schedules", "--json").lines
    assert listed == view
    assert "At 02:30 every day, Europe/Berlin" in unstuck("schedules", "show", "nightly").out
    ticks = unstuck("schedules", "next", "nightly", "--count", "3", "--json").object["ticks"]
    assert len(ticks) == 3
    assert view["next_at"] == ticks[0]

    changed = unstuck("schedules", "update", "nightly", "--every", "5m", "--priority", "4", "--json").object
    assert (changed["cron"], changed["every"], changed["priority"], changed["overlap"]) == (None, 300.0, 4, "skip")
    assert changed["version"] == 2
    assert "is paused until somebody resumes it" in unstuck("schedules", "pause", "nightly", "--reason", "r").out
    assert unstuck("schedules", "show", "nightly", "--json").object["pause_reason"] == "r"
    assert "goes on" in unstuck("schedules", "resume", "nightly").out
    assert "is paused until 20" in unstuck("schedules", "pause", "nightly", "--for", "2h").out
    assert unstuck("schedules", "delete", "nightly").code == 0
    said = [line["verb"] for line in unstuck("audit", "--verb", "schedules", "--json").lines]
    assert said == [f"schedules.{verb}" for verb in ("delete", "pause", "resume", "pause", "update", "create")]


def test_what_came_of_its_ticks_is_listed(unstuck: Command, store: SqlStore, clock: StoreClock) -> None:
    made(store)
    job = unstuck("schedules", "run-now", "nightly").word
    assert unstuck("jobs", "show", job, "--json").object["tags"] == ["schedule:nightly"]
    store.blacklist_add("default", "greet", "it hangs", "ada")
    for _ in range(3):
        come(store, clock)
        turn(store)
    refused = unstuck("schedules", "run-now", "nightly")
    assert (refused.code, "Workflow is blacklisted" in refused.err) == (4, True)

    lines = unstuck("schedules", "firings", "nightly", "--json").lines
    assert [line["outcome"] for line in lines] == ["refused"] * 3 + ["fired"]
    assert [line["job"] for line in lines] == [None] * 3 + [job]
    assert "Workflow is blacklisted" in unstuck("schedules", "firings", "nightly", "--limit", "1").out
    page = unstuck("schedules", "firings", "nightly", "--after", str(lines[2]["number"]), "--json").lines
    assert page == lines[3:]
    assert "ACTIVE (silent)" in unstuck("schedules", "list").out
    assert "made no job at its last 3 ticks" in unstuck("health").out


def test_a_range_is_made_up_for(unstuck: Command, store: SqlStore) -> None:
    made(store)
    now = seen(store).now
    since, until = (now - timedelta(minutes=5)).isoformat(), now.isoformat()
    assert len(unstuck("schedules", "backfill", "nightly", since, until, "--json").lines) == 5
    assert "every tick of that range has its job" in unstuck("schedules", "backfill", "nightly", since, until).err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("create", "x", "greet", "name=ada"), 2, "say cron= or every="),
        (("create", "x", "greet", "name=ada", "--cron", "61 * * * *"), 2, "bad minute"),
        (("create", "x", "greet", "name=ada", "--cron", "@daily", "--zone", "Mars/Olympus"), 2, "no time zone"),
        (("create", "x", "greet", "--every", "5m"), 2, "missing a required argument: name"),
        (("create", "x", "nobody", "--every", "5m"), 3, "nobody"),
        (("create", "nightly", "greet", "name=ada", "--every", "5m"), 4, "there is a schedule nightly already"),
        (("create", "x", "greet", "name=ada", "--every", "1ms"), 2, "schedule_min_interval"),
        (("show", "x"), 3, "there is no schedule x"),
        (("update", "x", "--every", "5m"), 3, "there is no schedule x"),
        (("update", "nightly", "--overlap", "maybe"), 2, "allow, skip, queue, cancel"),
        (("pause", "nightly", "--until", "2001-01-01T00:00:00Z"), 2, "would have ended already"),
        (("backfill", "nightly", "2001-01-01", "2002-01-01"), 2, "in which zone"),
    ],
)
def test_what_cannot_be_is_told(
    unstuck: Command, store: SqlStore, words: tuple[str, ...], code: int, told: str
) -> None:
    made(store)
    answer = unstuck("schedules", *words)
    assert (answer.code, told in answer.err) == (code, True), answer.err
    assert len(store.schedules(None)) == 1


def test_another_tenants_is_none(unstuck: Command, store: SqlStore) -> None:
    register(store)
    verbs(store, "other").create("theirs", "greet", every=60.0, kwargs={"name": "eve"})
    assert unstuck("schedules", "show", "theirs").code == 3
    assert unstuck("schedules", "show", "theirs", "--tenant", "other").code == 0
