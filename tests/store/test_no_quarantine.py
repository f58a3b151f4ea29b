"""What cannot even be set aside, since the quarantine refuses it or somebody holds its row there, stops nobody."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, claim_all, claimed, record, settle
from tests.support.troubles import allow, holding, raising, refuse
from unstuck.model.errors import StoreBusy
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Returned
from unstuck.store.drivers.connect import open_database, sqlite_path
from unstuck.store.port import Report, Verdict
from unstuck.store.sql_store import SqlStore

only_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


def test_a_lost_job_keeps_no_other_lost(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """Neither those behind it of its own worker, in its transaction and in the next, nor those of another worker."""
    store.submit([a_job() for _ in range(150)])
    attempts = [*claim_all(store, a_worker(store))]
    another = claimed(store, a_worker(store, name="bob"))
    bad = attempts[17]
    refuse(store_url, "unstuck_events", f"NEW.job = {bad.ref.job}")
    clock.advance(seconds=60)

    with raising(store_url, "unstuck_quarantine", f"NEW.item = {bad.ref.job}"):
        recovered = {found.id for found in store.recover_lost(0)}

    assert recovered == {attempt.id for attempt in (*attempts, another)} - {bad.id}
    allow(store_url, "unstuck_events")
    assert [found.id for found in store.recover_lost(0)] == [bad.id]


def test_a_timer_keeps_no_stay_from_its_end(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    bad, late, stay = a_job(delay=10.0), a_job(delay=10.0), a_job(expires_after=10.0, workflow="stays")
    store.submit([bad, late, stay])
    number = record(store, bad.id).number
    refuse(store_url, "unstuck_ready", f"NEW.job = {number}")
    clock.advance(seconds=20)

    with raising(store_url, "unstuck_quarantine", f"NEW.item = {number}"):
        assert store.release_due() == 2
        assert store.release_due() == 0

    assert record(store, stay.id).state is JobState.FAILED
    assert [job.id for job in claim_all(store, a_worker(store))] == [late.id]
    allow(store_url, "unstuck_ready")
    assert store.release_due() == 1


def test_a_target_keeps_no_other_from_its_turn(store: SqlStore, store_url: str) -> None:
    """It stays in the inbox, and those that come later pass it."""
    bad, good = a_job(target="bad"), a_job(target="good")
    store.submit([bad, good])
    number = next(found.number for found in store.targets(TENANT) if found.name == "bad")
    worker = a_worker(store)
    with (
        raising(store_url, "unstuck_targets", f"NEW.id = {number}", on="UPDATE"),
        raising(store_url, "unstuck_quarantine", f"NEW.item = {number}"),
    ):
        store.ingest()
        assert [job.id for job in claim_all(store, worker)] == [good.id]
        later = a_job(target="later")
        store.submit([later])
        store.ingest()
        assert [job.id for job in claim_all(store, worker)] == [later.id]

    store.ingest()
    assert [job.id for job in claim_all(store, worker)] == [bad.id]


def test_an_entry_that_cannot_leave_the_inbox_keeps_no_other_there(store: SqlStore, store_url: str) -> None:
    bad, good = a_job(target="bad"), a_job(target="good")
    store.submit([bad, good])
    number = next(found.number for found in store.targets(TENANT) if found.name == "bad")
    worker = a_worker(store)
    with raising(store_url, "unstuck_inbox", f"OLD.target = {number}", on="DELETE"):
        store.ingest()
        store.ingest()
        assert [job.id for job in claim_all(store, worker)] == [good.id]

    store.ingest()
    store.ingest_again()
    assert [job.id for job in claim_all(store, worker)] == [bad.id]


def test_news_that_cannot_be_written_keep_nobody_from_being_set_aside(store: SqlStore, store_url: str) -> None:
    bad = a_job(delay=0.0, target="bad")
    store.submit([bad])
    (target,) = store.targets(TENANT)
    with (
        raising(store_url, "unstuck_targets", f"NEW.id = {target.number}", on="UPDATE"),
        raising(store_url, "unstuck_notifications", "NEW.title LIKE 'Set aside%'"),
    ):
        store.ingest()

        assert [found.target for found in store.quarantined()] == ["bad"]
        assert store.notifications() == []

    store.ingest_again()
    assert store.quarantined() == []


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("calls", [1.5, 2.5])
def test_a_lock_on_the_whole_file_is_the_fault_of_no_job(store_url: str, calls: float) -> None:
    """It is over when what failed is about to be set aside: as many store calls long as tries come before that."""
    with closing(SqlStore(open_database(store_url, store_call=0.5))) as store:
        worker = a_worker(store)
        attempt = claimed(store, worker)
        store.submit([a_job(delay=0.001)])
        with locked_for(store_url, 0.5 * calls), suppress(StoreBusy):
            (answer,) = store.settle(worker.number, [Report(attempt.ref, Returned("1"))])
            assert answer.problem == ""
        with locked_for(store_url, 0.5 * calls), suppress(StoreBusy):
            store.release_due()

        assert store.quarantined() == []
        assert store.notifications() == []
        assert settle(store, worker, attempt.ref).verdict is Verdict.DONE


@contextmanager
def locked_for(url: str, seconds: float) -> Iterator[None]:
    """Another process, a backup say, has the write lock for so long."""
    with closing(
        sqlite3.connect(sqlite_path(url), isolation_level=None, check_same_thread=False, timeout=20)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        end = threading.Timer(seconds, lambda: other.execute("ROLLBACK"))
        end.start()
        yield
        end.join()


@only_postgres
def test_somebody_who_holds_its_row_there_delays_only_that_one(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    bad, stay = a_job(delay=10.0), a_job(expires_after=30.0, workflow="stays")
    store.submit([bad, stay])
    number = record(store, bad.id).number
    refuse(store_url, "unstuck_ready", f"NEW.job = {number}")
    clock.advance(seconds=20)
    store.release_due()
    assert [found.job for found in store.quarantined()] == [bad.id]

    with holding(store_url, "unstuck_quarantine", f"item = {number}"):
        clock.advance(seconds=20)
        assert store.release_due() == 1  # the stay; and it does not fail
        allow(store_url, "unstuck_ready")
        clock.advance(seconds=5)
        assert store.release_due() == 1  # moved, although nobody can strike it off the list yet

    assert [job.id for job in claim_all(store, a_worker(store))] == [bad.id]
    store.recover_lost(0)
    assert store.quarantined() == []
