"""Sixteen actors at once over thousands of jobs, with slow commits and zombies: nobody is lost, nobody runs twice."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from tests.support.builders import all_routes, settle_all
from tests.tiers import in_tiers
from unstuck.chance import SystemChance
from unstuck.model.errors import Conflict, StoreBusy
from unstuck.model.job import AttemptRef, EventRecord, NewJob
from unstuck.model.lifecycle import JobState, RequestKind, fold
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Raised, Returned, Stopped
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import NewWorker, Report, Share, Verdict
from unstuck.store.sql_store import SqlStore

T = TypeVar("T")
TENANT = "default"
LEASE = 0.8
#: Between claims that found nothing: whoever asks without a rest keeps those from the machine who have work.
IDLE = 0.01
POLICY = Policy(retries=50, max_lost=200, suspect_runs=200, backoff_base=0.01, backoff_factor=1.0)
OUTCOMES: list[Outcome] = [
    *[Returned("1")] * 12,
    Raised(ErrorInfo("ValueError", "boom")),
    Raised(ErrorInfo("ValueError", "boom"), retry=False),
    NotStarted(),
    Stopped(asked=RequestKind.INTERRUPT),
    Lost(ErrorInfo("ProcessDied", "signal 9"), "suspect"),
]
ENDS = {"completed", "retried", "failed", "cancelled", "interrupted", "given_back", "lost", "timed_out", "stuck"}


class SlowCommits:
    """The same database, with now and then a pause between the last statement and the commit."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.dialect = inner.dialect

    def write(
        self,
        work: Callable[[Transaction], T],
        within: float | None = None,
        *,
        patience: float | None = None,
        stop_after: float | None = None,
    ) -> T:
        def slowly(tx: Transaction) -> T:
            answer = work(tx)
            if random.random() < 0.05:
                time.sleep(random.random() * (0.05 if self.dialect == "postgres" else 0.01))
            return answer

        return self.inner.write(slowly, within, patience=patience, stop_after=stop_after)

    def once(self, statement: str, /, *, stop_after: float | None = None, **values: Any) -> list[Row]:
        return self.write(lambda tx: tx.all(statement, **values))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass
class Crowd:
    url: str
    jobs: int
    stop: threading.Event = field(default_factory=threading.Event)
    errors: list[BaseException] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    accepted: list[tuple[AttemptRef, str]] = field(default_factory=list)
    fenced: list[AttemptRef] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def store(self) -> SqlStore:
        return SqlStore(SlowCommits(open_database(self.url, store_call=20.0)))

    def actor(self, play: Callable[[SqlStore, random.Random], None], seed: int) -> threading.Thread:
        def run() -> None:
            store = self.store()
            try:
                dice = random.Random(seed)
                while not self.stop.is_set():
                    play(store, dice)
            except BaseException as error:
                self.errors.append(error)
                self.stop.set()
            finally:
                store.close()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def enough(self) -> bool:
        """All jobs are in, and at least one zombie has come too late: without it the test would not have tested."""
        return len(self.ids) >= self.jobs and bool(self.fenced)

    # --- the parts they play ----------------------------------------------------------------------------------
    def enqueue(self, store: SqlStore, dice: random.Random) -> None:
        if self.enough():
            time.sleep(0.05)
            return
        if len(self.ids) >= self.jobs:
            time.sleep(0.05)  # only a zombie is missing still: it needs something to claim, no flood
        new = [
            NewJob(
                id=SystemChance().job_id(),
                tenant=TENANT,
                queue="default",
                workflow=f"w{dice.randrange(3)}",
                payload="{}",
                policy=POLICY,
                priority=dice.randrange(3),
                delay=dice.choice([0.0, 0.0, 0.1]),
            )
            for _ in range(dice.randrange(1, 40))
        ]
        self.ids += [submitted.id for submitted in store.submit(new)]

    def work(self, store: SqlStore, dice: random.Random) -> None:
        """One life of a worker: it claims, beats and settles; one in four falls silent and settles too late."""
        worker = store.register_worker(
            NewWorker(SystemChance().nonce(), "w", "host", "boot", "ns", 1, 1, ("default",), "v1", LEASE)
        )
        zombie = dice.random() < 0.25
        for _ in range(dice.randrange(2, 6)):
            shares = [Share(route.number, dice.randrange(1, 20)) for route in all_routes(store)]
            claimed = store.claim(worker.number, SystemChance().nonce(), shares)
            held = [job.ref for job in claimed]
            if zombie:
                self.stop.wait(LEASE + 0.5)
            elif not store.beat(worker.number, LEASE, held).alive:
                return
            elif not claimed:
                self.stop.wait(IDLE)
            reports = [Report(job.ref, dice.choice(OUTCOMES), duration_ms=1) for job in claimed]
            names = {job.ref: job.id for job in claimed}
            for settled in settle_all(store, worker.number, reports):
                if settled.verdict is Verdict.DONE:
                    self.accepted.append((settled.ref, names[settled.ref]))
                else:
                    self.fenced.append(settled.ref)
        store.unregister_worker(worker.number)

    def cancel(self, store: SqlStore, dice: random.Random) -> None:
        self.stop.wait(0.02)
        if job := dice.choice(self.ids) if self.ids else None:
            try:
                store.cancel(TENANT, job, "canceller")
                self.cancelled.append(job)
            except Conflict:
                pass

    def meddle(self, store: SqlStore, dice: random.Random) -> None:
        self.stop.wait(0.02)
        if job := dice.choice(self.ids) if self.ids else None:
            try:
                if dice.random() < 0.5:
                    store.interrupt(TENANT, job, "meddler")
                else:
                    store.resume(TENANT, job, "meddler")
            except Conflict:
                pass

    def sweep(self, store: SqlStore, dice: random.Random) -> None:
        store.release_due()
        store.recover_lost(0.0)
        store.convict_overdue(5.0, LEASE)
        store.lift_body_marks(0.1)
        self.stop.wait(0.05)


@pytest.mark.timeout(240)
@in_tiers("jobs", 150, 2400)
def test_a1_a8_sixteen_actors_never_open_two_attempts_of_a_job_and_lose_none(store_url: str, jobs: int) -> None:
    crowd = Crowd(store_url, jobs)
    parts = [crowd.enqueue] * 3 + [crowd.work] * 7 + [crowd.cancel] * 2 + [crowd.meddle] * 2 + [crowd.sweep] * 2
    actors = [crowd.actor(part, seed) for seed, part in enumerate(parts)]
    judge = crowd.store()

    _wait_until_drained(crowd, judge)
    crowd.stop.set()
    for actor in actors:
        actor.join(60)

    assert crowd.errors == []
    assert len(set(crowd.ids)) == len(crowd.ids) >= jobs
    _check_histories(crowd, judge)
    judge.close()


def _wait_until_drained(crowd: Crowd, judge: SqlStore) -> None:
    """Meddlers may leave jobs PAUSED; everything else must come to an end by itself."""
    deadline = time.monotonic() + max(180, crowd.jobs / 10)
    while not crowd.stop.is_set():
        assert time.monotonic() < deadline, judge.counts(TENANT)
        time.sleep(0.2)
        if not crowd.enough():
            continue
        try:
            counts = judge.counts(TENANT)
        except StoreBusy:
            continue
        if not counts.get(JobState.QUEUED) and not counts.get(JobState.RUNNING):
            return


def _check_histories(crowd: Crowd, judge: SqlStore) -> None:
    settled = {(job, ref.token) for ref, job in crowd.accepted}
    assert len(settled) == len(crowd.accepted), "one attempt was accepted twice"
    for job in crowd.ids:
        record = judge.get(TENANT, job)
        events = judge.history(TENANT, job)
        assert record is not None, f"{job} was acknowledged and is gone"
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert fold(event.kind for event in events) is record.state
        _check_attempts(job, events, settled)
    for job in crowd.cancelled:
        kinds = [event.kind for event in judge.history(TENANT, job)]
        assert "resumed" in kinds or fold(kinds) is JobState.CANCELLED, f"A21: {job} was cancelled, then {kinds}"


def _check_attempts(job: str, events: list[EventRecord], settled: set[tuple[str, int]]) -> None:
    """Claimed, ended, claimed, ended: never two open at once, tokens 1, 2, 3, …"""
    open_token, last = None, 0
    for event in events:
        if event.kind == "claimed":
            assert open_token is None, f"{job} was claimed twice at once"
            assert event.token == last + 1
            open_token = last = event.token
        elif event.kind in ENDS and open_token is not None:
            assert event.token == open_token
            if event.kind in {"completed", "retried"}:
                assert (job, event.token) in settled
            open_token = None
    assert open_token is None
