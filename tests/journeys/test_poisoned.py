"""Culprits that end well and leave poison behind: who comes after them, or ran beside them, pays nothing for it."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from functools import partial

import pytest

from tests.executor.watch import is_gone
from tests.journeys.conftest import Jobs
from tests.journeys.poisoned_app import app
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import slow, torture
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

Start = Callable[..., Worker]
APP = "tests.journeys.poisoned_app:app"


@pytest.fixture
def poisoned(db: Store) -> Jobs:
    return Jobs(db, app)


def pids(poisoned: Jobs, job: str) -> list[int]:
    return list(json.loads(poisoned.until(job, JobState.COMPLETED, within=60).result or "[]"))


def test_who_comes_after_one_that_used_up_the_descriptors_is_not_charged(start: Start, poisoned: Jobs) -> None:
    start(app=APP, concurrency=8, processes=1)
    poisoned.until(poisoned.enqueue("uses_up_descriptors"), JobState.COMPLETED)

    after = [poisoned.enqueue(name) for name in ("opens", "opens_async") for _ in range(4)]

    for job in after:
        poisoned.until(job, JobState.COMPLETED, within=30)


def test_after_a_job_closed_the_selector_others_run_and_the_log_is_short(start: Start, poisoned: Jobs) -> None:
    worker = start(app=APP, concurrency=8, processes=1)
    beside = poisoned.enqueue("opens", 2.0)
    poisoned.until(poisoned.enqueue("closes_the_selector"), JobState.COMPLETED)

    for job in [beside, *(poisoned.enqueue(name) for name in ("opens", "opens_async") for _ in range(4))]:
        poisoned.until(job, JobState.COMPLETED, within=30)
    assert worker.log.read_text().count("Traceback") <= 1
    assert worker.log.read_text().count("process_poisoned") == 1


@pytest.mark.parametrize(
    ("culprit", "told"),
    [
        ("closes_the_selector", "its event loop cannot run any more: ValueError: "),
        ("leaves_a_thread_that_kills", "leaves_a_thread_that_kills left 1 running behind it: killer"),
    ],
)
def test_who_falls_alone_with_what_another_left_is_no_culprit_and_is_told_what_that_was(
    start: Start, poisoned: Jobs, culprit: str, told: str
) -> None:
    """A12"""
    start(app=APP, concurrency=8, processes=1)
    beside = poisoned.enqueue("opens_async", 6.0)
    poisoned.until(poisoned.enqueue(culprit), JobState.COMPLETED)

    poisoned.until(beside, JobState.COMPLETED, within=30)
    (lost,) = [event for event in poisoned.store.history("default", beside) if event.kind == "lost"]
    assert told in lost.data["error_message"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "rounds", [pytest.param(2, marks=slow, id="2-rounds"), pytest.param(50, marks=torture, id="50-rounds")]
)
def test_round_after_round_innocents_are_whole_and_nothing_is_left(start: Start, poisoned: Jobs, rounds: int) -> None:
    start(app=APP, concurrency=16, processes=2)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for number in range(rounds):
        names = ("deaf_children", "orphans", "litters", "uses_up_descriptors", "stops_its_zygote")
        culprits = [poisoned.enqueue(name) for name in names] + [poisoned.enqueue("port_daemon", port)]
        innocents = [poisoned.enqueue(name) for name in ("opens", "opens_async") for _ in range(4)]
        for job in innocents:
            poisoned.until(job, JobState.COMPLETED, within=60)
        left = [pid for job in culprits for pid in pids(poisoned, job)]
        # Before its end is said none is left, also in a process without descriptors; killed, it may still be going.
        for pid in left:
            eventually(partial(is_gone, pid), timeout=5.0)
        assert poisoned.get(culprits[0]).error_type is None, f"round {number}"
