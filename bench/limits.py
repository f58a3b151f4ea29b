"""What counting a limit costs, in what the database reads for it and not in time: the same on every machine.

For `bench growth`: make a World with `rated`, `capped` or `keyed`, then ask `cost` of it. Pages on PostgreSQL, steps
of its virtual machine on SQLite.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

import psycopg

from bench.worlds import TENANT, Workshop, World, a_job, by_hand, open_store
from unstuck.store.drivers.connect import sqlite_path
from unstuck.store.drivers.sqlite_session import SqliteTransaction
from unstuck.store.drivers.statements import Statements
from unstuck.store.order.limit_room import rooms_of
from unstuck.store.port import EVERY, Limit, LimitKind, Share

PER_DAY = 86400.0
#: As the store keeps them: so many slices to a window, each a row.
SLICES = 100
SPREAD = """
INSERT INTO unstuck_starts (limit_id, bucket, at, job, starts, until_at)
WITH RECURSIVE slice (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM slice WHERE n < {slices})
SELECT l.id, l.name, (unstuck_now() / (l.per_us / 100) - slice.n) * (l.per_us / 100), 0, {each},
       (unstuck_now() / (l.per_us / 100) - slice.n) * (l.per_us / 100) + l.per_us
  FROM unstuck_limits l CROSS JOIN slice"""
COPY_RUNNING = """
INSERT INTO unstuck_running (job, token, claim, worker, route, policy, run, event_count, claimed_at)
SELECT j.id, 1, 'other', {worker}, j.route, j.policy, 1, 2, j.created_at FROM unstuck_jobs j WHERE j.id > {job}"""
COPY_JOBS_OF = """
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at,
                          available_at)
WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < {copies})
SELECT j.uid || '-' || copy.i, j.tenant, j.queue, j.workflow, j.route, j.priority, j.rank + copy.i, j.payload,
       j.policy, j.created_at, j.available_at
  FROM unstuck_jobs j CROSS JOIN copy
 WHERE j.id = {job}"""


def rated(url: str, starts: int) -> World:
    """A workflow with a rate, and so many starts of it in its window."""
    shop = Workshop(url)
    shop.store.set_limit(Limit("workflow", "claimed", EVERY, "bench", rate=1_000_000_000, per=PER_DAY))
    with by_hand(url) as execute:
        execute(SPREAD.format(slices=SLICES - 2, each=max(1, starts // (SLICES - 2))))
    return _ready(shop)


def capped(url: str, running: int) -> World:
    """A workflow with a limit of concurrency, and so many jobs of another one that run."""
    shop = Workshop(url)
    shop.store.set_limit(Limit("workflow", "claimed", EVERY, "bench", concurrency=1_000_000))
    shop.submit("elsewhere")
    shop.copy(COPY_JOBS_OF, COPY_RUNNING, copies=running, worker=shop.worker.number)
    return _ready(shop)


def _ready(shop: Workshop) -> World:
    shop.submit("claimed", 1_000)
    (route,) = [r.number for r in shop.store.routes(range(1, 100)) if r.workflow == "claimed" and r.tenant == TENANT]
    shop.store.close()
    return World("limits", shop.url, open_store(shop.url), shop.worker, [route])


def keyed(url: str, keys: int, kind: LimitKind = "key") -> World:
    """So many limit keys on which something runs, and as many others, whose routes are those to ask about. Limited as
    a family, or as those of their workflow."""
    shop = Workshop(url)
    shop.store.set_limit(Limit(kind, "place:*" if kind == "key" else "claimed", EVERY, "bench", concurrency=10))
    jobs = [replace(a_job("claimed"), limit_key=f"place:{number}") for number in range(2 * keys)]
    shop.store.submit(jobs)
    fronts = shop.store.open_routes(0, 2 * keys)
    shares = [Share(front.route, 1, is_limited=True) for front in fronts[:keys]]
    assert len(shop.store.claim(shop.worker.number, "running", shares)) == keys
    shop.store.close()
    return World("limits", url, open_store(url), shop.worker, [front.route for front in fronts[keys:]])


def cost(world: World) -> int:
    """Of counting what the limits of the world's routes leave, as a claim and a look do."""
    if world.url.startswith("postgresql:"):
        return _pages(world.url, world.routes)
    return _steps(world.url, world.routes)


def _pages(url: str, routes: Sequence[int]) -> int:
    asked = f"SELECT * FROM unstuck_room(ARRAY[{','.join(map(str, routes))}]::BIGINT[])"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(asked.encode())  # plans it
        explained = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {asked}".encode()).fetchone()
    assert explained is not None
    found = explained[0] if isinstance(explained[0], list) else json.loads(explained[0])
    plan = found[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


def _steps(url: str, routes: Sequence[int]) -> int:
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    with closing(sqlite3.connect(sqlite_path(url))) as file:
        file.create_function("unstuck_now", 0, lambda: time.time_ns() // 1000)
        file.set_progress_handler(step, 1)
        rooms_of(SqliteTransaction(file, Statements("sqlite")), routes)
    return steps
