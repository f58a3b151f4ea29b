"""Where the microseconds of a drain go: CPU per thread, statements in PostgreSQL, Python functions.

Statement times come from pg_stat_statements, thread times from /proc. Functions come from sampling by py-spy (put it
on the PATH, or name it in BENCH_PY_SPY); sampling slows the drain, so read shares, not totals.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import cell, environment, processes
from bench.contender import ENTRIES, postgres_url
from bench.drain import surroundings

STATEMENTS = "shared_preload_libraries = 'pg_stat_statements'\npg_stat_statements.track = all\n"
SAMPLES_PER_SECOND = 199


def run(name: str, jobs: int | None) -> None:
    """Profile in the contender's own interpreter."""
    if ENTRIES[name].environment == "peers":
        environment.setup()
    with surroundings([name], STATEMENTS) as variables:
        python = environment.python_of(ENTRIES[name].environment)
        command = [str(python), "-m", "bench", "profile-cell", name] + (["--jobs", str(jobs)] if jobs else [])
        process = subprocess.Popen(command, cwd=environment.ROOT, env={**os.environ, **variables})
        try:
            process.wait()
        finally:
            process.terminate()
            process.wait()


def run_cell(name: str, jobs: int | None) -> None:
    on_postgres = ENTRIES[name].store == "postgres"
    seconds: dict[tuple[int, str, int, str], float] = {}
    samples = Path(os.environ["BENCH_RUN"]) / "samples"

    @contextmanager
    def watch(pids: list[int]) -> Iterator[None]:
        if on_postgres:
            query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            query("SELECT pg_stat_statements_reset()")
        with sampled(pids[0], samples):
            before = {key: used for pid in pids for key, used in processes.threads_of(pid).items()}
            yield
            after = {key: used for pid in pids for key, used in processes.threads_of(pid).items()}
        seconds.update({key: used - before.get(key, 0.0) for key, used in after.items()})

    result = cell.drain(name, jobs, watch)
    print(result, "\n")
    print_threads(seconds, result.jobs)
    if on_postgres:
        print_statements(result.jobs)
    if samples.exists():
        print_functions(samples)


@contextmanager
def sampled(pid: int, samples: Path) -> Iterator[None]:
    py_spy = os.environ.get("BENCH_PY_SPY") or shutil.which("py-spy")
    if not py_spy:
        yield
        return
    options = ["--subprocesses", "--threads", "--nonblocking", "--format", "raw", "--rate", str(SAMPLES_PER_SECOND)]
    command = [py_spy, "record", *options, "--pid", str(pid), "--output", str(samples)]
    sampler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        sampler.send_signal(signal.SIGINT)
        sampler.wait()


def print_threads(seconds: dict[tuple[int, str, int, str], float], jobs: int) -> None:
    print("CPU per thread of the workers, µs per job:")
    for (pid, process, tid, thread), used in sorted(seconds.items(), key=lambda item: -item[1]):
        if used / jobs * 1e6 >= 0.3:
            print(
                f"  {used / jobs * 1e6:8.1f}  {process} {pid}, thread {tid} {thread}{' (main)' if pid == tid else ''}"
            )
    print()


def print_statements(jobs: int) -> None:
    print("Statements in PostgreSQL, µs per job (time inside the executor, not the commit's fsync):")
    rows = query(
        "SELECT total_exec_time, calls, rows, shared_blks_hit, wal_bytes,"
        " left(regexp_replace(query, '\\s+', ' ', 'g'), 110)"
        " FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 25"
    )
    for total_ms, calls, returned, blocks, wal, text in rows:
        print(
            f"  {total_ms * 1000 / jobs:8.1f}  {calls:>6} calls {total_ms / calls:8.2f} ms  {returned:>7} rows"
            f" {blocks / jobs:6.1f} blocks/job {float(wal) / jobs:6.0f} WAL bytes/job  {text}"
        )
    print()


def query(text: str) -> list[tuple]:  # type: ignore[type-arg]
    import psycopg

    with psycopg.connect(postgres_url("bench_unstuck"), autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []


def print_functions(samples: Path) -> None:
    """Shares of the samples: per thread, then per function (self, and with everything it called)."""
    threads, own, whole = Counter(), Counter(), Counter()  # type: ignore[var-annotated]
    if keep := os.environ.get("BENCH_KEEP_SAMPLES"):
        shutil.copy(samples, keep)
    for line in samples.read_text().splitlines():
        stack, _, number = line.rpartition(" ")
        frames = stack.split(";")
        place = " / ".join(frame for frame in frames if frame.startswith(("process ", "thread ")))
        calls = [frame for frame in frames if not frame.startswith(("process ", "thread "))]
        if not calls:
            continue
        threads[place] += int(number)
        own[calls[-1]] += int(number)
        for frame in set(calls):
            whole[frame] += int(number)
    total = sum(threads.values()) or 1
    for title, counter in (("threads", threads), ("functions, self", own), ("functions, with callees", whole)):
        print(f"Samples by {title}, per cent of {total}:")
        for name, seen in counter.most_common(40):
            print(f"  {seen / total * 100:5.1f}  {name}")
        print()
