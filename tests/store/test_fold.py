"""After any sequence of verbs: a job's history folds to its row, and RUNNING means one open attempt (A13)."""

from __future__ import annotations

import random

import pytest

from tests.conftest import StoreClock
from tests.store.test_waits import check_invariant
from tests.support.builders import TENANT, a_job, a_worker, boom, chance, claim_all, record
from unstuck.model.errors import IllegalMove, NotWaiting, WorkflowBlacklisted
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState, RequestKind, fold
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted, Outcome, Parked, Returned, Stopped, Stuck
from unstuck.model.waits import Answer, Wait, WaitKind
from unstuck.store.port import Report
from unstuck.store.sql_store import SqlStore

OUTCOMES: list[Outcome] = [
    Returned("1"),
    boom(),
    NotStarted(),
    Stopped(RequestKind.TIMEOUT),
    Stopped(),
    Stuck(ErrorInfo("ExecutionStuck", "x")),
    Lost(ErrorInfo("ProcessDied", "x"), "own"),
    Lost(ErrorInfo("ProcessDied", "x"), "suspect"),
    Lost(ErrorInfo("ProcessDied", "x"), "neighbour"),
    Parked(Wait(WaitKind.EVENT, "event:paid#1", "paid", timeout=30.0)),
    Parked(Wait(WaitKind.APPROVAL, "approval#1", "Push?", timeout=30.0)),
    Parked(Wait(WaitKind.TIME, "time#1", timeout=3.0)),
]


@pytest.mark.parametrize("seed", range(3))
def test_the_history_of_every_job_folds_to_its_row(store: SqlStore, clock: StoreClock, seed: int) -> None:
    """A13"""
    dice = random.Random(seed)
    jobs = [a_job(retries=2, expires_after=300.0 if n % 4 == 0 else None) for n in range(12)]
    store.submit(jobs)
    worker = a_worker(store, lease=30)
    held: dict[str, ClaimedJob] = {}
    for _ in range(150):
        job = dice.choice(jobs).id
        match dice.randrange(14):
            case 0 | 1 | 2:
                held |= {a.id: a for a in claim_all(store, worker, limit=dice.randint(1, 4))}
            case 3 | 4 | 5 if held:
                attempt = held.pop(dice.choice(sorted(held)))
                reports = [Report(attempt.ref, dice.choice(OUTCOMES))]
                stale = Report(attempt.ref._replace(token=attempt.ref.token + 1), Returned("no"))
                assert store.settle(worker.number, [*reports, stale])[1].state is None
            case 6:
                _try(lambda job=job: store.cancel(TENANT, job, by="p"))
            case 7:
                _try(lambda job=job: store.interrupt(TENANT, job, by="p"))
            case 8:
                _try(lambda job=job: store.resume(TENANT, job, by="p"))
                _try(lambda job=job: store.run_now(TENANT, job, by="p"))
            case 9:
                clock.advance(seconds=dice.choice([1, 5, 20]))
                store.release_due()
                store.expire_waits()
                store.convict_overdue(5, 30)
                store.lift_body_marks(8)
            case 10:
                store.beat(worker.number, 30, [a.ref for a in held.values()])
            case 11 if dice.random() < 0.3:
                clock.advance(seconds=31)
                store.recover_lost(0)
                worker, held = a_worker(store, name=chance.nonce(), lease=30), {}
            case 12:
                _try(lambda job=job: store.signal(TENANT, "paid", "1", "p", job=job))
                _try(lambda job=job: store.decide(TENANT, job, Answer.APPROVED, "p"))
            case 13:
                store.ingest()
    check_invariant(store)
    for job in (j.id for j in jobs):
        _check(store, job)
    _check_counts(store, [j.id for j in jobs])


def _try(verb: object) -> None:
    try:
        verb()  # type: ignore[operator]
    except (IllegalMove, NotWaiting, WorkflowBlacklisted):  # five stuck executions shut their workflow out
        pass


def _check(store: SqlStore, job: str) -> None:
    found, events = record(store, job), store.history(TENANT, job)
    assert [event.number for event in events] == list(range(1, found.events + 1))
    assert fold(event.kind for event in events) is found.state
    assert (events[-1].run, events[-1].token) == (found.run, found.token)
    tokens = [event.token for event in events if event.kind == "claimed"]
    assert tokens == list(range(1, found.token + 1))
    this_run = [event.data for event in events if event.run == found.run]
    for count, name in ((found.failures, "failure"), (found.losses, "loss"), (found.suspects, "suspect")):
        assert count == sum(data.get(name, 0) for data in this_run)
    attempts = store.attempts(TENANT, job)
    open_ones = [attempt for attempt in attempts if attempt.ended_at is None]
    assert len(open_ones) == (1 if found.state is JobState.RUNNING else 0)
    assert (found.worker is not None) is (found.state is JobState.RUNNING)
    assert (found.finished_at is not None) is found.state.is_final


def _check_counts(store: SqlStore, jobs: list[str]) -> None:
    counted = store.counts(TENANT)
    for state in JobState:
        assert counted[state] == sum(record(store, job).state is state for job in jobs), state
