"""One row that cannot be written stops nobody but itself: settles, sweeps, beats and flow, on both databases."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    begin,
    boom,
    claim_all,
    claimed,
    record,
    settle,
    submitted,
)
from tests.support.eventually import eventually
from tests.support.troubles import allow, missing, refuse
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Outcome, Returned
from unstuck.store.port import AttemptOutput, Limit, QuarantineDuty, Report, Verdict
from unstuck.store.sql_store import SqlStore

MANY = 51


def fifty_one(store: SqlStore, worker: Any, **options: Any) -> list[ClaimedJob]:
    store.submit([a_job(**options) for _ in range(MANY)])
    attempts = claim_all(store, worker)
    assert len(attempts) == MANY
    return attempts


def states(store: SqlStore) -> dict[JobState, int]:
    return {state: count for state, count in store.counts(TENANT).items() if count}


def set_aside(store: SqlStore, duty: QuarantineDuty, job: str) -> None:
    """It is in the quarantine alone, with its error, and somebody is told."""
    (found,) = store.quarantined(TENANT)
    assert (found.duty, found.job) == (duty, job)
    assert "not for you" in found.error
    assert [news.title for news in store.notifications()] == [f"Set aside: {duty}"]


# --- claim --------------------------------------------------------------------------------------------------------


def refuse_claim(url: str, table: str, job: str, store: SqlStore) -> None:
    number = record(store, job).number
    if table == "unstuck_ready":
        refuse(url, table, f"OLD.job = {number}", on="DELETE")
    else:
        refuse(url, table, f"NEW.job = {number}")


@pytest.mark.parametrize("limit", [None, 100], ids=["free", "limited"])
@pytest.mark.parametrize("table", ["unstuck_running", "unstuck_events", "unstuck_ready"])
def test_a_job_that_cannot_be_claimed_is_set_aside_and_all_others_are_claimed(
    store: SqlStore, store_url: str, table: str, limit: int | None
) -> None:
    if limit is not None:
        store.set_limit(Limit("workflow", "greet", TENANT, "dana", concurrency=limit))
    jobs = store.submit([a_job() for _ in range(MANY)])
    beside = submitted(store, workflow="other")
    worker, bad = a_worker(store), jobs[17].id
    refuse_claim(store_url, table, bad, store)

    began = time.monotonic()
    got = {job.id for job in claim_all(store, worker)}

    assert time.monotonic() - began < 5
    assert got == {job.id for job in jobs} - {bad} | {beside.id}
    set_aside(store, "claim", bad)
    assert record(store, bad).state is JobState.QUEUED
    assert list(claim_all(store, worker)) == []  # it is left out, and nothing fails
    allow(store_url, table)
    eventually(lambda: [job.id for job in claim_all(store, worker)] == [bad], timeout=10)
    assert store.quarantined(TENANT) == []


def test_a_route_of_which_nothing_can_be_claimed_keeps_no_other_route_waiting(
    store: SqlStore, store_url: str
) -> None:
    store.submit([a_job(workflow="bad") for _ in range(30)])
    others = store.submit([a_job(workflow="good") for _ in range(30)])
    worker = a_worker(store)
    route = store.open_routes()[0].route
    refuse(store_url, "unstuck_running", f"NEW.route = {route}")

    got = {job.id for job in claim_all(store, worker)}

    assert got == {job.id for job in others}
    found = store.quarantined(TENANT)
    assert 0 < len(found) < 30
    allow(store_url, "unstuck_running")

    def all_are_claimed() -> bool:
        claim_all(store, worker)
        return store.counts(TENANT)[JobState.QUEUED] == 0

    eventually(all_are_claimed, timeout=20)
    assert store.quarantined(TENANT) == []


# --- settle -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["unstuck_done", "unstuck_events"])
@pytest.mark.parametrize("outcome", [Returned("42"), boom()], ids=["returned", "raised"])
def test_a_report_that_is_refused_is_told_apart_at_once_and_all_others_settle(
    store: SqlStore, store_url: str, table: str, outcome: Outcome
) -> None:
    worker = a_worker(store)
    attempts = fifty_one(store, worker, retries=0)
    bad = attempts[17]
    refuse(store_url, table, f"NEW.job = {bad.ref.job}")
    reports = [Report(attempt.ref, outcome, duration_ms=1) for attempt in attempts]

    began = time.monotonic()
    answers = {answer.ref: answer for answer in store.settle(worker.number, reports)}

    assert time.monotonic() - began < 5  # a second, on a machine with nothing else to do
    assert [ref for ref, answer in answers.items() if answer.verdict is not Verdict.DONE] == [bad.ref]
    assert (answers[bad.ref].verdict, "not for you" in answers[bad.ref].problem) == (
        Verdict.BUSY,
        True,
    )
    assert record(store, bad.id).state is JobState.RUNNING
    allow(store_url, table)
    assert settle(store, worker, bad.ref, outcome).verdict is Verdict.DONE
    assert record(store, bad.id).result == (outcome.result if isinstance(outcome, Returned) else None)
    assert len(states(store)) == 1


def test_words_that_are_refused_keep_no_others_from_being_written(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    attempts = fifty_one(store, worker)
    bad = attempts[17]
    refuse(store_url, "unstuck_outputs", f"NEW.job = {bad.ref.job}")
    remarks = [AttemptOutput(attempt.ref, output="said\n", at=0) for attempt in attempts]

    verdicts = dict(zip([attempt.ref for attempt in attempts], store.keep_output(remarks), strict=True))

    assert [ref for ref, verdict in verdicts.items() if verdict is not Verdict.DONE] == [bad.ref]
    assert verdicts[bad.ref] is Verdict.BUSY
    allow(store_url, "unstuck_outputs")
    assert set(store.keep_output(remarks)) == {Verdict.DONE}
    assert store.attempts(TENANT, bad.id)[0].output == "said\n"


# --- sweeps -------------------------------------------------------------------------------------------------------


def test_a_lost_job_that_cannot_be_moved_keeps_no_other_lost(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    """Of any worker, the same or another; and one sweep brings it home once it can be moved."""
    attempts = fifty_one(store, a_worker(store))
    another = claimed(store, a_worker(store, name="bob"))
    bad = attempts[17]
    refuse(store_url, "unstuck_events", f"NEW.job = {bad.ref.job}")
    clock.advance(seconds=60)

    recovered = {found.id for found in store.recover_lost(0)}

    assert recovered == {attempt.id for attempt in (*attempts, another)} - {bad.id}
    set_aside(store, "recover", bad.id)
    assert store.recover_lost(0) == []
    assert [found.tries for found in store.quarantined()] == [3]
    allow(store_url, "unstuck_events")
    assert [found.id for found in store.recover_lost(0)] == [bad.id]
    assert store.quarantined() == []
    assert states(store) == {JobState.QUEUED: MANY + 1}


def test_a_worker_that_cannot_be_marked_is_rescued_all_the_same(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    bad, good = a_worker(store), a_worker(store, name="bob")
    attempts = [claimed(store, worker) for worker in (bad, good)]
    refuse(store_url, "unstuck_workers", f"NEW.id = {bad.number} AND NEW.state = 'lost'", on="UPDATE")
    clock.advance(seconds=60)

    assert len(store.recover_lost(0)) == len(attempts)
    assert {worker.name: worker.state for worker in store.workers()} == {"ada": "active", "bob": "lost"}
    allow(store_url, "unstuck_workers")
    assert store.recover_lost(0) == []
    assert {worker.state for worker in store.workers()} == {"lost"}


def test_a_worker_that_leaves_with_a_job_that_cannot_be_moved_leaves(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    attempts = fifty_one(store, worker)
    bad = attempts[17]
    refuse(store_url, "unstuck_events", f"NEW.job = {bad.ref.job}")

    store.unregister_worker(worker.number)

    assert [found.state for found in store.workers()] == ["gone"]
    assert states(store) == {JobState.QUEUED: MANY - 1, JobState.RUNNING: 1}
    allow(store_url, "unstuck_events")
    assert [found.id for found in store.recover_lost(0)] == [bad.id]
    assert record(store, bad.id).losses == 0


def test_a_stuck_job_that_cannot_be_convicted_keeps_no_other_running(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    worker = a_worker(store, lease=1e6)
    attempts = fifty_one(store, worker, timeout=10.0, grace=1.0)
    begin(store, worker, *attempts)
    bad = attempts[17]
    refuse(store_url, "unstuck_done", f"NEW.job = {bad.ref.job}")
    clock.advance(seconds=60)

    assert len(store.convict_overdue(5, 30)) == MANY - 1

    found = [one for one in store.quarantined() if one.duty == "overdue"]
    assert [one.job for one in found] == [bad.id]
    allow(store_url, "unstuck_done")
    assert [found.id for found in store.convict_overdue(5, 30)] == [bad.id]
    assert store.quarantined() == []


def test_timers_and_stays_that_cannot_be_moved_keep_no_others_waiting(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    jobs = [a_job(delay=10.0, workflow="later") for _ in range(MANY)]
    stays = [a_job(expires_after=10.0, workflow="stays") for _ in range(MANY)]
    store.submit([*jobs, *stays])
    late, stay = record(store, jobs[17].id).number, record(store, stays[17].id).number
    refuse(store_url, "unstuck_ready", f"NEW.job = {late}")
    refuse(store_url, "unstuck_done", f"NEW.job = {stay}")
    clock.advance(seconds=20)

    assert store.release_due() == 2 * (MANY - 1)

    assert {(found.duty, found.job) for found in store.quarantined()} == {
        ("start", jobs[17].id),
        ("expire", stays[17].id),
    }
    assert store.release_due() == 0
    allow(store_url, "unstuck_ready")
    allow(store_url, "unstuck_done")
    clock.advance(seconds=3)
    assert store.release_due() == 2
    assert store.quarantined() == []
    assert states(store) == {JobState.QUEUED: MANY, JobState.FAILED: MANY}


def test_an_orphan_that_cannot_be_failed_keeps_no_other_waiting(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    jobs = [a_job(workflow="unheard-of") for _ in range(MANY)]
    store.submit(jobs)
    (route,) = {front.route for front in store.open_routes()}
    bad = record(store, jobs[17].id)
    refuse(store_url, "unstuck_done", f"NEW.job = {bad.number}")
    clock.advance(hours=2)

    assert store.fail_orphans(route, 3600) == MANY - 1
    set_aside(store, "orphan", bad.id)
    assert store.fail_orphans(route, 3600) == 0
    allow(store_url, "unstuck_done")
    assert store.fail_orphans(route, 3600) == 1
    assert store.quarantined() == []


@pytest.mark.parametrize("policy", ["fail", "hold"])
def test_a_barred_job_that_cannot_be_moved_keeps_no_other_at_the_gate(
    store: SqlStore, store_url: str, policy: str
) -> None:
    jobs = [a_job(workflow="bad", on_blacklist=policy) for _ in range(MANY)]
    store.submit(jobs)
    store.blacklist_add(TENANT, "bad", "x", "kim")
    bad = record(store, jobs[17].id)
    refuse(store_url, "unstuck_events", f"NEW.job = {bad.number}")

    assert store.tend_guard() == MANY - 1
    set_aside(store, "blacklist", bad.id)
    allow(store_url, "unstuck_events")
    assert store.tend_guard() == 1
    assert store.quarantined() == []

    if policy == "hold":
        refuse(store_url, "unstuck_events", f"NEW.job = {bad.number}")
        store.blacklist_remove(None, "bad", "kim")
        assert states(store) == {JobState.QUEUED: MANY - 1, JobState.PENDING: 1}
        allow(store_url, "unstuck_events")
        assert store.tend_guard() == 1
        assert states(store) == {JobState.QUEUED: MANY}


def test_what_was_set_aside_and_went_another_way_leaves_the_quarantine(store: SqlStore) -> None:
    worker = a_worker(store)
    settled, waiting = claimed(store, worker), submitted(store, workflow="later", delay=10.0)
    store.quarantine("settle", {settled.ref.job: "no"}, by="w")
    store.quarantine("start", {record(store, waiting.id).number: "no"}, by="w")
    store.recover_lost(0)
    assert len(store.quarantined()) == 2

    settle(store, worker, settled.ref)
    store.cancel(TENANT, waiting.id, by="me")
    store.recover_lost(0)

    assert store.quarantined() == []


# --- the beat -----------------------------------------------------------------------------------------------------


def test_a_row_that_cannot_be_written_costs_no_lease(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """Starts and strays that raise: the beat renews, says what is gone, and does what it can."""
    worker = a_worker(store)
    held, gone, *strays = fifty_one(store, worker)
    settle(store, worker, gone.ref)
    refuse(store_url, "unstuck_events", f"NEW.job = {strays[7].ref.job}")
    refuse(store_url, "unstuck_running", f"NEW.job = {held.ref.job}", on="UPDATE")

    def beat() -> Any:
        return store.beat(worker.number, 30, [held.ref, gone.ref], started={held.ref.job: clock.now()})

    found = beat()
    assert (found.alive, found.gone, found.unstarted) == (True, (gone.ref,), frozenset({held.ref.job}))
    assert set(found.unheld) == {stray.ref for stray in strays} - {strays[7].ref}
    allow(store_url, "unstuck_events")
    allow(store_url, "unstuck_running")
    again = beat()
    assert (again.unheld, again.unstarted) == ((strays[7].ref,), frozenset())
    assert record(store, held.id).started_at is not None


def test_a_lease_is_renewed_even_where_nothing_can_be_reconciled(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store, lease=5)
    attempt = claimed(store, worker)

    with missing(store_url, "unstuck_running"):
        found = store.beat(worker.number, 100, [attempt.ref], started={attempt.ref.job: store.now()})

    assert (found.alive, found.gone, found.unstarted) == (True, (), frozenset({attempt.ref.job}))
    (seen,) = store.workers()
    assert (seen.lease_until - store.now()).total_seconds() > 50


# --- children -----------------------------------------------------------------------------------------------------


def test_a_child_that_cannot_be_cancelled_keeps_no_other(store: SqlStore, store_url: str) -> None:
    from tests.store.test_children import spawned

    worker = a_worker(store)
    parent = claimed(store, worker, retries=0)
    born = [spawned(store, parent, ordinal=n, workflow=f"c{n}") for n in range(1, 6)]
    settle(store, worker, parent.ref, boom())
    bad = record(store, born[2].id)
    refuse(store_url, "unstuck_done", f"NEW.job = {bad.number}")

    assert store.tend_children() == 4
    set_aside(store, "children", bad.id)
    allow(store_url, "unstuck_done")
    assert store.ingest_again() == 1
    assert store.quarantined() == []
