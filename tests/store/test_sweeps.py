"""What passing time does: lost workers, the backstop, holds, retention; and the beat that prevents it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_worker,
    begin,
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
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.port import AttemptOutput, Verdict
from unstuck.store.sql_store import SqlStore


def test_a_beat_renews_the_lease_and_a_lease_that_ended_stays_ended(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=30)
    attempt = claimed(store, worker)
    clock.advance(seconds=20)
    beat = store.beat(worker.number, 30, [attempt.ref], info={"load": 1})
    assert beat.alive
    assert beat.lease_until is not None
    assert beat.lease_until - clock.now() > timedelta(seconds=29)
    assert (beat.gone, beat.unheld, beat.asked) == ((), (), ())
    assert store.workers()[0].info == {"load": 1}
    clock.advance(seconds=31)
    assert not store.beat(worker.number, 30, [attempt.ref]).alive
    assert not store.beat(worker.number, 30, [attempt.ref]).alive
    assert len(store.recover_lost(0)) == 1


def test_a_beat_carries_requests_and_names_what_is_gone(store: SqlStore) -> None:
    worker = a_worker(store)
    one, two = claimed(store, worker), claimed(store, worker)
    store.cancel(TENANT, one.id, by="me", reason="why")
    settle(store, worker, two.ref)
    beat = store.beat(worker.number, 30, [one.ref, two.ref])
    assert [(a.ref, a.kind, a.reason) for a in beat.asked] == [(one.ref, RequestKind.CANCEL, "why")]
    assert beat.gone == (two.ref,)


def test_a_beat_gives_back_what_the_worker_never_heard_of(store: SqlStore) -> None:
    """A claim whose answer was lost."""
    worker = a_worker(store)
    held, settling = claimed(store, worker), claimed(store, worker)
    submitted(store, workflow="lost")
    lost = store.claim(worker.number, "lost", everything(store))
    submitted(store, workflow="under way")
    pending = store.claim(worker.number, "under way", everything(store))

    beat = store.beat(worker.number, 30, [held.ref], pending_claims=["under way"], settling=[settling.ref])

    assert beat.unheld == tuple(a.ref for a in lost)
    back = record(store, lost[0].id)
    assert (back.state, back.losses, back.failures) == (JobState.QUEUED, 0, 0)
    assert record(store, pending[0].id).state is JobState.RUNNING
    assert record(store, settling.id).state is JobState.RUNNING
    assert settle(store, worker, lost[0].ref).verdict is Verdict.FENCED
    assert store.history(TENANT, lost[0].id)[-1].data["error_message"] == "the claim's answer was lost"
    assert store.beat(worker.number, 30, [held.ref, settling.ref, pending[0].ref]).unheld == ()


def test_a_beat_tells_when_handlers_started(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    at = clock.now()
    store.beat(worker.number, 30, [attempt.ref], started={attempt.ref.job: at})
    assert record(store, attempt.id).started_at == at


def test_attempts_of_a_worker_whose_lease_ended_run_again(store: SqlStore, clock: StoreClock) -> None:
    """A4 (the store's part), A11"""
    worker, other = a_worker(store, name="dead", lease=30), a_worker(store, name="alive", lease=300)
    lost, safe = claimed(store, worker), claimed(store, other)
    assert store.recover_lost(0) == []
    clock.advance(seconds=31)
    assert store.recover_lost(10) == []

    (recovered,) = store.recover_lost(0)

    assert (recovered.id, recovered.worker, recovered.state) == (lost.id, "dead", JobState.QUEUED)
    assert record(store, safe.id).state is JobState.RUNNING
    last = store.history(TENANT, lost.id)[-1]
    assert (last.kind, last.data["worker"], last.data["error_type"]) == ("lost", "dead", "WorkerLost")
    assert settle(store, worker, lost.ref).verdict is Verdict.FENCED
    assert [w.state for w in store.workers()] == ["lost", "active"]
    (again,) = claim_all(store, other)
    assert again.ref.token == lost.ref.token + 1
    assert store.recover_lost(0) == []


def test_losses_have_a_budget_of_their_own(store: SqlStore, clock: StoreClock) -> None:
    """A5"""
    job = submitted(store, max_lost=2, retries=1)
    for loss in range(1, 4):
        worker = a_worker(store, lease=10)
        (attempt,) = claim_all(store, worker)
        if loss == 1:
            settle(store, worker, attempt.ref, boom())
            clock.advance(seconds=5)
            store.release_due()
            claim_all(store, worker)
        clock.advance(seconds=70)
        store.recover_lost(0)
        found = record(store, job.id)
        assert (found.losses, found.failures) == (loss, 1)
        clock.advance(seconds=100)
        store.release_due()
    assert (found.state, found.error_type) == (JobState.FAILED, "WorkerLost")


@pytest.mark.parametrize(("on_lost", "state"), [("fail", JobState.FAILED), ("pause", JobState.PAUSED)])
def test_on_lost_decides_at_the_first_loss(store: SqlStore, clock: StoreClock, on_lost: str, state: JobState) -> None:
    """A6"""
    attempt = claimed(store, a_worker(store, lease=30), on_lost=on_lost)
    clock.advance(seconds=31)
    store.recover_lost(0)
    assert record(store, attempt.id).state is state
    assert record(store, attempt.id).error_type == "WorkerLost"


@pytest.mark.parametrize("state", ["draining", "fenced"])
def test_a_worker_that_had_said_so_costs_its_jobs_nothing(store: SqlStore, clock: StoreClock, state: str) -> None:
    worker = a_worker(store, lease=30)
    attempt = claimed(store, worker, max_lost=0)
    store.beat(worker.number, 30, [attempt.ref], state=state)
    clock.advance(seconds=31)
    store.recover_lost(0)
    assert (record(store, attempt.id).state, record(store, attempt.id).losses) == (JobState.QUEUED, 0)


def test_recovery_works_in_batches(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=30)
    for _ in range(7):
        submitted(store)
    claim_all(store, worker)
    clock.advance(seconds=31)
    assert [len(store.recover_lost(0, batch=3)) for _ in range(4)] == [3, 3, 1, 0]


def test_a_worker_seen_dead_is_expired_unless_it_renewed_meanwhile(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=30)
    attempt = claimed(store, worker)
    clock.advance(seconds=1)
    renewed = store.beat(worker.number, 30, [attempt.ref]).lease_until
    assert renewed is not None
    assert store.expire_worker(worker.number, worker.lease_until, "its processes are gone") is False
    assert store.expire_worker(worker.number, renewed, "its processes are gone") is True
    assert not store.beat(worker.number, 30, [attempt.ref]).alive
    assert len(store.recover_lost(lost_grace=60)) == 1
    assert "its processes are gone" in (record(store, attempt.id).error_message or "")


def test_a_worker_that_leaves_gives_back_what_it_held_uncharged(store: SqlStore) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker, max_lost=0)
    store.unregister_worker(worker.number)
    store.unregister_worker(worker.number)
    assert (record(store, attempt.id).state, record(store, attempt.id).losses) == (JobState.QUEUED, 0)
    assert store.workers()[0].state == "gone"
    assert claim_all(store, worker) == []
    assert not store.beat(worker.number, 30, []).alive


def test_the_backstop_convicts_what_is_far_past_its_limit(store: SqlStore, clock: StoreClock) -> None:
    """11b"""
    worker = a_worker(store, lease=1e6)
    overdue = claimed(store, worker, timeout=10.0, grace=2.0)
    endless = claimed(store, worker, timeout="unlimited", grace=2.0)
    asked = claimed(store, worker, timeout="unlimited", grace=2.0)
    drained = claimed(store, worker, timeout="unlimited", grace=2.0)
    begin(store, worker, overdue, besides=[endless, asked, drained])
    store.cancel(TENANT, asked.id, by="me")
    store.ask(drained.ref, RequestKind.DRAIN)
    clock.advance(seconds=2 + 5 + 30 - 1)
    assert store.convict_overdue(kill_grace=5, lease=30) == []
    clock.advance(seconds=2)
    assert [r.id for r in store.convict_overdue(kill_grace=5, lease=30)] == [asked.id]
    clock.advance(seconds=10)
    assert [r.id for r in store.convict_overdue(kill_grace=5, lease=30)] == [overdue.id]

    ended = record(store, overdue.id)
    assert (ended.state, ended.error_type, ended.held) == (JobState.FAILED, "ExecutionStuck", True)
    assert ended.error_message == (
        "Execution did not respond to cancellation within 2 seconds. Worker process recycled."
    )
    assert settle(store, worker, overdue.ref).verdict is Verdict.FENCED
    assert record(store, endless.id).state is record(store, drained.id).state is JobState.RUNNING
    assert kinds(store, overdue.id)[-1] == "stuck"


def test_the_backstop_leaves_attempts_of_a_dead_worker_to_recovery(store: SqlStore, clock: StoreClock) -> None:
    """Its lease has ended but its lost_grace has not: nobody is stuck, and the loss budget decides. (A5, 11b)"""
    worker = a_worker(store, lease=300)
    attempt = claimed(store, worker, timeout=10.0, grace=10.0)
    begin(store, worker, attempt, lease=300)
    moved = []
    for _ in range(80):
        clock.advance(seconds=5)
        if moved := store.convict_overdue(kill_grace=5, lease=300) or store.recover_lost(lost_grace=60):
            break
    assert [found.id for found in moved] == [attempt.id]
    back = record(store, attempt.id)
    assert (back.state, back.error_type, back.losses, back.held) == (JobState.QUEUED, "WorkerLost", 1, False)


def test_what_never_began_is_convicted_only_if_something_was_asked_of_it(store: SqlStore, clock: StoreClock) -> None:
    """11b: a heavy import may take longer than the limit of the job that waits for it; nobody is stuck there."""
    worker = a_worker(store, lease=1e6)
    waits, asked = (claimed(store, worker, timeout=10.0, grace=2.0) for _ in range(2))
    store.cancel(TENANT, asked.id, by="me")
    clock.advance(hours=1)

    assert [found.id for found in store.convict_overdue(kill_grace=5, lease=30)] == [asked.id]
    assert record(store, waits.id).state is JobState.RUNNING
    begin(store, worker, waits)
    clock.advance(seconds=10 + 2 + 5 + 30)
    assert [found.id for found in store.convict_overdue(kill_grace=5, lease=30)] == [waits.id]


def test_a_drain_before_the_start_does_not_put_an_attempt_beyond_the_backstop(
    store: SqlStore, clock: StoreClock
) -> None:
    worker = a_worker(store, lease=1e6)
    attempt = claimed(store, worker, timeout=10.0, grace=2.0)
    store.ask(attempt.ref, RequestKind.DRAIN)
    begin(store, worker, attempt)
    clock.advance(seconds=10 + 2 + 5 + 30)

    assert len(store.convict_overdue(kill_grace=5, lease=30)) == 1


def test_the_limit_counts_from_the_start_of_the_handler(store: SqlStore, clock: StoreClock) -> None:
    """A23 (the backstop's part)"""
    worker = a_worker(store, lease=1e6)
    attempt = claimed(store, worker, timeout=10.0, grace=2.0)
    clock.advance(seconds=40)
    store.beat(worker.number, 1e6, [attempt.ref], started={attempt.ref.job: clock.now()})
    clock.advance(seconds=40)
    assert store.convict_overdue(kill_grace=5, lease=30) == []
    clock.advance(seconds=8)
    assert len(store.convict_overdue(kill_grace=5, lease=30)) == 1


def test_a_held_job_is_not_claimed_until_its_hold_is_lifted(store: SqlStore, clock: StoreClock) -> None:
    worker, other = a_worker(store, lease=30), a_worker(store, lease=1e6)
    one, two = claimed(store, worker, workflow="w"), claimed(store, worker, workflow="v")
    for attempt in (one, two):
        settle(store, worker, attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "x", stack="here")))
        store.resume(TENANT, attempt.id, by="me")
        assert record(store, attempt.id).held
    free = submitted(store, workflow="w")
    assert [a.id for a in claim_all(store, other)] == [free.id]
    assert store.attempts(TENANT, one.id)[0].stack == "here"

    assert store.lift_body_mark(other.number, one.ref.job) is False, "a hold is its own worker's to lift"
    assert store.lift_body_mark(worker.number, one.ref.job) is True
    assert store.lift_body_mark(worker.number, one.ref.job) is False
    assert [a.id for a in claim_all(store, other)] == [one.id]
    assert store.lift_body_marks(margin=8) == 0
    clock.advance(seconds=31)
    assert store.lift_body_marks(margin=8) == 0
    clock.advance(seconds=8)
    assert store.lift_body_marks(margin=8) == 1
    assert [a.id for a in claim_all(store, other)] == [two.id]


def test_ended_jobs_are_forgotten_with_all_they_left_and_live_ones_never(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e9)
    ended, resumed, running = claimed(store, worker), claimed(store, worker, retries=0), claimed(store, worker)
    store.keep_output([AttemptOutput(ended.ref, output="x")])
    store.keep_output([AttemptOutput(ended.ref, progress="1")])
    settle(store, worker, ended.ref)
    settle(store, worker, resumed.ref, boom())
    store.resume(TENANT, resumed.id, by="me")
    queued = submitted(store, expires_after=1e9)
    clock.advance(days=8)
    young = claimed(store, worker)
    settle(store, worker, young.ref)

    assert store.forget_ended(7 * 86400) == 1
    assert store.forget_ended(7 * 86400) == 0

    assert store.get(TENANT, ended.id) is None
    assert store.history(TENANT, ended.id) == []
    assert store.attempts(TENANT, ended.id) == []
    assert store.progress_of(TENANT, ended.id) is None
    for job in (resumed.id, running.id, queued.id, young.id):
        assert store.get(TENANT, job) is not None
    assert settle(store, worker, ended.ref).verdict is Verdict.FENCED


def test_a_held_job_is_not_forgotten(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    settle(store, worker, attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "x")))
    clock.advance(days=8)
    assert store.forget_ended(7 * 86400) == 0
    store.lift_body_mark(worker.number, attempt.ref.job)
    assert store.forget_ended(7 * 86400) == 1


def test_workers_are_forgotten_once_nothing_names_them(store: SqlStore, clock: StoreClock) -> None:
    idle, busy, alive = a_worker(store), a_worker(store), a_worker(store, lease=1e7)
    claimed(store, busy)
    clock.advance(days=2)
    assert store.forget_workers(86400) == 1
    assert {w.number for w in store.workers()} == {busy.number, alive.number}
    assert idle.number not in {w.number for w in store.workers()}


def test_a_number_is_never_used_twice(store: SqlStore, clock: StoreClock) -> None:
    """Or an old token could fit a new job."""
    worker = a_worker(store, lease=1e9)
    first = claimed(store, worker)
    settle(store, worker, first.ref)
    clock.advance(days=8)
    store.forget_ended(1)
    second = claimed(store, worker)
    assert second.ref.job > first.ref.job
    assert settle(store, worker, AttemptRef(first.ref.job, 1, chance.nonce())).verdict is Verdict.FENCED
