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

import psycopg

from bench import postgres
from bench.contender import StoreKind
from tests.bulkheads.conftest import TIMES, House, boot
from tests.support.workers import workers
from unstuck.assembly.store import open_store

#: The median and the 90th of a hundred may be so many times those of quiet. The 99th is shown: of some hundred waits
#: it is the second worst, and a busy machine decides about it.
BOUND = 2.0
#: Seconds of quiet, and of trouble.
SPELL = 4.0

Trouble = Callable[[House], AbstractContextManager[object]]


def held(what: str) -> Trouble:
    """Somebody's session keeps these rows locked."""
    return lambda house: house.held(f"SELECT 1 FROM {what} FOR UPDATE")


def refused(table: str) -> Trouble:
    """One job, due in a moment, of which no row can be written into this table."""

    @contextmanager
    def trouble(house: House) -> Iterator[None]:
        job = house.send_one("work", "bad", delay=0.5)
        with house.raising(table, f"NEW.job = {house.number(job)}"):
            yield

    return trouble


@contextmanager
def raising_target(house: House) -> Iterator[None]:
    (target,) = house.store.targets("default")
    with house.raising("unstuck_targets", f"NEW.id = {target.number}", on="UPDATE"):
        house.send("work", "bad", times=20, target="acme")
        yield


@contextmanager
def raising_dependant(house: House) -> Iterator[None]:
    first, end = house.running(f"first-{len(house.marks())}")
    bad = house.send_one("work", "after", after=(first,))
    with house.raising("unstuck_jobs", f"NEW.id = {house.number(bad)}", on="UPDATE"):
        end.touch()
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


@contextmanager
def announced(house: House) -> Iterator[None]:
    """An entry of the inbox. In one message, so that no worker is quicker."""
    (target,) = house.store.targets("default")
    with psycopg.connect(house.url, application_name="somebody", autocommit=True) as other:
        taken = f"SELECT 1 FROM unstuck_inbox WHERE target = {target.number} FOR UPDATE SKIP LOCKED"
        enter = f"INSERT INTO unstuck_inbox (target) VALUES ({target.number})"
        for _ in range(100):
            cursor = other.execute(f"BEGIN; {enter}; COMMIT; BEGIN; {taken}".encode())
            while cursor.nextset():
                pass
            if cursor.rowcount:
                break
            other.rollback()
        else:
            raise SystemExit("no entry of the inbox could be held")
        yield


ON_BOTH: dict[str, Trouble] = {
    "an end that raises": refused("unstuck_done"),
    "a claim that raises": refused("unstuck_running"),
    "a timer that raises": refused("unstuck_ready"),
    "a target that raises": raising_target,
    "a dependant that raises": raising_dependant,
}
ON_POSTGRES: dict[str, Trouble] = {
    "a held limit": limited,
    "a held target": on_a_target,
    "a held timer": due,
    "a held worker": held("unstuck_workers WHERE name = 'w1'"),
    "held workflows": held("unstuck_workflows"),
    "a held attempt": running,
    "a held entry of the inbox": announced,
    "held jobs": held("unstuck_jobs"),
    "held events": held("unstuck_events"),
    "a held feed": held("unstuck_sequencer"),
}


def run(stores: Sequence[StoreKind], rounds: int) -> bool:
    """Whether every trouble keeps the bound on each database."""
    kept = True
    for store in stores:
        troubles = ON_BOTH if store == "sqlite" else ON_BOTH | ON_POSTGRES
        delays = measure(store, troubles, rounds)
        quiet = delays.pop("quiet")
        print(f"\n| {store} | p50, ms | × | p90, ms | × | p99, ms | × | worst, ms |\n{'|---' * 8}|")
        print(_row("quiet", quiet, quiet))
        for name, waits in delays.items():
            print(_row(name, waits, quiet), flush=True)
            (p50, p90, _), (usual_p50, usual_p90, _) = _cuts(waits), _cuts(quiet)
            kept &= p50 <= BOUND * usual_p50 and p90 <= BOUND * usual_p90
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


def _cuts(waits: Sequence[float]) -> tuple[float, float, float]:
    """p50, p90 and p99."""
    cuts = statistics.quantiles(waits, n=100, method="inclusive")
    return cuts[49], cuts[89], cuts[98]


def _row(name: str, waits: Sequence[float], quiet: Sequence[float]) -> str:
    cells = [f"{mine * 1e3:.1f} | {mine / usual:.2f}" for mine, usual in zip(_cuts(waits), _cuts(quiet), strict=True)]
    return f"| {name} | {' | '.join(cells)} | {max(waits) * 1e3:.0f} |"
