"""top.get: one bounded look, on both databases."""

from __future__ import annotations

import json

import pytest

from tests.conftest import StoreClock
from tests.operations.conftest import Ask
from tests.store.test_why import serve
from tests.support.builders import a_worker, begin, blocked, claimed, submitted
from tests.support.parking import Stage
from unstuck.model.errors import InvalidInput
from unstuck.model.lifecycle import JobState
from unstuck.operations import blacklist, queues, top
from unstuck.operations.table import Role
from unstuck.store.port import AttemptOutput
from unstuck.store.sql_store import SqlStore


def test_queues_with_depth_oldest_and_pause_running_jobs_with_progress_and_workers(
    ask: Ask, store: SqlStore, clock: StoreClock
) -> None:
    worker = a_worker(store, "w1", lease=1e6)
    serve(store, worker, "greet")
    submitted(store, workflow="greet", queue="reports")
    submitted(store, workflow="greet", queue="reports", delay=3600.0)
    job = claimed(store, worker)
    begin(store, worker, job)
    store.keep_output([AttemptOutput(job.ref, progress=json.dumps({"done": 3, "of": 9}))])
    queues.pause(ask(), "reports", reason="vendor is down")
    clock.advance(30)

    seen = top.get(ask())

    queue = next(each for each in seen.queues if each.name == "reports")
    assert (queue.waiting, queue.scheduled, queue.pauses[0].reason) == (1, 1, "vendor is down")
    assert queue.oldest_due_at is not None
    assert 29 < (seen.at - queue.oldest_due_at).total_seconds() < 60
    [running] = seen.running
    assert (running.id, running.progress, running.worker) == (job.id, {"done": 3, "of": 9}, "w1")
    assert [(each.name, each.info) for each in seen.workers] == [("w1", {})]
    assert (seen.states[JobState.RUNNING], seen.scheduled) == (1, 1)


def test_what_needs_somebody_is_told_with_what_to_type(ask: Ask, store: SqlStore) -> None:
    stage = Stage(store)
    asks = stage.asks("Deploy?")
    blocker = blocked(store, stage.worker, target="acme")
    blacklist.add(ask(), "deliver", reason="hangs")

    seen = {need.kind: need for need in top.get(ask(), health=False).needs}

    assert (seen["approval"].job, seen["approval"].text) == (asks, "Deploy?")
    assert seen["approval"].command == f"unstuck approvals approve {asks}"
    assert (seen["target"].about, seen["target"].job, seen["target"].urgent) == ("acme", blocker.id, True)
    assert seen["blacklist"].text == "blacklisted by ada: manual:hangs"
    assert "health" not in seen
    with_health = top.get(ask())
    assert with_health.healthy is not None
    assert [need.about for need in with_health.needs if need.kind == "health"] != []


def test_a_stuck_body_needs_a_look_at_its_stack(ask: Ask, store: SqlStore) -> None:
    worker = a_worker(store, "w1", lease=1e6)
    body = {"job": "019-x", "workflow": "hang", "for": 3.0, "on": "thread", "stuck": True}
    executor = {"pid": 77, "state": "draining", "jobs": [body], "running": 1}
    store.beat(worker.number, 1e6, [], info={"executors": [executor]})
    [need] = [each for each in top.get(ask(), health=False).needs if each.kind == "stuck"]
    assert (need.job, need.command) == ("019-x", "unstuck stack 019-x")
    hidden = top.get(ask(bound="default", role=Role.OPERATOR), health=False)
    assert [each for each in hidden.needs if each.kind == "stuck"] == [], "it may be another tenant's"


def test_of_many_running_jobs_the_longest_running_come_first_and_only_some(ask: Ask, store: SqlStore) -> None:
    worker = a_worker(store, "w1", lease=1e6)
    first, second, third = (claimed(store, worker, workflow=f"w{number}") for number in range(3))
    begin(store, worker, first, second, third)
    assert [job.id for job in top.get(ask(), limit=2, health=False).running] == [first.id, second.id]
    assert [job.id for job in top.get(ask(), workflow="w2", health=False).running] == [third.id]
    with pytest.raises(InvalidInput):
        top.get(ask(), limit=0)
