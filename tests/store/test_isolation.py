"""What cannot be written stops nothing but itself: it is set aside by name, and comes home with one sweep."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.store.test_children import gathering, run, spawned
from tests.store.test_pending import claim, end, state, work_off
from tests.store.test_targets import on_target, take
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    boom,
    chance,
    claimed,
    record,
    settle,
    submitted,
)
from tests.support.eventually import eventually
from tests.support.troubles import SAYS, raising
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Parked, Stuck
from unstuck.model.waits import Wait, WaitKind
from unstuck.store.port import Pause
from unstuck.store.sql_store import SqlStore

PAID = Wait(WaitKind.EVENT, "event:paid#1", "paid", timeout=60.0)


def set_aside(store: SqlStore) -> list[tuple[str, str | None, str | None]]:
    found = store.quarantined()
    assert all(SAYS in one.error for one in found)
    return [(one.duty, one.job, one.target) for one in found]


def sweep(store: SqlStore) -> None:
    store.ingest()
    store.ingest_again()
    assert store.quarantined() == []


# --- targets ------------------------------------------------------------------------------------------------------


def test_one_target_that_cannot_be_promoted_stops_no_other(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    store.submit([a_job(target=f"t{n}") for n in range(50)])
    bad = store.target(TENANT, "t17")
    assert bad is not None
    with raising(store_url, "unstuck_targets", f"NEW.id = {bad.number}", "UPDATE"):
        found = store.ingest()

        assert (found.entries, found.woken) == (50, 49)
        assert set_aside(store) == [("target", None, "t17")]
        store.submit([a_job(target="t17"), a_job(target="late")])
        assert (store.ingest().woken, store.ingest().entries) == (1, 0)
        assert store.ingest_again() == 0
        assert store.quarantined()[0].tries > 1
    sweep(store)
    assert len(claim(store, worker)) == 51


def test_one_pause_that_cannot_end_stops_no_other(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    store.submit([a_job(target=f"t{n}") for n in range(5)])
    for n in range(5):
        store.pause(Pause("target", f"t{n}", TENANT, "me", until_at=clock.now() + timedelta(seconds=60)))
    work_off(store)
    clock.advance(61)
    bad = store.target(TENANT, "t2")
    assert bad is not None
    with raising(store_url, "unstuck_targets", f"NEW.id = {bad.number}", "UPDATE"):
        assert store.release_due() == 4
        assert set_aside(store) == [("target", None, "t2")]
    sweep(store)
    assert [pause.name for pause in store.pauses()] == []


def test_one_hold_that_cannot_be_lifted_stops_no_other(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=10.0)
    for n in range(5):
        on_target(store, 2, target=f"t{n}", on_failure="continue")
    stuck = take(store, worker)
    for one in stuck:
        settle(store, worker, one.ref, Stuck(ErrorInfo("ExecutionStuck", "did not respond")))
    clock.advance(60)
    bad = store.target(TENANT, "t3")
    assert bad is not None
    with raising(store_url, "unstuck_targets", f"NEW.id = {bad.number}", "UPDATE"):
        assert store.lift_body_marks(8.0) == 4
        assert [one[0] for one in set_aside(store)] == ["body_mark"]
        assert store.lift_body_marks(8.0) == 0
    assert store.lift_body_marks(8.0) == 1
    assert store.quarantined() == []


# --- dependants ---------------------------------------------------------------------------------------------------


def test_one_dependant_that_cannot_be_written_stops_no_other_of_the_same_job(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first = submitted(store)
    others = [submitted(store, after=(first.id,)) for _ in range(30)]
    work_off(store)
    end(store, worker)
    bad = record(store, others[11].id)
    with raising(store_url, "unstuck_events", f"NEW.job = {bad.number}"):
        store.ingest()

        assert [state(store, job) for job in others].count(JobState.QUEUED) == 29
        assert (state(store, bad.id), set_aside(store)) == (JobState.PENDING, [("dependants", bad.id, None)])
        assert store.ingest().entries == 0
    sweep(store)
    assert state(store, bad.id) is JobState.QUEUED


def test_news_for_one_that_is_set_aside_are_not_lost(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first, second = submitted(store), submitted(store, workflow="other")
    both = submitted(store, after=(first.id, second.id))
    work_off(store)
    store.cancel(TENANT, first.id, "me")
    with raising(store_url, "unstuck_events", f"NEW.job = {record(store, both.id).number}"):
        work_off(store)
        assert set_aside(store) == [("dependants", both.id, None)]
        end(store, worker)
        work_off(store)
        plain = submitted(store, after=(second.id,))
        work_off(store)
        assert state(store, plain) is JobState.QUEUED
    sweep(store)
    assert state(store, both) is JobState.FAILED


def test_who_fails_because_of_a_failure_is_not_blamed_for_who_fails_because_of_him(
    store: SqlStore, store_url: str
) -> None:
    worker = a_worker(store)
    first = submitted(store)
    second = submitted(store, after=(first.id,))
    third = submitted(store, after=(second.id,))
    work_off(store)
    for attempt in claim(store, worker):
        settle(store, worker, attempt.ref, boom())
    store.cancel(TENANT, first.id, "me")
    with raising(store_url, "unstuck_events", f"NEW.job = {record(store, third.id).number}"):
        work_off(store)
        assert state(store, second) is JobState.FAILED
        assert set_aside(store) == [("dependants", third.id, None)]
    sweep(store)
    assert state(store, third) is JobState.FAILED


# --- waits --------------------------------------------------------------------------------------------------------


def test_one_job_that_cannot_be_woken_stops_no_other(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    jobs = [claimed(store, worker) for _ in range(20)]
    for attempt in jobs:
        settle(store, worker, attempt.ref, Parked(PAID))
        store.signal(TENANT, "paid", "1", "ada", job=attempt.id)
    plain = submitted(store, target="acme")
    bad = jobs[7]
    with raising(store_url, "unstuck_events", f"NEW.job = {bad.ref.job}"):
        store.ingest()

        assert [state(store, one.id) for one in jobs].count(JobState.QUEUED) == 19
        assert set_aside(store) == [("wait", bad.id, None)]
        assert plain.id in [one.id for one in claim(store, worker)]
    sweep(store)
    assert state(store, bad.id) is JobState.QUEUED


def test_one_wait_that_cannot_end_stops_no_other(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    worker = a_worker(store, lease=1e6)
    jobs = [claimed(store, worker) for _ in range(20)]
    for attempt in jobs:
        settle(store, worker, attempt.ref, Parked(PAID))
    clock.advance(61)
    bad = jobs[3]
    with raising(store_url, "unstuck_events", f"NEW.job = {bad.ref.job}"):
        assert store.expire_waits() == 19

        assert set_aside(store) == [("wait", bad.id, None)]
        assert (store.next_wait(), store.expire_waits()) == (None, 0)
    sweep(store)
    assert state(store, bad.id) is JobState.FAILED


def test_a_parent_that_cannot_be_woken_stops_no_other_parent(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    parents = [claimed(store, worker) for _ in range(6)]
    kids = [spawned(store, parent, workflow=f"child-{n}") for n, parent in enumerate(parents)]
    for parent, child in zip(parents, kids, strict=True):
        settle(store, worker, parent.ref, gathering(child))
    work_off(store)
    for child in kids:
        run(store, worker, child)
    with raising(store_url, "unstuck_events", f"NEW.job = {parents[2].ref.job}"):
        work_off(store)
        assert [state(store, one.id) for one in parents].count(JobState.QUEUED) == 5
        assert [job for _, job, _ in set_aside(store)] == [parents[2].id]
    sweep(store)
    assert state(store, parents[2].id) is JobState.QUEUED


def test_one_child_that_cannot_be_cancelled_stops_no_other(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    kids = [spawned(store, parent, ordinal=n) for n in range(1, 6)]
    bad = record(store, kids[1].id)
    with raising(store_url, "unstuck_events", f"NEW.job = {bad.number}"):
        settle(store, worker, parent.ref, boom())
        store.cancel(TENANT, parent.id, "me")
        work_off(store)
        store.tend_children()
        assert [state(store, one.id) for one in kids].count(JobState.CANCELLED) == 4
        assert set_aside(store) == [("children", bad.id, None)]
        assert store.tend_children() == 0
    sweep(store)
    assert state(store, bad.id) is JobState.CANCELLED


# --- many ---------------------------------------------------------------------------------------------------------


def test_many_that_cannot_be_written_come_home_at_once(store: SqlStore, store_url: str) -> None:
    store.submit([a_job(target=f"t{chance.nonce()}") for _ in range(150)])
    with raising(store_url, "unstuck_ready", "NEW.job > 0"):
        eventually(lambda: (store.ingest(), len(store.quarantined(limit=1000)) == 150)[1], timeout=60)
        plain = submitted(store, on_hold=True)
    sweep(store)
    assert len(claim(store, a_worker(store))) == 150
    assert state(store, plain) is JobState.PENDING


@pytest.mark.parametrize("batch", [1, 7])
def test_small_batches_find_the_one_as_well(store: SqlStore, store_url: str, batch: int) -> None:
    store.submit([a_job(target=f"t{n}") for n in range(12)])
    bad = store.target(TENANT, "t5")
    assert bad is not None
    with raising(store_url, "unstuck_targets", f"NEW.id = {bad.number}", "UPDATE"):
        while store.ingest(0, batch).entries:
            pass
        assert set_aside(store) == [("target", None, "t5")]
    sweep(store)
