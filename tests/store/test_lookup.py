"""Lists, pages and counts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.builders import TENANT, a_job, a_worker, boom, claim_all, claimed, settle, submitted
from unstuck.model.errors import InvalidInput, UnknownJob
from unstuck.model.lifecycle import JobState
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize("newest_first", [True, False])
def test_pages_give_every_job_once_in_order(store: SqlStore, newest_first: bool) -> None:
    jobs = [a_job() for _ in range(23)]
    store.submit(jobs)
    submitted(store, tenant="other")
    found: list[str] = []
    after: str | None = None
    for _ in range(5):
        page = store.jobs(TENANT, JobFilter(newest_first=newest_first), limit=5, after=after)
        found += [job.id for job in page.jobs]
        after = page.next
        store.submit([a_job(tenant="other")])
        if after is None:
            break
    wanted = [job.id for job in jobs]
    assert found == (wanted[::-1] if newest_first else wanted)
    assert after is None


def test_a_page_that_is_exactly_full_has_no_next(store: SqlStore) -> None:
    store.submit([a_job() for _ in range(5)])
    assert store.jobs(TENANT, JobFilter(), limit=5).next is None
    assert store.jobs(TENANT, JobFilter(), limit=4).next is not None


def test_a_cursor_of_somebody_else_is_refused(store: SqlStore) -> None:
    for cursor in ("x", "", "-1", "1e3", "9" * 30):
        with pytest.raises(InvalidInput):
            store.jobs(TENANT, JobFilter(), after=cursor)


@pytest.mark.parametrize("odd", ["a\x00b", "a\ud800"])
def test_a_name_that_no_job_can_have_is_an_unknown_one(store: SqlStore, odd: str) -> None:
    submitted(store)
    assert store.get(TENANT, odd) is None
    assert store.get(odd, "x") is None
    assert store.find(TENANT, odd) == []
    assert store.history(TENANT, odd) == []
    assert store.attempts(TENANT, odd) == []
    assert store.progress_of(TENANT, odd) is None
    assert store.workflow(odd) is None
    assert store.jobs(odd, JobFilter()).jobs == ()
    for filter in (JobFilter(workflow=odd), JobFilter(queue=odd), JobFilter(error_type=odd)):
        assert store.jobs(TENANT, filter).jobs == ()
    assert set(store.counts(odd).values()) == {0}
    verbs: list[Callable[[], object]] = [
        lambda: store.cancel(TENANT, odd, by="me"),
        lambda: store.interrupt(TENANT, odd, by="me"),
        lambda: store.resume(TENANT, odd, by="me"),
        lambda: store.resolve(TENANT, odd, by="me", result="1"),
        lambda: store.run_now(TENANT, odd, by="me"),
        lambda: store.cancel(odd, "x", by="me"),
    ]
    for verb in verbs:
        with pytest.raises(UnknownJob) as unknown:
            verb()
        str(unknown.value).encode()  # a message that can be printed


def test_lists_are_filtered_by_state_workflow_queue_and_error(store: SqlStore) -> None:
    worker = a_worker(store)
    running, failed, done = claimed(store, worker), claimed(store, worker, retries=0), claimed(store, worker)
    settle(store, worker, failed.ref, boom())
    settle(store, worker, done.ref)
    queued, slow = submitted(store, workflow="a"), submitted(store, workflow="b", queue="slow")
    paused, cancelled = submitted(store), submitted(store)
    store.interrupt(TENANT, paused.id, by="me")
    store.cancel(TENANT, cancelled.id, by="me")

    def listed(**wanted: object) -> set[str]:
        return {job.id for job in store.jobs(TENANT, JobFilter(**wanted)).jobs}  # type: ignore[arg-type]

    assert listed(states=(JobState.RUNNING,)) == {running.id}
    assert listed(states=(JobState.FAILED,)) == {failed.id}
    assert listed(states=(JobState.FAILED, JobState.CANCELLED)) == {failed.id, cancelled.id}
    assert listed(states=(JobState.COMPLETED, JobState.RUNNING)) == {done.id, running.id}
    assert listed(states=(JobState.PAUSED,)) == {paused.id}
    assert listed(states=(JobState.QUEUED,)) == {queued.id, slow.id}
    assert listed(workflow="a") == {queued.id}
    assert listed(queue="slow") == {slow.id}
    assert listed(error_type="ValueError") == {failed.id}
    assert listed(states=(JobState.RUNNING,), workflow="a") == set()


def test_counts_stop_at_the_ceiling_and_know_tenants(store: SqlStore) -> None:
    store.submit([a_job() for _ in range(30)] + [a_job(delay=60.0) for _ in range(5)])
    store.submit([a_job(tenant="other") for _ in range(7)])
    assert store.counts()[JobState.QUEUED] == 42
    assert store.counts(TENANT)[JobState.QUEUED] == 35
    assert store.counts("other")[JobState.QUEUED] == 7
    assert store.counts(ceiling=10)[JobState.QUEUED] == 10
    claim_all(store, a_worker(store))
    counted = store.counts()
    assert (counted[JobState.RUNNING], counted[JobState.QUEUED]) == (37, 5)
    assert set(counted) == set(JobState)
    assert store.counts("nobody") == dict.fromkeys(JobState, 0)
