"""Fair: a tenant with ten jobs beside one with a million, on one worker. `python -m bench fairness`.

The worker is busy with the million when the ten are submitted; the time runs until the last of them is settled.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence

from bench import cell, probe, worlds
from bench.contender import StoreKind, load
from bench.contenders.ours import Ours
from bench.drain import surroundings
from unstuck.model.lifecycle import JobState
from unstuck.store.sql_store import SqlStore

BOUND = 1.0
FEW = 10
MANY = 1_000_000
PATIENCE = 30.0
CONTENDER: dict[StoreKind, str] = {"postgres": "unstuck-sync", "sqlite": "unstuck-sqlite-sync"}


def run(stores: Sequence[StoreKind], rounds: int) -> bool:
    """Whether the median keeps the bound on each database."""
    kept = True
    for store in stores:
        name = CONTENDER[store]
        with surroundings([name]) as variables:
            os.environ.update(variables)
            seconds = measure(name, rounds)
        median = statistics.median(seconds)
        kept &= median <= BOUND
        print(
            f"{store}: {FEW} jobs beside {MANY:,}: last one settled after {median:.2f} s (median of {rounds}, "
            f"{min(seconds):.2f}–{max(seconds):.2f}; at most {BOUND})",
            flush=True,
        )
    return kept


def measure(name: str, rounds: int) -> list[float]:
    contender = load(name)
    assert isinstance(contender, Ours)
    contender.prepare()
    fill(contender.url(), contender.workflow)
    probe.reset()
    store = worlds.open_store(contender.url())
    with cell.workers(contender):
        cell.wait_for_hits(2000, cell.START_LIMIT)
        seconds = [serve_few(store, contender.workflow, f"small-{number}") for number in range(rounds)]
        assert probe.hits() < MANY, "the million were gone too early"
    store.close()
    return seconds


def fill(url: str, workflow: str) -> None:
    shop = worlds.Workshop(url)
    shop.submit(workflow, tenant="large")
    shop.copy(worlds.COPY_JOBS, worlds.COPY_READY, worlds.COPY_EVENTS, copies=MANY)
    shop.store.close()
    with worlds.by_hand(url) as execute:
        execute("VACUUM ANALYZE" if url.startswith("postgresql:") else "PRAGMA optimize")


def serve_few(store: SqlStore, workflow: str, tenant: str) -> float:
    """Not at the same moment of the claimer's rhythm each time."""
    time.sleep(0.3 + worlds.chance.fraction())
    began = time.monotonic()
    store.submit([worlds.a_job(workflow, tenant) for _ in range(FEW)])
    while store.counts(tenant).get(JobState.COMPLETED, 0) < FEW:
        if time.monotonic() - began > PATIENCE:
            raise SystemExit(f"{tenant} was not served within {PATIENCE:.0f} s: {store.counts(tenant)}")
        time.sleep(0.005)
    return time.monotonic() - began
