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
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import cell, drain, environment, probe, processes
from bench.contender import ENTRIES, Contender, load

RESULTS = environment.ROOT / "bench" / "results" / "idle.jsonl"
NAMES = ("unstuck-sync", "unstuck-async", "pgqueuer", "unstuck-sqlite-sync", "huey-sqlite")
#: What a worker still has to do once after its start, and after its first job.
SETTLING = 4.0
#: What clients send, not what functions of the database do inside.
STATEMENTS = "shared_preload_libraries = 'pg_stat_statements'\n"
#: Everybody's, but our own look at it; BEGIN, COMMIT and SET are round trips as others are.
CALLS = "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE query NOT LIKE '%pg_stat_statements%'"


@dataclass(frozen=True)
class Idle:
    contender: str
    start_s: float
    cpu_percent: float
    postgres_percent: float
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
    postgres_ms: float
    statements_per_job: float
    others_cores: float


def run(kind: str, names: Sequence[str], rounds: int, keep: bool) -> None:
    if any(ENTRIES[name].environment == "peers" for name in names):
        environment.setup()
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
    contender.submit_stamped()
    began = time.monotonic()
    with cell.workers(contender, contender.lone_worker_commands()) as pids:
        cell.wait_for_hits(1, cell.START_LIMIT)
        start = time.monotonic() - began
        time.sleep(SETTLING)
        calls = _calls(name)
        before, called = cell.usage(pids), calls()
        time.sleep(seconds)
        after, called = cell.usage(pids), calls() - called
        memory = sum(_memory(pid) for pid in processes.tree(pids[0]))
    span = after.at - before.at
    print(
        json.dumps(
            asdict(
                Idle(
                    contender=name,
                    start_s=round(start, 3),
                    cpu_percent=round((after.worker - before.worker) / span * 100, 3),
                    postgres_percent=round((after.postgres - before.postgres) / span * 100, 3),
                    statements_per_s=round(called / span, 2),
                    memory_mb=round(memory, 1),
                    others_cores=_others(before, after),
                )
            )
        )
    )


def pickup_cell(name: str, rate: float = 50.0, seconds: float = 10.0) -> None:
    contender = _prepared(name)
    contender.submit_stamped()
    jobs = int(rate * seconds)
    with cell.workers(contender, contender.lone_worker_commands()) as pids:
        cell.wait_for_hits(1, cell.START_LIMIT)
        time.sleep(SETTLING)
        probe.forget_stamps()
        calls = _calls(name)
        before, called = cell.usage(pids), calls()
        began = time.monotonic()
        for number in range(jobs):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            contender.submit_stamped()
        cell.wait_for_hits(jobs + 1, cell.START_LIMIT)
        cell.wait_until_settled(contender)
        after, called = cell.usage(pids), calls() - called
    waits = probe.stamps()
    print(
        json.dumps(
            asdict(
                Pickup(
                    contender=name,
                    jobs=jobs,
                    p50_ms=round(waits[jobs // 2], 2),
                    p90_ms=round(waits[jobs * 9 // 10], 2),
                    p99_ms=round(waits[jobs * 99 // 100], 2),
                    worker_ms=round((after.worker - before.worker) / jobs * 1e3, 3),
                    postgres_ms=round((after.postgres - before.postgres) / jobs * 1e3, 3),
                    statements_per_job=round(called / jobs, 2),
                    others_cores=_others(before, after),
                )
            )
        )
    )


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
    ours = sum(getattr(after, part) - getattr(before, part) for part in ("worker", "postgres", "driver"))
    return round((after.machine - before.machine - ours) / (after.at - before.at), 2)
