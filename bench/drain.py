"""Interleaved repetitions of the drain: every contender once per round, medians and ratios at the end."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import environment, postgres, redis_server
from bench.contender import ENTRIES

RESULTS = environment.ROOT / "bench" / "results" / "drain.jsonl"
PEERS = [name for name, entry in ENTRIES.items() if entry.beside == "peers"]
YARDSTICKS = ("pgqueuer", "huey-sqlite", "huey-redis")
CELL_LIMIT = 400.0


def run(
    names: Sequence[str],
    rounds: int,
    jobs: int | None,
    keep: bool,
    yardsticks: Sequence[str] = YARDSTICKS,
    *,
    patience: float | None = None,
) -> list[dict[str, Any]]:
    """`patience`: how long one cell waits for a quiet machine, if not as long as usual."""
    if any(ENTRIES[name].environment == "peers" for name in names):
        environment.setup()
    names = measurable(names)
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    lines: list[dict[str, Any]] = []
    with surroundings(names) as variables:
        if patience is not None:
            variables = {"BENCH_PATIENCE": str(patience), **variables}
        for number in range(1, rounds + 1):
            for name in names:
                line = {"run": started_at, "round": number, **cell(name, jobs, variables)}
                lines.append(line)
                say(line)
    if keep:
        with open(RESULTS, "a") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    print("\n" + table(lines, yardsticks))
    return lines


def compare(pairs: dict[str, str], bound: float, rounds: int, jobs: int | None, keep: bool) -> bool:
    """Drains of ourselves, each beside an easier setting; whether each keeps at least `bound` of that one's speed."""
    kept = True
    for harder, ratio in ratios(pairs, rounds, jobs, keep).items():
        print(f"{harder}: {ratio:.2f} × {pairs[harder]} (at least {bound})")
        kept &= ratio >= bound
    return kept


def ratios(pairs: dict[str, str], rounds: int, jobs: int | None, keep: bool) -> dict[str, float]:
    """The same, told by numbers."""
    names = list(dict.fromkeys(name for harder, easier in pairs.items() for name in (easier, harder)))
    lines = run(names, rounds, jobs, keep, list(dict.fromkeys(pairs.values())))
    medians = _medians([line for line in lines if "error" not in line])
    return {harder: medians[harder]["jobs_per_s"] / medians[easier]["jobs_per_s"] for harder, easier in pairs.items()}


def measurable(names: Sequence[str]) -> list[str]:
    """All but those on Redis if there is none, which is said."""
    absent = [name for name in names if ENTRIES[name].store == "redis"] if redis_server.find_binary() is None else []
    for name in absent:
        print(f"{name}: {redis_server.ABSENT}", file=sys.stderr, flush=True)
    return [name for name in names if name not in absent]


@contextmanager
def surroundings(names: Sequence[str], extra_settings: str = "") -> Iterator[dict[str, str]]:
    """The servers that somebody needs, a run directory in memory with `disk` beside it for SQLite files."""
    with ExitStack() as stack:
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
        here = stack.enter_context(tempfile.TemporaryDirectory(prefix="unstuck-bench-", dir=memory))
        # SQLite files belong on a real disk: in memory an fsync costs nothing.
        disk = stack.enter_context(tempfile.TemporaryDirectory(prefix="unstuck-bench-disk-"))
        (Path(here) / "disk").symlink_to(disk)
        search = os.pathsep.join(filter(None, [str(environment.ROOT), os.environ.get("PYTHONPATH")]))
        variables = {"BENCH_RUN": here, "PYTHONPATH": search}
        if any(ENTRIES[name].store == "postgres" for name in names):
            server = stack.enter_context(postgres.server(extra_settings))
            variables |= {"BENCH_POSTGRES": server.url, "BENCH_POSTGRES_PID": str(server.pid)}
        if any(ENTRIES[name].store == "redis" for name in names):
            memory_server = stack.enter_context(redis_server.server())
            variables |= {"BENCH_REDIS": memory_server.url, "BENCH_REDIS_PID": str(memory_server.pid)}
        yield variables


def variables_of(name: str, variables: dict[str, str]) -> dict[str, str]:
    """What a cell is told: of the servers' CPU, only that of its own counts."""
    foreign = {"postgres": "BENCH_POSTGRES_PID", "redis": "BENCH_REDIS_PID"}
    foreign.pop(ENTRIES[name].store, None)
    return {**os.environ, **variables, **dict.fromkeys(foreign.values(), "")}


def cell(name: str, jobs: int | None, variables: dict[str, str], kind: str = "cell") -> dict[str, Any]:
    python = environment.python_of(ENTRIES[name].environment)
    command = [str(python), "-m", "bench", kind, name] + (["--jobs", str(jobs)] if jobs else [])
    process = subprocess.Popen(
        command,
        cwd=environment.ROOT,
        env=variables_of(name, variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = process.communicate(timeout=CELL_LIMIT)
    finally:
        # Not killed, whatever happened here: it must end its own workers first.
        if process.poll() is None:
            process.terminate()
            process.wait()
    if process.returncode:
        log = Path(variables["BENCH_RUN"]) / f"{name}.log"
        tail = log.read_text(errors="replace")[-3000:] if log.exists() else ""
        return {"contender": name, "error": (err[-2000:] + tail).strip()}
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result


def say(line: dict[str, Any]) -> None:
    if "error" in line:
        print(f"{line['contender']}: {line['error']}", file=sys.stderr, flush=True)
        return
    print(
        f"{line['round']}  {line['contender']:22} {line['jobs_per_s']:>9,.0f} jobs/s"
        f"   worker {line['worker_us']:.0f} µs/job ({line['supervisor_us']:.0f} the supervisor),"
        f" database {line['database_us']:.0f} µs/job,"
        f" others {line['others_cores']:.2f} cores",
        flush=True,
    )


def table(lines: Sequence[dict[str, Any]], yardsticks: Sequence[str]) -> str:
    """Medians as Markdown, one ratio column per yardstick: to PgQueuer, to Huey on SQLite, or to ourselves."""
    out = []
    for yardstick in yardsticks:
        store = ENTRIES[yardstick].store
        rows = _medians([line for line in lines if ENTRIES[line["contender"]].store == store and "error" not in line])
        if not rows:
            continue
        unit = rows.get(yardstick, {}).get("jobs_per_s")
        out.append(
            f"| {store} | jobs/s | min–max | × {yardstick} | worker µs/job | of it the supervisor |"
            " database µs/job | others, cores |"
        )
        out.append("|---|---|---|---|---|---|---|---|")
        for name, row in sorted(rows.items(), key=lambda item: -item[1]["jobs_per_s"]):
            ratio = f"{row['jobs_per_s'] / unit:.2f}" if unit else "–"
            out.append(
                f"| {name} | {row['jobs_per_s']:,.0f} | {row['low']:,.0f}–{row['high']:,.0f} | {ratio} "
                f"| {row['worker_us']:,.0f} | {row['supervisor_us']:,.0f} "
                f"| {row['database_us']:,.0f} | {row['others_cores']:.2f} |"
            )
        out.append("")
    return "\n".join(out)


def _medians(lines: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    rows = {}
    for name in dict.fromkeys(line["contender"] for line in lines):
        mine = [line for line in lines if line["contender"] == name]
        keys = ("jobs_per_s", "worker_us", "supervisor_us", "database_us", "others_cores")
        rows[name] = {key: statistics.median(line[key] for line in mine) for key in keys}
        rows[name]["low"] = min(line["jobs_per_s"] for line in mine)
        rows[name]["high"] = max(line["jobs_per_s"] for line in mine)
    return rows
