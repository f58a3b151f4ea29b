"""Failures in a row: since when, how often, and since when they will not pass by themselves."""

from __future__ import annotations

from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreBusy, StoreUnavailable
from unstuck.model.trouble import Trouble


def row_of(*errors: Exception) -> Trouble:
    """One failure a second, from second 1 on."""
    trouble: Trouble | None = None
    for second, error in enumerate(errors, start=1):
        trouble = Trouble.after(trouble, error, float(second))
    assert trouble is not None
    return trouble


def test_it_is_counted_from_its_first_failure_and_tells_its_last() -> None:
    trouble = row_of(ValueError("first"), ValueError("last"))
    assert (trouble.since, trouble.failures, str(trouble.error)) == (1.0, 2, "last")


def test_a_store_that_is_away_or_busy_may_be_back_and_a_mistake_stays() -> None:
    assert row_of(StoreUnavailable("away"), OutcomeUnknown("lost"), StoreBusy("busy")).lasting_since is None
    assert row_of(SchemaMismatch("no such table"), ValueError("x")).lasting_since == 1.0


def test_a_mistake_after_an_outage_counts_from_its_own_beginning() -> None:
    away, mistake = StoreUnavailable("away"), ValueError("x")
    assert row_of(away, away, away, mistake, mistake).lasting_since == 4.0
    assert row_of(mistake, away, mistake).lasting_since == 3.0
