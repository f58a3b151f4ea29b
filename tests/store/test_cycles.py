"""Circles of dependencies, however they are tied: refused, and nothing is written."""

from __future__ import annotations

import threading

import pytest

from tests.support.builders import a_job, submitted
from tests.support.tables import counts_of_tables
from unstuck.model.errors import InvalidInput
from unstuck.model.lifecycle import JobState
from unstuck.store.sql_store import SqlStore

MADE_BEFORE = {"unstuck_routes", "unstuck_policies", "unstuck_targets"}


def changed(store_url: str, before: dict[str, int]) -> set[str]:
    return {name for name, count in counts_of_tables(store_url).items() if count != before[name]} - MADE_BEFORE


def test_a_circle_through_a_twin_by_key_is_refused(store: SqlStore, store_url: str) -> None:
    """a after b after x, and x has the key of a: x is a."""
    before = counts_of_tables(store_url)
    batch = [
        a_job(id="job-a", key="k", fingerprint="f", after=("job-b",)),
        a_job(id="job-b", after=("job-x",), tags=("t",)),
        a_job(id="job-x", key="k", fingerprint="f"),
    ]
    with pytest.raises(InvalidInput, match="job-a after job-b after job-a"):
        store.submit(batch)
    assert changed(store_url, before) == set()


@pytest.mark.parametrize("size", [2, 1500])
def test_a_ring_is_refused_whole_also_over_several_statements(store: SqlStore, store_url: str, size: int) -> None:
    before = counts_of_tables(store_url)
    ring = [a_job(id=f"job-{n}", after=(f"job-{(n + 1) % size}",)) for n in range(size)]
    with pytest.raises(InvalidInput, match="for ever"):
        store.submit([a_job(key="innocent", fingerprint="f"), *ring, a_job()])
    assert changed(store_url, before) == set()


def test_a_circle_cannot_be_closed_by_a_later_batch(store: SqlStore) -> None:
    """By the id or the key of a job that is stored: it keeps what it waits for, which is nothing."""
    first = submitted(store, id="job-a", key="k", fingerprint="f")
    submitted(store, id="job-b", after=("job-a",))
    assert store.submit([a_job(id="job-a", key="k", fingerprint="f", after=("job-b",))])[0].created is False
    assert store.submit([a_job(id="job-c", key="k", fingerprint="f", after=("job-b",))])[0].id == first.id
    found = store.get("default", "job-a")
    assert found is not None
    assert found.state is JobState.QUEUED


def test_two_batches_that_would_close_a_circle_together_do_not(store: SqlStore) -> None:
    """Each is fine by itself; whoever comes second finds both jobs stored."""
    for number in range(20):
        a, b = f"a{number}", f"b{number}"
        batches = [[a_job(id=a), a_job(id=b, after=(a,))], [a_job(id=b), a_job(id=a, after=(b,))]]
        problems: list[Exception] = []

        def send(batch: list[object], problems: list[Exception] = problems) -> None:
            try:
                store.submit(batch)  # type: ignore[arg-type]
            except Exception as error:
                problems.append(error)

        threads = [threading.Thread(target=send, args=(batch,)) for batch in batches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert problems == []
        found = [store.get("default", job) for job in (a, b)]
        assert sorted(job.state.value for job in found if job) == ["PENDING", "QUEUED"]
