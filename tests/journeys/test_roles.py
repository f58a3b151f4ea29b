"""A worker that cannot do its part: it says so, leaves or ends itself, and nobody's job pays for it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.journeys.conftest import Jobs, Marks, only_here
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from unstuck.model.lifecycle import JobState
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.port import Store

#: The loops of a worker that has no database are few, and what it cannot write its beat tells.
pytestmark = only_here

Start = Callable[..., Worker]

STALLED, UNFIT = 70, 69

#: A tick that never comes back, from the moment on that the flag is there.
_STANDS_STILL = """
import pathlib, threading
from {module} import {owner}
_tick = {owner}.{method}
def _stand(self, *more):
    if pathlib.Path({flag!r}).exists():
        threading.Event().wait()
    return _tick(self, *more)
{owner}.{method} = _stand
"""
_PLACES = {
    "main": {"module": "unstuck.worker.incarnation", "owner": "Incarnation", "method": "_look"},
    "janitor": {"module": "unstuck.janitor.timers", "owner": "TimersDuty", "method": "tick"},
}


@pytest.mark.parametrize("loop", ["main", "janitor"])
def test_a_worker_that_ends_itself_because_a_loop_stands_still_charges_nobody(
    start: Start, jobs: Jobs, marks: Marks, tmp_path: Path, loop: str
) -> None:
    flag = tmp_path / "stand still"
    times = replace(COMPRESSED, sweep=0.2, store_call=0.6, slack=0.3)
    first = start("first", times=times, before=_STANDS_STILL.format(flag=str(flag), **_PLACES[loop]))
    ids = jobs.enqueue_many("nap", marks.path, 3600.0, times=3)
    marks.wait_for("begun", 3, within=40)
    number = (first.record(jobs.store) or _none()).number
    flag.touch()

    assert first.wait(40) == STALLED

    start("second")
    marks.wait_for("begun", 6, within=40)
    for job in ids:
        assert (jobs.get(job).losses, jobs.get(job).token) == (0, 2)
        (lost,) = [event for event in jobs.store.history("default", job) if event.kind == "lost"]
        assert f"the {loop} loop has not ticked" in str(lost.data)
    (row,) = [worker for worker in jobs.store.workers() if worker.number == number]
    assert row.state in ("fenced", "gone")


@contextmanager
def table_away(url: str, table: str) -> Iterator[None]:
    """The schema changes under everybody: whoever names this table fails."""
    rename(url, table, f"{table}_away")
    try:
        yield
    finally:
        rename(url, f"{table}_away", table)


def rename(url: str, table: str, name: str) -> None:
    if url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as postgres:
            postgres.execute(f'ALTER TABLE "{table}" RENAME TO "{name}"')
        return
    with closing(sqlite3.connect(sqlite_path(url), timeout=10)) as sqlite:
        # Only the table: what names it is to fail, not to follow.
        sqlite.execute("PRAGMA legacy_alter_table = ON")
        sqlite.execute(f"ALTER TABLE {table} RENAME TO {name}")


def test_a_worker_that_can_never_settle_says_so_takes_nothing_new_and_leaves_and_charges_nobody(
    start: Start, jobs: Jobs, marks: Marks, store_url: str, tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    worker = start("first", concurrency=2, ready_file=str(ready))
    jobs.until(jobs.enqueue("noop"), JobState.COMPLETED, within=40)
    eventually(lambda: ready.exists())
    ended = jobs.enqueue("nap", marks.path, 1.0)
    goes_on = jobs.enqueue("nap", marks.path, 9.0)
    begun = max(at for _, at in marks.wait_for("begun", 2))
    with table_away(store_url, "unstuck_done"):
        marks.wait_for("ended")
        roles = eventually(lambda: shown_roles(jobs.store, "settle"))
        assert "unstuck_done" in roles["settle"]["error"]
        assert roles["settle"]["failures"] >= 2
        eventually(lambda: not ready.exists())
        eventually(lambda: (worker.record(jobs.store) or _none()).info["ready"] is False)
        new = jobs.enqueue("nap", marks.path, 0.0)

        assert worker.wait(60) == UNFIT

        assert time.clock_gettime(time.CLOCK_BOOTTIME) - begun >= 9.0, "it leaves in order: what runs may finish"
        assert len(marks.of("begun")) == 2, "it could not have finished what it takes"
        assert len(marks.of("ended")) == 2
        (news,) = [n for n in jobs.store.notifications() if n.title.endswith(": settle")]
        assert "first" in news.message
        assert "unstuck_done" in news.message
    start("second")
    for job in (ended, goes_on, new):
        assert jobs.until(job, JobState.COMPLETED, within=40).losses == 0


def shown_roles(store: Store, wanted: str) -> dict[str, Any]:
    """What the beat says of them."""
    infos = [worker.info for worker in store.workers() if worker.name == "first"]
    found = {role["name"]: role for info in infos for role in info.get("roles", ())}
    assert wanted in found, found
    return found


def test_a_duty_that_fails_for_good_on_a_worker_is_shown_and_told_and_does_not_make_it_leave(
    start: Start, jobs: Jobs, store_url: str
) -> None:
    worker = start("first")
    jobs.until(jobs.enqueue("noop"), JobState.COMPLETED, within=40)
    with table_away(store_url, "unstuck_children"):
        roles = eventually(lambda: shown_roles(jobs.store, "janitor/children"), timeout=20)
        assert "unstuck_children" in roles["janitor/children"]["error"]

        def told() -> None:
            assert [n.title for n in jobs.store.notifications() if n.title.endswith("janitor/children")]

        eventually(told, timeout=30)
        assert worker.process.poll() is None
        assert (worker.record(jobs.store) or _none()).info["ready"] is True
    eventually(lambda: not (worker.record(jobs.store) or _none()).info["roles"], timeout=20)
    assert len([n for n in jobs.store.notifications() if n.title.endswith("janitor/children")]) == 1
    jobs.until(jobs.enqueue("noop"), JobState.COMPLETED, within=40)


def _none() -> Any:
    raise AssertionError("this worker has no row")
