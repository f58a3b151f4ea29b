"""A limit that somebody holds stops what it limits, and nothing else: no other claim, no worker that starts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from tests.support.builders import TENANT, a_job, a_worker, all_routes, chance, claim_all, everything, settle
from tests.support.eventually import eventually
from tests.support.tables import ask
from tests.support.troubles import PATIENT, SAYS, missing, raising, waiting_for_no_lock
from unstuck.chance import SystemChance
from unstuck.clock import MachineClock
from unstuck.model.job import ClaimedJob, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.times import Times
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import EVERY, Limit, Share, Store
from unstuck.store.sql_store import SqlStore
from unstuck.worker.claim import Claimer
from unstuck.worker.ledger import Ledger
from unstuck.worker.loops import Loop
from unstuck.worker.pace import Pace
from unstuck.worker.served import Served
from unstuck.worker.shares import FreeRoom


@pytest.fixture
def server(server_url: str) -> Iterator[SqlStore]:
    with closing(SqlStore(open_database(server_url, max_connections=20))) as opened:
        yield opened


def patient(url: str) -> AbstractContextManager[SqlStore]:
    return closing(SqlStore(open_database(url, store_call=PATIENT)))


@contextmanager
def held(url: str, table: str) -> Iterator[psycopg.Connection]:
    """Somebody in psql, who locks all that is there now and goes for lunch."""
    with psycopg.connect(url) as person:
        person.execute(f"SELECT 1 FROM {table} FOR UPDATE".encode())
        yield person
        person.rollback()


def a_workflow(name: str, **more: Any) -> WorkflowRecord:
    return WorkflowRecord(name, "v1", "default", Policy(), {}, **more)


def two_limited_thirty_free(store: Store) -> None:
    store.set_limit(Limit("workflow", "limited", EVERY, "dana", concurrency=5))
    store.submit([a_job(workflow="limited") for _ in range(2)])
    store.submit([a_job(workflow="free") for _ in range(30)])


# --- the claim ----------------------------------------------------------------------------------------------------


def test_what_no_limit_counts_is_claimed_at_once_beside_a_limit_that_somebody_holds(
    server: SqlStore, server_url: str
) -> None:
    two_limited_thirty_free(server)
    worker = a_worker(server)
    with held(server_url, "unstuck_limits"):
        with patient(server_url) as opened, waiting_for_no_lock():
            claimed = claim_all(opened, worker)
        assert [job.workflow for job in claimed] == ["free"] * 30
        assert {route.workflow for route in server.routes(sorted(claimed.held))} == {"limited"}
    assert [job.workflow for job in claim_all(server, worker)] == ["limited"] * 2


def test_of_two_limits_the_one_that_is_held_stops_only_its_own(server: SqlStore, server_url: str) -> None:
    for name in ("a", "b"):
        server.set_limit(Limit("workflow", name, EVERY, "dana", concurrency=5))
        server.submit([a_job(workflow=name)])
    worker = a_worker(server)
    with psycopg.connect(server_url) as person:
        person.execute("SELECT 1 FROM unstuck_limits WHERE name = 'a' FOR UPDATE")
        assert [job.workflow for job in claim_all(server, worker)] == ["b"]


def test_a_claim_of_both_kinds_opens_both_and_its_repeat_answers_with_the_same(store: SqlStore) -> None:
    two_limited_thirty_free(store)
    worker, shares, claim = a_worker(store), everything(store), chance.nonce()
    first = store.claim(worker.number, claim, shares)
    assert sorted(job.workflow for job in first) == ["free"] * 30 + ["limited"] * 2
    assert not first.held
    store.submit([a_job(workflow=name) for name in ("free", "limited")])
    again = store.claim(worker.number, claim, shares)
    assert [job.ref for job in again] == [job.ref for job in first]


def test_a_failure_of_the_limited_part_loses_nothing_of_the_other(store: SqlStore, store_url: str) -> None:
    two_limited_thirty_free(store)
    worker, shares = a_worker(store), everything(store)
    (first,) = ask(store_url, "SELECT MIN(id) FROM unstuck_jobs WHERE workflow = 'limited'")
    with raising(store_url, "unstuck_running", f"NEW.job = {first[0]}"):
        claimed = store.claim(worker.number, chance.nonce(), shares)
        assert Counter(job.workflow for job in claimed) == {"free": 30, "limited": 1}
        (aside,) = store.quarantined(TENANT)
        assert (aside.duty, SAYS in aside.error) == ("claim", True)

    def comes_home() -> bool:
        return [job.workflow for job in store.claim(worker.number, chance.nonce(), shares)] == ["limited"]

    eventually(comes_home)


# --- claimers -----------------------------------------------------------------------------------------------------


class AtWork:
    """A real claimer on a thread of its own. What it claims is taken over at once, and kept or settled."""

    def __init__(self, store: Store, name: str, *workflows: str, slots: int = 40, poll: float = 1.0) -> None:
        self.store = store
        self.worker = a_worker(store, name, lease=300.0)
        self.ledger = Ledger()
        self.claimed: list[ClaimedJob] = []
        self.claimer = Claimer(
            store,
            self.worker.number,
            self.ledger,
            Pace(),
            replace(Times(), poll=poll),
            MachineClock(),
            SystemChance(),
            name=name,
            before_first=lambda: None,
            landed=lambda: None,
        )
        self.claimer.serve(Served.of([a_workflow(name) for name in workflows], []))
        self.slots = slots
        self.ledger.publish(FreeRoom(slots))
        self._loop = Loop(name, self.claimer.tick, MachineClock(), silence=60.0)
        self._loop.start()

    def troubles(self) -> dict[str, str]:
        return {name: str(trouble.error) for name, trouble in self.claimer.troubles.items()}

    def take_over(self) -> list[ClaimedJob]:
        fresh = [holding.job for holding in self.ledger.take_fresh()]
        self.claimed += fresh
        self.ledger.publish(FreeRoom(self.slots))
        return fresh

    def stop(self) -> None:
        self.claimer.close()
        self._loop.stop()
        assert self._loop.join(20)


def test_two_claimers_serve_what_no_limit_counts_beside_a_limit_that_somebody_holds(
    server: SqlStore, server_url: str
) -> None:
    two_limited_thirty_free(server)
    with held(server_url, "unstuck_limits") as person:
        began = time.monotonic()
        crew = [AtWork(server, name, "free", "limited") for name in ("ada", "bob")]
        try:

            def count() -> int:
                for one in crew:
                    one.take_over()
                return sum(len(one.claimed) for one in crew)

            eventually(lambda: count() == 30)
            assert time.monotonic() - began < 5.0
            assert {job.workflow for one in crew for job in one.claimed} == {"free"}
            # More comes, and is served: the limit is still held.
            server.submit([a_job(workflow="free") for _ in range(5)])
            eventually(lambda: count() == 35)
            eventually(lambda: all("limited" in one.troubles().get("limits", "") for one in crew), timeout=30)
            person.rollback()
            eventually(lambda: count() == 37)
        finally:
            for one in crew:
                one.stop()


def test_a60_ten_claimers_on_one_limit_never_pass_it_and_lose_no_time_to_each_other(store: SqlStore) -> None:
    """With a poll of a minute: whoever slept because somebody else was just claiming would be seen here."""
    jobs = 60
    store.set_limit(Limit("workflow", "limited", EVERY, "dana", concurrency=3))
    store.submit([a_job(workflow="limited") for _ in range(jobs)])
    running, highest, done = 0, 0, 0
    lock = threading.Lock()
    crew = [AtWork(store, f"w{n}", "limited", slots=3, poll=60.0) for n in range(10)]

    def serve(one: AtWork) -> None:
        nonlocal running, highest, done
        while done < jobs:
            fresh = one.take_over()
            with lock:
                running += len(fresh)
                highest = max(highest, running)
            for job in fresh:
                with lock:  # before the settle: what the database frees must not be counted here any more
                    running -= 1
                settle(store, one.worker, job.ref)
                one.ledger.drop(job.ref)
                with lock:
                    done += 1
            if fresh:
                one.ledger.publish(FreeRoom(one.slots))
                store._database.hint()
            time.sleep(0.002)

    began = time.monotonic()
    try:
        with ThreadPoolExecutor(10) as threads:
            for served in [threads.submit(serve, one) for one in crew]:
                served.result(50)
    finally:
        for one in crew:
            one.claimer.close()
            one._loop.stop()
    assert done == jobs
    assert 0 < highest <= 3
    assert time.monotonic() - began < 50


# --- who starts ---------------------------------------------------------------------------------------------------


def test_a_registration_that_changes_nothing_writes_nothing(server: SqlStore, server_url: str) -> None:
    workflows = [
        a_workflow("greet", concurrency=2, rate="10/m", key_concurrency=1, key_rate="5/s"),
        a_workflow("plain"),
    ]
    worker = a_worker(server)
    assert server.register_workflows(workflows, worker=worker.number, queues=["default"]) == frozenset()
    with (
        held(server_url, "unstuck_limits"),
        held(server_url, "unstuck_workflows"),
        patient(server_url) as opened,
        waiting_for_no_lock(),
    ):
        assert opened.register_workflows(workflows, worker=worker.number, queues=["default"]) == frozenset()


@pytest.mark.parametrize("table", ["unstuck_limits", "unstuck_workflows"])
def test_a_registration_passes_by_what_somebody_holds_and_writes_the_rest(
    server: SqlStore, server_url: str, table: str
) -> None:
    server.register_workflows([a_workflow("old", concurrency=2)])
    changed = [a_workflow("new", concurrency=3), replace(a_workflow("old", concurrency=4), doc="changed")]
    with held(server_url, table):
        with patient(server_url) as opened, waiting_for_no_lock():
            assert opened.register_workflows(changed) == {"old"}
        assert {found.name: found.concurrency for found in server.limits()} == {"new": 3, "old": 2}
    assert server.register_workflows(changed) == frozenset()
    assert {found.name: found.concurrency for found in server.limits()} == {"new": 3, "old": 4}


def test_one_that_cannot_be_written_keeps_no_other_from_being_registered(server: SqlStore, server_url: str) -> None:
    with psycopg.connect(server_url, autocommit=True) as person:
        person.execute("ALTER TABLE unstuck_workflows ADD CHECK (name <> 'bad')")
    workflows = [a_workflow(name, concurrency=1) for name in ("a", "bad", "c", "d")]
    assert server.register_workflows(workflows) == {"bad"}
    assert {found.name for found in server.limits()} == {"a", "c", "d"}, "a limit is of a version that is known"


def test_a_worker_that_starts_beside_held_rows_serves_and_registers_when_they_are_free(
    server: SqlStore, server_url: str
) -> None:
    server.register_workflows([a_workflow("free"), a_workflow("limited", concurrency=1)])
    server.submit([a_job(workflow="free") for _ in range(3)])
    with held(server_url, "unstuck_limits") as person, held(server_url, "unstuck_workflows") as other:
        # The new code has another queue's name in it, so that its rows differ.
        one = AtWork(server, "ada", "free")
        one.claimer.serve(Served.of([replace(a_workflow("free", concurrency=7), doc="new")], []))
        try:
            eventually(lambda: (one.take_over(), len(one.claimed) == 3)[1])
            eventually(lambda: "registration" in one.claimer.troubles)
            assert "free" in one.troubles()["registration"]
            person.rollback()
            other.rollback()
            eventually(lambda: not one.claimer.troubles, timeout=20)
            assert 7 in {found.concurrency for found in server.limits()}
        finally:
            one.stop()


# --- what is done beside the claim --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "table"),
    [("inbox", "unstuck_inbox"), ("timers", "unstuck_timers"), ("weights", "unstuck_tenants")],
)
def test_what_fails_beside_the_claim_is_shown_and_stops_no_claim(
    store: SqlStore, store_url: str, name: str, table: str
) -> None:
    store.submit([a_job(workflow="free") for _ in range(3)])
    with missing(store_url, table):
        one = AtWork(store, "ada", "free", poll=0.05)
        try:
            eventually(lambda: (one.take_over(), len(one.claimed) == 3)[1])
            # The one question for all of them reads two of these tables as well.
            eventually(lambda: one.troubles().keys() - {"due"} == {name})
            assert table in one.troubles()[name]
        except BaseException:
            one.stop()
            raise
    try:
        eventually(lambda: one.claimer.troubles == {}, timeout=20)
    finally:
        one.stop()


def test_a_share_that_says_limited_of_a_route_without_limits_is_served(store: SqlStore) -> None:
    """The look was older than the limit's end."""
    store.submit([a_job()])
    (route,) = all_routes(store)
    assert len(store.claim(a_worker(store).number, chance.nonce(), [Share(route.number, 5, is_limited=True)])) == 1
