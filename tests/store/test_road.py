"""One job from submit to settle, on both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    all_routes,
    boom,
    chance,
    claim_all,
    claimed,
    everything,
    kinds,
    record,
    settle,
    submitted,
)
from unstuck.model.job import AttemptRef, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, NotStarted, Outcome, Raised, Returned
from unstuck.store.port import AttemptOutput, Report, Share, Verdict
from unstuck.store.sql_store import SqlStore


def test_a_submitted_job_is_queued_with_its_body_and_policy(store: SqlStore) -> None:
    job = submitted(store, payload='{"args":["ü"]}', priority=3, timeout=7.0, tags=("a", "b"))

    found = record(store, job.id)

    assert (found.state, found.payload, found.priority) == (JobState.QUEUED, '{"args":["ü"]}', 3)
    assert found.policy == job.policy
    assert (found.run, found.token, found.events, found.failures) == (1, 0, 1, 0)
    assert kinds(store, job.id) == ["submitted"]


def test_a_claimed_job_shows_who_runs_it_and_any_other_state_shows_nobody(store: SqlStore) -> None:
    """A2"""
    worker = a_worker(store, name="grace")
    queued = submitted(store)
    assert (record(store, queued.id).worker, record(store, queued.id).lease_until) == (None, None)

    (attempt,) = claim_all(store, worker)

    running = record(store, queued.id)
    assert running.state is JobState.RUNNING
    assert (running.worker, running.token, running.claim) == ("grace", 1, attempt.ref.claim)
    assert running.heartbeat_at is not None
    assert running.lease_until == worker.lease_until
    assert settle(store, worker, attempt.ref).verdict is Verdict.DONE
    ended = record(store, queued.id)
    assert (ended.worker, ended.claim, ended.heartbeat_at, ended.lease_until) == (None, None, None, None)


def test_a_returned_job_is_completed_with_its_result(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)

    answer = settle(store, worker, attempt.ref, Returned('{"x":1}'))

    ended = record(store, attempt.id)
    assert answer.state is ended.state is JobState.COMPLETED
    assert (ended.result, ended.duration_ms, ended.late) == ('{"x":1}', 5, False)
    assert ended.finished_at is not None
    assert kinds(store, attempt.id) == ["submitted", "claimed", "completed"]


def test_a_job_whose_handler_always_fails_has_one_attempt_more_than_retries(
    store: SqlStore, clock: StoreClock
) -> None:
    """A14"""
    worker = a_worker(store, lease=1e6)
    job = submitted(store, retries=3)
    gaps: list[timedelta] = []
    for number in range(1, 5):
        (attempt,) = claim_all(store, worker)
        assert attempt.attempt == number
        settle(store, worker, attempt.ref, boom(f"boom {number}"))
        found = record(store, job.id)
        if number < 4:
            assert found.state is JobState.QUEUED
            assert found.error_message == f"boom {number}"
            gaps.append(found.available_at - clock.now())
            assert claim_all(store, worker) == []
            clock.advance(seconds=400)
            assert store.release_due() == 1

    assert gaps == sorted(gaps)
    assert len(set(gaps)) == 3
    ended = record(store, job.id)
    assert (ended.state, ended.error_type, ended.error_message) == (JobState.FAILED, "ValueError", "boom 4")
    assert ended.failures == 4
    assert claim_all(store, worker) == []
    outcomes = [attempt.outcome for attempt in store.attempts(TENANT, job.id)]
    assert outcomes == ["retried", "retried", "retried", "failed"]


@pytest.mark.parametrize("error", ["SignatureInvalid", "WorkflowBlacklisted", "ExecutionStuck", "InvalidJob"])
def test_what_a_retry_cannot_mend_is_never_retried(store: SqlStore, error: str) -> None:
    """A15"""
    worker = a_worker(store)
    attempt = claimed(store, worker, retries=9)

    settle(store, worker, attempt.ref, boom(type=error))

    assert record(store, attempt.id).state is JobState.FAILED


def test_what_never_started_goes_back_uncharged_and_keeps_its_place(store: SqlStore) -> None:
    worker = a_worker(store)
    first, second = submitted(store), submitted(store)
    attempts = claim_all(store, worker)

    store.settle(worker.number, [Report(a.ref, NotStarted()) for a in attempts])

    assert [record(store, j.id).failures for j in (first, second)] == [0, 0]
    again = claim_all(store, worker)
    assert [a.id for a in again] == [first.id, second.id]
    assert [a.ref.token for a in again] == [2, 2]
    assert [a.attempt for a in again] == [1, 1]


def test_claims_follow_priority_then_age_and_a_minute_of_age_outweighs_a_step_of_priority(
    store: SqlStore, clock: StoreClock
) -> None:
    worker = a_worker(store, lease=1e6)
    old = submitted(store)
    clock.advance(seconds=61)
    urgent, later, most = submitted(store, priority=1), submitted(store), submitted(store, priority=5)

    assert [a.id for a in claim_all(store, worker)] == [most.id, old.id, urgent.id, later.id]


def test_a_claim_takes_no_more_than_each_share(store: SqlStore) -> None:
    worker = a_worker(store)
    for _ in range(5):
        submitted(store, workflow="a")
        submitted(store, workflow="b")
    a, b = all_routes(store)

    found = store.claim(worker.number, "c1", [Share(a.number, 2), Share(b.number, 1)])

    assert sorted(job.workflow for job in found) == ["a", "a", "b"]
    fronts = {front.route for front in store.open_routes()}
    assert fronts == {a.number, b.number}


def test_a_repeated_claim_id_answers_the_attempts_still_open_and_claims_nothing_new(store: SqlStore) -> None:
    worker = a_worker(store)
    for _ in range(4):
        submitted(store)
    first = store.claim(worker.number, "same", everything(store, 2))
    settle(store, worker, first[0].ref)

    assert store.claim(worker.number, "same", everything(store, 2)) == first[1:]
    assert len(claim_all(store, worker)) == 2


def test_a_worker_without_a_lease_claims_nothing(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=10)
    submitted(store)
    clock.advance(seconds=11)
    assert claim_all(store, worker) == []
    assert store.claim(999_999, "nobody", everything(store)) == []


def test_a_draining_worker_claims_nothing(store: SqlStore) -> None:
    worker = a_worker(store)
    submitted(store)
    assert store.beat(worker.number, 30, [], state="draining").alive
    assert claim_all(store, worker) == []


def test_a_repeated_settle_answers_done_with_the_same_state(store: SqlStore) -> None:
    worker = a_worker(store)
    for outcome in (Returned("1"), boom(), NotStarted(), Raised(ErrorInfo("X", "y"), retry=False)):
        attempt = claimed(store, worker)
        first = settle(store, worker, attempt.ref, outcome)
        before = record(store, attempt.id)

        again = settle(store, worker, attempt.ref, outcome)

        assert again == first
        assert again.verdict is Verdict.DONE
        assert record(store, attempt.id) == before


def test_a_stale_write_changes_nothing_and_hears_fenced(store: SqlStore) -> None:
    """Check 22."""
    worker, other = a_worker(store), a_worker(store, name="bob")
    attempt = claimed(store, worker)
    ref = attempt.ref
    stale = [
        (worker, AttemptRef(ref.job, ref.token - 1, ref.claim)),
        (worker, AttemptRef(ref.job, ref.token, "another claim")),
        (worker, AttemptRef(ref.job + 1000, ref.token, ref.claim)),
        (other, ref),
    ]
    before = record(store, attempt.id)
    for who, wrong in stale:
        for outcome in (Returned("1"), boom()):
            assert settle(store, who, wrong, outcome).verdict is Verdict.FENCED
    for _, wrong in stale[:3]:
        assert store.keep_output([AttemptOutput(wrong, progress="1")]) == [Verdict.FENCED]
        assert store.keep_output([AttemptOutput(wrong, output="x")]) == [Verdict.FENCED]
    assert record(store, attempt.id) == before
    assert store.progress_of(TENANT, attempt.id) is None
    assert kinds(store, attempt.id) == ["submitted", "claimed"]


def test_a_batch_of_mixed_reports_is_answered_in_its_order(store: SqlStore) -> None:
    worker = a_worker(store)
    attempts = [claimed(store, worker) for _ in range(6)]
    wrong = AttemptRef(attempts[5].ref.job, 99, "x")
    outcomes: list[Outcome] = [
        Returned("1"),
        boom(),
        NotStarted(),
        Raised(ErrorInfo("E", "m"), retry=False),
        Returned("2"),
    ]
    reports = [Report(a.ref, o) for a, o in zip(attempts, outcomes, strict=False)] + [Report(wrong, Returned("3"))]

    answers = store.settle(worker.number, reports + reports[:1])

    done, queued, failed = JobState.COMPLETED, JobState.QUEUED, JobState.FAILED
    assert [a.state for a in answers] == [done, queued, queued, failed, done, None, done]
    assert [a.ref for a in answers] == [r.ref for r in reports] + [attempts[0].ref]
    assert record(store, attempts[5].id).state is JobState.RUNNING


def test_output_progress_and_stack_are_kept_with_their_attempt(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    assert store.keep_output([AttemptOutput(attempt.ref, output="one\n")]) == [Verdict.DONE]
    assert store.keep_output([AttemptOutput(attempt.ref, output="two\x00\ud800\n")]) == [Verdict.DONE]
    assert store.keep_output([AttemptOutput(attempt.ref, progress="0.5")]) == [Verdict.DONE]
    assert store.keep_output([AttemptOutput(attempt.ref, progress="0.7")]) == [Verdict.DONE]

    error = ErrorInfo("E", "m" * 20_000, stack="Traceback …")
    store.settle(worker.number, [Report(attempt.ref, Raised(error, retry=False), 9, output="three\n")])

    (kept,) = store.attempts(TENANT, attempt.id)
    assert kept.output == "one\ntwo\ufffd?\nthree\n"
    assert (kept.stack, kept.outcome, kept.error_type, kept.duration_ms) == ("Traceback …", "failed", "E", 9)
    assert (kept.worker, kept.code_version, kept.token) == ("ada", "v1", 1)
    assert len(kept.error_message or "") < 9000
    assert store.progress_of(TENANT, attempt.id) == "0.7"


def test_output_is_capped(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    for _ in range(3):
        store.keep_output([AttemptOutput(attempt.ref, output="x" * 40_000)])
    (kept,) = store.attempts(TENANT, attempt.id)
    assert len(kept.output or "") == 64 << 10


def test_workflows_are_rows_and_the_newest_seen_answers(store: SqlStore, clock: StoreClock) -> None:
    old = WorkflowRecord("greet", "v1", "default", Policy(retries=1), {"a": 1})
    new = WorkflowRecord("greet", "v2", "fast", Policy(retries=2), {"b": 2}, doc="Greets.")
    store.register_workflows([old])
    clock.advance(seconds=1)
    store.register_workflows([new, WorkflowRecord("other", "v2", "default", Policy(), {})])
    found = store.workflow("greet")
    assert found is not None
    assert (found.code_version, found.queue, found.policy.retries, found.schema) == ("v2", "fast", 2, {"b": 2})
    assert [w.name for w in store.workflows()] == ["greet", "other"]
    assert store.workflow("nobody") is None


def test_a_worker_registers_once_per_incarnation(store: SqlStore) -> None:
    first = a_worker(store, incarnation="i-1", info={"pids": [1]})
    assert a_worker(store, incarnation="i-1") == first
    claimed(store, first)
    (row,) = store.workers()
    assert (row.running, row.state, row.info, row.queues) == (1, "active", {"pids": [1]}, ("default",))


def test_an_empty_batch_is_no_work(store: SqlStore) -> None:
    worker = a_worker(store)
    assert store.submit([]) == []
    assert store.settle(worker.number, []) == []
    assert store.claim(worker.number, chance.nonce(), []) == []
    assert store.open_routes() == []
    assert a_job().id != a_job().id
