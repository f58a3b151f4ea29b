"""One worker with little to do: its start, what it costs while nothing happens, and how soon it picks up a job.

`idle`: from the worker's start to the first line of a job that waited for it; then, while nothing happens, the CPU
of its process tree, its memory, and the statements that reach PostgreSQL. `pickup`: single jobs at a steady rate from
one client, from the call of enqueue to the first line of the job, and the CPU that each of them costs.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import cell, drain, environment, probe, processes
from bench.contender import ENTRIES, Contender, load

RESULTS = environment.ROOT / "bench" / "results" / "idle.jsonl"
NAMES = (
    "unstuck-sync",
    "unstuck-async",
    "pgqueuer",
    "procrastinate",
    "unstuck-sqlite-sync",
    "huey-sqlite",
    "huey-redis",
    "taskiq",
)
#: What a worker still has to do once after its start, and after its first job.
SETTLING = 4.0
#: Single jobs a second.
RATE = 50.0
#: What clients send, not what functions of the database do inside.
STATEMENTS = "shared_preload_libraries = 'pg_stat_statements'\n"
#: Everybody's, but our own look at it; BEGIN, COMMIT and SET are round trips as others are.
CALLS = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"


@dataclass(frozen=True)
class Idle:
    contender: str
    start_s: float
    cpu_percent: float
    database_percent: float
    statements_per_s: float
    memory_mb: float
    others_cores: float


@dataclass(frozen=True)
class Pickup:
    contender: str
    jobs: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    worker_ms: float
    database_ms: float
    statements_per_job: float
    others_cores: float


def run(kind: str, names: Sequence[str], rounds: int, keep: bool) -> None:
    if any(ENTRIES[name].environment == "peers" for name in names):
        environment.setup()
    names = drain.measurable(names)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    lines: list[dict[str, Any]] = []
    with drain.surroundings(names, STATEMENTS) as variables:
        for number in range(1, rounds + 1):
            for name in names:
                line = drain.cell(name, None, variables, f"{kind}-cell")
                lines.append({"run": started_at, "kind": kind, "round": number, **line})
                print(json.dumps(lines[-1]), file=sys.stderr if "error" in line else sys.stdout, flush=True)
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    print("\n" + table([line for line in lines if "error" not in line]))


def table(lines: Sequence[dict[str, Any]]) -> str:
    """Medians as Markdown."""
    if not lines:
        return "nothing was measured"
    figures = [key for key, value in lines[0].items() if isinstance(value, float)]
    out = [f"| | {' | '.join(figures)} |", "|---" * (len(figures) + 1) + "|"]
    for name in dict.fromkeys(line["contender"] for line in lines):
        mine = [line for line in lines if line["contender"] == name]
        medians = (f"{statistics.median(line[figure] for line in mine):,.2f}" for figure in figures)
        out.append(f"| {name} | {' | '.join(medians)} |")
    return "\n".join(out)


# --- one cell, in the contender's own interpreter -----------------------------------------------------------------
def idle_cell(name: str, seconds: float = 20.0) -> None:
    contender = _prepared(name)
    with _lone_worker(contender) as (pids, start):
        _print(_idle(contender, pids, start, seconds))


def pickup_cell(name: str, seconds: float = 10.0) -> None:
    contender = _prepared(name)
    with _lone_worker(contender) as (pids, _):
        _print(_pickup(contender, pids, seconds))


def lone_cell(name: str, idle_for: float = 8.0, pickup_for: float = 5.0) -> None:
    """Both of one worker, in less time."""
    contender = _prepared(name)
    with _lone_worker(contender) as (pids, start):
        idle = _idle(contender, pids, start, idle_for)
        # Huey asks the more seldom the longer nothing came: a first job brings it back to the pace of the others.
        contender.submit_stamped()
        cell.wait_for_hits(2, cell.START_LIMIT)
        _print(idle, _pickup(contender, pids, pickup_for))


@contextmanager
def _lone_worker(contender: Contender) -> Iterator[tuple[list[int], float]]:
    """A worker that has come to rest after its first job, and how long that job waited for it."""
    contender.submit_stamped()
    began = time.monotonic()
    with cell.workers(contender, contender.lone_worker_commands()) as pids:
        cell.wait_for_hits(1, cell.START_LIMIT)
        start = time.monotonic() - began
        time.sleep(SETTLING)
        yield pids, start


def _idle(contender: Contender, pids: list[int], start: float, seconds: float) -> Idle:
    calls = _calls(contender.name)
    before, called = cell.usage(pids), calls()
    time.sleep(seconds)
    after, called = cell.usage(pids), calls() - called
    span = after.at - before.at
    return Idle(
        contender=contender.name,
        start_s=round(start, 3),
        cpu_percent=round((after.worker - before.worker) / span * 100, 3),
        database_percent=round((after.database - before.database) / span * 100, 3),
        statements_per_s=round(called / span, 2),
        memory_mb=round(sum(_memory(pid) for pid in processes.tree(pids[0])), 1),
        others_cores=_others(before, after),
    )


def _pickup(contender: Contender, pids: list[int], seconds: float) -> Pickup:
    jobs = int(RATE * seconds)
    probe.forget_stamps()
    calls = _calls(contender.name)
    before, called = cell.usage(pids), calls()
    began = time.monotonic()
    for number in range(jobs):
        time.sleep(max(0.0, began + number / RATE - time.monotonic()))
        contender.submit_stamped()
    cell.wait_for_hits(before.hits + jobs, cell.START_LIMIT)
    cell.wait_until_settled(contender)
    after, called = cell.usage(pids), calls() - called
    waits = probe.stamps()
    return Pickup(
        contender=contender.name,
        jobs=jobs,
        p50_ms=round(waits[jobs // 2], 2),
        p90_ms=round(waits[jobs * 9 // 10], 2),
        p99_ms=round(waits[jobs * 99 // 100], 2),
        worker_ms=round((after.worker - before.worker) / jobs * 1e3, 3),
        database_ms=round((after.database - before.database) / jobs * 1e3, 3),
        statements_per_job=round(called / jobs, 2),
        others_cores=_others(before, after),
    )


def _print(*measured: Idle | Pickup) -> None:
    """One line; what both have is the last one's."""
    print(json.dumps({key: value for each in measured for key, value in asdict(each).items()}))


def _prepared(name: str) -> Contender:
    contender = load(name)
    contender.prepare()
    probe.reset()
    processes.wait_for_quiet()
    return contender


def _calls(name: str) -> Callable[[], int]:
    if ENTRIES[name].store != "postgres":
        return lambda: 0
    import psycopg

    connection = psycopg.connect(f"{os.environ['BENCH_POSTGRES']}/postgres", autocommit=True)
    connection.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")

    def calls() -> int:
        row = connection.execute(CALLS).fetchone()
        return int(row[0]) if row else 0

    return calls


def _memory(pid: int) -> float:
    """What is its own, and its share of what it shares, in MiB."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return float(sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))) / 1024


def _others(before: cell.Usage, after: cell.Usage) -> float:
    ours = sum(getattr(after, part) - getattr(before, part) for part in ("worker", "database", "driver"))
    return round((after.machine - before.machine - ours) / (after.at - before.at), 2)
