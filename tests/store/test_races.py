"""Verbs at the same instant, with real threads and real connections."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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
    record,
    settle_all,
    submitted,
)
from tests.tiers import in_tiers
from unstuck.model.errors import IllegalMove, StoreBusy
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState, fold
from unstuck.model.settlement import NotStarted, Outcome, Returned
from unstuck.store.port import Report, Share, Verdict
from unstuck.store.sql_store import SqlStore


def together(*works: Callable[[], object]) -> None:
    """All at once; the first error of any is raised."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        start.wait(10)
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        for done in [threads.submit(run, work) for work in works]:
            done.result(60)


def test_twenty_claimers_of_one_job_open_one_attempt(store: SqlStore) -> None:
    """A1"""
    workers = [a_worker(store, name=f"w{n}") for n in range(20)]
    for _ in range(5):
        submitted(store)
        found: list[ClaimedJob] = []
        together(*[lambda w=w, found=found: found.extend(claim_all(store, w, limit=1)) for w in workers])
        assert len(found) == 1


def test_a_thousand_jobs_are_claimed_once_each(store: SqlStore) -> None:
    """A1"""
    store.submit([a_job() for _ in range(1000)])
    workers = [a_worker(store, name=f"w{n}") for n in range(20)]
    shares = everything(store, 7)
    found: list[ClaimedJob] = []

    def drain(worker: int) -> None:
        while jobs := store.claim(worker, chance.nonce(), shares):
            found.extend(jobs)

    together(*[lambda w=w: drain(w.number) for w in workers])

    assert len(found) == 1000
    assert len({job.id for job in found}) == 1000
    assert store.counts()[JobState.RUNNING] == 1000


@in_tiers("rounds", 3, 10)
def test_settlement_and_recovery_at_once_give_one_outcome(store: SqlStore, clock: StoreClock, rounds: int) -> None:
    """A8"""
    for _ in range(rounds):
        worker = a_worker(store, lease=10)
        store.submit([a_job() for _ in range(100)])
        attempts = claim_all(store, worker)
        clock.advance(seconds=11)
        verdicts: dict[str, Verdict] = {}

        def settle(worker: int = worker.number, attempts: list[ClaimedJob] = attempts) -> None:
            for attempt in attempts:
                (answer,) = settle_all(store, worker, [Report(attempt.ref, Returned("1"))])
                verdicts[attempt.id] = answer.verdict  # noqa: B023

        def recover() -> None:
            while store.recover_lost(0, batch=5):
                pass

        together(settle, recover, recover)

        assert store.recover_lost(0) == []
        for job, verdict in verdicts.items():
            found = record(store, job)
            ended = [event.kind for event in store.history(TENANT, job)][2:]
            if verdict is Verdict.DONE:
                assert (found.state, ended) == (JobState.COMPLETED, ["completed"])
            else:
                assert (found.state, ended) == (JobState.QUEUED, ["lost"])
        claim_all(store, a_worker(store, lease=3600))


@in_tiers("size", 300, 1000)
def test_every_acknowledged_cancel_ends_cancelled(store: SqlStore, clock: StoreClock, size: int) -> None:
    """A21"""
    jobs = [a_job(delay=0.0 if n % 2 else 5.0) for n in range(size)]
    store.submit(jobs)
    workers = [a_worker(store, lease=1e6) for _ in range(3)]
    clock.advance(seconds=10)
    shares = everything(store, 3)
    acknowledged: list[str] = []
    refused: list[str] = []
    over = threading.Event()

    def cancel(some: list[str]) -> None:
        for job in some:
            try:
                store.cancel(TENANT, job, by="me")
                acknowledged.append(job)
            except IllegalMove:
                refused.append(job)

    def work(worker: int, outcome: Outcome) -> None:
        while True:
            claimed = store.claim(worker, chance.nonce(), shares)
            settle_all(store, worker, [Report(attempt.ref, outcome) for attempt in claimed])
            if over.is_set() and not claimed:
                return

    def release() -> None:
        while not over.is_set():
            store.release_due(batch=10)

    def cancel_all() -> None:
        ids = [job.id for job in jobs]
        try:
            with ThreadPoolExecutor(4) as people:
                list(people.map(cancel, [ids[n::4] for n in range(4)]))
        finally:
            over.set()

    together(
        cancel_all,
        release,
        lambda: work(workers[0].number, Returned("1")),
        lambda: work(workers[1].number, boom()),
        lambda: work(workers[2].number, NotStarted()),
    )

    assert len(acknowledged) + len(refused) == size
    states = Counter(record(store, job).state for job in acknowledged)
    assert states == {JobState.CANCELLED: len(acknowledged)}
    assert all(record(store, job).state is JobState.COMPLETED for job in refused)
    for job in jobs:
        _check_history(store, job.id)


def test_a_resume_racing_a_resolve_opens_one_run(store: SqlStore) -> None:
    worker = a_worker(store)
    for _ in range(20):
        attempt = claimed(store, worker, workflow="w", retries=0)
        settle_all(store, worker.number, [Report(attempt.ref, boom())])
        refusals: list[Exception] = []

        def attempt_to(verb: Callable[[], object], refusals: list[Exception] = refusals) -> None:
            try:
                verb()
            except (IllegalMove, StoreBusy) as error:
                refusals.append(error)

        job = attempt.id
        together(
            lambda job=job: attempt_to(lambda: store.resume(TENANT, job, by="a")),  # type: ignore[misc]
            lambda job=job: attempt_to(lambda: store.resume(TENANT, job, by="b")),  # type: ignore[misc]
            lambda job=job: attempt_to(lambda: store.resolve(TENANT, job, by="c", result="1")),  # type: ignore[misc]
        )
        assert len(refusals) == 2
        assert record(store, job).run == 2
        _check_history(store, job)
        claim_all(store, worker)


def test_two_settles_of_the_same_batch_at_once_are_one(store: SqlStore) -> None:
    worker = a_worker(store)
    store.submit([a_job() for _ in range(100)])
    attempts = claim_all(store, worker)
    reports = [Report(a.ref, Returned("1") if n % 3 else boom()) for n, a in enumerate(attempts)]
    answers: list[set[Verdict]] = []
    turned = [reports, list(reversed(reports))]

    together(
        *[
            lambda batch=batch: answers.append({a.verdict for a in settle_all(store, worker.number, batch)})
            for batch in turned
        ]
    )

    assert answers == [{Verdict.DONE}, {Verdict.DONE}]
    for attempt in attempts:
        _check_history(store, attempt.id)


def test_a_claim_never_waits_for_a_verb_that_holds_a_job(store: SqlStore) -> None:
    jobs = [submitted(store) for _ in range(50)]
    workers = [a_worker(store) for _ in range(4)]
    (route,) = all_routes(store)
    shares = [Share(route.number, 1)]
    claimed_ids: list[str] = []
    ended: list[str] = []

    def claim(worker: int) -> None:
        for _ in range(20):
            claimed_ids.extend(job.id for job in store.claim(worker, chance.nonce(), shares))

    def pause() -> None:
        stopped = (store.interrupt(TENANT, job.id, by="me") for job in jobs)
        ended.extend(job.id for job in stopped if job.state is JobState.PAUSED)

    together(pause, *[lambda w=w: claim(w.number) for w in workers])

    assert not set(claimed_ids) & set(ended)
    assert len(claimed_ids) == len(set(claimed_ids))
    assert len(claimed_ids) + len(ended) == 50


def _check_history(store: SqlStore, job: str) -> None:
    """A13"""
    found, events = record(store, job), store.history(TENANT, job)
    assert [event.number for event in events] == list(range(1, found.events + 1))
    assert fold(event.kind for event in events) is found.state
    assert events[-1].run == found.run
    assert events[-1].token == found.token
