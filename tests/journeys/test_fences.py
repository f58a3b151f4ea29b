"""A worker that lost its lease or its database stops in time, changes nothing more and begins anew."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace

import psutil

from tests.journeys.conftest import Jobs, Marks, spawn_once
from tests.support.eventually import eventually
from tests.support.outage import database_away
from tests.support.workers import COMPRESSED, Worker
from tests.tiers import at_a_distance, commit
from unstuck.model.lifecycle import JobState

Start = Callable[..., Worker]


@at_a_distance("postgres", mode="fork")
@spawn_once
def test_a_worker_stopped_past_its_lease_changes_nothing_and_begins_anew(
    start: Start, jobs: Jobs, marks: Marks
) -> None:
    """A7, F06: its bodies end before its lease does, another worker takes over, its own life starts again."""
    first = start("first")
    job = jobs.enqueue("nap", marks.path, 8.0)
    ((body, _),) = marks.wait_for("begun")
    os.kill(first.process.pid, signal.SIGSTOP)
    stopped_at = time.monotonic()
    try:
        eventually(lambda: not psutil.pid_exists(body), timeout=COMPRESSED.lease)
        assert time.monotonic() - stopped_at < COMPRESSED.lease
        start("second")
        eventually(lambda: jobs.get(job).worker == "second", timeout=15)
    finally:
        os.kill(first.process.pid, signal.SIGCONT)

    record = jobs.until(job, JobState.COMPLETED, within=25)
    assert record.losses == 1
    assert jobs.kinds(job) == ["submitted", "claimed", "lost", "claimed", "completed"]
    eventually(lambda: "begins_anew" in first.log.read_text())
    eventually(lambda: [w for w in jobs.store.workers() if w.pid == first.process.pid and w.state == "active"])


@at_a_distance("sqlite", mode="fork")
@commit
@spawn_once
def test_a_short_outage_costs_nothing_and_finished_results_land(
    start: Start, jobs: Jobs, marks: Marks, store_url: str
) -> None:
    """A10, the first half."""
    start()
    job = jobs.enqueue("nap", marks.path, 1.0)
    marks.wait_for("begun")
    with database_away(store_url):
        marks.wait_for("ended")
        time.sleep(0.5)
    record = jobs.until(job, JobState.COMPLETED)
    assert (record.losses, len(marks.of("begun"))) == (0, 1)


def test_a_result_that_waits_for_writes_all_but_a_lease_long_lands_as_it_was(
    start: Start, jobs: Jobs, marks: Marks, store_url: str
) -> None:
    """A10: the store still answers questions meanwhile; that is no reason to give a result up."""
    start(times=replace(COMPRESSED, lease=12.0))
    job = jobs.enqueue("nap", marks.path, 1.0)
    marks.wait_for("begun")
    with database_away(store_url):
        marks.wait_for("ended")
        time.sleep(6.0)
    record = jobs.until(job, JobState.COMPLETED)
    assert (record.result, record.losses, len(marks.of("begun"))) == ('"rested"', 0, 1)


@at_a_distance("postgres", mode="fork")
@spawn_once
def test_in_a_long_outage_nothing_runs_past_the_margin_and_it_runs_again_uncharged(
    start: Start, jobs: Jobs, marks: Marks, store_url: str
) -> None:
    """A10, the second half: cancelled in time, killed if deaf, charged to nobody."""
    start(concurrency=4, processes=1)
    ids = [jobs.enqueue("deaf", marks.path, 9.0), jobs.enqueue("nap", marks.path, 9.0)]
    bodies = {pid for pid, _ in marks.wait_for("begun", 2)}
    with database_away(store_url):
        away_at = time.monotonic()
        eventually(lambda: not any(map(psutil.pid_exists, bodies)), timeout=COMPRESSED.lease)
        assert time.monotonic() - away_at < COMPRESSED.lease - COMPRESSED.margin + 0.7
        while time.monotonic() - away_at < COMPRESSED.lease + 1:
            time.sleep(0.05)
    for job in ids:
        record = jobs.until(job, JobState.COMPLETED, within=40)
        assert (record.losses, record.suspects, record.failures) == (0, 0, 0)
