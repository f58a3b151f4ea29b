"""What a stuck job leaves behind: a whole record of its attempt, and a hold while its process may still run it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, begin, claim_all, claimed, record, settle, submitted
from unstuck.model.job import AttemptRecord, ClaimedJob, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Returned, Stuck
from unstuck.model.why import Reason
from unstuck.model.why.codes import Code
from unstuck.model.why.facts import BodyMark
from unstuck.observe.why import why
from unstuck.store.port import Report, Verdict
from unstuck.store.sql_store import SqlStore

MESSAGE = "Execution did not respond to cancellation within 10 seconds. Worker process recycled."
STACK = "File shop.py, line 3, in charge"


def only_attempt(store: SqlStore, job: str) -> AttemptRecord:
    [attempt] = store.attempts(TENANT, job)
    return attempt


def hold_of(store: SqlStore, job: str) -> BodyMark | None:
    facts = store.gate_facts(TENANT, job)
    assert facts is not None
    return facts.body_mark


def stuck_reason(store: SqlStore, job: str) -> Reason:
    [reason] = [reason for reason in why(store, TENANT, job).reasons if reason.code is Code.STUCK]
    return reason


def overdue(store: SqlStore, worker: WorkerRecord, clock: StoreClock, **options: Any) -> ClaimedJob:
    """A running attempt that the backstop may judge now."""
    submitted(store, timeout=10.0, **options)
    store.ingest()
    [attempt] = claim_all(store, worker)
    begin(store, worker, attempt)
    clock.advance(seconds=10 + 10 + 5 + 30 + 1)
    return attempt


def test_the_verdict_of_a_supervisor_leaves_a_whole_record(store: SqlStore) -> None:
    ada = a_worker(store)
    attempt = claimed(store, ada)
    store.settle(
        ada.number, [Report(attempt.ref, Stuck(ErrorInfo("ExecutionStuck", MESSAGE, STACK), pid=4121), 12_345, "hm")]
    )

    left = only_attempt(store, attempt.id)
    assert (left.outcome, left.error_type, left.error_message) == ("stuck", "ExecutionStuck", MESSAGE)
    assert (left.duration_ms, left.stack, left.output, left.worker) == (12_345, STACK, "hm", "ada")
    ended = record(store, attempt.id)
    assert (ended.state, ended.error_type, ended.error_message) == (JobState.FAILED, "ExecutionStuck", MESSAGE)
    assert (ended.duration_ms, ended.held) == (12_345, True)
    [event] = [event for event in store.history(TENANT, attempt.id) if event.kind == "stuck"]
    assert (event.data["error_type"], event.data["error_message"]) == ("ExecutionStuck", MESSAGE)
    assert (event.data["duration_ms"], event.data["by"]) == (12_345, "ada")


def test_the_backstops_verdict_leaves_a_whole_record_too(store: SqlStore, clock: StoreClock) -> None:
    ada = a_worker(store, lease=1e6)
    attempt = overdue(store, ada, clock)

    assert [found.id for found in store.convict_overdue(kill_grace=5, lease=30)] == [attempt.id]

    left = only_attempt(store, attempt.id)
    assert (left.outcome, left.error_type, left.error_message) == ("stuck", "ExecutionStuck", MESSAGE)
    assert left.stack == "no stack: judged by the janitor, because worker ada did not"
    assert left.duration_ms is not None
    assert 56_000 <= left.duration_ms < 60_000
    assert record(store, attempt.id).duration_ms == left.duration_ms
    assert record(store, attempt.id).held


def test_the_hold_names_the_executor_and_not_its_supervisor(store: SqlStore) -> None:
    ada = a_worker(store, pid=100)
    attempt = claimed(store, ada)

    settle(store, ada, attempt.ref, Stuck(ErrorInfo("ExecutionStuck", MESSAGE, STACK), pid=4121))

    hold = hold_of(store, attempt.id)
    assert hold is not None
    assert (hold.job, hold.worker, hold.pid) == (attempt.id, "ada", 4121)
    reason = stuck_reason(store, attempt.id)
    assert reason.sentence == "it ignored its request to stop for 10 s; process 4121 on worker ada drains"
    assert reason.details["pid"] == 4121


@pytest.mark.parametrize(
    ("told", "pid"),
    [
        ([{"pid": 4120, "jobs": []}, {"pid": 4121, "jobs": [{"job": "other"}, {"job": "MINE"}]}], 4121),
        ([{"pid": 4120, "jobs": [{"job": "other"}]}], None),
        ([{"pid": "x", "jobs": [{"job": "MINE"}]}, None, {"jobs": "?"}], None),
        (None, None),
    ],
)
def test_the_backstop_takes_the_executor_from_the_workers_last_beat(
    store: SqlStore, clock: StoreClock, told: Any, pid: int | None
) -> None:
    """It sees no process; a worker that says nonsense about itself must not keep it from its verdict."""
    ada = a_worker(store, lease=1e6, pid=100)
    attempt = overdue(store, ada, clock)
    executors = json.loads(json.dumps(told).replace("MINE", attempt.id))
    store.beat(ada.number, 1e6, [attempt.ref], info={"executors": executors})

    store.convict_overdue(kill_grace=5, lease=30)

    hold = hold_of(store, attempt.id)
    assert hold is not None
    assert hold.pid == pid
    process = f"process {pid}" if pid else "its process"
    assert f"{process} on worker ada drains" in stuck_reason(store, attempt.id).sentence


@pytest.mark.parametrize(
    "outcome", [Returned("1"), NotStarted(), Lost(ErrorInfo("ProcessDied", "exit 9"), "own")], ids=str
)
def test_a_report_that_the_backstop_overtook_lifts_its_hold(
    store: SqlStore, clock: StoreClock, outcome: Outcome
) -> None:
    """The body had ended, its report was on its way: nothing but this report ever says so while the worker lives."""
    ada = a_worker(store, lease=1e6)
    attempt = overdue(store, ada, clock, target="acme", on_failure="continue")
    store.convict_overdue(kill_grace=5, lease=30)
    behind = submitted(store, target="acme")
    store.ingest()
    assert claim_all(store, ada) == []

    assert settle(store, ada, attempt.ref, outcome).verdict is Verdict.FENCED

    assert hold_of(store, attempt.id) is None
    assert record(store, attempt.id).state is JobState.FAILED
    assert [found.id for found in claim_all(store, ada)] == [behind.id]


def test_neither_a_verdict_nor_another_worker_nor_an_older_attempt_lifts_a_hold(
    store: SqlStore, clock: StoreClock
) -> None:
    ada, bob = a_worker(store, "ada", lease=1e6), a_worker(store, "bob", lease=1e6)
    attempt = claimed(store, ada, timeout=10.0)
    assert store.beat(ada.number, 1e6, []).unheld == (attempt.ref,), "given back: it is ada's no more"
    [again] = claim_all(store, ada)
    begin(store, ada, again)
    clock.advance(minutes=2)
    store.convict_overdue(kill_grace=5, lease=30)

    settle(store, ada, again.ref, Stuck(ErrorInfo("ExecutionStuck", MESSAGE, STACK)))
    settle(store, bob, again.ref, Returned("1"))
    assert settle(store, ada, attempt.ref, Returned("1")).verdict is Verdict.FENCED

    assert hold_of(store, attempt.id) is not None


def test_the_record_of_a_neighbour_names_the_culprit_and_costs_it_nothing(store: SqlStore) -> None:
    """A29"""
    ada = a_worker(store)
    culprit, neighbour = claimed(store, ada), claimed(store, ada)
    told = f"its process was ended because of job {culprit.id} (charge)"

    settle(store, ada, neighbour.ref, Lost(ErrorInfo("ProcessDied", told), "neighbour"))

    left = only_attempt(store, neighbour.id)
    assert (left.outcome, left.error_type, left.error_message) == ("lost", "ProcessDied", told)
    back = record(store, neighbour.id)
    assert (back.state, back.failures, back.losses, back.suspects) == (JobState.QUEUED, 0, 0, 0)


def test_a_cancel_says_who_asked_and_how_much_grace_is_left(store: SqlStore, clock: StoreClock) -> None:
    ada = a_worker(store)
    attempt = claimed(store, ada)
    begin(store, ada, attempt, lease=30.0)
    store.cancel(TENANT, attempt.id, "kim", "not wanted")
    clock.advance(4)
    store.beat(ada.number, 30.0, [attempt.ref])

    [reason] = why(store, TENANT, attempt.id).reasons

    assert reason.code is Code.CANCELLING
    assert 'asked to stop (cancel) by kim 4s ago ("not wanted"), and has not yet; 6s of its grace' in reason.sentence
    assert 5.0 < reason.details["grace_left"] <= 6.0


def test_grace_that_did_not_count_is_told_as_its_worker_tells_it(store: SqlStore, clock: StoreClock) -> None:
    """Another job held the interpreter for twelve seconds: the clock of this one stood still, and `why` knows."""
    ada = a_worker(store)
    attempt = claimed(store, ada)
    begin(store, ada, attempt, lease=30.0)
    store.cancel(TENANT, attempt.id, "kim", "not wanted")
    clock.advance(14)
    body = {"job": attempt.id, "asked": "cancel", "grace_left": 8.0}
    info = {"executors": [{"pid": 7, "jobs": [{"job": "another", "grace_left": 1.0}, body]}]}
    store.beat(ada.number, 30.0, [attempt.ref], info=info)

    [reason] = why(store, TENANT, attempt.id).reasons

    assert reason.code is Code.CANCELLING
    assert "8s of its grace left (12s did not count: something kept it from running), then it" in reason.sentence
    assert 7.0 < reason.details["grace_left"] <= 8.0
    assert 11.5 < reason.details["grace_uncounted"] < 13.0


@pytest.mark.parametrize(
    "executors",
    [
        None,
        "x",
        [None, 1, {"jobs": None}, {"jobs": [None, {"job": 1}]}],
        [{"jobs": [{"job": "ID", "grace_left": None}]}],
        [{"jobs": [{"job": "ID", "grace_left": "8"}]}],
    ],
)
def test_what_a_worker_says_in_other_words_is_no_grace(store: SqlStore, clock: StoreClock, executors: Any) -> None:
    """A worker of another version may say anything."""
    ada = a_worker(store)
    attempt = claimed(store, ada)
    begin(store, ada, attempt, lease=30.0)
    store.cancel(TENANT, attempt.id, "kim", "not wanted")
    clock.advance(4)
    said = json.loads(json.dumps({"executors": executors}).replace("ID", attempt.id))
    store.beat(ada.number, 30.0, [attempt.ref], info=said)

    [reason] = why(store, TENANT, attempt.id).reasons

    assert "6s of its grace left, then it is stuck" in reason.sentence


def test_a_suspect_says_that_it_runs_alone(store: SqlStore) -> None:
    ada = a_worker(store)
    known = WorkflowRecord("charge", "v1", "default", Policy(), {})
    store.register_workflows([known], worker=ada.number, queues=["default"])
    attempt = claimed(store, ada, workflow="charge")

    settle(store, ada, attempt.ref, Lost(ErrorInfo("ProcessDied", "exit 9"), "suspect"))

    found = why(store, TENANT, attempt.id)
    assert (found.is_runnable, found.codes) == (True, (Code.CLAIMABLE, Code.RUNS_ALONE))
    [again] = claim_all(store, ada)
    assert again.alone
