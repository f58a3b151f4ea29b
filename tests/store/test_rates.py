"""Rates are counted in slices of their window: never more starts than allowed, never late by more than a slice."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from bench import limits as growth
from bench.worlds import World
from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, chance, claim_all, everything, submitted
from tests.support.tables import counts_of_tables
from unstuck.model.job import WorkerRecord
from unstuck.store.database import Database
from unstuck.store.port import EVERY, Limit, Share, Store
from unstuck.store.rows import packed
from unstuck.store.sql_store import SqlStore

RATE, PER = 150, 100.0  # a slice of one second


@pytest.fixture
def worker(store: Store) -> WorkerRecord:
    return a_worker(store, lease=1e6)


def allow(store: Store, rate: int = RATE, per: float = PER) -> None:
    store.set_limit(Limit("workflow", "greet", EVERY, "dana", rate=rate, per=per))


def free_at(store: SqlStore, job: str) -> datetime | None:
    facts = store.gate_facts(TENANT, job)
    assert facts is not None
    return next((gate.free_at for gate in facts.gates), None)


def test_at_no_moment_have_more_started_within_the_window_than_the_rate_allows(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    allow(store)
    store.submit([a_job() for _ in range(1000)])
    dice, starts = random.Random(7), list[tuple[datetime, int]]()
    for _ in range(150):
        before = clock.now()
        started = len(claim_all(store, worker, dice.choice([1, 7, 40, 1000])))
        starts.append((before, started))
        clock.advance(dice.choice([0.0, 0.3, 0.999, 1.0, 1.001, 9.7, 33.0]))
    for first, _ in starts:
        # `before` is up to a moment earlier than the start itself: the window is shorter by as much.
        window = [n for at, n in starts if first <= at < first + timedelta(seconds=PER - 0.2)]
        assert sum(window) <= RATE
    assert sum(n for _, n in starts) >= 3 * RATE, "and the rate was used"


def test_a_slice_is_free_a_window_after_it_ended_and_why_says_when(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    allow(store)
    store.submit([a_job() for _ in range(RATE)])
    waiting = submitted(store)
    began = clock.now()
    assert len(claim_all(store, worker)) == RATE
    free = free_at(store, waiting.id)
    assert free is not None
    assert PER <= (free - began).total_seconds() <= PER + 1.5
    clock.advance((free - clock.now()).total_seconds() - 0.5)
    assert claim_all(store, worker) == []
    clock.advance(0.6)
    assert free_at(store, waiting.id) is None
    assert [job.id for job in claim_all(store, worker)] == [waiting.id]


@pytest.mark.parametrize("rate", [20, 150])
def test_sixteen_claimers_at_once_start_exactly_as_many_as_the_rate_allows(store: SqlStore, rate: int) -> None:
    allow(store, rate=rate, per=3600.0)
    store.submit([a_job(tenant=f"t{n % 3}") for n in range(2 * rate)])
    shares = everything(store, 3)

    def work(name: str) -> int:
        worker, started = a_worker(store, name, lease=3600.0), 0
        while True:
            claimed = store.claim(worker.number, chance.nonce(), shares)
            started += len(claimed)
            if not claimed and not claimed.held:
                return started

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(work, [f"w{n}" for n in range(16)])) == rate
    assert store.open_routes() == []


def test_a_small_rate_is_kept_to_the_moment(store: SqlStore, worker: WorkerRecord, clock: StoreClock) -> None:
    """A hundredth of a day is a quarter of an hour."""
    allow(store, rate=1, per=86400.0)
    submitted(store)
    waiting = submitted(store)
    began = clock.now()
    assert len(claim_all(store, worker)) == 1
    free = free_at(store, waiting.id)
    assert free is not None
    assert abs((free - began).total_seconds() - 86400.0) < 5


def test_under_a_rate_that_was_lowered_the_next_start_is_when_enough_have_left(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    allow(store)
    store.submit([a_job() for _ in range(30)])
    began = clock.now()
    for _ in range(3):
        assert len(claim_all(store, worker, 10)) == 10
        clock.advance(10)
    waiting = submitted(store)
    allow(store, rate=12)
    free = free_at(store, waiting.id)
    assert free is not None
    # Ten of the thirty are left when the first two tens have gone.
    assert PER + 9 <= (free - began).total_seconds() <= PER + 13
    clock.advance((free - clock.now()).total_seconds() - 0.5)
    assert claim_all(store, worker) == []
    clock.advance(0.6)
    assert len(claim_all(store, worker)) == 1


def test_a_window_that_was_made_longer_counts_what_left_the_shorter_one(
    store: SqlStore, worker: WorkerRecord, clock: StoreClock
) -> None:
    allow(store, rate=200, per=10.0)
    store.submit([a_job() for _ in range(300)])
    assert len(claim_all(store, worker)) == 200
    clock.advance(20)
    allow(store, rate=200, per=1000.0)
    assert store.forget_starts() == 0
    assert claim_all(store, worker) == []
    clock.advance(1000)
    assert store.forget_starts() == 1


# --- growth -------------------------------------------------------------------------------------------------------


def test_many_starts_are_a_hundred_rows(
    store: SqlStore, database: Database, store_url: str, worker: WorkerRecord, clock: StoreClock
) -> None:
    allow(store, rate=10_000_000)
    submitted(store)
    claim_all(store, worker)
    for _ in range(300):
        clock.advance(0.8 * PER / 300)
        rows = packed([{"limit_id": 1, "bucket": "greet", "starts": 333}])
        database.write(lambda t, rows=rows: t.run("add_starts", rows=rows))  # type: ignore[misc]
    assert counts_of_tables(store_url)["unstuck_starts"] <= 105
    waiting = submitted(store)
    allow(store, rate=90_000)
    facts = store.gate_facts(TENANT, waiting.id)
    assert facts is not None
    assert [gate.used for gate in facts.gates] == [300 * 333 + 1]


@pytest.mark.parametrize(("grow", "sizes"), [(growth.rated, (1_000, 100_000)), (growth.capped, (100, 10_000))])
def test_a_claim_costs_the_same_however_many_have_started_or_run_elsewhere(
    urls: tuple[str, str], grow: Callable[[str, int], World], sizes: tuple[int, int]
) -> None:
    few, many = (grow(url, size) for url, size in zip(urls, sizes, strict=True))
    try:
        for world in (few, many):
            assert len(world.store.claim(world.worker.number, "c", [share_of(world)])) == 1
        assert growth.cost(many) <= 1.2 * growth.cost(few) + 2
    finally:
        few.store.close()
        many.store.close()


def share_of(world: World) -> Share:
    return Share(world.routes[0], 1, is_limited=True)
