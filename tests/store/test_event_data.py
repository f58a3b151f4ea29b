"""Every event holds what `views/events.py`, and with it the reference, says of its kind."""

from __future__ import annotations

from tests.conftest import StoreClock
from tests.store.test_lock_order import Story
from tests.support.builders import TENANT, a_job, a_worker, claimed, settle, submitted
from tests.support.event_data import check_events, histories
from unstuck.model.lifecycle import EventKind
from unstuck.model.settlement import Stopped
from unstuck.store.sql_store import SqlStore

#: Dead letters are not built yet.
UNWRITTEN = {EventKind.BURIED, EventKind.REDRIVEN}


def test_the_data_of_every_kind_is_what_the_reference_says(store: SqlStore, clock: StoreClock) -> None:
    seen = verbs_of_people(store)
    story = Story(store, clock)
    story.wait_for_each()
    for _ in range(20):
        story.run(50)
        seen |= check_events(histories(store, most=1000))
        if seen >= set(EventKind) - UNWRITTEN:
            break

    assert set(EventKind) - seen == UNWRITTEN


def verbs_of_people(store: SqlStore) -> set[str]:
    """What the dice of the story seldom or never do."""
    worker = a_worker(store, name="people")
    first = submitted(store, target="one")
    held = submitted(store, on_hold=True, after=(first.id,))
    store.release(TENANT, held.id, "ada")  # unheld: it still waits for the first
    store.reprioritise(TENANT, first.id, 5, "ada")
    later = submitted(store, delay=3600.0)
    store.run_now(TENANT, later.id, "ada")
    stopped = claimed(store, worker)
    store.interrupt(TENANT, stopped.id, "ada", "for a moment")
    settle(store, worker, stopped.ref, Stopped())
    store.resume(TENANT, stopped.id, "ada", from_start=True)
    failed = claimed(store, worker)
    store.interrupt(TENANT, failed.id, "ada")
    settle(store, worker, failed.ref, Stopped())
    store.resolve(TENANT, failed.id, "ada", '"by hand"')
    settle(store, worker, claimed(store, worker).ref)
    store.submit([a_job()])
    return check_events(histories(store))
