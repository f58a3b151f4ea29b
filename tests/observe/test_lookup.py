"""Looking at workers and counts: silence is shown, ceilings are told."""

from __future__ import annotations

import pytest

from tests.app.hand import Hand
from tests.conftest import StoreClock
from unstuck.model.errors import InvalidInput
from unstuck.model.lifecycle import JobState
from unstuck.observe.lookup import Lookup, as_state
from unstuck.store.sql_store import SqlStore


def test_a_worker_that_is_silent_for_too_long_is_shown_offline_a56(store: SqlStore, clock: StoreClock) -> None:
    Hand(store, "w-1")
    lookup = Lookup(store, offline=120)

    clock.advance(119)
    assert [worker.state for worker in lookup.workers()] == ["active"]
    clock.advance(2)
    assert [worker.state for worker in lookup.workers()] == ["offline"]
    stats = lookup.stats()
    assert (stats.workers, stats.offline) == (0, 1)


def test_counts_name_every_state(store: SqlStore) -> None:
    stats = Lookup(store).stats()

    assert stats.states == dict.fromkeys(JobState, 0)
    assert stats["SUCCESS"] == stats[JobState.COMPLETED] == 0


def test_states_have_aliases_and_no_others() -> None:
    assert as_state("canceled") is JobState.CANCELLED
    with pytest.raises(InvalidInput, match="known: PENDING"):
        as_state("purple")
