"""Who keeps a shared process from all others in it, on a cold and on a warm crew, is convicted every time.

With its stack and its mark, and its neighbours pay nothing. Many times over: what can be seen of it depends on who
was just doing what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import psutil
import pytest

from tests.journeys import holders
from tests.journeys.conftest import Jobs, only_sqlite
from tests.journeys.ladder import Start, ended, is_alive, story, turns
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from tests.tiers import slow, torture
from unstuck.chance import SystemChance
from unstuck.model.job import JobRecord, NewJob
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import encode
from unstuck.store.port import Store

APP = "tests.journeys.holders:app"
TIMES = replace(COMPRESSED, frozen=5.0)
LIMIT, GRACE = 0.5, 1.0
SLOTS = 8

rounds = pytest.mark.parametrize("rounds", [pytest.param(2, marks=slow), pytest.param(50, marks=torture)])
on_a_crew = pytest.mark.parametrize("is_warm", [False, True], ids=["cold", "warm"])


@pytest.fixture
def jobs(db: Store) -> Jobs:
    db.set_setting("stuck_circuit_breaker_threshold", "0", "the test")
    return Jobs(db, holders.app)


def begin(start: Start, jobs: Jobs) -> Worker:
    worker = start(app=APP, concurrency=SLOTS, processes=1, times=TIMES)
    eventually(lambda: (record := worker.record(jobs.store)) is not None and record.info.get("ready"), timeout=90)
    return worker


def together(jobs: Jobs, culprits: Sequence[str], place: int, seconds: float = 1.5) -> tuple[list[str], list[str]]:
    """Culprits and innocents, as many as there are slots, submitted and claimed at once."""
    names = ["innocent"] * (SLOTS - len(culprits))
    names[place:place] = culprits
    chance, new = SystemChance(), []
    for name in names:
        handler = jobs.app._registry.handler(name)
        args = [seconds] if name == "innocent" else []
        limits = {} if name == "innocent" else {"timeout": LIMIT, "grace": GRACE}
        new.append(
            NewJob(
                id=chance.job_id(),
                tenant="default",
                queue=handler.queue,
                workflow=name,
                payload=encode({"args": args, "kwargs": {}}, "arguments"),
                policy=handler.policy.with_(name, limits),
            )
        )
    ids = [stored.id for stored in jobs.store.submit(new)]
    guilty = [ids[at] for at, name in enumerate(names) if name != "innocent"]
    return guilty, [job for job in ids if job not in guilty]


def accompany(jobs: Jobs, seconds: float) -> list[str]:
    """Innocents that have begun."""
    innocents = jobs.enqueue_many("innocent", seconds, times=2)
    eventually(lambda: all(jobs.get(job).started_at for job in innocents), timeout=20)
    return innocents


def warm_up(jobs: Jobs) -> None:
    """Every thread of the crew has run something."""
    for job in jobs.enqueue_many("innocent", 0.5, times=SLOTS):
        jobs.until(job, JobState.COMPLETED, within=20)


def whole(jobs: Jobs, innocents: Sequence[str]) -> list[JobRecord]:
    return [jobs.until(job, JobState.COMPLETED, within=30) for job in innocents]


def charges(records: Sequence[JobRecord]) -> set[tuple[int, int, int]]:
    return {(record.failures, record.losses, record.suspects) for record in records}


def nothing_is_left(worker: Worker, jobs: Jobs, culprits: Sequence[str]) -> None:
    eventually(lambda: not any(jobs.get(job).held for job in culprits), timeout=10)

    def only_known() -> None:
        record = worker.record(jobs.store)
        assert record is not None
        known = {int(record.info["pids"]["zygote"]["pid"]), *worker.executors(jobs.store)}
        below = psutil.Process(worker.process.pid).children(recursive=True)
        assert [p.pid for p in below if p.pid not in known and is_alive(p.pid)] == []

    eventually(only_known, timeout=10)


@pytest.mark.timeout(300)
@rounds
@on_a_crew
@pytest.mark.parametrize("culprit", ["regex", "power", "sleeps_with_it", "takes_no_turns", "stops_itself"])
@only_sqlite
def test_a25_a29_who_keeps_its_process_is_convicted_every_time(
    start: Start, jobs: Jobs, culprit: str, is_warm: bool, rounds: int
) -> None:
    worker = begin(start, jobs)
    convicted: list[str] = []
    for n in range(rounds):
        if is_warm:
            warm_up(jobs)

        (guilty,), innocents = together(jobs, [culprit], n % SLOTS)

        ending = ended(jobs, guilty, within=20)
        told = f"round {n}: {story(ending)}\n{ending.stack}"
        assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "ExecutionStuck"), told
        # Nobody had begun beside it: it has the process to itself, and that cannot show anything.
        is_alone = culprit == "stops_itself" and ending.stack.endswith("is stopped (state T)")
        assert f"in {culprit}" in ending.stack or is_alone, told
        assert ending.took("requested") < GRACE + 3.0, told
        convicted.append(guilty)
        assert jobs.store.marks_against("default", culprit) == len(convicted), told
        assert charges(whole(jobs, innocents)) == {(0, 0, 0)}, told
    nothing_is_left(worker, jobs, convicted)


@only_sqlite
def test_who_stops_its_process_costs_nobody_else_anything(start: Start, jobs: Jobs) -> None:
    """It is continued: not even the process is lost before its own verdict, and that spares the healthy."""
    worker = begin(start, jobs)
    warm_up(jobs)

    innocents = accompany(jobs, seconds=4.0)
    ending = ended(jobs, jobs.enqueue("stops_itself", timeout=LIMIT, grace=GRACE), within=20)

    assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "ExecutionStuck"), story(ending)
    assert "in stops_itself" in ending.stack, story(ending)
    whole(jobs, innocents)
    assert {tuple(turns(jobs, job)) for job in innocents} == {("submitted", "claimed", "completed")}
    assert "executor_continued" in worker.log.read_text()


@only_sqlite
def test_many_who_stop_their_process_once_cost_nobody_anything(start: Start, jobs: Jobs) -> None:
    """One after the other in the same process, more often than one of them would be put up with."""
    worker = begin(start, jobs)
    warm_up(jobs)
    for _ in range(4):
        innocents = accompany(jobs, seconds=50.0)
        jobs.until(jobs.enqueue("stops_once"), JobState.COMPLETED, within=30)
        for job in innocents:
            jobs.store.cancel("default", job, "the test")
        ended_so = [jobs.until(job, JobState.CANCELLED, within=30) for job in innocents]
        assert charges(ended_so) == {(0, 0, 0)}
        assert {tuple(turns(jobs, job)) for job in innocents} == {("submitted", "claimed", "requested", "cancelled")}
    assert worker.log.read_text().count("executor_continued") == 4


@only_sqlite
def test_who_stops_its_process_again_and_again_counts_from_the_second_time_on(start: Start, jobs: Jobs) -> None:
    """Nothing shows who does it: its neighbours run again alone, and its workflow is known."""
    worker = begin(start, jobs)
    marks = []
    for _ in range(2):
        innocents = accompany(jobs, seconds=6.0)
        ending = ended(jobs, jobs.enqueue("stops_again_and_again", timeout=LIMIT, grace=GRACE), within=40)
        assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "ExecutionStuck"), story(ending)
        message = ending.record.error_message or ""
        assert "it showed no sign of life; 3 jobs were in it and nothing says which one did it" in message
        assert not ending.record.held
        assert charges(whole(jobs, innocents)) == {(0, 0, 1)}
        marks.append(jobs.store.marks_against("default", "stops_again_and_again"))
    assert marks == [0, 2]
    nothing_is_left(worker, jobs, [])


@only_sqlite
def test_who_falls_with_another_inside_its_own_grace_tells_of_it(start: Start, jobs: Jobs) -> None:
    begin(start, jobs)
    warm_up(jobs)

    guilty, innocents = together(jobs, ["spins", "regex"], 3)

    fallen, culprit = (ended(jobs, job, within=20) for job in guilty)
    assert (culprit.record.state, culprit.record.error_type) == (JobState.FAILED, "ExecutionStuck"), story(culprit)
    assert (fallen.record.state, fallen.record.error_type) == (JobState.TIMEOUT, "Timeout"), story(fallen)
    assert f"the culprit was another job in it: regex {guilty[1]}" in (fallen.record.error_message or "")
    assert "in spins" in fallen.stack, story(fallen)
    assert charges(whole(jobs, innocents)) == {(0, 0, 0)}
