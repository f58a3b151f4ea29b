"""News that the database refuses: their fact happens all the same, and that they are lacking is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.store.test_news import Reader, blocked
from tests.support.builders import TENANT, a_worker, claimed, record, settle
from tests.support.tables import counts_of_tables
from tests.support.troubles import raising
from unstuck import telemetry
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Returned
from unstuck.store.port import Pause, Report, Verdict
from unstuck.store.sql_store import SqlStore

ALL = "TRUE"


@pytest.fixture
def untold() -> Iterator[list[Any]]:
    kinds: list[Any] = []
    end = telemetry.subscribe(lambda name, facts: kinds.append(facts["kind"]) if name == "store.not_told" else None)
    yield kinds
    end()


def test_a_worker_joins_and_leaves(store: SqlStore, store_url: str, untold: list[Any]) -> None:
    reader = Reader(store)
    with raising(store_url, "unstuck_news", ALL):
        worker = a_worker(store)
        attempt = claimed(store, worker)
        settle(store, worker, attempt.ref)
        store.unregister_worker(worker.number)
    assert record(store, attempt.id).state is JobState.COMPLETED
    assert [event.kind for event in reader.read()] == ["submitted", "claimed", "completed"]
    assert untold == ["worker.joined", "worker.left"]


def test_health_tells_it_once_until_somebody_takes_note(store: SqlStore, store_url: str) -> None:
    with raising(store_url, "unstuck_news", ALL):
        for name in ("one", "two"):
            a_worker(store, name)
    [noted] = store.notifications()
    assert noted.title == "The feed lacks news"
    assert noted.message.startswith("worker.joined could not be stored: not for you")


def test_neither_news_nor_notification_can_be_stored(store: SqlStore, store_url: str, untold: list[Any]) -> None:
    with raising(store_url, "unstuck_news", ALL), raising(store_url, "unstuck_notifications", ALL):
        a_worker(store, "one")
    assert [worker.name for worker in store.workers()] == ["one"]
    assert (untold, store.notifications()) == (["worker.joined"], [])


def test_a_queue_is_paused_and_opened(store: SqlStore, store_url: str, untold: list[Any]) -> None:
    with raising(store_url, "unstuck_news", ALL):
        store.pause(Pause("queue", "io", TENANT, "ada", store.now(), None))
        assert [pause.name for pause in store.pauses(TENANT)] == ["io"]
        assert store.unpause("queue", "io", TENANT, "ada")
    assert store.pauses(TENANT) == []
    assert untold == ["pause.begun", "pause.ended"]


def test_a_job_that_blocks_its_target_ends(store: SqlStore, store_url: str, untold: list[Any]) -> None:
    with raising(store_url, "unstuck_news", ALL):
        attempt = blocked(store, a_worker(store))
    assert [event.kind for event in store.history(TENANT, attempt.id)] == ["submitted", "claimed", "failed"]
    assert store.quarantined(None) == []
    assert untold == ["worker.joined", "target.blocked"]


def test_one_that_is_refused_costs_the_others_of_its_transaction_nothing(
    store: SqlStore, store_url: str, clock: StoreClock, untold: list[Any]
) -> None:
    for name in ("a", "bad", "c"):
        a_worker(store, name, lease=10)
    reader = Reader(store)
    clock.advance(seconds=1000)
    with raising(store_url, "unstuck_news", "NEW.worker = 'bad'"):
        store.recover_lost(0)
    assert sorted(e.worker or "" for e in reader.read() if e.kind == "worker.lost") == ["a", "c"]
    assert untold == ["worker.lost"]
    assert {worker.name: worker.state for worker in store.workers()} == dict.fromkeys(("a", "bad", "c"), "lost")


def test_the_event_of_news_is_refused(store: SqlStore, store_url: str, untold: list[Any]) -> None:
    """On SQLite it is a statement of its own: no row without its event stays behind."""
    with raising(store_url, "unstuck_events", "NEW.job = 0"):
        a_worker(store)
    assert untold == ["worker.joined"]
    assert counts_of_tables(store_url)["unstuck_news"] == 0


def test_a_move_and_its_event_still_commit_together(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    attempt = claimed(store, worker)
    with raising(store_url, "unstuck_events", "NEW.kind = 'completed'"):
        (answer,) = store.settle(worker.number, [Report(attempt.ref, Returned("1"))])
    assert answer.verdict is Verdict.BUSY
    assert record(store, attempt.id).state is JobState.RUNNING
