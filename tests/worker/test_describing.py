"""What people see of a worker's processes and the jobs in them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.holdings import a_holding, a_post
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.worker.describing import MOST_JOBS, describe_post, states
from unstuck.worker.leaked_threads import LeakedThreads
from unstuck.worker.ledger import Stage
from unstuck.worker.roster import Roster


def test_a_process_is_described_with_the_jobs_in_it() -> None:
    loop, thread, stuck = a_holding(at=90.0, grace=10), a_holding(at=80.0), a_holding(Stage.STUCK, at=70.0)
    loop.asked, loop.told_at = RequestKind.CANCEL, 96.0
    post = a_post(3, loop, thread, stuck, pid=4711, memory=5, jobs_done=7, generation=2, reason="worn")
    post.on_main, post.state, post.pulse_age = frozenset({loop.ref}), "draining", 2.34

    told = describe_post(post, Times(), now=100.0)

    jobs = told.pop("jobs")
    assert told == {
        "executor": 3,
        "pid": 4711,
        "state": "draining",
        "generation": 2,
        "alone": False,
        "memory": 5,
        "jobs_done": 7,
        "reason": "worn",
        "running": 3,
        "draining_for": 0.0,
        "silent_for": 2.3,
    }
    common: dict[str, Any] = {"workflow": "w", "asked": None, "grace_left": None, "stuck": False, "on": "thread"}
    assert jobs == [
        common | {"job": stuck.job.id, "for": 30.0, "stuck": True},
        common | {"job": thread.job.id, "for": 20.0},
        common | {"job": loop.job.id, "for": 10.0, "on": "loop", "asked": "cancel", "grace_left": 6.0},
    ]


def test_the_job_of_a_process_of_its_own_is_on_its_main_thread() -> None:
    post = a_post(1, me := a_holding(), alone=True, on_main=frozenset())
    post.on_main = frozenset({me.ref})
    assert describe_post(post, Times(), now=1.0)["jobs"][0]["on"] == "main"


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        ({}, "active"),
        ({"state": "starting"}, "starting"),
        ({"is_spare": True}, "spare"),
        ({"is_spare": True, "state": "starting"}, "spare"),
        ({"killed": "frozen"}, "draining"),
    ],
)
def test_a_process_is_in_one_of_four_states(facts: dict[str, Any], shown: str) -> None:
    post = a_post(1, **facts)
    assert describe_post(post, Times(), now=1.0)["state"] == shown
    assert states([post]) != states([a_post(1, state="draining", killed="other")])


def test_of_many_jobs_the_oldest_are_named() -> None:
    post = a_post(1, *[a_holding(at=float(n)) for n in range(2 * MOST_JOBS)])
    told = describe_post(post, Times(), now=1000.0)
    assert (told["running"], len(told["jobs"]), told["jobs"][0]["for"]) == (2 * MOST_JOBS, MOST_JOBS, 1000.0)


def test_a_replacement_is_of_the_next_generation() -> None:
    roster = Roster()
    first, second = roster.open(False, 0.0), roster.open(False, 0.0)
    spare, solo = roster.open(False, 0.0, is_spare=True), roster.open(True, 0.0)
    assert [post.generation for post in (first, second, spare, solo)] == [1, 1, 1, 1]
    roster.vacate(first)
    roster.close(first.number)
    roster.close(solo.number)
    promoted = roster.promote(spare.number)
    assert promoted is spare
    assert (spare.generation, spare.is_spare) == (2, False)
    roster.vacate(spare)
    assert roster.open(False, 0.0).generation == 3
    assert roster.open(False, 0.0).generation == 1


def test_a_process_in_which_a_job_left_something_is_replaced_a_few_times_and_then_it_is_taken_for_a_resident() -> (
    None
):
    leaked_threads = LeakedThreads()
    reasons = [leaked_threads.judge(a_post(n), "w", [f"pool-{n}_0"]) for n in range(5)]
    assert reasons == [f"w left 1 running behind it: pool-{n}_0" for n in range(3)] + ["", ""]
    assert leaked_threads.judge(a_post(9), "other", ["pool-9_0"])
    assert leaked_threads.judge(a_post(9), "w", ["something else"])


def test_one_process_is_not_counted_twice() -> None:
    leaked_threads, post = LeakedThreads(), a_post(1)
    post.left_behind = leaked_threads.judge(post, "w", ["Thread-1"])
    for _ in range(10):
        assert leaked_threads.judge(post, "w", ["Thread-2"]) == ""
    assert leaked_threads.judge(a_post(2), "w", ["Thread-3"])


def test_even_residents_are_too_many_at_some_point() -> None:
    leaked_threads, post = LeakedThreads(), a_post(4)
    for n in range(3):
        leaked_threads.judge(a_post(n), "w", ["Thread-1"])
    assert [bool(leaked_threads.judge(post, "w", ["Thread-1"])) for _ in range(17)] == 16 * [False] + [True]
