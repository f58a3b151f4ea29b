"""PENDING: held by a person, or waiting for other jobs to end. On both databases."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, boom, chance, kinds, record, submitted
from tests.support.tables import counts_of_tables
from tests.tiers import in_tiers
from unstuck.model.errors import Conflict, IllegalMove, InvalidInput, UnknownJob
from unstuck.model.job import ClaimedJob, NewJob, WorkerRecord
from unstuck.model.lifecycle import JobState, fold
from unstuck.model.settlement import Outcome, Returned
from unstuck.store.port import Report, Share
from unstuck.store.sql_store import SqlStore


def work_off(store: SqlStore) -> int:
    """All that the inbox holds, and what follows from it: how many jobs moved."""
    moved = 0
    while (found := store.ingest()).entries:
        moved += found.woken
    return moved


def claim(store: SqlStore, worker: WorkerRecord, most: int = 1000) -> list[ClaimedJob]:
    shares = [Share(front.route, most) for front in store.open_routes()]
    return store.claim(worker.number, chance.nonce(), shares) if shares else []


def end(store: SqlStore, worker: WorkerRecord, outcome: Outcome | None = None) -> list[str]:
    """Claim all there is and end it."""
    attempts = claim(store, worker)
    store.settle(worker.number, [Report(attempt.ref, outcome or Returned("1")) for attempt in attempts])
    return [attempt.id for attempt in attempts]


def state(store: SqlStore, job: NewJob | str) -> JobState:
    return record(store, job if isinstance(job, str) else job.id).state


def folds(store: SqlStore, jobs: Iterable[NewJob]) -> bool:
    """A13"""
    return all(
        fold(kinds(store, job.id)) is state(store, job)
        and [event.number for event in store.history(TENANT, job.id)]
        == list(range(1, record(store, job.id).events + 1))
        for job in jobs
    )


# --- held ---------------------------------------------------------------------------------------------------------


def test_a_held_job_waits_until_somebody_releases_it(store: SqlStore) -> None:
    worker, job = a_worker(store), submitted(store, on_hold=True)

    work_off(store)
    assert claim(store, worker) == []
    found = record(store, job.id)
    assert (found.state, found.on_hold, found.events) == (JobState.PENDING, True, 2)
    assert [(event.kind, event.data) for event in store.history(TENANT, job.id)] == [
        ("submitted", {}),
        ("held", {"hold": True}),
    ]

    released = store.release(TENANT, job.id, by="ada")

    assert (released.state, released.on_hold) == (JobState.QUEUED, False)
    assert store.history(TENANT, job.id)[-1].data == {"by": "ada"}
    assert [attempt.id for attempt in claim(store, worker)] == [job.id]
    assert folds(store, [job])


def test_a_job_can_be_released_once(store: SqlStore) -> None:
    job, plain = submitted(store, on_hold=True), submitted(store)
    store.release(TENANT, job.id, by="ada")
    for uid in (job.id, plain.id):
        with pytest.raises(IllegalMove):
            store.release(TENANT, uid, by="ada")
    with pytest.raises(UnknownJob):
        store.release(TENANT, "nobody", by="ada")
    with pytest.raises(UnknownJob):
        store.release("other", job.id, by="ada")
    assert kinds(store, job.id) == ["submitted", "held", "released"]


def test_a_held_job_for_later_is_released_to_its_time(store: SqlStore, clock: StoreClock) -> None:
    worker, job = a_worker(store, lease=1e6), submitted(store, on_hold=True, delay=100.0, target="t")
    released = store.release(TENANT, job.id, by="ada")
    assert released.available_at > clock.now()
    assert claim(store, worker) == []

    clock.advance(seconds=101)
    store.release_due()
    work_off(store)

    assert [attempt.id for attempt in claim(store, worker)] == [job.id]


def test_the_stay_in_the_queue_of_a_held_job_begins_with_its_release(store: SqlStore, clock: StoreClock) -> None:
    job = submitted(store, on_hold=True, expires_after=60.0)
    clock.advance(seconds=1000)
    store.release_due()
    assert state(store, job) is JobState.PENDING

    store.release(TENANT, job.id, by="ada")
    clock.advance(seconds=30)
    store.release_due()
    assert state(store, job) is JobState.QUEUED
    clock.advance(seconds=31)
    store.release_due()
    assert (state(store, job), record(store, job.id).error_type) == (JobState.FAILED, "QueueTimeout")


def test_a_held_job_with_a_target_is_released_into_its_line(store: SqlStore) -> None:
    worker = a_worker(store)
    held, other = submitted(store, on_hold=True, target="t", priority=5), submitted(store, target="t")
    work_off(store)
    assert [attempt.id for attempt in claim(store, worker)] == [other.id]

    store.release(TENANT, held.id, by="ada")
    work_off(store)

    assert claim(store, worker) == []  # its turn comes when the other has ended
    assert store.target(TENANT, "t").waiting == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("verb", ["cancel", "interrupt"])
def test_a_pending_job_that_is_stopped_waits_for_nobody_any_more(store: SqlStore, store_url: str, verb: str) -> None:
    worker, first = a_worker(store), submitted(store)
    job = submitted(store, after=(first.id,), on_hold=True)
    getattr(store, verb)(TENANT, job.id, by="ada")
    assert counts_of_tables(store_url)["unstuck_dependencies"] == 0

    end(store, worker)
    work_off(store)

    assert state(store, job) is (JobState.CANCELLED if verb == "cancel" else JobState.PAUSED)
    assert folds(store, [job])


# --- after --------------------------------------------------------------------------------------------------------


def test_a_job_runs_after_all_it_waits_for_have_completed(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first, second = submitted(store), submitted(store)
    last = submitted(store, after=(first.id, second.id, first.id))
    assert store.history(TENANT, last.id)[1].data == {"after": [first.id, second.id]}
    work_off(store)
    assert state(store, last) is JobState.PENDING

    (attempt, *others) = claim(store, worker)
    store.settle(worker.number, [Report(attempt.ref, Returned("1"))])
    work_off(store)
    assert state(store, last) is JobState.PENDING

    store.settle(worker.number, [Report(other.ref, Returned("1")) for other in others])
    assert work_off(store) == 1

    assert state(store, last) is JobState.QUEUED
    assert store.history(TENANT, last.id)[-1].data == {"by": "dependencies"}
    assert end(store, worker) == [last.id]
    assert folds(store, [first, second, last])
    assert counts_of_tables(store_url)["unstuck_dependencies"] == 0
    assert counts_of_tables(store_url)["unstuck_inbox"] == 0


def test_a_job_after_one_that_has_completed_already_runs_at_once(store: SqlStore) -> None:
    worker, first = a_worker(store), submitted(store)
    end(store, worker)
    job = submitted(store, after=(first.id,), target="t")
    assert state(store, job) is JobState.PENDING

    work_off(store)

    assert [attempt.id for attempt in claim(store, worker)] == [job.id]


@pytest.mark.parametrize(
    ("ending", "word"),
    [("fail", "FAILED (ValueError)"), ("cancel", "CANCELLED (Cancelled)"), ("expire", "FAILED (QueueTimeout)")],
)
def test_a_job_fails_when_one_that_it_waits_for_does_not_complete(
    store: SqlStore, clock: StoreClock, ending: str, word: str
) -> None:
    worker = a_worker(store, lease=1e6)
    first, other = submitted(store, retries=0, expires_after=60.0), submitted(store, delay=1e6)
    job = submitted(store, after=(first.id, other.id), target="t")
    work_off(store)

    match ending:
        case "fail":
            end(store, worker, boom())
        case "cancel":
            store.cancel(TENANT, first.id, by="ada")
        case "expire":
            clock.advance(seconds=61)
            store.release_due()
    work_off(store)

    found = record(store, job.id)
    assert (found.state, found.error_type) == (JobState.FAILED, "DependencyFailed")
    assert found.error_message == f"it waited for others to complete: job {first.id} is {word}"
    assert not found.is_blocker
    assert folds(store, [first, job])
    assert store.resume(TENANT, job.id, by="ada").state is JobState.QUEUED


def test_a_job_that_runs_after_failures_waits_for_all_ends_and_runs(store: SqlStore) -> None:
    worker = a_worker(store)
    first, second = submitted(store, retries=0), submitted(store)
    job = submitted(store, after=(first.id, second.id), after_failure="run")
    store.cancel(TENANT, second.id, by="ada")
    work_off(store)
    assert state(store, job) is JobState.PENDING

    end(store, worker, boom())
    work_off(store)

    assert end(store, worker) == [job.id]


def test_a_retry_is_no_end(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    submitted(store, workflow="w", retries=1)
    (first,) = claim(store, worker)
    job = submitted(store, after=(first.id,))
    store.settle(worker.number, [Report(first.ref, boom())])
    work_off(store)
    assert state(store, job) is JobState.PENDING

    clock.advance(seconds=60)
    store.release_due()
    end(store, worker)
    work_off(store)
    assert state(store, job) is JobState.QUEUED


def test_a_result_by_hand_counts_as_completed(store: SqlStore) -> None:
    first = submitted(store)
    job = submitted(store, after=(first.id,))
    store.interrupt(TENANT, first.id, by="ada")
    work_off(store)
    assert state(store, job) is JobState.PENDING

    store.resolve(TENANT, first.id, by="ada", result="1")
    work_off(store)

    assert state(store, job) is JobState.QUEUED


def test_a_job_that_is_held_and_waits_needs_both(store: SqlStore) -> None:
    worker = a_worker(store)
    first, second = submitted(store), submitted(store)
    early = submitted(store, after=(first.id,), on_hold=True)
    late = submitted(store, after=(second.id,), on_hold=True)
    work_off(store)

    unheld = store.release(TENANT, early.id, by="ada")
    assert (unheld.state, unheld.on_hold) == (JobState.PENDING, False)
    end(store, worker)
    work_off(store)

    assert (state(store, early), state(store, late)) == (JobState.QUEUED, JobState.PENDING)
    assert kinds(store, early.id) == ["submitted", "held", "unheld", "released"]
    assert store.release(TENANT, late.id, by="ada").state is JobState.QUEUED
    assert folds(store, [early, late])


def test_a_release_by_force_waits_for_nobody(store: SqlStore, store_url: str) -> None:
    first = submitted(store)
    job = submitted(store, after=(first.id,))
    work_off(store)
    with pytest.raises(Conflict, match="waits for 1 other to end"):
        store.release(TENANT, job.id, by="ada")

    assert store.release(TENANT, job.id, by="ada", force=True).state is JobState.QUEUED

    assert counts_of_tables(store_url)["unstuck_dependencies"] == 0
    assert folds(store, [job])


def test_a_diamond_ends_in_order(store: SqlStore) -> None:
    worker = a_worker(store)
    top, left, right, bottom = (a_job() for _ in range(4))
    jobs = [
        a_job(id=bottom.id, after=(left.id, right.id)),  # forward references: all of one batch
        a_job(id=left.id, after=(top.id,)),
        a_job(id=right.id, after=(top.id,)),
        top,
    ]
    assert all(answer.created for answer in store.submit(jobs))

    order = []
    for _ in range(5):
        work_off(store)
        order.append(set(end(store, worker)))

    assert order == [{top.id}, {left.id, right.id}, {bottom.id}, set(), set()]
    assert folds(store, jobs)


def test_a_fan_in_of_a_hundred_waits_for_the_last(store: SqlStore) -> None:
    worker = a_worker(store)
    many = [a_job() for _ in range(100)]
    store.submit(many)
    job = submitted(store, workflow="sum", after=tuple(other.id for other in many))
    work_off(store)
    attempts = claim(store, worker)
    assert len(attempts) == 100
    for part in (attempts[:50], attempts[50:99]):
        store.settle(worker.number, [Report(attempt.ref, Returned("1")) for attempt in part])
        work_off(store)
        assert state(store, job) is JobState.PENDING

    store.settle(worker.number, [Report(attempts[99].ref, Returned("1"))])
    work_off(store)

    assert end(store, worker) == [job.id]


@in_tiers("links", 100, 1000)
def test_a_failure_reaches_the_end_of_a_long_chain(links: int, store: SqlStore) -> None:
    worker = a_worker(store)
    first = a_job(retries=0)
    chain = [first]
    for _ in range(links):
        chain.append(a_job(after=(chain[-1].id,)))
    store.submit(chain)
    work_off(store)

    end(store, worker, boom())
    work_off(store)

    counts = store.counts()
    assert (counts[JobState.FAILED], counts[JobState.PENDING]) == (links + 1, 0)
    assert record(store, chain[-1].id).error_type == "DependencyFailed"


def test_a_fan_out_of_more_than_one_transaction_takes_is_released_whole(store: SqlStore) -> None:
    worker, first = a_worker(store), submitted(store)
    for _ in range(3):
        store.submit([a_job(workflow="many", after=(first.id,)) for _ in range(1000)])
    work_off(store)
    end(store, worker)

    work_off(store)

    assert store.counts()[JobState.QUEUED] == 3000


# --- what is refused ----------------------------------------------------------------------------------------------


def test_what_is_waited_for_must_be_known_to_the_same_tenant(store: SqlStore, store_url: str) -> None:
    mine, foreign = submitted(store), submitted(store, tenant="other")
    before = counts_of_tables(store_url)
    for wrong in ("nobody", foreign.id):
        innocent = a_job(target="new target", tags=("a",), key=f"k-{wrong}", fingerprint="f")
        with pytest.raises(UnknownJob, match=wrong):
            store.submit([innocent, a_job(after=(mine.id, wrong), on_hold=True)])
    assert counts_of_tables(store_url) == before


def test_jobs_that_would_wait_for_each_other_are_refused_by_name(store: SqlStore, store_url: str) -> None:
    a, b, c = (a_job(id=name) for name in ("job-a", "job-b", "job-c"))
    before = counts_of_tables(store_url)
    with pytest.raises(InvalidInput, match="job-a after job-c after job-b after job-a"):
        store.submit(
            [a_job(id=a.id, after=(c.id,)), a_job(id=b.id, after=(a.id,)), a_job(id=c.id, after=(b.id,)), a_job()]
        )
    with pytest.raises(InvalidInput, match="job-a after job-a"):
        store.submit([a_job(id=a.id, after=(a.id,))])
    with pytest.raises(InvalidInput, match="101 others; the limit is 100"):
        store.submit([a_job(after=tuple(f"j{n}" for n in range(101)))])
    changed = {name for name, count in counts_of_tables(store_url).items() if count != before[name]}
    assert changed <= {"unstuck_routes", "unstuck_policies"}  # made before, in a transaction of their own


def test_a_repeat_of_a_submit_adds_nothing(store: SqlStore, store_url: str) -> None:
    first = submitted(store)
    jobs = [
        a_job(target="t", tags=("a", "b", "a")),
        a_job(after=(first.id,), target="t", tags=("a",)),
        a_job(on_hold=True),
        a_job(delay=60.0, target="t"),
    ]
    store.submit(jobs)
    before = counts_of_tables(store_url)
    assert before["unstuck_tags"] == 3

    assert [answer.created for answer in store.submit(jobs)] == [False] * 4

    assert counts_of_tables(store_url) == before


def test_a_twin_by_key_is_waited_for_as_the_job_that_has_the_key(store: SqlStore) -> None:
    worker = a_worker(store)
    first = submitted(store, key="k", fingerprint="f")
    twin = a_job(key="k", fingerprint="f")
    job = a_job(after=(twin.id,))

    assert [answer.id for answer in store.submit([twin, job])] == [first.id, job.id]
    assert store.history(TENANT, job.id)[1].data == {"after": [first.id]}

    end(store, worker)
    work_off(store)
    assert state(store, job) is JobState.QUEUED


def test_what_is_waited_for_is_not_forgotten(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e7)
    first, other = submitted(store, tags=("old", "red")), submitted(store, delay=1e6, tags=("red",))
    end(store, worker)
    job = submitted(store, after=(first.id, other.id))
    clock.advance(days=8)
    assert store.forget_ended(7 * 86400.0) == 0
    assert record(store, first.id).state is JobState.COMPLETED

    store.cancel(TENANT, job.id, by="ada")
    assert store.forget_ended(7 * 86400.0) == 1
    assert store.get(TENANT, first.id) is None
    assert counts_of_tables(store_url)["unstuck_tags"] == 1
