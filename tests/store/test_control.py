"""What people ask of a job: cancel, interrupt, resume, resolve, hurry."""

from __future__ import annotations

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker, boom, claim_all, claimed, kinds, record, settle, submitted
from unstuck.model.errors import IllegalMove, UnknownJob
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Returned, Stopped, Stuck
from unstuck.store.port import Verdict
from unstuck.store.sql_store import SqlStore

LOST = Lost(ErrorInfo("ProcessDied", "gone"), "own")


@pytest.mark.parametrize("delay", [0.0, 60.0])
def test_cancel_of_a_queued_job_is_immediate_and_it_is_never_claimed(
    store: SqlStore, clock: StoreClock, delay: float
) -> None:
    """A16"""
    worker = a_worker(store, lease=1e6)
    job = submitted(store, delay=delay)

    ended = store.cancel(TENANT, job.id, by="me", reason="changed my mind")

    assert (ended.state, ended.error_type) == (JobState.CANCELLED, "Cancelled")
    assert ended.error_message == "cancelled by me: changed my mind"
    clock.advance(seconds=100)
    store.release_due()
    assert claim_all(store, worker) == []
    assert kinds(store, job.id) == ["submitted", "cancelled"]
    assert store.history(TENANT, job.id)[1].data["reason"] == "changed my mind"


def test_cancel_of_a_paused_job_is_immediate(store: SqlStore) -> None:
    """A16"""
    job = submitted(store)
    store.interrupt(TENANT, job.id, by="me")
    ended = store.cancel(TENANT, job.id, by="me")
    assert (ended.state, ended.error_message) == (JobState.CANCELLED, "cancelled by me")
    assert store.counts()[JobState.PAUSED] == 0


def test_cancel_of_an_ended_job_is_a_conflict_that_names_its_end(store: SqlStore) -> None:
    """A18"""
    worker = a_worker(store)
    completed, failed, cancelled = claimed(store, worker), claimed(store, worker), submitted(store)
    settle(store, worker, completed.ref)
    settle(store, worker, failed.ref, Stuck(ErrorInfo("ExecutionStuck", "x")))
    store.cancel(TENANT, cancelled.id, by="me")
    for job, end in ((completed.id, "COMPLETED"), (failed.id, "FAILED"), (cancelled.id, "CANCELLED")):
        before = record(store, job)
        with pytest.raises(IllegalMove, match=end):
            store.cancel(TENANT, job, by="me")
        with pytest.raises(IllegalMove, match=end):
            store.interrupt(TENANT, job, by="me")
        assert record(store, job) == before


@pytest.mark.parametrize("outcome", [boom(), LOST, NotStarted(), Stopped(), Returned('"late"')])
def test_a_cancel_is_never_lost_whatever_the_attempt_does(store: SqlStore, outcome: Outcome) -> None:
    """A22"""
    worker = a_worker(store)
    attempt = claimed(store, worker)

    asked = store.cancel(TENANT, attempt.id, by="me", reason="stop")

    assert (asked.state, asked.request, asked.request_reason) == (JobState.RUNNING, RequestKind.CANCEL, "stop")
    assert [a.ref for a in store.asked(worker.number)] == [attempt.ref]
    settle(store, worker, attempt.ref, outcome)
    ended = record(store, attempt.id)
    how = "; gone" if outcome is LOST else ""
    assert (ended.state, ended.error_message) == (JobState.CANCELLED, f"cancelled by me: stop{how}")
    assert ended.result == ('"late"' if isinstance(outcome, Returned) else None)
    assert ended.request is None
    assert claim_all(store, worker) == []


def test_a_cancelled_job_whose_worker_dies_is_cancelled(store: SqlStore, clock: StoreClock) -> None:
    """A22"""
    worker = a_worker(store, lease=30)
    attempt = claimed(store, worker)
    store.cancel(TENANT, attempt.id, by="me")
    clock.advance(seconds=31)
    assert [r.state for r in store.recover_lost(0)] == [JobState.CANCELLED]


def test_a_weaker_request_never_replaces_a_stronger_one(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    assert store.ask(attempt.ref, RequestKind.TIMEOUT) is Verdict.DONE
    assert store.interrupt(TENANT, attempt.id, by="me").request is RequestKind.INTERRUPT
    assert store.cancel(TENANT, attempt.id, by="me").request is RequestKind.CANCEL
    assert store.interrupt(TENANT, attempt.id, by="me").request is RequestKind.CANCEL
    assert store.ask(attempt.ref, RequestKind.DRAIN) is Verdict.DONE
    assert store.cancel(TENANT, attempt.id, by="me").request is RequestKind.CANCEL
    assert kinds(store, attempt.id) == ["submitted", "claimed", "requested", "requested", "requested"]


def test_a_request_under_a_stale_fence_is_refused(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    settle(store, worker, attempt.ref, NotStarted())
    (again,) = claim_all(store, worker)
    assert store.ask(attempt.ref, RequestKind.TIMEOUT) is Verdict.FENCED
    assert record(store, attempt.id).request is None
    assert store.ask(again.ref, RequestKind.TIMEOUT, "too long") is Verdict.DONE


def test_an_interrupted_job_is_paused_and_its_request_is_cleared(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    store.interrupt(TENANT, attempt.id, by="me")

    settle(store, worker, attempt.ref, Stopped(RequestKind.INTERRUPT))

    paused = record(store, attempt.id)
    assert (paused.state, paused.request) == (JobState.PAUSED, None)
    assert paused.error_message == "Job was interrupted by user"
    assert claim_all(store, worker) == []
    assert store.counts()[JobState.PAUSED] == 1


def test_a_late_result_counts_after_a_timeout(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    store.ask(attempt.ref, RequestKind.TIMEOUT)
    settle(store, worker, attempt.ref, Returned("1"))
    ended = record(store, attempt.id)
    assert (ended.state, ended.late, ended.result) == (JobState.COMPLETED, True, "1")


def test_resume_opens_a_clean_run_at_the_old_age(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    old = claimed(store, worker, workflow="same", retries=0, expires_after=5.0)
    clock.advance(seconds=10)
    young = submitted(store, workflow="same")
    settle(store, worker, old.ref, boom())

    resumed = store.resume(TENANT, old.id, by="me")

    assert (resumed.state, resumed.run, resumed.failures) == (JobState.QUEUED, 2, 0)
    assert (resumed.error_type, resumed.result, resumed.finished_at) == (None, None, None)
    assert [(a.id, a.run, a.attempt) for a in claim_all(store, worker)] == [(old.id, 2, 1), (young.id, 1, 1)]
    assert kinds(store, old.id) == ["submitted", "claimed", "failed", "resumed", "claimed"]
    assert record(store, old.id).token == 2


def test_every_resumable_state_can_be_resumed_and_no_other(store: SqlStore) -> None:
    worker = a_worker(store)
    paused, cancelled, queued = submitted(store), submitted(store), submitted(store, workflow="q")
    store.interrupt(TENANT, paused.id, by="me")
    store.cancel(TENANT, cancelled.id, by="me")
    timed_out, completed, running = claimed(store, worker), claimed(store, worker), claimed(store, worker)
    store.ask(timed_out.ref, RequestKind.TIMEOUT)
    settle(store, worker, timed_out.ref, Stopped())
    assert record(store, timed_out.id).state is JobState.TIMEOUT
    settle(store, worker, completed.ref)
    for job in (paused.id, cancelled.id, timed_out.id):
        assert store.resume(TENANT, job, by="me").state is JobState.QUEUED
    for job in (completed.id, running.id, queued.id):
        with pytest.raises(IllegalMove):
            store.resume(TENANT, job, by="me")
    with pytest.raises(UnknownJob):
        store.resume("other", paused.id, by="me")
    assert {a.id for a in claim_all(store, worker)} == {paused.id, cancelled.id, timed_out.id, queued.id}


def test_a_person_resolves_a_failed_job_as_a_run_of_its_own(store: SqlStore) -> None:
    worker = a_worker(store)
    failed, paused = claimed(store, worker, retries=0), submitted(store)
    settle(store, worker, failed.ref, boom())
    store.interrupt(TENANT, paused.id, by="me")
    for job in (failed.id, paused.id):
        ended = store.resolve(TENANT, job, by="me", result='"by hand"')
        assert (ended.state, ended.run, ended.result, ended.error_type) == (JobState.COMPLETED, 2, '"by hand"', None)
        with pytest.raises(IllegalMove):
            store.resolve(TENANT, job, by="me", result="2")
    assert kinds(store, failed.id)[-1] == "resolved"


def test_a_job_can_be_resumed_again_and_again(store: SqlStore) -> None:
    worker = a_worker(store)
    job = submitted(store, retries=0)
    for run in range(1, 4):
        (attempt,) = claim_all(store, worker)
        assert (attempt.run, attempt.ref.token) == (run, run)
        settle(store, worker, attempt.ref, boom())
        store.resume(TENANT, job.id, by="me")
    assert len(store.attempts(TENANT, job.id)) == 3


def test_a_job_in_backoff_can_be_hurried(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    settle(store, worker, attempt.ref, boom())
    assert claim_all(store, worker) == []

    hurried = store.run_now(TENANT, attempt.id, by="me")

    assert (hurried.state, hurried.failures, hurried.error_message) == (JobState.QUEUED, 1, "boom")
    assert store.run_now(TENANT, attempt.id, by="me") == hurried
    (again,) = claim_all(store, worker)
    assert again.attempt == 2
    with pytest.raises(IllegalMove, match="cannot be hurried"):
        store.run_now(TENANT, attempt.id, by="me")
    assert kinds(store, attempt.id) == ["submitted", "claimed", "retried", "hurried", "claimed"]
