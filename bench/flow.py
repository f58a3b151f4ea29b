"""Flow: what a step costs beside the least it could, a transaction of one row. `python -m bench flow`.

A job of many steps runs on a real worker: alone, where a step is one round trip from the handler to the database and
back, and sixteen at once, where the worker's answers can share transactions. A round trip has no CPU of its own to
compare, so the machine should be quiet; rounds are interleaved, and medians are shown.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import psycopg

from bench import cell, probe
from bench.contender import StoreKind, load
from bench.contenders.ours import Ours
from bench.drain import surroundings
from unstuck.store.drivers.connect import sqlite_path

STEPS = 300
CROWD = 16
LIMIT = 120.0
CONTENDER: dict[StoreKind, str] = {"postgres": "unstuck-sync", "sqlite": "unstuck-sqlite-sync"}
WAYS = ("a bare commit", "a step, sync", "a step, async", f"a step, {CROWD} jobs at once")


def run(stores: Sequence[StoreKind], rounds: int) -> None:
    """Each in a process of its own: an app has one database."""
    for store in stores:
        with ProcessPoolExecutor(1) as pool:
            pool.submit(run_one, store, rounds).result()


def run_one(store: StoreKind, rounds: int) -> None:
    name = CONTENDER[store]
    with surroundings([name]) as variables:
        os.environ.update(variables)
        seen = measure(name, rounds)
    bare = statistics.median(seen[WAYS[0]])
    for way, spent in seen.items():
        median = statistics.median(spent)
        print(
            f"{store:<9} {way:<24} {1e6 * median:8,.0f} µs ({1e6 * min(spent):,.0f}–{1e6 * max(spent):,.0f})"
            f"  {median / bare:5.2f} × a bare commit",
            flush=True,
        )


def measure(name: str, rounds: int) -> dict[str, list[float]]:
    contender = load(name)
    assert isinstance(contender, Ours)
    contender.prepare()
    probe.reset()
    from bench.contenders.ours_app import app, many_steps, many_steps_async

    with cell.workers(contender):
        many_steps.enqueue(1).result(timeout=cell.START_LIMIT)
        ways: dict[str, Callable[[], float]] = {
            WAYS[0]: lambda: bare_commit(contender.url()),
            WAYS[1]: lambda: alone(many_steps),
            WAYS[2]: lambda: alone(many_steps_async),
            WAYS[3]: lambda: side_by_side(many_steps),
        }
        seen: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(rounds):
            for way in ways if number % 2 == 0 else reversed(list(ways)):
                seen[way].append(ways[way]())
    app.close()
    return seen


def alone(workflow: Any) -> float:
    """Seconds per step, as the handler saw it."""
    seconds: float = workflow.enqueue(STEPS).result(timeout=LIMIT)
    return seconds / STEPS


def side_by_side(workflow: Any) -> float:
    """Seconds per step of all together, from the first claim to the last end."""
    jobs = [workflow.enqueue(STEPS) for _ in range(CROWD)]
    ended = [job.wait(timeout=LIMIT).finished_at for job in jobs]
    span = max(ended) - min(job.attempts()[0].claimed_at for job in jobs)
    seconds: float = span.total_seconds()
    return seconds / (CROWD * STEPS)


def bare_commit(url: str) -> float:
    """One row in one transaction, as durable as ours."""
    if url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("CREATE TABLE IF NOT EXISTS bench_bare (n INT)")
            return _each(lambda: session.execute("INSERT INTO bench_bare VALUES (1)"))
    file = sqlite3.connect(f"{sqlite_path(url)}-bare", isolation_level=None)
    try:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
        file.execute("CREATE TABLE IF NOT EXISTS bare (n INT)")
        return _each(lambda: file.execute("INSERT INTO bare VALUES (1)"))
    finally:
        file.close()


def _each(act: Callable[[], object]) -> float:
    began = time.monotonic()
    for _ in range(STEPS):
        act()
    return (time.monotonic() - began) / STEPS
