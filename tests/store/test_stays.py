"""The timer of a stay in the queue goes when the stay ends, however it ends; a later stay has a timer of its own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    boom,
    chance,
    claim_all,
    everything,
    record,
    settle,
    submitted,
)
from tests.support.tables import ask
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import NotStarted, Returned
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore

STAY = 3600.0


def stays(url: str) -> int:
    return int(ask(url, "SELECT COUNT(*) FROM unstuck_timers WHERE kind = 'expire'")[0][0])


def test_a_claim_ends_the_stay(store: SqlStore, store_url: str) -> None:
    """It was one row per completed job until the stay would have ended."""
    worker = a_worker(store)
    jobs = [a_job(expires_after=STAY) for _ in range(20)] + [a_job() for _ in range(5)]
    store.submit(jobs)
    assert stays(store_url) == 20

    found = claim_all(store, worker)

    assert len(found) == 25
    assert stays(store_url) == 0
    store.settle(worker.number, [Report(attempt.ref, Returned("1")) for attempt in found])
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_timers")[0][0] == 0


def test_what_was_not_claimed_still_expires(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    left = submitted(store, expires_after=STAY, workflow="left")
    submitted(store, expires_after=STAY)
    (taken,) = store.claim(worker.number, chance.nonce(), everything(store)[1:])
    assert taken.id != left.id
    clock.advance(seconds=STAY + 1)

    store.release_due()

    assert record(store, left.id).error_type == "QueueTimeout"
    assert record(store, taken.id).state is JobState.RUNNING
    assert stays(store_url) == 0


def test_each_later_stay_has_its_own_time(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """A retry, a job that was given back, a resume."""
    worker = a_worker(store, lease=1e6)
    job = submitted(store, expires_after=STAY, retries=1)
    (attempt,) = claim_all(store, worker)
    settle(store, worker, attempt.ref, boom())
    assert stays(store_url) == 1
    clock.advance(seconds=60)
    store.release_due()
    (attempt,) = claim_all(store, worker)
    assert stays(store_url) == 0
    settle(store, worker, attempt.ref, NotStarted("handed back"))
    assert stays(store_url) == 1
    (attempt,) = claim_all(store, worker)
    settle(store, worker, attempt.ref, boom())
    assert record(store, job.id).state is JobState.FAILED
    assert stays(store_url) == 0
    store.resume(TENANT, job.id, by="ada")
    assert stays(store_url) == 1
    clock.advance(seconds=STAY + 1)
    store.release_due()
    assert record(store, job.id).error_type == "QueueTimeout"
    assert stays(store_url) == 0


@pytest.mark.parametrize("target", [None, "one"])
@pytest.mark.parametrize("delay", [0.0, 600.0])
def test_a_job_that_is_stopped_in_the_queue_leaves_no_timer(
    store: SqlStore, store_url: str, delay: float, target: str | None
) -> None:
    cancelled = submitted(store, expires_after=STAY, delay=delay, target=target)
    paused = submitted(store, expires_after=STAY, delay=delay, target=target)
    store.ingest()
    store.cancel(TENANT, cancelled.id, by="ada")
    store.interrupt(TENANT, paused.id, by="ada")
    assert record(store, paused.id).state is JobState.PAUSED
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_timers")[0][0] == 0


def test_a_hurried_job_keeps_one_timer(store: SqlStore, store_url: str) -> None:
    job = submitted(store, expires_after=STAY, delay=600.0)
    store.run_now(TENANT, job.id, by="ada")
    assert stays(store_url) == 1


def test_claims_and_expiry_at_once_lose_and_double_nothing(store: SqlStore, store_url: str) -> None:
    """Half of the stays end while they are claimed: each job is either run or expired, and no timer is left."""
    worker = a_worker(store, lease=1e6)
    jobs = [a_job(expires_after=0.05 if number % 2 else STAY, workflow=f"w{number % 7}") for number in range(400)]
    over = threading.Event()
    ran: list[str] = []

    def claim() -> None:
        while not over.is_set():
            shares = everything(store, 3)
            found = store.claim(worker.number, chance.nonce(), shares) if shares else []
            store.settle(worker.number, [Report(attempt.ref, Returned("1")) for attempt in found])
            ran.extend(attempt.id for attempt in found)

    def expire() -> None:
        while not over.is_set():
            store.release_due(7)

    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(act) for act in (claim, claim, expire, expire)]
        for start in range(0, len(jobs), 20):
            store.submit(jobs[start : start + 20])
        until = store.counts(TENANT)
        while until[JobState.QUEUED] or until[JobState.RUNNING]:
            until = store.counts(TENANT)
        over.set()
        for one in running:
            one.result(20)
    assert until[JobState.COMPLETED] + until[JobState.FAILED] == len(jobs)
    assert len(ran) == len(set(ran)) == until[JobState.COMPLETED]
    while store.release_due(100):
        pass
    assert stays(store_url) == 0
