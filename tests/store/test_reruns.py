"""`max_retries`: how often a handler that began may begin again, whatever came between."""

from __future__ import annotations

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_worker, claim_all, claimed, record, settle
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Lost, NotStarted
from unstuck.store.sql_store import SqlStore


def test_with_no_retries_at_all_a_lost_worker_ends_the_job(store: SqlStore, clock: StoreClock) -> None:
    attempt = claimed(store, a_worker(store, lease=30.0), max_retries=0)
    clock.advance(seconds=31)
    store.recover_lost(0.0)

    ended = record(store, attempt.id)
    assert (ended.state, ended.error_type) == (JobState.FAILED, "WorkerLost")


@pytest.mark.parametrize("blame", ["own", "suspect", "bystander", "neighbour", "uncharged"])
def test_a_process_that_died_costs_one_of_them_whoever_is_to_blame(store: SqlStore, blame: str) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker, max_retries=1)
    died = Lost(ErrorInfo("ProcessDied", "exit 9"), blame)  # type: ignore[arg-type]
    assert settle(store, worker, attempt.ref, died).state is JobState.QUEUED
    (again,) = claim_all(store, worker)
    assert settle(store, worker, again.ref, NotStarted()).state is JobState.QUEUED
    (once_more,) = claim_all(store, worker)

    assert settle(store, worker, once_more.ref, died).state is JobState.FAILED
