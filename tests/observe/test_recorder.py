"""What a process counts of what its rooms say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.budgets import endless
from tests.support.builders import a_worker, claimed
from tests.support.metrics_text import samples, value
from unstuck.janitor.zombies import ZombiesDuty
from unstuck.model.metrics import METRICS, MOST_NAMES, OTHER
from unstuck.model.times import Times
from unstuck.observe.exposition import text_of
from unstuck.observe.recorder import Recorder
from unstuck.store.sql_store import SqlStore
from unstuck.telemetry import emit, emit_jobs


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    found = Recorder(of_worker=True)
    found.start()
    yield found
    found.close()


def told(recorder: Recorder) -> dict[str, Any]:
    return samples(text_of(recorder.measures()))


def ended(*facts: dict[str, Any]) -> None:
    base = {"job": "1", "workflow": "greet", "state": "COMPLETED", "duration_ms": 5, "error_type": None}
    emit_jobs("job_ended", list(facts), lambda each: {**base, **each})


def test_attempts_are_counted_with_how_long_they_ran_and_took_to_obey(recorder: Recorder) -> None:
    ended({}, {}, {"state": "QUEUED", "error_type": "ValueError", "duration_ms": 2500})
    ended({"state": "CANCELLED", "request": "cancel", "obeyed_in": 0.25, "duration_ms": None})
    found = told(recorder)
    assert value(found, "unstuck_attempts_ended_total", workflow="greet", outcome="completed") == 2
    assert value(found, "unstuck_attempts_ended_total", workflow="greet", outcome="queued") == 1
    assert value(found, "unstuck_attempts_failed_total", workflow="greet") == 1
    assert value(found, "unstuck_attempt_seconds_count", workflow="greet") == 3
    assert value(found, "unstuck_attempt_seconds_bucket", workflow="greet", le="0.005") == 2
    assert value(found, "unstuck_cancel_seconds_bucket", request="cancel", le="0.3") == 1
    assert value(found, "unstuck_cancel_seconds_sum", request="cancel") == 0.25


def test_the_rest_is_counted_as_it_is_said_and_begins_at_0(recorder: Recorder) -> None:
    assert value(told(recorder), "unstuck_claims_total") == 0
    emit("acquired", worker="w", jobs=7, job="1", workflow="greet")
    emit("stuck", job="1", workflow="greet")
    emit("executor_died", executor=1, pid=2, status="9")
    emit("fenced", job="1", token=2)
    found = told(recorder)
    assert value(found, "unstuck_claims_total") == 7
    assert value(found, "unstuck_stucks_total", workflow="greet") == 1
    assert value(found, "unstuck_processes_ended_total", how="died") == 1
    assert value(found, "unstuck_fenced_total") == 1
    recorder.close()
    emit("fenced", job="1", token=2)
    assert value(told(recorder), "unstuck_fenced_total") == 1


def test_names_are_bounded(recorder: Recorder) -> None:
    for number in range(MOST_NAMES + 5):
        ended({"workflow": f"w{number}"})
    found = told(recorder)
    assert len(found["unstuck_attempts_ended_total"]) == MOST_NAMES + 1
    assert value(found, "unstuck_attempts_ended_total", workflow=OTHER, outcome="completed") == 5


def test_a_server_tells_of_its_janitor_and_not_of_workers() -> None:
    server = Recorder(of_worker=False)
    server.hear("stuck", {"workflow": "greet"})
    server.hear("recovered", {"state": "QUEUED", "silent_for": 31.5})
    found = told(server)
    assert value(found, "unstuck_recovered_total", outcome="QUEUED") == 1
    assert value(found, "unstuck_recovery_seconds_sum") == 31.5
    assert not {metric.name for metric in METRICS if metric.face == "worker"} & set(found)


def test_a_recovery_is_measured_from_the_last_beat(store: SqlStore, clock: StoreClock, recorder: Recorder) -> None:
    claimed(store, a_worker(store, lease=30.0))
    clock.advance(36)
    assert ZombiesDuty(store, Times()).tick(0.0, endless()) == 1
    found = told(recorder)
    assert value(found, "unstuck_recovered_total", outcome="QUEUED") == 1
    assert 36 <= value(found, "unstuck_recovery_seconds_sum") < 38
