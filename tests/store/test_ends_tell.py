"""However a job ends, who waits for it hears of it; a pause, a retry or a drain is no end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, claim_all, record, settle, submitted
from unstuck.model.job import AttemptRef, NewJob, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Lost, Raised, Returned, Stopped
from unstuck.store.sql_store import SqlStore

DAY = 86400.0
ONCE = Policy(timeout=60.0, grace=1.0, retries=0, max_lost=0, suspect_runs=0, expires_after=50.0)
End = Callable[[SqlStore, WorkerRecord, NewJob, StoreClock], None]


def ref(store: SqlStore, worker: WorkerRecord) -> AttemptRef:
    [attempt] = claim_all(store, worker)
    return attempt.ref


def returns(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    settle(store, worker, ref(store, worker), Returned("1"))


def raises(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    settle(store, worker, ref(store, worker), Raised(ErrorInfo("ValueError", "boom")))


def is_lost(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    settle(store, worker, ref(store, worker), Lost(ErrorInfo("ProcessDied", "9"), "own"))


def dies_with_its_worker(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    ref(store, worker)
    clock.advance(2 * DAY)
    store.recover_lost(0.0)


def is_convicted(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    found = ref(store, worker)
    store.beat(worker.number, DAY, [found], started={found.job: store.now()})
    clock.advance(3600)
    store.convict_overdue(1.0, 30.0)


def is_cancelled_in_the_queue(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    store.cancel(TENANT, job.id, "me")


def is_cancelled_while_it_runs(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    found = ref(store, worker)
    store.cancel(TENANT, job.id, "me")
    settle(store, worker, found, Stopped())


def is_cancelled_while_paused(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    store.interrupt(TENANT, job.id, "me")
    store.cancel(TENANT, job.id, "me")


def is_resolved(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    store.interrupt(TENANT, job.id, "me")
    store.resolve(TENANT, job.id, "me", "7")


def expires(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    clock.advance(100)
    store.release_due()


def is_an_orphan(store: SqlStore, worker: WorkerRecord, job: NewJob, clock: StoreClock) -> None:
    clock.advance(60)
    [waiting] = store.waits()
    assert store.fail_orphans(waiting.route, 30.0) == 1


ENDS: list[tuple[End, JobState]] = [
    (returns, JobState.QUEUED),
    (is_resolved, JobState.QUEUED),
    *(
        (end, JobState.FAILED)
        for end in (
            raises,
            is_lost,
            dies_with_its_worker,
            is_convicted,
            is_cancelled_in_the_queue,
            is_cancelled_while_it_runs,
            is_cancelled_while_paused,
            expires,
            is_an_orphan,
        )
    ),
]


@pytest.mark.parametrize("target", [None, "acme"])
@pytest.mark.parametrize(("end", "becomes"), ENDS, ids=[end.__name__ for end, _ in ENDS])
def test_whoever_waits_hears_of_every_kind_of_end(
    store: SqlStore, clock: StoreClock, end: End, becomes: JobState, target: str | None
) -> None:
    worker = a_worker(store, lease=DAY)
    policy = ONCE if end is expires else replace(ONCE, expires_after=None)
    first = submitted(store, policy=policy, target=target)
    waiting = a_job(after=(first.id,), workflow="other", target=target)
    bold = a_job(after=(first.id,), after_failure="run", workflow="other", target=target)
    store.submit([waiting, bold])
    ingest(store)
    assert record(store, waiting.id).state is JobState.PENDING

    end(store, worker, first, clock)
    ingest(store)

    assert record(store, waiting.id).state is becomes, record(store, first.id)
    assert record(store, bold.id).state is JobState.QUEUED


def ingest(store: SqlStore) -> None:
    for _ in range(5):
        store.ingest()
