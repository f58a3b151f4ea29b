"""unstuck bench: measure this machine with no-op jobs, a real database and a real worker."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from unstuck import clock
from unstuck.cli import options, output
from unstuck.cli.companion import Companion
from unstuck.cli.parser import option
from unstuck.cli.session import prepare_database, settings_of
from unstuck.model.errors import StillRunning
from unstuck.model.job import DEFAULT_TENANT
from unstuck.model.lifecycle import JobState

if TYPE_CHECKING:
    from unstuck.store.port import Store

app = options.single()


@app.command()
def bench(
    jobs: Annotated[int, option("--jobs", "-n", help="number of jobs", least=1, most=1_000_000)] = 2000,
    asynchronous: Annotated[bool, option("--async", help="coroutines instead of plain functions")] = False,
    concurrency: Annotated[int, option("--concurrency", "-c", help="jobs at once", least=1)] = 100,
    processes: Annotated[int, option("--processes", "-p", help="executor processes", least=1)] = 2,
    timeout: Annotated[
        float, option("--timeout", read=options.seconds, metavar="DURATION", help="give up after")
    ] = 300.0,
    *,
    common: options.CommonPlatform,
) -> None:
    """Enqueue N jobs that do nothing, drain them with a worker, print the rates."""
    with _database(common.database) as (url, log):
        facts = _measure(url, log, jobs, asynchronous, concurrency, processes, timeout)
    if common.json:
        output.emit_json(facts)
        return
    output.say(f"enqueued  {facts['enqueue_per_s']:>10,.0f} jobs/s   ({jobs:,} in batches)")
    output.say(
        f"drained   {facts['drain_per_s']:>10,.0f} jobs/s   (from the first job taken to the last one settled)"
    )
    output.note(f"{facts['database']}, {concurrency} at once in {processes} processes; every move is durable")


@contextmanager
def _database(given: str | None) -> Iterator[tuple[str, Path]]:
    """A temporary SQLite file beside the current directory's files, so that a real disk is measured."""
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-", dir=".") as folder:
        place = Path(folder).resolve()
        yield given or f"sqlite:///{place / 'bench.db'}", place / "worker.log"


def _measure(
    url: str, log: Path, jobs: int, asynchronous: bool, concurrency: int, processes: int, timeout: float
) -> dict[str, Any]:
    os.environ["UNSTUCK_DATABASE"] = url
    prepare_database(settings_of({"database": url}))
    from unstuck.config import masked
    from unstuck.examples import bench as noops

    workflow: Any = noops.nothing_async if asynchronous else noops.nothing
    with noops.app:
        before = _left(noops.app._engine.store, 1_000_000)
        began = clock.boot()
        first = workflow.enqueue_many([()] * jobs)[0]
        enqueued = clock.boot() - began
        how = ["--concurrency", str(concurrency), "--processes", str(processes), "--name", "bench-worker"]
        with Companion.worker("unstuck.examples.bench:app", url, log, how) as companion:
            _drain(noops.app._engine.store, companion, before, timeout)
            drained = (noops.app._engine.store.now() - first.attempts()[0].claimed_at).total_seconds()
    return {
        "jobs": jobs,
        "handler": "async" if asynchronous else "sync",
        "concurrency": concurrency,
        "processes": processes,
        "database": masked(url) if "://" in url and not url.startswith("sqlite") else "SQLite",
        "enqueue_s": round(enqueued, 4),
        "enqueue_per_s": round(jobs / enqueued, 1),
        "drain_s": round(drained, 4),
        "drain_per_s": round(jobs / drained, 1),
    }


def _drain(store: Store, companion: Companion, before: int, timeout: float) -> None:
    """Until nothing more is left than was there before."""
    deadline = clock.boot() + timeout
    # The ceiling keeps this question cheap: its time is taken from the worker that is measured.
    while _left(store, before + 1) > before:
        if clock.boot() >= deadline:
            raise StillRunning("(one of the benchmark's)", "on its way", timeout)
        companion.check()
        threading.Event().wait(0.05)


def _left(store: Store, ceiling: int) -> int:
    counts = store.counts(DEFAULT_TENANT, ceiling)
    return counts.get(JobState.QUEUED, 0) + counts.get(JobState.RUNNING, 0)
