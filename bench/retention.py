"""Retention beside a drain: `python -m bench retention`.

A worker drains at full speed beside jobs that ended long ago, in one database young enough to stay and in another one
old enough to go. How many go while how many end, and what that costs the drain: both databases take turns.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench import cell, probe, worlds
from bench.contender import StoreKind, load, postgres_url, recreate_database
from bench.contenders.ours import Ours
from bench.drain import surroundings
from unstuck.model.settlement import Returned

#: As many must go as end meanwhile.
BOUND = 1.0
JOBS = 600_000
#: Seconds that are measured, after so many jobs.
SPAN = 8.0
WARM_UP = 2_000
AGE = "UPDATE unstuck_done SET finished_at = finished_at - 30 * 86400000000"
LEFT = "SELECT count(*) FROM unstuck_done WHERE job <= {last}"
CONTENDER: dict[StoreKind, str] = {"postgres": "unstuck-sync", "sqlite": "unstuck-sqlite-sync"}


@dataclass
class World:
    url: str
    last: int


@dataclass(frozen=True)
class Window:
    """Per second: jobs that ended, and old ones that went. Per job that ended: microseconds of CPU."""

    ended: float
    gone: float
    cpu: float


def run(stores: Sequence[StoreKind], rounds: int, jobs: int = JOBS) -> bool:
    """Whether as many go as end, on each database."""
    kept = True
    for store in stores:
        with surroundings([CONTENDER[store]]) as variables:
            os.environ.update(variables)
            stay, go = measure(store, rounds, jobs)
        kept &= _ratio(go) >= BOUND
        cost = statistics.median(beside.ended / alone.ended for alone, beside in zip(stay, go, strict=True))
        print(
            f"\n| {store} | ended/s | gone/s | gone per ended | CPU, µs per ended |\n|---|---|---|---|---|\n"
            f"{_row('nothing old enough', stay)}\n{_row(f'{jobs:,} to go', go)}\n"
            f"\n{cost:.2f} × the speed of the drain alone (median of {rounds} pairs)",
            flush=True,
        )
    return kept


def measure(store: StoreKind, rounds: int, jobs: int) -> tuple[list[Window], list[Window]]:
    contender = load(CONTENDER[store])
    assert isinstance(contender, Ours)
    young, old = (make(store, contender, name, jobs) for name in ("young", "old"))
    windows: tuple[list[Window], list[Window]] = ([], [])
    for _ in range(rounds):
        for world, found in zip((young, old), windows, strict=True):
            found.append(watch(contender, world))
    return windows


def make(store: StoreKind, contender: Ours, name: str, jobs: int) -> World:
    if store == "postgres":
        recreate_database(name)
        url = postgres_url(name)
    else:
        url = f"sqlite:///{(probe.run_directory() / 'disk').resolve()}/{name}.db"
    shop = worlds.Workshop(url)
    shop.submit(contender.workflow)
    shop.run_one(Returned('"ok"'))
    shop.copy(worlds.COPY_JOBS, worlds.COPY_DONE, worlds.COPY_EVENTS, copies=jobs)
    with worlds.by_hand(url) as execute:
        if name == "old":
            execute(AGE)
        ((last,),) = execute("SELECT MAX(job) FROM unstuck_done")
    shop.submit(contender.workflow)
    shop.copy(worlds.COPY_JOBS, worlds.COPY_READY, worlds.COPY_EVENTS, copies=jobs)
    shop.store.close()
    with worlds.by_hand(url) as execute:
        execute("VACUUM ANALYZE" if store == "postgres" else "PRAGMA optimize")
    return World(url, last)


def watch(contender: Ours, world: World) -> Window:
    os.environ["UNSTUCK_DATABASE"] = world.url
    probe.reset()
    with cell.workers(contender) as pids:
        cell.wait_for_hits(WARM_UP, cell.START_LIMIT)
        left, first = _left(world), cell.usage(pids)
        time.sleep(SPAN)
        last, still = cell.usage(pids), _left(world)
    assert still or left == still, "all were gone too early"
    ended, span = last.hits - first.hits, last.at - first.at
    cpu = last.worker + last.database - first.worker - first.database
    return Window(ended / span, (left - still) / span, cpu / ended * 1e6)


def _left(world: World) -> int:
    with worlds.by_hand(world.url) as execute:
        return execute(LEFT.format(last=world.last))[0][0]


def _ratio(windows: Sequence[Window]) -> float:
    return statistics.median(window.gone / window.ended for window in windows)


def _row(name: str, windows: Sequence[Window]) -> str:
    ended, gone, cpu = ([getattr(window, part) for window in windows] for part in ("ended", "gone", "cpu"))
    spread = f"{min(ended):,.0f}–{max(ended):,.0f}"
    return (
        f"| {name} | {statistics.median(ended):,.0f} ({spread}) | {statistics.median(gone):,.0f} "
        f"({min(gone):,.0f}–{max(gone):,.0f}) | {_ratio(windows):.2f} | {statistics.median(cpu):.0f} |"
    )
