"""A row of a SQLite file that takes too long to write: who writes it has the one lock, so it is stopped soon, found
among the others and set aside as one that raises."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_job, a_worker, claim_all, record, settle, submitted
from tests.support.troubles import allow, execute
from unstuck.model.errors import StoreBusy
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Returned
from unstuck.store.port import EVERY, Limit, Report, Verdict
from unstuck.store.sql_store import SqlStore

pytestmark = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)

COUNT = (
    "WITH RECURSIVE step (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM step WHERE n < 1000000000) SELECT n FROM step"
)


@contextmanager
def slow(url: str, table: str, when: str, on: str = "INSERT") -> Iterator[None]:
    """Such a row takes minutes."""
    slowly = f"SELECT COUNT(*) FROM ({COUNT});"
    execute(url, f"CREATE TRIGGER refuse_{table} BEFORE {on} ON {table} WHEN {when} BEGIN {slowly} END")
    try:
        yield
    finally:
        allow(url, table)


def test_a_slow_settle_keeps_no_other_from_ending(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    store.submit([a_job() for _ in range(8)])
    bad, *others = claim_all(store, worker)
    reports = [Report(job.ref, Returned("1")) for job in (bad, *others)]
    with slow(store_url, "unstuck_done", f"NEW.job = {bad.ref.job}"):
        answers = {answer.ref: answer for answer in store.settle(worker.number, reports)}
        began = time.monotonic()
        store.settle(worker.number, reports[:1])
        assert time.monotonic() - began < 2.5, "half a second: others want to write too"
    assert {answers[job.ref].verdict for job in others} == {Verdict.DONE}
    assert answers[bad.ref].verdict is Verdict.BUSY
    assert "not written within 0.5 s" in answers[bad.ref].problem
    assert [answer.verdict for answer in store.settle(worker.number, reports[:1])] == [Verdict.DONE]


def test_a_slow_timer_keeps_no_other_from_its_start(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    bad, *others = (submitted(store, delay=5.0) for _ in range(8))
    clock.advance(seconds=6)
    with slow(store_url, "unstuck_ready", f"NEW.job = {record(store, bad.id).number}"):
        store.release_due()
        assert [entry.job for entry in store.quarantined()] == [bad.id]
    assert {job.id for job in claim_all(store, a_worker(store))} == {job.id for job in others}
    clock.advance(seconds=10)
    store.release_due()
    assert record(store, bad.id).state is JobState.QUEUED
    assert store.quarantined() == []


@pytest.mark.parametrize("is_limited", [False, True], ids=["unlimited", "limited"])
def test_a_slow_claim_is_stopped_soon_and_set_aside_even_if_it_is_alone(
    store: SqlStore, store_url: str, is_limited: bool
) -> None:
    """Nobody else is there to show that the store is well."""
    if is_limited:
        store.set_limit(Limit("workflow", "greet", EVERY, "dana", concurrency=5))
    worker, bad = a_worker(store), submitted(store)
    with slow(store_url, "unstuck_running", f"NEW.job = {record(store, bad.id).number}"):
        for _ in range(3):
            began = time.monotonic()
            with suppress(StoreBusy):
                claim_all(store, worker)
            assert time.monotonic() - began < 2.2, "others want to write too"
            if store.quarantined():
                break
        assert [(entry.duty, entry.job) for entry in store.quarantined()] == [("claim", bad.id)]
        other = submitted(store)
        assert [job.id for job in claim_all(store, worker)] == [other.id]


def test_a_slow_target_is_stopped_soon_and_set_aside(store: SqlStore, store_url: str) -> None:
    submitted(store, target="slow")
    store.ingest()
    worker = a_worker(store)
    (first,) = claim_all(store, worker)
    settle(store, worker, first.ref)
    store.ingest()
    (number,) = (target.number for target in store.targets("default"))
    with slow(store_url, "unstuck_targets", f"NEW.id = {number}", on="UPDATE"):
        bad = submitted(store, target="slow")
        for _ in range(8):
            began = time.monotonic()
            with suppress(StoreBusy):
                store.ingest()
            assert time.monotonic() - began < 2.2, "others want to write too"
            if store.quarantined():
                break
        assert [entry.duty for entry in store.quarantined()] == ["target"]
        other = submitted(store, target="other")
        store.ingest()
        assert [job.id for job in claim_all(store, worker)] == [other.id]
    store.ingest_again()
    assert [job.id for job in claim_all(store, worker)] == [bad.id]
    assert store.quarantined() == []


def test_a_worker_whose_registration_is_slow_leaves_the_lock_to_others_soon(store: SqlStore, store_url: str) -> None:
    """It tries again and again, for as long as it lives."""
    with slow(store_url, "unstuck_workers", "NEW.name = 'slow'"):
        began = time.monotonic()
        with pytest.raises(StoreBusy, match="not written within 1 s"):
            a_worker(store, name="slow")
        assert time.monotonic() - began < 2.2
    a_worker(store, name="slow")
