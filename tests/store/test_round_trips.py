"""A batch costs as many round trips as its statements, however many jobs it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, cast

import pytest

from tests.store.test_pending import claim, work_off
from tests.support.builders import a_job, a_worker
from tests.support.round_trips import RoundTrips
from unstuck.model.errors import TooManyQueued
from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Parked, Refused, Returned
from unstuck.model.signing import SignatureProblem
from unstuck.model.waits import Wait, WaitKind
from unstuck.store.database import Database, Transaction
from unstuck.store.drivers.connect import open_database
from unstuck.store.life import inbox
from unstuck.store.port import EVERY, Ingested, Limit, NewStep, Report, Verdict
from unstuck.store.sql_store import SqlStore


@pytest.fixture
def store_url(postgres_url: str) -> str:
    """On SQLite nothing travels."""
    return postgres_url


@pytest.fixture
def database(store_url: str) -> Iterator[Database]:
    """What counts here are statements: a loaded machine may take longer over them than a store call."""
    opened = open_database(store_url, application="unstuck-test", store_call=30.0)
    yield opened
    opened.close()


@pytest.fixture
def trips(database: Database) -> RoundTrips:
    return RoundTrips(database)


@pytest.fixture
def far(trips: RoundTrips) -> SqlStore:
    return SqlStore(cast(Database, trips))


def parents_of_ended_children(store: SqlStore, worker: WorkerRecord, count: int) -> None:
    """So many jobs wait for one child each, whose ends are in the inbox."""
    store.submit([a_job(workflow="parent") for _ in range(count)])
    parents = claim(store, worker, count)
    kids = [a_job(workflow="child") for _ in parents]
    store.submit(kids)

    def spawn(t: Transaction) -> None:
        for parent, kid in zip(parents, kids, strict=True):
            facts = {"run": 1, "name": "child", "ordinal": 1, "depth": 1, "on_end": "cancel"}
            t.run("add_child", uid=kid.id, parent=parent.ref.job, payer=None, **facts)

    store._database.write(spawn)
    parks = [
        Report(parent.ref, Parked(Wait(WaitKind.CHILDREN, "gather#1", children=(kid.id,))), duration_ms=1)
        for parent, kid in zip(parents, kids, strict=True)
    ]
    for start in range(0, count, 200):
        answers = store.settle(worker.number, parks[start : start + 200])
        assert {answer.state for answer in answers} == {JobState.WAITING}


def end_children(store: SqlStore, worker: WorkerRecord, count: int) -> None:
    ends = [Report(kid.ref, Returned('"done"'), duration_ms=1) for kid in claim(store, worker, count)]
    for start in range(0, count, 200):
        store.settle(worker.number, ends[start : start + 200])


def test_a_thousand_gathers_take_as_many_statements_as_ten(store: SqlStore, trips: RoundTrips) -> None:
    def ingested() -> tuple[Ingested, list[str]]:
        """In one transaction, however slow the machine."""
        trips.statements.clear()
        found, _ = trips.write(lambda t: inbox.ingest(t, store._tools, 0, 1000), 30.0)
        return found, sorted(trips.statements)

    worker = a_worker(store, lease=600.0)
    counted = []
    for count in (10, 1000):
        parents_of_ended_children(store, worker, count)
        parked, looks = ingested()
        assert (parked.entries, parked.woken) == (count, 0)
        end_children(store, worker, count)
        ended, wakes = ingested()
        assert ended.woken == count
        assert len(claim(store, worker, count)) == count
        counted.append((looks, wakes))
    assert counted[0] == counted[1]
    assert max(map(len, counted[0])) < 40


def test_a_store_two_milliseconds_away_wakes_two_thousand_parents_in_time(
    store: SqlStore, far: SqlStore, trips: RoundTrips
) -> None:
    worker = a_worker(store, lease=600.0)
    parents_of_ended_children(store, worker, 2000)
    work_off(store)
    end_children(store, worker, 2000)
    trips.delay = 0.002
    woken = 0
    for _ in range(10):
        woken += far.ingest().woken
    assert woken == 2000
    assert len(trips.statements) < 400, "0.8 s on their way: all ten calls together take less than one may"


def test_parking_for_events_takes_as_many_statements_for_a_hundred_as_for_two(
    store: SqlStore, far: SqlStore, trips: RoundTrips
) -> None:
    worker = a_worker(store, lease=600.0)
    wait = Wait(WaitKind.EVENT, "event:paid#1", "paid", timeout=60.0)
    counted = []
    for count in (1, 2, 100):  # what it learns by the first, names and policies, is not counted
        store.submit([a_job(workflow="asks") for _ in range(count)])
        reports = [Report(one.ref, Parked(wait), duration_ms=1) for one in claim(store, worker, count)]
        trips.statements.clear()
        far.settle(worker.number, reports)
        counted.append(sorted(trips.statements))
    assert counted[1] == counted[2]


def test_steps_are_recorded_in_one_round_trip(trips: RoundTrips, far: SqlStore) -> None:
    """Also when several jobs finish some at once; only losses to be forgiven, or a fence, ask for more."""
    worker = a_worker(far)
    far.submit([a_job() for _ in range(3)])
    attempts = claim(far, worker, 3)
    trips.statements.clear()
    steps = [NewStep(attempt.ref, f"s{n}", 1, "1", 0) for attempt in attempts for n in range(4)]
    assert set(far.record_steps(steps)) == {Verdict.DONE}
    assert trips.statements == ["record_steps"]


@pytest.mark.parametrize("count", [1, 1000])
def test_jobs_of_one_workflow_are_stored_in_one_round_trip(far: SqlStore, trips: RoundTrips, count: int) -> None:
    far.submit([a_job()])  # learns the names
    trips.statements.clear()
    far.submit([a_job(payload=f"{number}") for number in range(count)])
    assert trips.statements == ["submit_at_once"]


@pytest.mark.parametrize(
    "options", [{"target": "acme"}, {"tags": ("a", "b")}, {"delay": 60.0}, {"expires_after": 60.0}]
)
def test_a_submit_with_a_target_tags_or_times_is_one_round_trip(
    far: SqlStore, trips: RoundTrips, options: dict[str, Any]
) -> None:
    far.submit([a_job(**options)])  # learns the names
    trips.statements.clear()
    jobs = [a_job(payload=f"{number}", **options) for number in range(3)]
    assert [answer.created for answer in far.submit(jobs)] == [True, True, True]
    assert trips.statements == ["submit_jobs"]
    assert [answer.created for answer in far.submit([jobs[0], a_job(**options)])] == [False, True], "one is a repeat"
    assert [answer.created for answer in far.submit(jobs)] == [False, False, False]


def test_where_more_is_asked_a_submit_says_so_in_a_transaction_and_does_not_try_in_vain(
    far: SqlStore, trips: RoundTrips
) -> None:
    far.submit([a_job()])
    cap = Limit("queue", "default", EVERY, "a test", max_queued=3)
    far.set_limit(cap)
    seen = []
    for refused in (False, False, True):
        trips.statements.clear()
        with pytest.raises(TooManyQueued) if refused else nullcontext():
            far.submit([a_job()])
        seen.append([name for name in trips.statements if name.startswith(("submit", "notify"))])
    assert seen[0] == ["submit_at_once", "submit_jobs", "notify_idle"]
    assert seen[1] == ["submit_jobs", "notify_idle"]
    far.remove_limit(cap.kind, cap.name, cap.tenant)
    far.submit([a_job()])
    trips.statements.clear()
    far.submit([a_job()])
    assert trips.statements == ["submit_at_once"]


def test_many_refusals_are_told_by_as_many_statements_as_one(trips: RoundTrips, far: SqlStore) -> None:
    """Each with its letter, its line in the audit and its news: ten thousand at a time are no thousand round trips"""
    worker = a_worker(far)
    counts = []
    for jobs in (1, 1, 20):  # the first makes the notification, the others are counted there
        far.submit([a_job() for _ in range(jobs)])
        error = ErrorInfo("SignatureInvalid", "its key is revoked")
        reports = [Report(job.ref, Refused(error, SignatureProblem.REVOKED)) for job in claim(far, worker, jobs)]
        trips.statements.clear()
        assert [answer.verdict for answer in far.settle(worker.number, reports)] == [Verdict.DONE] * jobs
        counts.append(Counter(trips.statements))

    assert counts[1] == counts[2]
    assert len(far.audit(verb="signing.refuse", limit=100)) == 22
