"""Bulkheads: how long unrelated jobs wait for their start while one thing is in trouble, beside how long they wait
while nothing is. `python -m bench bulkheads`.

The house of tests/bulkheads: two real workers and a stream of ten jobs a second. Each round puts every thing into
trouble once, with as much quiet before it; figures are ratios of the delays of one run.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from bench import postgres
from bench.contender import StoreKind
from tests.bulkheads.conftest import TIMES, House, boot
from tests.support.workers import workers
from unstuck.assembly import open_store

#: The median and the 90th of a hundred may be so many times those of quiet.
BOUND = 2.0
#: Seconds of quiet, and of trouble.
SPELL = 4.0

Trouble = Callable[[House], AbstractContextManager[object]]


def held(what: str) -> Trouble:
    """Somebody's session keeps these rows locked."""
    return lambda house: house.held(f"SELECT 1 FROM {what} FOR UPDATE")


@contextmanager
def raising(house: House) -> Iterator[None]:
    """One job whose end cannot be written."""
    job = house.send_one("work", "bad", delay=0.5)
    with house.raising("unstuck_done", f"NEW.job = {house.number(job)}"):
        yield


@contextmanager
def limited(house: House) -> Iterator[None]:
    with held("unstuck_limits WHERE name = 'limited'")(house):
        house.send("limited", "limited", times=20)
        yield


@contextmanager
def on_a_target(house: House) -> Iterator[None]:
    with held("unstuck_targets WHERE name = 'acme'")(house):
        house.send("work", "kept", times=20, target="acme")
        yield


@contextmanager
def due(house: House) -> Iterator[None]:
    job = house.send_one("work", "due", delay=0.5)
    with held(f"unstuck_timers WHERE job = {house.number(job)}")(house):
        yield


@contextmanager
def running(house: House) -> Iterator[None]:
    job, end = house.running(f"held-{len(house.marks())}")
    with held(f"unstuck_running WHERE job = {house.number(job)}")(house):
        end.touch()
        yield


ON_BOTH: dict[str, Trouble] = {"an end that raises": raising}
ON_POSTGRES: dict[str, Trouble] = {
    "a held limit": limited,
    "a held target": on_a_target,
    "a held timer": due,
    "a held worker": held("unstuck_workers WHERE name = 'w1'"),
    "held workflows": held("unstuck_workflows"),
    "a held attempt": running,
    "held jobs": held("unstuck_jobs"),
    "held events": held("unstuck_events"),
}


def run(stores: Sequence[StoreKind], rounds: int) -> bool:
    """Whether every trouble keeps the bound on each database."""
    kept = True
    for store in stores:
        troubles = ON_BOTH if store == "sqlite" else ON_BOTH | ON_POSTGRES
        delays = measure(store, troubles, rounds)
        quiet = delays.pop("quiet")
        print(f"\n| {store} | p50, ms | × | p90, ms | × | worst, ms |\n|---|---|---|---|---|---|")
        print(_row("quiet", quiet, quiet))
        for name, waits in delays.items():
            print(_row(name, waits, quiet), flush=True)
            kept &= all(mine <= BOUND * usual for mine, usual in zip(_cuts(waits), _cuts(quiet), strict=True))
    return kept


def measure(store: StoreKind, troubles: dict[str, Trouble], rounds: int) -> dict[str, list[float]]:
    """Seconds from the submit to the start of each unrelated job, by what was in trouble then."""
    delays: dict[str, list[float]] = {name: [] for name in ("quiet", *troubles)}
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unstuck-bench-bulkheads-")))
        url = f"sqlite:///{home}/jobs.db"
        if store == "postgres":
            url = stack.enter_context(postgres.server()).create("bulkheads")
        opened = open_store(url, TIMES, migrate=True)
        stack.callback(opened.close)
        start = stack.enter_context(workers(url, home, UNSTUCK_DATABASE=url))
        house = House(url, opened, start, home)
        house.begin()
        stack.callback(house.stream.stop)
        house.completes(house.send_one("work", "first", target="acme"))
        for _ in range(rounds):
            for name, trouble in troubles.items():
                delays["quiet"] += _spell(house)
                with trouble(house):
                    delays[name] += _spell(house)
    return delays


def _spell(house: House) -> list[float]:
    since = boot()
    threading.Event().wait(SPELL)
    return house.stream.waits(since)


def _cuts(waits: Sequence[float]) -> tuple[float, float]:
    cuts = statistics.quantiles(waits, n=10)
    return cuts[4], cuts[8]


def _row(name: str, waits: Sequence[float], quiet: Sequence[float]) -> str:
    (p50, p90), (usual_p50, usual_p90) = _cuts(waits), _cuts(quiet)
    return (
        f"| {name} | {p50 * 1e3:.1f} | {p50 / usual_p50:.2f} | {p90 * 1e3:.1f} | {p90 / usual_p90:.2f}"
        f" | {max(waits) * 1e3:.0f} |"
    )
