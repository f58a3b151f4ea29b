"""Looking at workers and counts: silence is shown, ceilings are told."""

from __future__ import annotations

import pytest

from tests.app.hand import Hand
from tests.conftest import StoreClock
from tests.support.builders import submitted
from unstuck.model.errors import InvalidInput
from unstuck.model.lifecycle import JobState, Shown
from unstuck.observe.lookup import Lookup, as_shown, as_state
from unstuck.operations import stats
from unstuck.operations.table import Caller
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore


def test_a_worker_that_is_silent_for_too_long_is_shown_offline_a56(store: SqlStore, clock: StoreClock) -> None:
    Hand(store, "w-1")
    lookup = Lookup(store, offline=120)

    assert [worker.state for worker in lookup.workers()] == ["active"]
    clock.advance(119)
    assert [worker.state for worker in lookup.workers()] == ["lost"]
    workers = stats.get(Caller(store, "ada")).workers
    assert (workers.alive, workers.offline) == (0, 0)
    clock.advance(2)
    assert [worker.state for worker in lookup.workers()] == ["offline"]
    workers = stats.get(Caller(store, "ada")).workers
    assert (workers.alive, workers.offline) == (0, 1)


def test_counts_name_every_state(store: SqlStore) -> None:
    found = stats.get(Caller(store, "ada"))

    assert found.states == dict.fromkeys(JobState, 0)
    assert found["SUCCESS"] == found[JobState.COMPLETED] == 0


def test_states_have_aliases_and_no_others() -> None:
    assert as_state("canceled") is JobState.CANCELLED
    with pytest.raises(InvalidInput, match="known: PENDING"):
        as_state("purple")
    assert as_shown("blocked") is Shown.BLOCKED
    assert as_shown("success") is JobState.COMPLETED
    with pytest.raises(InvalidInput, match="SCHEDULED"):
        as_shown("purple")


def test_a_short_page_is_filled_by_looking_on(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unstuck.store.read.lookup.BUDGET", 4)
    jobs = [submitted(store).id for _ in range(10)]
    page = Lookup(store).jobs(JobFilter(), limit=9)
    assert [job.id for job in page.jobs] == jobs[:0:-1]
    assert page.next is not None
    rest = Lookup(store).jobs(JobFilter(), limit=9, after=page.next)
    assert ([job.id for job in rest.jobs], rest.next) == (jobs[:1], None)
