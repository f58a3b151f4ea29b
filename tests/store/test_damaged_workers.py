"""A worker's row that was damaged keeps nobody from enqueueing, and nobody from being told of the others."""

from __future__ import annotations

import pytest

from tests.conftest import StoreClock
from tests.support.budgets import endless
from tests.support.builders import TENANT, a_worker, submitted
from tests.support.schedules import come, fired, made, turn
from tests.support.troubles import execute
from unstuck.janitor.orphans import OrphansDuty
from unstuck.model.times import Times
from unstuck.observe.why import why
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize("column", ["queues", "info", "serves"])
@pytest.mark.parametrize("text", ["", "{", "7", "[1]", '{"workflows": {}}'])
def test_a_damaged_worker_is_shown_and_keeps_no_other_from_anything(
    store: SqlStore, store_url: str, clock: StoreClock, column: str, text: str
) -> None:
    made(store)
    a_worker(store)
    execute(
        store_url, f"UPDATE unstuck_workers SET {column} = '{text}' WHERE id = (SELECT MAX(id) FROM unstuck_workers)"
    )

    job = submitted(store)
    come(store, clock)
    assert turn(store) == 1
    assert [firing.outcome for firing in fired(store)] == ["fired"]
    assert store.workflows(TENANT)
    assert len(store.workers()) >= 1
    assert why(store, TENANT, job.id, Times()).verdict
    assert store.followers() == []
    OrphansDuty(store, Times()).tick(0.0, endless())
