"""A worker that ends itself says so in its row: its jobs stay its own until its lease ends, and nobody is charged."""

from __future__ import annotations

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, claim_all, claimed, record, settle, submitted
from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Verdict
from unstuck.store.sql_store import SqlStore

WHY = "it ended itself: the janitor loop has not ticked for 47.0 s"


def row_of(store: SqlStore, worker: WorkerRecord) -> WorkerRecord:
    (found,) = [one for one in store.workers() if one.number == worker.number]
    return found


def test_what_a_fenced_worker_held_comes_back_uncharged_when_its_lease_ends(
    store: SqlStore, clock: StoreClock
) -> None:
    worker = a_worker(store)
    job = claimed(store, worker)

    assert store.fence_worker(worker.number, WHY)

    assert store.recover_lost(0.0) == [], "its bodies may live as long as its lease"
    clock.advance(seconds=31)
    assert [one.id for one in store.recover_lost(0.0)] == [job.id]
    assert (record(store, job.id).state, record(store, job.id).losses) == (JobState.QUEUED, 0)
    (lost,) = [event for event in store.history(TENANT, job.id) if event.kind == "lost"]
    assert WHY in str(lost.data)
    assert row_of(store, worker).state == "fenced"


def test_a_fenced_worker_neither_renews_nor_claims_and_what_it_settles_still_counts(store: SqlStore) -> None:
    worker = a_worker(store)
    job = claimed(store, worker)
    store.fence_worker(worker.number, WHY)
    submitted(store)

    assert not store.beat(worker.number, 30.0, [job.ref]).alive
    assert claim_all(store, worker) == []
    assert settle(store, worker, job.ref).verdict is Verdict.DONE
    assert record(store, job.id).state is JobState.COMPLETED


def test_the_word_of_a_fenced_worker_is_not_the_proof_that_its_bodies_are_gone(
    store: SqlStore, clock: StoreClock
) -> None:
    """Who asks for a grace behind the lease gets it; a neighbour who saw it gone waits for neither."""
    worker = a_worker(store)
    job = claimed(store, worker)
    store.fence_worker(worker.number, WHY)
    clock.advance(seconds=31)
    assert store.recover_lost(60.0) == []

    assert store.expire_worker(worker.number, row_of(store, worker).lease_until, "process 7 is gone")

    assert row_of(store, worker).state == "gone"
    assert len(store.recover_lost(60.0)) == 1
    (lost,) = [event for event in store.history(TENANT, job.id) if event.kind == "lost"]
    assert WHY in str(lost.data), "the neighbour saw that it ended, not why"


def test_one_that_was_given_up_before_is_not_fenced_any_more(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store)
    claimed(store, worker)
    clock.advance(seconds=31)
    store.recover_lost(0.0)
    assert not store.fence_worker(worker.number, WHY)
    assert row_of(store, worker).state == "lost"


def test_news_is_told_once_until_somebody_takes_note(store: SqlStore) -> None:
    def tell(link: str = "/workers/a") -> bool:
        return store.notify("Worker Role Failing: settle", "worker a: its settle has failed", link, "error")

    assert tell()
    assert not tell()
    assert tell("/workers/b")
    first, second = sorted(store.notifications(), key=lambda news: news.number)
    assert (first.title, first.severity, first.tenant) == ("Worker Role Failing: settle", "error", "*")
    assert second.link == "/workers/b"
    store.ack_notification(first.number, "ada")
    assert tell()
    assert len(store.notifications()) == 2


def test_a_verb_of_many_batches_stops_when_its_caller_has_had_enough(store: SqlStore, clock: StoreClock) -> None:
    store.submit([a_job(expires_after=60.0) for _ in range(30)])
    clock.advance(seconds=61)
    assert store.release_due(batch=10, enough=lambda: True) == 10
    assert store.release_due(batch=10) == 20
