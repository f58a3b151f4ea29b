"""Schedules with real workers that die: each tick once; and what code declares, from worker to job."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.journeys.conftest import Jobs, Marks, only_here
from tests.support.eventually import eventually
from tests.support.schedules import verbs
from tests.support.workers import Worker
from tests.tiers import LONGER, slow, torture
from unstuck.model.lifecycle import JobState
from unstuck.store.port import FiringRecord, JobFilter, Store

#: Ticks are fired by workers beside the database, and by servers.
pytestmark = only_here

Start = Callable[..., Worker]
APP = "tests.journeys.schedules_app:app"


def firings(store: Store, name: str) -> list[FiringRecord]:
    """All of them, the oldest first."""
    number, found, before = verbs(store).get(name).number, list[FiringRecord](), None
    while page := store.firings(number, before, 1000):
        found += page
        before = page[-1].number
    return found[::-1]


@pytest.mark.parametrize(
    ("size", "seconds"),
    [
        pytest.param(4, 15, marks=[slow], id="4-workers"),
        pytest.param(10, 30 * LONGER, marks=[torture, pytest.mark.timeout(60 * LONGER)], id="10-workers"),
    ],
)
def test_every_second_while_workers_are_killed_each_tick_once(
    start: Start, db: Store, marks: Marks, size: int, seconds: int
) -> None:
    """Of ten workers for five minutes, by hand. Whoever dies leaves a firing with its job, or neither."""
    dice = random.Random(size)
    crew = [start(f"w{place}", app=APP) for place in range(size)]
    eventually(lambda: db.workflow("tick") is not None, timeout=40)
    kwargs = {"path": str(marks.path)}
    made = verbs(db).create("every-second", "tick", every=1.0, kwargs=kwargs, tick_as="tick", catch_up="all")
    end, generation = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        time.sleep(dice.uniform(0.5, 2.0))
        place, generation = dice.randrange(size), generation + 1
        crew[place].kill_all()
        crew[place] = start(f"w{place}-{generation}", app=APP)
    now = db.now()
    eventually(lambda: firings(db, "every-second")[-1].tick >= now - timedelta(seconds=2), timeout=60)
    verbs(db).pause("every-second")

    found = firings(db, "every-second")
    ticks = [firing.tick for firing in found]
    assert made.next_tick == ticks[0]
    assert ticks == [ticks[0] + timedelta(seconds=place) for place in range(len(ticks))], "none twice, none left out"
    assert len(ticks) >= seconds - 2
    assert {firing.outcome for firing in found} == {"fired"}

    def jobs() -> list[str]:
        page, ids = None, list[str]()
        for state in JobState:
            page = db.jobs("default", JobFilter(states=(state,), tag="schedule:every-second"), 10_000)
            ids += [job.id for job in page.jobs]
        return ids

    assert sorted(jobs()) == sorted(str(firing.job) for firing in found), "a firing and its job, or neither"
    for firing in found[-3:]:
        eventually(lambda job=firing.job: _state(db, job) is JobState.COMPLETED, timeout=60)  # type: ignore[misc]


def _state(store: Store, job: str | None) -> JobState | None:
    record = store.get("default", job or "")
    return None if record is None else record.state


@slow
def test_what_code_declares_runs_and_goes_with_its_line(start: Start, db: Store, jobs: Jobs) -> None:
    first = start("v1", app=APP)
    eventually(lambda: [each.name for each in db.schedules("default")] == ["sleepy", "hourly"], timeout=40)
    eventually(lambda: any(firing.job for firing in firings(db, "sleepy")), timeout=20)
    fired = next(firing for firing in firings(db, "sleepy") if firing.job)
    jobs.until(str(fired.job), JobState.COMPLETED, within=20)
    assert {each.owner for each in db.schedules("default")} == {"clockwork"}

    first.terminate()
    first.wait()
    start("v2", app=APP.replace(":app", ":later"))
    eventually(lambda: [each.name for each in db.schedules("default")] == ["hourly"], timeout=40)
    assert verbs(db).get("hourly").spec.cron == "0 0 * * *"
