"""The janitor of a worker carries bulks on, within its budget, and forgets those that ended long ago."""

from __future__ import annotations

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job
from unstuck.assembly.janitor import build_janitor
from unstuck.clock import MachineClock
from unstuck.intake.bulks import BulkVerbs
from unstuck.janitor.budget import Budget
from unstuck.janitor.bulks import BulksDuty
from unstuck.model.bulk import BulkState
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times
from unstuck.store.life.bulks import AT_ONCE
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

QUEUED = JobFilter(states=(JobState.QUEUED,))


def test_a_turn_ends_with_its_budget_and_the_next_one_goes_on(store: SqlStore) -> None:
    store.submit([a_job() for _ in range(3 * AT_ONCE)])
    bulks, duty = BulkVerbs(store), BulksDuty(store, Times())
    bulk = bulks.start("cancel", QUEUED)

    short = Budget(MachineClock(), 0.0)
    assert (duty.tick(0.0, short), short.was_over) == (AT_ONCE, True)

    assert duty.tick(0.0, Budget(MachineClock(), 60.0)) == 2 * AT_ONCE
    assert bulks.get(bulk.number).state is BulkState.DONE
    assert duty.tick(0.0, Budget(MachineClock(), 60.0)) == 0


def test_one_turn_of_all_duties_carries_a_bulk_on_and_forgets_an_old_one(store: SqlStore, clock: StoreClock) -> None:
    bulks = BulkVerbs(store)
    old = bulks.start("cancel", QUEUED)
    bulks.cancel(old.number)
    clock.advance(seconds=Times().retention + 1)
    store.submit([a_job()])
    new = bulks.start("cancel", QUEUED)

    build_janitor(store, Times()).tick()

    assert bulks.get(new.number).done == 1
    assert store.bulk(TENANT, old.number) is None
