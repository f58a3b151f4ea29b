"""Targets: one body at a time, in order, and what blocks them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    begin,
    boom,
    chance,
    claim_all,
    kinds,
    record,
    settle,
    submitted,
)
from tests.support.eventually import eventually
from unstuck.model.errors import NotBlocking, UnknownTarget
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Raised, Returned, Stopped, Stuck
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import Pause, Report
from unstuck.store.sql_store import SqlStore

FAILED = Raised(ErrorInfo("ValueError", "boom"), retry=False)
INTERRUPTED = Stopped(asked=RequestKind.INTERRUPT)
TIMED_OUT = Stopped(asked=RequestKind.TIMEOUT)
STUCK = Stuck(ErrorInfo("ExecutionStuck", "did not respond"))


def take(store: SqlStore, worker: WorkerRecord) -> list[ClaimedJob]:
    """What a worker would get now: it looks into the inbox before it claims."""
    while store.ingest().entries:
        pass
    return claim_all(store, worker)


def ids(claimed: Sequence[ClaimedJob]) -> list[str]:
    return [job.id for job in claimed]


def run_next(store: SqlStore, worker: WorkerRecord, outcome: Outcome | None = None) -> str:
    (job,) = take(store, worker)
    settle(store, worker, job.ref, outcome)
    return job.id


def on_target(store: SqlStore, count: int, target: str = "acme", **options: object) -> list[str]:
    jobs = [a_job(target=target, **options) for _ in range(count)]
    store.submit(jobs)
    return [job.id for job in jobs]


# --- order --------------------------------------------------------------------------------------------------------


def test_a38_jobs_of_one_target_run_one_at_a_time_by_age(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 10)

    ran = []
    while claimed := take(store, worker):
        assert len(claimed) == 1
        assert take(store, worker) == []
        settle(store, worker, claimed[0].ref)
        ran.append(claimed[0].id)

    assert ran == jobs


def test_a38_other_targets_run_beside_it(store: SqlStore) -> None:
    worker = a_worker(store)
    first = [on_target(store, 3, target=f"t{n}")[0] for n in range(20)]

    assert sorted(ids(take(store, worker))) == sorted(first)


def test_a38_the_same_name_of_another_tenant_is_another_target(store: SqlStore) -> None:
    worker = a_worker(store)
    on_target(store, 2)
    on_target(store, 2, tenant="other")

    assert len(take(store, worker)) == 2


def test_a38_higher_priority_goes_first_whatever_its_age(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    (low,) = on_target(store, 1, priority=-1)
    (middle,) = on_target(store, 1)
    clock.advance(hours=2)
    (high,) = on_target(store, 1, priority=1)
    worker = a_worker(store, name="later")

    assert [run_next(store, worker) for _ in range(3)] == [high, middle, low]


def test_an_unclaimed_head_yields_to_a_higher_priority_newcomer(store: SqlStore) -> None:
    worker = a_worker(store)
    (ordinary,) = on_target(store, 1)
    store.ingest()
    (urgent,) = on_target(store, 1, priority=5)

    assert ids(take(store, worker)) == [urgent]
    assert record(store, ordinary).state is JobState.QUEUED


def test_a_claimed_head_keeps_its_turn_against_a_higher_priority_newcomer(store: SqlStore) -> None:
    worker = a_worker(store)
    on_target(store, 1)
    (running,) = take(store, worker)
    (urgent,) = on_target(store, 1, priority=5)

    assert take(store, worker) == []
    settle(store, worker, running.ref)
    assert ids(take(store, worker)) == [urgent]


def test_a_job_given_back_before_it_started_steps_back_behind_a_higher_priority(store: SqlStore) -> None:
    worker = a_worker(store)
    (ordinary,) = on_target(store, 1)
    (attempt,) = take(store, worker)
    (urgent,) = on_target(store, 1, priority=5)
    settle(store, worker, attempt.ref, NotStarted())

    assert [run_next(store, worker), run_next(store, worker)] == [urgent, ordinary]


def test_the_head_takes_its_turn_at_once_when_the_one_before_it_settles(store: SqlStore) -> None:
    """No ingest is needed: the settle itself promotes."""
    worker = a_worker(store)
    jobs = on_target(store, 2)
    (first,) = take(store, worker)
    settle(store, worker, first.ref)

    assert ids(claim_all(store, worker)) == [jobs[1]]


def test_settling_a_batch_promotes_every_target_of_it(store: SqlStore) -> None:
    worker = a_worker(store)
    for n in range(30):
        on_target(store, 2, target=f"t{n}")
    first = take(store, worker)
    store.settle(worker.number, [Report(job.ref, Returned("1"), duration_ms=1) for job in first])

    assert len(claim_all(store, worker)) == len(first) == 30


def test_a_stale_settle_does_not_free_the_target(store: SqlStore, clock: StoreClock) -> None:
    zombie = a_worker(store)
    on_target(store, 2)
    (old,) = take(store, zombie)
    clock.advance(minutes=5)
    store.recover_lost(0)
    worker = a_worker(store, name="new")
    (new,) = take(store, worker)
    assert new.id == old.id

    settle(store, zombie, old.ref)

    assert take(store, worker) == []
    settle(store, worker, new.ref)
    assert len(take(store, worker)) == 1


# --- what keeps and what blocks -------------------------------------------------------------------------------------


def test_a39_a_retry_in_backoff_keeps_its_target(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=3600)
    jobs = on_target(store, 2, backoff_base=60.0)
    (attempt,) = take(store, worker)
    settle(store, worker, attempt.ref, boom())
    on_target(store, 1, priority=9)

    assert take(store, worker) == []

    clock.advance(minutes=2)
    store.release_due()
    assert ids(take(store, worker)) == [jobs[0]]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(FAILED, JobState.FAILED), (TIMED_OUT, JobState.TIMEOUT), (INTERRUPTED, JobState.PAUSED)],
)
def test_a39_what_ended_badly_blocks_its_target_and_is_listed(
    store: SqlStore, outcome: Outcome, state: JobState
) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 3)
    run_next(store, worker, outcome)

    assert record(store, jobs[0]).state is state
    assert record(store, jobs[0]).is_blocker
    assert take(store, worker) == []
    (blocked,) = store.targets(TENANT, blocked=True)
    assert (blocked.name, blocked.blocked_by, blocked.head_state, blocked.waiting) == ("acme", jobs[0], state, 2)
    assert blocked.blocked_at is not None
    assert store.targets("other", blocked=True) == []


def test_a6_a39_a_lost_attempt_under_on_lost_fail_blocks(store: SqlStore) -> None:
    worker = a_worker(store)
    on_target(store, 2, on_lost="fail")
    run_next(store, worker, Lost(ErrorInfo("ProcessDied", "signal 9"), "own"))

    assert take(store, worker) == []
    assert len(store.targets(TENANT, blocked=True)) == 1


@pytest.mark.parametrize("outcome", [FAILED, TIMED_OUT])
def test_on_failure_continue_lets_the_target_move(store: SqlStore, outcome: Outcome) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2, on_failure="continue")
    run_next(store, worker, outcome)

    assert ids(take(store, worker)) == [jobs[1]]
    assert store.targets(TENANT, blocked=True) == []


def test_a39_an_interrupted_job_that_had_not_started_blocks_nothing(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 3)
    store.ingest()
    store.interrupt(TENANT, jobs[0], "me")
    store.interrupt(TENANT, jobs[1], "me")

    assert ids(take(store, worker)) == [jobs[2]]
    assert record(store, jobs[0]).state is JobState.PAUSED
    assert not record(store, jobs[0]).is_blocker


def test_a16_a_cancelled_head_and_a_cancelled_waiter_make_room(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 4)
    store.ingest()
    store.cancel(TENANT, jobs[0], "me")
    store.cancel(TENANT, jobs[2], "me")

    assert [run_next(store, worker), run_next(store, worker)] == [jobs[1], jobs[3]]
    assert take(store, worker) == []


def test_a_cancelled_retry_in_backoff_frees_its_target(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2, backoff_base=60.0)
    run_next(store, worker, boom())
    store.cancel(TENANT, jobs[0], "me")

    assert ids(take(store, worker)) == [jobs[1]]


def test_an_interrupted_retry_in_backoff_blocks_because_it_had_started(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2, backoff_base=60.0)
    run_next(store, worker, boom())
    store.interrupt(TENANT, jobs[0], "me")

    assert take(store, worker) == []
    assert record(store, jobs[0]).is_blocker
    store.cancel(TENANT, jobs[0], "me")
    assert ids(take(store, worker)) == [jobs[1]]
    assert store.targets(TENANT, blocked=True) == []


def test_a_job_that_expires_in_the_line_lets_the_others_pass(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=3600)
    on_target(store, 1)
    (running,) = take(store, worker)
    (short,) = on_target(store, 1, expires_after=60.0)
    (patient,) = on_target(store, 1)
    clock.advance(minutes=2)
    store.release_due()

    assert record(store, short).error_type == "QueueTimeout"
    settle(store, worker, running.ref)
    assert ids(take(store, worker)) == [patient]


# --- resume, resolve, skip ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [FAILED, TIMED_OUT, INTERRUPTED])
def test_a40_a_resumed_blocker_runs_next_clean_and_before_everybody(store: SqlStore, outcome: Outcome) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2)
    run_next(store, worker, outcome)
    on_target(store, 1, priority=9)
    store.ingest()

    store.resume(TENANT, jobs[0], "me")

    (again,) = take(store, worker)
    assert (again.id, again.run) == (jobs[0], 2)
    assert record(store, jobs[0]).error_type is None
    assert store.targets(TENANT, blocked=True) == []


def test_a40_resolve_moves_the_target(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2)
    run_next(store, worker, FAILED)

    assert store.resolve(TENANT, jobs[0], "me", "7").state is JobState.COMPLETED
    assert ids(take(store, worker)) == [jobs[1]]


def test_skip_moves_the_target_and_leaves_the_job(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 3)
    run_next(store, worker, FAILED)

    skipped = store.skip(TENANT, jobs[0], "me")

    assert skipped.state is JobState.FAILED
    assert not skipped.is_blocker
    assert list(kinds(store, jobs[0])) == ["submitted", "claimed", "failed", "skipped"]
    assert ids(take(store, worker)) == [jobs[1]]
    with pytest.raises(NotBlocking):
        store.skip(TENANT, jobs[0], "me")


def test_a_skipped_paused_job_can_be_resumed_later_at_its_own_place(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 3)
    run_next(store, worker, INTERRUPTED)
    store.skip(TENANT, jobs[0], "me")
    assert list(kinds(store, jobs[0]))[-1] == "skipped"
    (second,) = take(store, worker)
    store.resume(TENANT, jobs[0], "me")
    settle(store, worker, second.ref)

    assert [run_next(store, worker), run_next(store, worker)] == [jobs[0], jobs[2]]


def test_skip_of_a_job_without_target_is_refused(store: SqlStore) -> None:
    job = submitted(store)
    with pytest.raises(NotBlocking):
        store.skip(TENANT, job.id, "me")


# --- holds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["resume", "resolve", "skip", "continue"])
def test_a30_the_next_body_waits_until_the_stuck_one_is_gone(store: SqlStore, how: str) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2, on_failure="continue" if how == "continue" else "block")
    (stuck,) = take(store, worker)
    settle(store, worker, stuck.ref, STUCK)
    match how:
        case "resume":
            store.resume(TENANT, jobs[0], "me")
        case "resolve":
            store.resolve(TENANT, jobs[0], "me", "1")
        case "skip":
            store.skip(TENANT, jobs[0], "me")

    assert take(store, worker) == []
    target = store.target(TENANT, "acme")
    assert target is not None
    assert target.held

    assert store.lift_body_mark(worker.number, stuck.ref.job)
    assert ids(claim_all(store, worker)) == [jobs[0] if how == "resume" else jobs[1]]


def test_a30_also_when_the_worker_dies_first(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2, on_failure="continue")
    (stuck,) = take(store, worker)
    settle(store, worker, stuck.ref, STUCK)
    clock.advance(minutes=5)
    other = a_worker(store, name="other")
    assert take(store, other) == []

    assert store.lift_body_marks(8.0) == 1

    assert ids(take(store, other)) == [jobs[1]]


# --- pauses ---------------------------------------------------------------------------------------------------------


def pause(store: SqlStore, until_at: object = None, name: str = "acme") -> None:
    store.pause(Pause("target", name, TENANT, "me", until_at=until_at, reason="vendor outage"))  # type: ignore[arg-type]


def test_a41_a_paused_target_finishes_what_runs_and_starts_nothing(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2)
    (running,) = take(store, worker)
    pause(store)
    settle(store, worker, running.ref)

    assert take(store, worker) == []
    target = store.target(TENANT, "acme")
    assert target is not None
    assert target.pause is not None
    assert (target.pause.by, target.pause.reason) == ("me", "vendor outage")

    assert store.unpause("target", "acme", TENANT)
    assert ids(claim_all(store, worker)) == [jobs[1]]
    assert not store.unpause("target", "acme", TENANT)


def test_a41_a_pause_takes_an_unclaimed_head_out_of_reach(store: SqlStore) -> None:
    worker = a_worker(store)
    (head,) = on_target(store, 1)
    store.ingest()
    pause(store)

    assert take(store, worker) == []
    (urgent,) = on_target(store, 1, priority=5)
    store.ingest()
    store.unpause("target", "acme", TENANT)
    assert [run_next(store, worker), run_next(store, worker)] == [urgent, head]


def test_a41_a_pause_with_an_end_ends_by_itself(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=3600)
    jobs = on_target(store, 1)
    pause(store, until_at=clock.now() + timedelta(minutes=5))
    assert take(store, worker) == []
    clock.advance(minutes=6)

    store.release_due()

    assert ids(take(store, worker)) == jobs
    target = store.target(TENANT, "acme")
    assert target is not None
    assert target.pause is None


def test_a_retry_that_comes_due_on_a_paused_target_waits_and_is_first(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=3600)
    jobs = on_target(store, 2, backoff_base=60.0)
    run_next(store, worker, boom())
    pause(store)
    clock.advance(minutes=2)
    store.release_due()

    assert take(store, worker) == []
    store.unpause("target", "acme", TENANT)
    assert ids(take(store, worker)) == [jobs[0]]


def test_pausing_a_target_that_nobody_ever_used_is_refused(store: SqlStore) -> None:
    with pytest.raises(UnknownTarget):
        pause(store, name="nobody")
    assert store.pauses() == []


# --- time and loss --------------------------------------------------------------------------------------------------


def test_a_delayed_job_stands_in_no_line_before_its_time(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=3600)
    (later,) = on_target(store, 1, delay=60.0, priority=9)
    (now,) = on_target(store, 1)
    assert run_next(store, worker) == now
    clock.advance(minutes=2)
    store.release_due()

    assert ids(take(store, worker)) == [later]


def test_hurry_puts_a_delayed_job_into_its_line(store: SqlStore) -> None:
    worker = a_worker(store)
    (later,) = on_target(store, 1, delay=3600.0)
    store.run_now(TENANT, later, "me")

    assert ids(take(store, worker)) == [later]


def test_a4_a_lost_head_is_next_again(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2)
    take(store, worker)
    clock.advance(minutes=5)
    store.recover_lost(0)

    assert ids(take(store, a_worker(store, name="new"))) == [jobs[0]]


def test_a_worker_that_leaves_hands_its_targets_on(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = [on_target(store, 2, target=f"t{n}")[0] for n in range(5)]
    take(store, worker)
    store.unregister_worker(worker.number)

    assert sorted(ids(take(store, a_worker(store, name="new")))) == sorted(jobs)


def test_a_stray_attempt_goes_back_to_its_line(store: SqlStore) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 2)
    take(store, worker)
    store.beat(worker.number, 30.0, [])

    assert ids(take(store, worker)) == [jobs[0]]


def test_the_backstop_blocks_the_target_with_a_hold(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=7200)
    on_target(store, 2, timeout=60.0)
    begin(store, worker, *take(store, worker), lease=7200)
    clock.advance(minutes=10)
    (convicted,) = store.convict_overdue(5.0, 30.0)

    assert convicted.state is JobState.FAILED
    (blocked,) = store.targets(TENANT, blocked=True)
    assert blocked.held
    assert take(store, worker) == []


def test_retention_keeps_a_job_that_blocks(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    jobs = on_target(store, 1)
    run_next(store, worker, FAILED)
    other = submitted(store)
    run_next(store, worker)
    clock.advance(days=30)

    assert store.forget_ended(86400) == 1

    assert store.get(TENANT, other.id) is None
    assert record(store, jobs[0]).is_blocker


# --- many -----------------------------------------------------------------------------------------------------------


def test_a_thousand_new_targets_at_once_all_get_their_head(store: SqlStore) -> None:
    worker = a_worker(store)
    store.submit([a_job(target=f"t{chance.nonce()}") for _ in range(1000)])

    assert len(take(store, worker)) == 1000


def test_targets_are_listed_page_by_page_by_name(store: SqlStore) -> None:
    for name in ("b", "a", "c"):
        on_target(store, 2, target=name)
    store.ingest()

    first = store.targets(TENANT, limit=2)
    rest = store.targets(TENANT, after=first[-1].name, limit=2)

    assert [(t.name, t.waiting, t.head_state) for t in first + rest] == [
        (name, 1, JobState.QUEUED) for name in ("a", "b", "c")
    ]
    assert store.targets("other") == []
    assert store.target(TENANT, "nope") is None


def test_a_stay_that_ends_on_a_target_wakes_idle_workers_for_the_next(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    """The job behind a head that nobody took in time may start now: nobody should sleep through it."""
    worker = a_worker(store, lease=1e6)
    late = submitted(store, target="acme", expires_after=10.0, on_failure="continue")
    behind = submitted(store, target="acme")
    store.ingest()
    clock.advance(seconds=11)
    with closing(SqlStore(open_database(store_url))) as idle, ThreadPoolExecutor() as other:
        eventually(lambda: not idle.wait_for_work(0.2))
        sleeper = other.submit(idle.wait_for_work, 10.0)

        assert store.release_due() == 1

        assert sleeper.result()
    assert record(store, late.id).error_type == "QueueTimeout"
    assert ids(claim_all(store, worker)) == [behind.id]
