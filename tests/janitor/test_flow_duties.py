"""The janitor of a worker tends waits, children and letters as well."""

from __future__ import annotations

from tests.conftest import StoreClock
from tests.store.test_pending import state
from tests.store.test_waits import PAID, gathering, parked, rows_of, send
from tests.support.builders import TENANT, a_worker, claim_all, claimed, submitted
from tests.support.troubles import raising
from unstuck.assembly.janitor import build_janitor
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times
from unstuck.store.sql_store import SqlStore


def test_what_an_ingest_had_set_aside_comes_home_with_the_next_turn(store: SqlStore, store_url: str) -> None:
    job = submitted(store, target="acme")
    with raising(store_url, "unstuck_ready", "NEW.job > 0"):
        store.ingest()
        assert [one.target for one in store.quarantined()] == ["acme"]

    build_janitor(store, Times()).tick()

    assert store.quarantined() == []
    assert [one.id for one in claim_all(store, a_worker(store))] == [job.id]


def test_one_turn_of_all_duties_ends_waits_cancels_children_and_drops_letters(
    store: SqlStore, clock: StoreClock
) -> None:
    worker = a_worker(store, lease=1e6)
    holder = claimed(store, worker)
    send(store, holder.id)
    clock.advance(hours=25)
    late = parked(store, worker, PAID)
    parent, born = gathering(store, worker)
    store.cancel(TENANT, parent.id, by="ada")
    clock.advance(seconds=301)

    build_janitor(store, Times()).tick()

    assert state(store, late.id) is JobState.FAILED
    assert {state(store, job) for job in born} == {JobState.CANCELLED}
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_unclaimed_events") == [(0,)]
