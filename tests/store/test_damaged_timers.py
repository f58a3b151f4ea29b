"""A timer whose time was damaged keeps no other from ringing."""

from __future__ import annotations

import pytest

from tests.conftest import StoreClock
from tests.support.builders import record, submitted
from tests.support.troubles import execute
from unstuck.model.lifecycle import JobState
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_timer_without_a_time_keeps_no_stay_from_ending(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """SQLite takes a word where a number belongs. It stands behind all numbers, so it is met where no other start
    waits: then nothing at all was released, and no idle worker knew how long to sleep."""
    submitted(store, delay=30.0)
    execute(store_url, "UPDATE unstuck_timers SET due_at = 'soon'")
    late = submitted(store, expires_after=10.0)

    timer_in = store.due().timer_in
    assert timer_in is not None
    assert timer_in <= 10.0
    clock.advance(seconds=11)
    store.release_due()
    assert record(store, late.id).state is JobState.FAILED


def test_a_timer_from_before_all_clocks_rings(store: SqlStore, store_url: str) -> None:
    submitted(store, delay=30.0)
    execute(store_url, "UPDATE unstuck_timers SET due_at = -5")

    assert store.release_due() == 1
    assert store.due().has_ready
    assert store.due().timer_in is None
