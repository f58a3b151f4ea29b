"""Newcomers: how long a job on a new route waits for its start while very many routes have work that nobody here
serves. `python -m bench newcomers`.

A real worker with nothing else to do, and the first job of a route that was never there before, one after the other.
Beside it, what the look itself costs: one page of routes, and all of them, read as the claimer reads them.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench import cell, probe, worlds
from bench.contender import StoreKind, load, postgres_url, recreate_database
from bench.contenders.ours import Ours
from bench.drain import surroundings
from bench.retention import CONTENDER
from unstuck.model.times import Times

SIZES = (0, 1_000, 100_000)
WORKFLOWS = 20
#: Between two newcomers: the claimer has become idle again, at another moment of its rest each time.
APART = 0.37
#: The promise for a runnable job and a free slot, with a second for a busy machine.
BOUND = Times().poll + 1.0


@dataclass(frozen=True)
class Row:
    """Seconds: of each newcomer from its submit to its start, of a page of a thousand routes, of all pages. Cores
    that worker and database use while there is nothing to do but to look."""

    delays: list[float]
    page: float
    look: float
    cpu: float


def run(stores: Sequence[StoreKind], newcomers: int) -> bool:
    """Whether all of them start in time on each database."""
    kept = True
    for store in stores:
        print(
            f"| {store}, unserved routes | p50, s | p90, s | worst, s | page, ms | all pages, ms | idle CPU, cores |"
        )
        print("|---" * 7 + "|")
        for size in SIZES:
            with surroundings([CONTENDER[store]]) as variables:
                os.environ.update(variables)
                row = measure(store, size, newcomers)
            cuts = statistics.quantiles(row.delays, n=10, method="inclusive")
            times = (
                f"{cuts[4]:.3f} | {cuts[8]:.3f} | {max(row.delays):.3f} | {row.page * 1e3:.1f} | {row.look * 1e3:.1f}"
            )
            print(f"| {size:,} | {times} | {row.cpu:.2f} |", flush=True)
            kept &= max(row.delays) <= BOUND
    return kept


def measure(store: StoreKind, size: int, newcomers: int) -> Row:
    contender = load(CONTENDER[store])
    assert isinstance(contender, Ours)
    if store == "postgres":
        recreate_database("newcomers")
        url = postgres_url("newcomers")
    else:
        url = f"sqlite:///{(probe.run_directory() / 'disk').resolve()}/newcomers.db"
    shop = make(url, size)
    os.environ["UNSTUCK_DATABASE"] = url
    probe.reset()
    with cell.workers(contender) as pids:
        shop.submit(contender.workflow)
        cell.wait_for_hits(1, cell.START_LIMIT)
        cpu = idle_cpu(pids)
        delays = [newcomer(shop, contender.workflow, number) for number in range(newcomers)]
    page, look = looks(shop)
    shop.store.close()
    return Row(delays, page, look, cpu)


def make(url: str, size: int) -> worlds.Workshop:
    shop = worlds.Workshop(url)
    if size:
        shop.submit("unserved")
        (template,) = shop.store.open_routes()
        texts = (worlds.COPY_JOBS, worlds.MAKE_ROUTES, worlds.SPREAD_JOBS, worlds.COPY_READY, worlds.COPY_EVENTS)
        shop.copy(*texts, copies=size, workflows=WORKFLOWS, route=template.route)
    with worlds.by_hand(url) as execute:
        execute("VACUUM ANALYZE" if url.startswith("postgresql:") else "ANALYZE")
    return shop


def newcomer(shop: worlds.Workshop, workflow: str, number: int) -> float:
    time.sleep(APART)
    before = probe.hits()
    began = time.monotonic()
    shop.store.submit([replace(worlds.a_job(workflow), limit_key=f"new:{number}")])
    cell.wait_for_hits(before + 1, cell.START_LIMIT)
    return time.monotonic() - began


def idle_cpu(pids: list[int], span: float = 5.0) -> float:
    first = cell.usage(pids)
    time.sleep(span)
    last = cell.usage(pids)
    return (last.worker + last.database - first.worker - first.database) / (last.at - first.at)


def looks(shop: worlds.Workshop) -> tuple[float, float]:
    """The median of the pages, and all of them together."""
    pages, after = [], 0
    while True:
        began = time.perf_counter()
        page = shop.store.open_routes(after, 1000)
        pages.append(time.perf_counter() - began)
        after = page.looked_to
        if not after:
            return statistics.median(pages), sum(pages)
