"""One question tells an idle worker what there is to do, and when the next timer is due."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from typing import cast

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, boom, claimed, settle, submitted
from tests.support.round_trips import RoundTrips
from tests.support.troubles import raising
from unstuck.store.database import Database
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import Due, Pause
from unstuck.store.sql_store import SqlStore

NOTHING = Due(None, has_news=False, has_ready=False)


@pytest.fixture
def trips(store: SqlStore, store_url: str) -> Iterator[RoundTrips]:
    """After the first call, which learns the time of a file."""
    with closing(open_database(store_url, store_call=30.0)) as database:
        database.read(lambda t: t.one("now"))
        yield RoundTrips(database)


def test_nothing_is_due_where_nothing_is(store: SqlStore) -> None:
    assert store.due() == NOTHING


def test_what_is_ready_and_what_stands_in_the_inbox_is_told(store: SqlStore) -> None:
    submitted(store)
    assert store.due() == Due(None, has_news=False, has_ready=True)
    submitted(store, target="acme")
    assert store.due() == Due(None, has_news=True, has_ready=True)
    last = store.ingest().last
    submitted(store, target="acme")
    assert store.due(last).has_news
    assert not store.due(last + 1).has_news


def test_the_next_timer_is_told_be_it_set_earlier_than_the_one_known(store: SqlStore, clock: StoreClock) -> None:
    submitted(store, delay=60.0)
    assert 50 < (store.due().timer_in or 0) <= 60
    submitted(store, delay=5.0)
    assert 0 < (store.due().timer_in or 0) <= 5
    clock.advance(seconds=6)
    assert store.due().has_timers
    assert store.release_due() == 1
    assert store.due().has_ready
    assert 0 < (store.due().timer_in or 0) <= 60


def test_retries_stays_and_pauses_are_timers_too(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    failed = claimed(store, worker, retries=3, backoff_base=20.0)
    settle(store, worker, failed.ref, boom())
    assert 0 < (store.due().timer_in or 0) <= 60
    submitted(store, expires_after=5.0)
    assert 0 < (store.due().timer_in or 0) <= 5
    clock.advance(seconds=100)
    while store.release_due():
        pass
    submitted(store, target="acme")
    store.ingest()
    store.pause(Pause("target", "acme", TENANT, "me", until_at=clock.now() + timedelta(seconds=30)))
    assert 0 < (store.due().timer_in or 0) <= 30
    clock.advance(seconds=31)
    assert store.due().has_timers
    assert store.release_due() == 1
    assert store.due().timer_in is None


def test_a_timer_that_was_set_aside_is_tried_again(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """And does not hide when the next one is due."""
    submitted(store, delay=1.0)
    clock.advance(seconds=2)
    with raising(store_url, "unstuck_ready", "TRUE", "INSERT"):
        assert store.release_due() == 0
        assert [aside.duty for aside in store.quarantined()] == ["start"]
    assert store.due().has_timers
    clock.advance(seconds=5)
    assert store.release_due() == 1
    assert store.due().timer_in is None


def test_to_ask_is_one_statement_and_to_release_nothing_is_no_more(trips: RoundTrips) -> None:
    far = SqlStore(cast(Database, trips))
    far.submit([a_job(delay=60.0) for _ in range(10)])
    trips.statements.clear()
    assert far.release_due() == 0
    assert trips.statements == ["due"]
    far.due()
    assert trips.statements == ["due", "due"]
