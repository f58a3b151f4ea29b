"""Orphans: a worker that learned its version after it had registered, as one does whose first import failed."""

from __future__ import annotations

from tests.conftest import StoreClock
from tests.store.test_orphans import DAY, states
from tests.support.budgets import endless
from tests.support.builders import a_worker, claim_all, record, settle, submitted
from unstuck.janitor.orphans import OrphansDuty
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.store.port import Store
from unstuck.store.sql_store import SqlStore


def test_a_worker_that_learned_its_version_late_counts_until_its_end_a47(store: Store, clock: StoreClock) -> None:
    """Ten days it lived; its jobs have waited for more than one of them when it is replaced, which takes a minute."""
    worker = a_worker(store, "late", lease=10 * DAY, code_version="")
    store.register_workflows(
        [WorkflowRecord("w", "v9", "default", Policy(), {})], worker=worker.number, queues=["default"]
    )
    clock.advance(8 * DAY)
    job = submitted(store, workflow="w")
    clock.advance(2 * DAY - 60)
    OrphansDuty(store, Times()).tick(0.0, endless())
    clock.advance(120)  # its lease is over; the next version is on its way
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 0
    assert states(store, job) == ["QUEUED"]


def test_an_attempt_says_the_version_that_its_worker_registered_last_a59(store: SqlStore) -> None:
    """Its first import failed, the second brought v9; then the app was imported again, and was v10."""
    worker = a_worker(store, "late", code_version="")
    for version in ("v9", "v10"):
        known = WorkflowRecord("greet", version, "default", Policy(), {})
        store.register_workflows([known], worker=worker.number, queues=["default"])
        job = submitted(store)
        [attempt] = claim_all(store, worker)
        settle(store, worker, attempt.ref, Returned("1"))
        assert record(store, job.id).state == "COMPLETED"
        assert [a.code_version for a in store.attempts(job.tenant, job.id)] == [version]
        assert [w.code_version for w in store.workers()] == [version]


def test_an_app_without_workflows_takes_no_version_away(store: SqlStore) -> None:
    worker = a_worker(store, "bare", code_version="v1")
    store.register_workflows([], worker=worker.number, queues=["default"])
    assert [(w.code_version, w.serves["queues"]) for w in store.workers()] == [("v1", ["default"])]
