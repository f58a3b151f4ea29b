"""Counts and lists over a million jobs: `python -m bench.counts [JOBS]`; every line says whether it keeps its limit.

The rows are laid down by SQL in each of their places: half of the jobs have ended, a fifth waits to be claimed, the
rest waits for a time, on targets, for a person, or runs. One tenant has most of it, one has thousands of limit keys
and with them routes, a thousand have a few jobs each.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bench import postgres
from unstuck.model.lifecycle import JobState, Shown
from unstuck.store.drivers.connect import open_database, sqlite_path
from unstuck.store.port import JobFilter
from unstuck.store.sql_store import SqlStore

JOBS = 1_000_000
LIMIT_MS = 20.0
ROUNDS = 15
#: Of a hundred jobs: 70 of the tenant with much, 20 of the one with many keys, 10 of the thousand small ones.
NUMBERS = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {most})"
FILL = [
    """INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key) {numbers_6020}
    SELECT CASE WHEN n <= 20 THEN 'much' WHEN n <= 5020 THEN 'keyed' ELSE 'small-' || (n - 5020) END,
           CASE WHEN n % 4 = 0 THEN 'slow' ELSE 'default' END, 'w' || (n % 20),
           CASE WHEN n > 20 AND n <= 5020 THEN 'key:' || n ELSE '' END
      FROM numbers""",
    "INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us) VALUES ('d', '{{}}', 1, 1)",
    """INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues,
                                code_version, started_at, beat_at, lease_until)
    VALUES ('i', 'w', 'h', 'b', 'p', 1, 1, '[]', 'v', 0, 0, unstuck_now() + 3600000000)""",
    """INSERT INTO unstuck_targets (tenant, name) {numbers_2000} SELECT 'much', 't' || n FROM numbers""",
    """INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, target, priority, rank, payload, policy,
                              created_at, available_at, state, error_type)
    {numbers_jobs}, routed (n, route) AS (
        SELECT n, CASE WHEN n % 100 < 70 THEN 1 + n % 20 WHEN n % 100 < 90 THEN 21 + n % 5000
                       ELSE 5021 + n % 1000 END
          FROM numbers)
    SELECT 'uid-' || routed.n, o.tenant, o.queue, o.workflow, o.id,
           CASE WHEN o.tenant = 'much' AND routed.n % 10 = 8 THEN 1 + routed.n % 2000 END,
           0, routed.n, '{{}}', 1, unstuck_now() - ({jobs} - routed.n) * 1000,
           unstuck_now() + CASE WHEN routed.n % 10 = 7 THEN 3600000000 ELSE 0 END,
           CASE WHEN routed.n % 200 = 9 THEN 'PENDING' WHEN routed.n % 200 = 109 THEN 'PAUSED' ELSE 'QUEUED' END, NULL
      FROM routed JOIN unstuck_routes o ON o.id = routed.route""",
    """INSERT INTO unstuck_done (job, route, run, state, token, event_count, finished_at, error_type)
    SELECT id, route, 1,
           CASE WHEN id % 1000 = 0 THEN 'TIMEOUT' WHEN id % 100 = 1 THEN 'CANCELLED' WHEN id % 50 = 2 THEN 'FAILED'
                ELSE 'COMPLETED' END, 1, 3, created_at,
           CASE WHEN id % 50 = 2 THEN 'ValueError' END
      FROM unstuck_jobs WHERE id % 10 < 5""",
    "INSERT INTO unstuck_ready (route, rank, job) SELECT route, rank, id FROM unstuck_jobs WHERE id % 10 IN (5, 6)",
    """INSERT INTO unstuck_timers (kind, due_at, job, route)
    SELECT 'start', unstuck_now() + 3600000000, id, route FROM unstuck_jobs WHERE id % 10 = 7""",
    """INSERT INTO unstuck_ready (route, rank, job)
    SELECT route, rank, id FROM unstuck_jobs WHERE id % 10 = 8 AND target IS NULL""",
    """INSERT INTO unstuck_line (target, place, job, route)
    SELECT target, 0, id, route FROM unstuck_jobs WHERE id % 10 = 8 AND target IS NOT NULL""",
    """INSERT INTO unstuck_running (job, token, claim, worker, route, policy, run, event_count, claimed_at)
    SELECT id, 1, 'c', 1, route, 1, 1, 2, created_at FROM unstuck_jobs WHERE id % 200 = 19""",
    """INSERT INTO unstuck_ready (route, rank, job)
    SELECT route, rank, id FROM unstuck_jobs WHERE id % 10 = 9 AND id % 200 <> 19 AND state = 'QUEUED'""",
    "UPDATE unstuck_targets SET blocked_by = 0, blocked_at = 1 WHERE id % 100 = 9",
]


def fill(url: str, jobs: int) -> None:
    """Rows as they are after a million jobs, without a million submits."""
    texts = {
        "numbers_6020": NUMBERS.format(most=6020),
        "numbers_2000": NUMBERS.format(most=2000),
        "numbers_jobs": NUMBERS.format(most=jobs),
        "jobs": jobs,
    }
    with _hand(url) as execute:
        for text in FILL:
            execute(text.format(**texts))
        execute("VACUUM ANALYZE" if url.startswith("postgresql:") else "ANALYZE")


@contextmanager
def _hand(url: str) -> Iterator[Callable[[str], Any]]:
    if url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as server:
            yield lambda text: server.execute(text.encode())
        return
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as file:
        file.create_function("unstuck_now", 0, lambda: time.time_ns() // 1000)
        yield file.execute


@contextmanager
def databases() -> Iterator[list[tuple[str, int | None]]]:
    """One of each kind, empty, with the server's process if it has one; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-") as folder, postgres.server() as server:
        places = [(f"sqlite:///{Path(folder) / 'counts.db'}", None), (f"{server.url}/postgres", server.pid)]
        for url, _ in places:
            with closing(open_database(url, store_call=60)) as database:
                database.migrate()
        yield places


TALLIES = (None, "much", "keyed", "small-95", "nobody")
LISTS = {
    "the newest": JobFilter(),
    "QUEUED": JobFilter(states=(JobState.QUEUED,)),
    "FAILED": JobFilter(states=(JobState.FAILED,)),
    "RUNNING": JobFilter(states=(JobState.RUNNING,)),
    "SCHEDULED": JobFilter(states=(Shown.SCHEDULED,)),
    "BLOCKED": JobFilter(states=(Shown.BLOCKED,)),
    "of a workflow, oldest first": JobFilter(workflow="w3", newest_first=False),
    "on a target": JobFilter(target="t9"),
    "by error": JobFilter(error_type="ValueError"),
}


def measure(store: SqlStore, server: int | None) -> Iterator[tuple[str, float, float, float | None]]:
    """What was asked, the median of its milliseconds, the least processor time of a round, and the limit if any."""
    for tenant in TALLIES:
        yield f"count, {tenant or 'all tenants'}", *_rounds(partial(store.tally, tenant), server), LIMIT_MS
    for name, filter in LISTS.items():
        yield f"list {name}", *_rounds(partial(store.jobs, "much", filter, 50), server), None


def _rounds(call: Callable[[], object], server: int | None) -> tuple[float, float]:
    took, worked = [], []
    for _ in range(ROUNDS):
        began, before = time.perf_counter(), _processor_ms(server)
        call()
        took.append((time.perf_counter() - began) * 1000)
        # A process of the server that ended meanwhile is in neither sum: it cannot make a round look cheap.
        worked.append(sum(ms - before.get(pid, 0.0) for pid, ms in _processor_ms(server).items()))
    return statistics.median(took), min(worked)


def _processor_ms(server: int | None) -> dict[str, float]:
    """Ours, and of each process of the server: it stays the same when the machine has other work."""
    children = [] if server is None else Path(f"/proc/{server}/task/{server}/children").read_text().split()
    return {"": time.process_time() * 1000} | {pid: ms for pid in children if (ms := _schedstat(pid)) is not None}


def _schedstat(pid: str) -> float | None:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
    except OSError:  # it has just ended
        return None


def main(jobs: int) -> int:
    """The exit code is 1 if a limit was not kept, by processor time: what it takes where nobody else wants it."""
    kept = True
    with databases() as places:
        for url, server in places:
            fill(url, jobs)
            with closing(SqlStore(open_database(url, store_call=30))) as store:
                print(f"\n{url.partition(':')[0]}, {jobs:,} jobs")
                for what, took, worked, limit in measure(store, server):
                    verdict = "" if limit is None else "ok" if worked <= limit else f"MORE THAN {limit:g} ms"
                    kept &= limit is None or worked <= limit
                    print(f"  {what:<32} {worked:6.1f} ms of work, median {took:6.1f} ms  {verdict}", flush=True)
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]) if len(sys.argv) > 1 else JOBS))
