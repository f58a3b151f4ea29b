"""Who may run: limits over several workers and their deaths, small tenants beside big ones, rolling deploys."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

from tests.journeys import order_apps
from tests.journeys.conftest import Jobs, Marks
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from tests.tiers import commit_on_sqlite
from unstuck.model.lifecycle import JobState
from unstuck.store.port import EVERY, Limit, Store

Start = Callable[..., Worker]


def most_at_once(begun: list[tuple[int, float]], ended: list[tuple[int, float]]) -> int:
    """By the bodies' own marks; an end and a beginning at the same instant do not overlap."""
    steps = sorted([(at, 1) for _, at in begun] + [(at, -1) for _, at in ended], key=lambda step: (step[0], step[1]))
    return max(itertools.accumulate(change for _, change in steps))


@commit_on_sqlite
def test_no_more_bodies_run_than_a_limit_allows_and_the_others_go_on_when_a_worker_is_killed(
    start: Start, jobs: Jobs, marks: Marks, db: Store
) -> None:
    """A60: over several workers, one of them killed with a place in hand."""
    db.set_limit(Limit("workflow", "nap", EVERY, "dana", concurrency=2))
    ids = jobs.enqueue_many("nap", marks.path, 3.0, times=2)  # they cannot have ended when their worker is killed
    ids += jobs.enqueue_many("nap", marks.path, 0.5, times=10)
    doomed = start("doomed", concurrency=4)
    marks.wait_for("begun", 2)
    for name in ("b", "c"):
        start(name, concurrency=4)
    doomed.kill_all()
    killed = len(marks.of("begun")) - len(marks.of("ended"))

    eventually(lambda: all(jobs.state(job) is JobState.COMPLETED for job in ids), timeout=60, every=0.2)
    begun, ended = marks.of("begun"), marks.of("ended")
    assert len(ended) == 12
    assert 1 <= killed <= 2
    # Bodies that were killed left no mark of their end: they can hide that many beginnings, no more.
    assert most_at_once(begun, ended) <= 2 + killed
    later = [entry for entry in begun if entry[0] not in {pid for pid, _ in begun[:2]}]
    assert most_at_once(later, [entry for entry in ended if entry[0] in {pid for pid, _ in later}]) == 2


def test_of_each_key_no_more_bodies_run_than_the_code_says_over_several_workers(
    start: Start, db: Store, marks: Marks
) -> None:
    """A60, declared: the workers register it; one body per key, and the keys do not wait for each other."""
    for name in ("a", "b"):
        start(name, app="tests.journeys.order_apps:new", concurrency=4)
    eventually(lambda: [limit.kind for limit in db.limits()] == ["workflow_key"])
    jobs = Jobs(db, order_apps.new)
    hosts = ("x", "y")
    ids = [job for h in hosts for job in jobs.submit("visit", marks.path, h, 0.4, times=6, limit_key=f"host:{h}")]

    eventually(lambda: all(jobs.state(job) is JobState.COMPLETED for job in ids), timeout=60, every=0.2)
    begun, ended = ([marks.of(f"{word}-{host}") for host in hosts] for word in ("begun", "ended"))
    assert [most_at_once(*of_host) for of_host in zip(begun, ended, strict=True)] == [1, 1]
    assert most_at_once([*begun[0], *begun[1]], [*ended[0], *ended[1]]) == 2


@commit_on_sqlite
def test_an_old_worker_buries_nothing_that_only_the_new_one_knows(start: Start, db: Store, marks: Marks) -> None:
    """A59: a rolling deploy, the other way round too: nothing is charged, failed or paused."""
    jobs = Jobs(db, order_apps.new)
    times = replace(COMPRESSED, orphan_after=60.0)
    start("old", app="tests.journeys.order_apps:old", times=times)
    known = jobs.enqueue_many("shared", marks.path, 0.05, times=3)
    unknown = jobs.enqueue_many("fresh", marks.path, times=3)
    for job in known:
        jobs.until(job, JobState.COMPLETED)
    assert [jobs.state(job) for job in unknown] == [JobState.QUEUED] * 3

    start("new", app="tests.journeys.order_apps:new", times=times)
    for job in unknown:
        record = jobs.until(job, JobState.COMPLETED)
        assert (record.failures, record.losses, record.suspects) == (0, 0, 0)
        assert jobs.kinds(job) == ["submitted", "claimed", "completed"]
        assert [attempt.code_version for attempt in db.attempts("default", job)] == ["v2"]
