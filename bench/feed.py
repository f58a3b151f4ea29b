"""Feed: what it costs those who submit, claim and settle on PostgreSQL. `python -m bench feed`.

Rounds are interleaved, and what is compared is the CPU of the server's backends per job, not the time: on a machine
that others use, time says nothing. The reader only gives events their positions, as often as an idle one would look.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psutil
import psycopg

from bench import postgres, worlds
from bench.worlds import chance
from unstuck.model.settlement import Returned
from unstuck.store.drivers.connect import open_database
from unstuck.store.port import NewWorker, Report, Share
from unstuck.store.sql_store import SqlStore

SITUATIONS = ("without the index", "with it", "with a reader")
BATCH = 100
CLIENTS = 2
LOOK_EVERY = 0.05


def run(rounds: int, jobs: int) -> None:
    cost: dict[str, list[float]] = {name: [] for name in SITUATIONS}
    with postgres.server() as server:
        for number in range(rounds):
            for name in SITUATIONS if number % 2 == 0 else reversed(SITUATIONS):
                url = server.create(f"feed_{number}_{SITUATIONS.index(name)}")
                cost[name].append(_cost(server.pid, url, name, jobs))
                print(f"{number + 1:>3}  {name:<18} {cost[name][-1]:6.1f} µs/job", flush=True)
    for name, seen in cost.items():
        print(f"{name:<18} median {statistics.median(seen):6.1f}  least {min(seen):6.1f} µs of server CPU per job")


def _cost(pid: int, url: str, name: str, jobs: int) -> float:
    with _store(url) as store:
        store.migrate()
    if name == "without the index":
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("DROP INDEX unstuck_events_xid")
    before = _spent(pid)
    with ThreadPoolExecutor(CLIENTS + 1) as pool:
        stop = threading.Event()
        if name == "with a reader":
            pool.submit(_sequence, url, stop)
        _submit(url, jobs)
        list(pool.map(lambda client: _drain(url, client), range(CLIENTS)))
        stop.set()
    return 1e6 * (_spent(pid) - before) / jobs


def _spent(pid: int) -> float:
    """By backends that have ended: all of a situation's have, a moment after its connections are closed."""
    time.sleep(0.5)
    times = psutil.Process(pid).cpu_times()
    return float(times.children_user + times.children_system)


def _submit(url: str, jobs: int) -> None:
    with _store(url) as store:
        for _ in range(jobs // 500):
            store.submit([worlds.a_job("noop") for _ in range(500)])


def _drain(url: str, client: int) -> None:
    with _store(url) as store:
        me = NewWorker(chance.nonce(), f"w{client}", "h", "b", "p", 1, 1, ("default",), "v", lease=1e6)
        worker = store.register_worker(me).number
        while attempts := store.claim(worker, chance.nonce(), [Share(f.route, BATCH) for f in store.open_routes()]):
            store.settle(worker, [Report(a.ref, Returned("null"), duration_ms=1) for a in attempts])


def _sequence(url: str, stop: threading.Event) -> None:
    with _store(url) as store:
        while not stop.wait(LOOK_EVERY):
            while store.sequence() > 0:
                pass


@contextmanager
def _store(url: str) -> Iterator[SqlStore]:
    store = SqlStore(open_database(url))
    try:
        yield store
    finally:
        store.close()
