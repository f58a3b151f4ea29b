"""Many culprits: at once, one after the other, and the memory they take."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from tests.journeys.conftest import Jobs, spawn_once
from tests.journeys.ladder import (
    SLACK,
    TIMES,
    Company,
    Start,
    accompanied,
    capacity_is_whole,
    ended,
    family_is_gone,
    is_stuck,
    on_sqlite_in_both_modes,
    rerun_as_suspects,
    rerun_at_no_cost,
    story,
    undisturbed,
)
from tests.support.eventually import eventually
from unstuck.examples import stuck
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

GRACE = 1.0


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, stuck.app)


@spawn_once
def test_a25_a27_three_culprits_at_once_are_convicted_each_with_its_own_stack(start: Start, jobs: Jobs) -> None:
    """Their verdicts are so close that each stack is taken before the one before it was read."""
    company = accompanied(start, jobs, slots=8)
    names = ["thread_sleep", "swallows_cancel", "coroutine_swallows_cancel"]
    limits = dict(zip(names, (0.5, 0.6, 0.7), strict=True))
    asked = {name: jobs.enqueue(f"stuck.{name}", timeout=limits[name], grace=GRACE) for name in names}

    for name, job in asked.items():
        ending = ended(jobs, job)
        is_stuck(ending, GRACE)
        assert f"in {name}" in ending.stack
        assert not [other for other in names if other != name and f"in {other}\n" in ending.stack]

    undisturbed(company, company.all)
    family_is_gone(company)
    capacity_is_whole(company)


@spawn_once
def test_a25_a29_three_culprits_of_the_worst_kinds_at_once_all_end_in_time(start: Start, jobs: Jobs) -> None:
    """One holds the interpreter: what the others did cannot be seen, so their own requests decide. They are seen to
    wait for it; beside one that sleeps nobody could tell which of the two holds it."""
    company = accompanied(start, jobs, slots=8)
    worst = jobs.enqueue("stuck.holds_gil", timeout=0.5, grace=GRACE)
    others = [jobs.enqueue(f"stuck.{name}", timeout=0.5, grace=GRACE) for name in ("thread_spin", "loop_spin")]

    is_stuck(ended(jobs, worst), GRACE)

    for job in others:
        ending = ended(jobs, job)
        assert ending.took("requested") <= GRACE + SLACK + TIMES.unresponsive, story(ending)
        assert ending.record.state is JobState.TIMEOUT or ending.record.error_type == "ExecutionStuck", story(ending)
    rerun_at_no_cost(company, company.all, because_of=worst)
    family_is_gone(company)
    capacity_is_whole(company)


@dataclass(frozen=True)
class Footprint:
    """What supervisor and zygote have: descriptors, threads, bytes; how many processes are below them. Connections
    to a SQLite file, of two descriptors each, are apart: a pool keeps as many as ever looked at once."""

    descriptors: tuple[int, int]
    connections: int
    threads: tuple[int, int]
    memory: tuple[int, int]
    family: int


def footprint(company: Company) -> Footprint:
    record = company.worker.record(company.jobs.store)
    assert record is not None
    both = [psutil.Process(company.worker.process.pid), psutil.Process(record.info["pids"]["zygote"]["pid"])]
    connections = connections_of(both[0].pid)
    return Footprint(
        descriptors=(both[0].num_fds() - 2 * connections, both[1].num_fds()),
        connections=connections,
        threads=(both[0].num_threads(), both[1].num_threads()),
        memory=(both[0].memory_info().rss, both[1].memory_info().rss),
        family=len(both[0].children(recursive=True)),
    )


def connections_of(pid: int) -> int:
    found = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found += os.readlink(descriptor).endswith("-wal")
    return found


def footprint_at_rest(company: Company, mode: str) -> Footprint:
    """With the zygote, its one process and, in spawn mode, the spare, which takes a while to start."""
    whole = 2 if mode == "fork" else 3
    eventually(lambda: footprint(company).family == whole)
    return footprint(company)


@on_sqlite_in_both_modes
@pytest.mark.timeout(180)
def test_fifty_stuck_jobs_in_a_row_leave_nothing_behind(start: Start, jobs: Jobs, mode: str) -> None:
    """Neither a process nor a thread, descriptor, slot or byte that stays; the first ten warm up."""
    jobs.store.set_setting("stuck_circuit_breaker_threshold", "0", by="test")  # so many blacklist a workflow
    company = accompanied(start, jobs, sync=0, coroutines=0, slots=4, times=replace(TIMES, grace=0.2))
    at_once = 1 if mode == "fork" else 2  # a process takes longer to start there
    get_stuck(company, 10, at_once)
    before = footprint_at_rest(company, mode)

    get_stuck(company, 40, at_once)

    after = footprint_at_rest(company, mode)
    assert after.threads == before.threads
    for now, then in zip(after.descriptors, before.descriptors, strict=True):
        assert now <= then + 2, (before, after)
    assert after.connections <= before.connections + 4, (before, after)
    for now, then in zip(after.memory, before.memory, strict=True):
        assert now <= then + (4 << 20), (before, after)
    capacity_is_whole(company)


def get_stuck(company: Company, times: int, at_once: int) -> None:
    """All of them, in groups so that it is over soon, and until nothing of them lives."""
    jobs = company.jobs
    for _ in range(times // (2 * at_once)):
        group = [
            job
            for name in ("thread_sleep", "swallows_cancel")
            for job in jobs.enqueue_many(f"stuck.{name}", times=at_once, timeout=0.1, grace=0.2)
        ]
        for job in group:
            assert ended(jobs, job, within=10).record.error_type == "ExecutionStuck"
    eventually(lambda: not any(jobs.get(job).held for job in group), timeout=10)

    def settled() -> None:
        known = company.worker.executors(jobs.store)
        below = psutil.Process(company.worker.process.pid).children(recursive=True)
        assert len(below) == 1 + len(known)
        assert len(known) <= 2  # in spawn mode a spare is kept

    eventually(settled, timeout=10)


@spawn_once
def test_a_process_above_its_memory_limit_is_killed_and_its_only_job_is_out_of_memory(
    start: Start, jobs: Jobs
) -> None:
    company = accompanied(start, jobs, sync=0, coroutines=0, memory_limit=250 << 20)

    ending = ended(jobs, jobs.enqueue("stuck.memory_hog", 800, timeout=60, max_lost=0))

    assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "OutOfMemory"), story(ending)
    family_is_gone(company)
    capacity_is_whole(company)


@on_sqlite_in_both_modes
def test_a29_neighbours_of_a_memory_hog_are_suspects_and_complete_by_themselves(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs, memory_limit=250 << 20)

    ending = ended(jobs, jobs.enqueue("stuck.memory_hog", 800, timeout=60, max_lost=0), within=20)

    assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "OutOfMemory"), story(ending)
    rerun_as_suspects(company, company.all)
    family_is_gone(company)
