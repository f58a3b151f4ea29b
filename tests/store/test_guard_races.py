"""The guard with many at once: one trip however many bring it, and no claim that commits after an entry misses it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.store.test_races import together
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    all_routes,
    chance,
    claim_all,
    record,
    settle_all,
    submitted,
)
from tests.support.eventually import eventually
from tests.support.troubles import waits_for_a_lock
from tests.tiers import in_tiers, slow
from unstuck.chance import SystemChance
from unstuck.model.errors import StoreBusy, WorkflowBlacklisted
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.database import Database, Transaction
from unstuck.store.drivers.connect import open_database
from unstuck.store.guard import blacklist_sweep, breaker
from unstuck.store.life import submit
from unstuck.store.life.settle_tools import Settling
from unstuck.store.order.name_ids import NameIds
from unstuck.store.port import Report, Share, Verdict
from unstuck.store.sql_store import SqlStore

BAD = "deploy"
STUCK = Stuck(ErrorInfo("ExecutionStuck", "did not stop", "stack"), pid=1)
CROWD = 16


@pytest.fixture
def several(store_url: str) -> Iterator[list[SqlStore]]:
    """As many worker processes would have: each its own connections, on SQLite its own writer."""
    stores = [SqlStore(open_database(store_url, store_call=30.0, max_connections=6)) for _ in range(4)]
    yield stores
    for store in stores:
        store.close()


def everywhere(store: SqlStore, most: int = 100) -> list[Share]:
    return [Share(route.number, most) for route in all_routes(store)]


@pytest.fixture
def crowd(store_url: str) -> Iterator[list[SqlStore]]:
    """One per worker: nothing but the database is between them."""
    stores = [SqlStore(open_database(store_url, store_call=60.0, max_connections=1)) for _ in range(CROWD)]
    yield stores
    for store in stores:
        store.close()


@pytest.mark.timeout(600)
@in_tiers("rounds", 8, 100)
def test_sixteen_workers_that_trip_one_breaker_at_once_make_one_entry_and_one_notification(
    crowd: list[SqlStore], rounds: int
) -> None:
    """A34: a hundred rounds"""
    store = crowd[0]
    workers = [a_worker(mine, lease=1e9) for mine in crowd]
    for turn in range(rounds):
        name = f"{BAD}-{turn}"
        store.submit([a_job(workflow=name) for _ in range(CROWD)])
        shares = everywhere(store, 1)
        attempts = [mine.claim(ada.number, chance.nonce(), shares) for mine, ada in zip(crowd, workers, strict=True)]
        assert [len(found) for found in attempts] == [1] * CROWD
        verdicts = [
            lambda mine=mine, ada=ada, ref=found[0].ref: settle_all(mine, ada.number, [Report(ref, STUCK)])
            for mine, ada, found in zip(crowd, workers, attempts, strict=True)
        ]
        together(*verdicts)
        assert [entry.reason for entry in store.blacklist() if entry.workflow == name] == ["auto:stuck:5"]
        assert [news.count for news in store.notifications(acked=True) if news.workflow == name] == [5]
        store.blacklist_remove(None, name, "kim")
    assert len(store.blacklist_history(limit=rounds + 1)) == rounds
    assert len(store.notifications(acked=True, limit=rounds + 1)) == rounds


def test_two_who_add_the_same_at_once_make_one(several: list[SqlStore]) -> None:
    for turn in range(20):
        made: list[bool] = []

        def add(store: SqlStore, name: str = f"{BAD}-{turn}", made: list[bool] = made) -> None:
            made.append(store.blacklist_add(TENANT, name, "x", "kim")[1])

        together(*[lambda store=store: add(store) for store in several])
        assert sorted(made) == [False, False, False, True]


def test_trips_removals_and_the_janitor_at_once_leave_nothing_half_done(several: list[SqlStore]) -> None:
    """Everything that takes breakers, entries, targets and jobs, in every order, for a while."""
    store = several[0]
    ada = a_worker(store, lease=1e9)
    store.set_setting("stuck_circuit_breaker_threshold", "2", "kim")
    over = threading.Event()

    def work(mine: SqlStore, seed: int) -> None:
        for turn in range(25):
            try:
                mine.submit(
                    [
                        a_job(workflow=BAD, target=f"t{n % 3}", on_blacklist="hold" if n % 2 else "fail")
                        for n in range(4)
                    ]
                )
            except WorkflowBlacklisted:
                if seed == 0 or turn % 5 == 0:
                    mine.blacklist_remove(None, BAD, "kim")
            mine.ingest()
            for attempt in mine.claim(ada.number, chance.nonce(), everywhere(mine, 2)):
                settle_all(mine, ada.number, [Report(attempt.ref, STUCK)])
                mine.lift_body_mark(ada.number, attempt.ref.job)

    def sweep(mine: SqlStore) -> None:
        while not over.is_set():
            mine.tend_guard(batch=3)

    with ThreadPoolExecutor(4) as threads:
        sweeping = [threads.submit(sweep, mine) for mine in several[2:]]
        try:
            for done in [threads.submit(work, mine, seed) for seed, mine in enumerate(several[:2])]:
                done.result(100)
        finally:
            over.set()
        for each in sweeping:
            each.result(30)

    history = store.blacklist_history(limit=1000)
    assert len([entry for entry in history if entry.is_active]) <= 1
    assert len(store.notifications(acked=True, limit=1000)) == len(history)
    store.blacklist_remove(None, BAD, "kim")
    store.tend_guard()
    assert store.counts()[JobState.PENDING] == 0, "nobody is held for an entry that is gone"


def test_a_claim_that_begins_after_an_entry_was_made_never_returns_its_jobs(several: list[SqlStore]) -> None:
    """A35, S11: claims and submits go on all the while"""
    store = several[0]
    ada = a_worker(store, lease=1e9)
    for turn in range(10):
        name = f"{BAD}-{turn}"
        submitted(store, workflow=name)
        shares = everywhere(store, 3)
        barred_now, over = threading.Event(), threading.Event()
        late: list[ClaimedJob] = []

        def claim(
            mine: SqlStore, name: str = name, shares: list[Share] = shares, late: list[ClaimedJob] = late
        ) -> None:
            while not over.is_set():  # noqa: B023
                begins_late = barred_now.is_set()  # noqa: B023
                got = mine.claim(ada.number, chance.nonce(), shares)
                late.extend(job for job in got if begins_late and job.workflow == name)

        def offer(mine: SqlStore, name: str = name) -> None:
            while not over.is_set():  # noqa: B023
                try:
                    mine.submit([a_job(workflow=name) for _ in range(5)])
                except WorkflowBlacklisted:
                    return

        with ThreadPoolExecutor(3) as threads:
            running: list[Future[None]] = [threads.submit(claim, mine) for mine in several[1:3]]
            running.append(threads.submit(offer, several[3]))
            try:
                eventually(lambda: store.counts()[JobState.RUNNING] > 5 * turn, timeout=20)  # noqa: B023
                store.blacklist_add(TENANT, name, "x", "kim")
                barred_now.set()
                running[-1].result(30)
                store.tend_guard()
            finally:
                over.set()
            for each in running:
                each.result(30)
        assert late == []
        assert not [job for job in claim_all(store, ada) if job.workflow == name]


# --- forced interleavings, on PostgreSQL: SQLite has one writer ----------------------------------------------------


class Pausing:
    """A transaction of another process that stops where the test wants, and goes on when it says so."""

    def __init__(self, url: str, work: Callable[[Transaction], Any]) -> None:
        self._database: Database = open_database(url, store_call=20.0)
        self.inside, self.go = threading.Event(), threading.Event()
        self._threads = ThreadPoolExecutor(1)

        def paused(t: Transaction) -> Any:
            answer = work(t)
            self.inside.set()
            assert self.go.wait(15)
            return answer

        self.done = self._threads.submit(self._database.write, paused)
        assert self.inside.wait(10), self.done.exception(0)

    def finish(self) -> Any:
        self.go.set()
        return self.done.result(15)

    def close(self) -> None:
        self.go.set()
        self._threads.shutdown()
        self._database.close()


@contextmanager
def pausing(url: str, work: Callable[[Transaction], Any]) -> Iterator[Pausing]:
    paused = Pausing(url, work)
    try:
        yield paused
    finally:
        paused.close()


@pytest.fixture
def pg_url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def pg(pg_url: str) -> Iterator[SqlStore]:
    opened = SqlStore(open_database(pg_url, store_call=20.0, max_connections=10))
    yield opened
    opened.close()


def add_entry(t: Transaction) -> Any:
    return breaker.add(t, TENANT, BAD, "x", "kim")


def test_a_claim_beside_an_entry_that_is_being_made_takes_nothing_and_waits_for_nobody(
    pg: SqlStore, pg_url: str
) -> None:
    job, ada = submitted(pg, workflow=BAD), a_worker(pg)
    other = submitted(pg)
    with pausing(pg_url, add_entry) as entering:
        assert pg.claim(ada.number, chance.nonce(), everywhere(pg)) == []
        entering.finish()
    assert [found.id for found in pg.claim(ada.number, chance.nonce(), everywhere(pg))] == [other.id]
    assert record(pg, job.id).state is JobState.QUEUED


def test_an_entry_waits_for_the_claims_that_are_under_way(pg: SqlStore, pg_url: str) -> None:
    """So that it commits after them: what they return was theirs before."""
    job, ada = submitted(pg, workflow=BAD), a_worker(pg)
    data = '{"by": "ada"}'

    def claim(t: Transaction) -> Any:
        share = {"route": all_routes(pg)[0].number, "most": 1, "rank": 0, "job": 0, "counted": False}
        last = {"last_rank": 1 << 62, "last_job": 1 << 62}
        facts = {"worker": ada.number, "claim": "c1", "opened": 0, "without": "", "data": data, "room": 1000}
        return t.all("claim", shares=json.dumps([share | last]), **facts)

    with pausing(pg_url, claim) as claiming, ThreadPoolExecutor(1) as threads:
        adding = threads.submit(pg.blacklist_add, TENANT, BAD, "x", "kim")
        eventually(lambda: waits_for_a_lock(pg_url), timeout=10)
        assert pg.blacklist() == []
        assert [row["uid"] for row in claiming.finish()] == [job.id]
        assert adding.result(10)[1]
    assert len(pg.blacklist()) == 1


@slow  # as long as the patience of a verb, and all the while it asks
def test_who_wants_to_shut_a_guard_that_another_session_keeps_lets_claims_in_meanwhile(
    pg: SqlStore, pg_url: str
) -> None:
    """A person in psql, or a claim of a frozen worker: whoever waits for the lock keeps others from sharing it."""
    ada, longest, shut_since = a_worker(pg), 0.0, None
    submitted(pg, workflow=BAD)
    with psycopg.connect(pg_url) as person, ThreadPoolExecutor(1) as threads:
        person.execute("SELECT pg_advisory_xact_lock_shared(1970173813)")
        adding = threads.submit(pg.blacklist_add, TENANT, "another", "x", "kim")
        with psycopg.connect(pg_url, autocommit=True) as look:
            while not adding.done():
                row = look.execute("SELECT unstuck_pass_guard()").fetchone()
                assert row is not None
                if row[0] >= 0:
                    shut_since = None
                else:
                    shut_since = shut_since or time.monotonic()
                    longest = max(longest, time.monotonic() - shut_since)
        with pytest.raises(StoreBusy):
            adding.result()
    assert 0 < longest < 1.0
    assert len(pg.claim(ada.number, chance.nonce(), everywhere(pg))) == 1
    assert pg.blacklist_add(TENANT, "another", "x", "kim")[1]


def test_a_claim_whose_snapshot_is_older_than_the_entry_sees_it_all_the_same(pg: SqlStore, pg_url: str) -> None:
    """The claim has begun, and looks at the guard only after the entry was committed."""
    submitted(pg, workflow=BAD)
    ada, shares = a_worker(pg), everywhere(pg)
    with psycopg.connect(pg_url, autocommit=True) as hand, ThreadPoolExecutor(1) as threads:
        hand.execute("ALTER FUNCTION unstuck_pass_guard() RENAME TO really_pass_guard")
        # STABLE: it looks with the claim's own snapshot, and would hand that down to whoever does not take another.
        hand.execute(
            "CREATE FUNCTION unstuck_pass_guard() RETURNS INTEGER LANGUAGE plpgsql STABLE AS $$ BEGIN "
            "PERFORM pg_advisory_xact_lock_shared(7); RETURN really_pass_guard(); END $$"
        )
        hand.execute("SELECT pg_advisory_lock(7)")
        claiming = threads.submit(pg.claim, ada.number, chance.nonce(), shares)
        eventually(lambda: waits_for_a_lock(pg_url), timeout=10)
        pg.blacklist_add(TENANT, BAD, "x", "kim")
        hand.execute("SELECT pg_advisory_unlock(7)")
        assert claiming.result(10) == []


def test_a_submit_beside_an_entry_that_is_being_made_is_met_at_the_gate(pg: SqlStore, pg_url: str) -> None:
    """It had looked before: its job is QUEUED, and never starts."""
    submitted(pg, workflow=BAD)
    ada, slipped = a_worker(pg), a_job(workflow=BAD)
    database = open_database(pg_url)
    numbers = NameIds().ensure(database, [slipped])
    database.close()
    with pausing(pg_url, lambda t: submit.submit(t, [slipped], numbers, 86400.0)) as submitting:
        pg.blacklist_add(TENANT, BAD, "x", "kim")
        assert submitting.finish()[0].created
    assert pg.claim(ada.number, chance.nonce(), everywhere(pg)) == []
    assert pg.tend_guard() == 2
    assert record(pg, slipped.id).error_type == "WorkflowBlacklisted"


def test_who_lifts_an_entry_waits_for_those_that_are_just_being_held_and_frees_them(
    pg: SqlStore, pg_url: str
) -> None:
    job = submitted(pg, workflow=BAD, on_blacklist="hold")
    pg.blacklist_add(TENANT, BAD, "x", "kim")
    tools = Settling(NameIds(), SystemChance())

    def hold(t: Transaction) -> object:
        return blacklist_sweep.refuse(t, tools, blacklist_sweep.at_the_gate(t, 100, aside=False))

    with pausing(pg_url, hold) as holding, ThreadPoolExecutor(1) as threads:
        lifting = threads.submit(pg.blacklist_remove, None, BAD, "kim")
        eventually(lambda: waits_for_a_lock(pg_url), timeout=10)
        holding.finish()
        assert len(lifting.result(10)) == 1
    assert record(pg, job.id).state is JobState.QUEUED
    assert not record(pg, job.id).on_hold


def test_nobody_is_held_for_an_entry_that_was_lifted_meanwhile(pg: SqlStore, pg_url: str) -> None:
    job, ada = submitted(pg, workflow=BAD, on_blacklist="hold"), a_worker(pg)
    pg.blacklist_add(TENANT, BAD, "x", "kim")
    tools = Settling(NameIds(), SystemChance())
    with pausing(pg_url, lambda t: breaker.lift(t, None, BAD, "kim")) as lifting, ThreadPoolExecutor(1) as threads:
        holding = threads.submit(pg.tend_guard)
        eventually(lambda: waits_for_a_lock(pg_url), timeout=10)
        lifting.finish()
        assert holding.result(10) == 0
    assert tools
    assert [found.id for found in claim_all(pg, ada)] == [job.id]


def test_a_person_who_sits_on_the_guard_delays_a_verdict_and_loses_nothing(pg: SqlStore, pg_url: str) -> None:
    """The one that would make the entry is busy, and is repeated; the claims take nothing meanwhile."""
    ada = a_worker(pg, lease=1e9)
    pg.submit([a_job(workflow=BAD) for _ in range(5)])
    attempts = claim_all(pg, ada)
    impatient = SqlStore(open_database(pg_url, store_call=4.0))
    try:
        with psycopg.connect(pg_url) as person:
            person.execute("SELECT pg_advisory_xact_lock(1970173813)")
            answers = impatient.settle(ada.number, [Report(attempt.ref, STUCK) for attempt in attempts])
            assert [answer.verdict for answer in answers] == [Verdict.DONE] * 4 + [Verdict.BUSY]
            assert record(pg, attempts[4].id).state is JobState.RUNNING
        impatient.settle(ada.number, [Report(attempt.ref, STUCK) for attempt in attempts])
    finally:
        impatient.close()
    assert (len(pg.blacklist()), len(pg.notifications())) == (1, 1)
