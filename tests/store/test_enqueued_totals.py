"""Jobs that were enqueued are counted once each, without a word from whoever submits them; on both databases."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_job, submitted
from tests.support.tables import ask
from tests.support.troubles import SAYS, raising
from unstuck.clock import MachineClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.series import EnqueuedDuty
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

LAG = 60.0
LAST = "SELECT MAX(id) FROM unstuck_jobs"


def totals(store: SqlStore, tenant: str | None = None) -> tuple[int, dict[tuple[str, str], int]]:
    everything, names = store.end_totals(tenant)
    return everything.enqueued, {name: total.enqueued for name, total in names.items()}


def test_each_is_counted_once_by_its_name_and_tenant(store: SqlStore, clock: StoreClock) -> None:
    store.submit([a_job() for _ in range(3)])
    store.submit([a_job(tenant="acme", queue="io", workflow="crawl", on_hold=True), a_job(tenant="acme")])
    clock.advance(seconds=LAG + 1)
    assert (store.count_enqueued(LAG, 2), store.count_enqueued(LAG, 2), store.count_enqueued(LAG, 2)) == (2, 2, 1)
    assert store.count_enqueued(LAG) == 0
    submitted(store)
    clock.advance(seconds=LAG + 1)
    assert store.count_enqueued(LAG) == 1
    assert totals(store) == (6, {("default", "greet"): 5, ("io", "crawl"): 1})
    assert totals(store, "acme") == (2, {("default", "greet"): 1, ("io", "crawl"): 1})
    assert store.count_ends(LAG) == 0
    assert totals(store)[0] == 6, "none of them has ended"


def test_what_may_have_a_neighbour_that_nobody_sees_yet_is_left_for_later(store: SqlStore, clock: StoreClock) -> None:
    submitted(store, workflow="old")
    clock.advance(seconds=LAG)
    submitted(store, workflow="young")
    clock.advance(seconds=1)
    assert store.count_enqueued(LAG) == 1
    assert totals(store) == (1, {("default", "old"): 1})
    clock.advance(seconds=LAG)
    assert store.count_enqueued(LAG) == 1


def test_what_fails_between_the_counts_and_the_place_leaves_neither(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    submitted(store)
    clock.advance(seconds=LAG + 1)
    with (
        raising(store_url, "unstuck_counted", "NEW.enqueued_to > 0", on="UPDATE"),
        pytest.raises(Exception, match=SAYS),
    ):
        store.count_enqueued(LAG)
    assert totals(store) == (0, {})
    assert store.count_enqueued(LAG) == 1
    assert totals(store)[0] == 1


def test_two_who_count_at_once_count_everything_once(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    store.submit([a_job() for _ in range(200)])
    clock.advance(seconds=LAG + 1)
    others = [SqlStore(open_database(store_url)) for _ in range(2)]
    found: list[int] = []

    def count(one: SqlStore) -> None:
        while not ask(store_url, f"SELECT 1 FROM unstuck_counted WHERE enqueued_to = ({LAST})"):
            found.append(one.count_enqueued(0.0, 7))

    threads = [threading.Thread(target=count, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for one in others:
        one.close()
    assert (sum(found), totals(store)[0]) == (200, 200)


def test_the_janitor_counts_them_in_its_turn(store: SqlStore, clock: StoreClock) -> None:
    store.submit([a_job() for _ in range(30)])
    clock.advance(seconds=LAG + 1)
    duty: Any = EnqueuedDuty(store, Times())
    duty._batch.most = duty._batch.size = 10
    assert duty.tick(0.0, Budget(MachineClock(), 60.0)) == 30
    assert totals(store)[0] == 30
