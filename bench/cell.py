"""One measurement of one contender, in its own process and interpreter; prints one line of JSON.

The time runs from the first execution seen to the last job settled in storage, so that start-up does not count and
unfinished paperwork does. CPU is that of the worker's process tree and of the database over the same span, and what
everybody else on the machine used meanwhile: a cell with much of that is noise. `kernel` is the part of both that was
spent in the system.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass

from bench import probe, processes
from bench.contender import Contender, load

START_LIMIT = 60.0
DRAIN_LIMIT = 180.0


@dataclass(frozen=True)
class Usage:
    at: float
    hits: int
    worker: float
    supervisor: float
    database: float
    kernel: float
    machine: float
    driver: float


@dataclass(frozen=True)
class Drain:
    contender: str
    jobs: int
    jobs_per_s: float
    executed_per_s: float
    start_s: float
    worker_us: float
    supervisor_us: float
    executor_us: float
    database_us: float
    kernel_us: float
    others_cores: float
    completed: int | None


Watch = Callable[[list[int]], AbstractContextManager[object]]


def drain(name: str, jobs: int | None = None, watch: Watch = nullcontext) -> Drain:
    """Fill, start the workers, wait until everything is settled; `watch` is entered with their pids meanwhile."""
    contender = load(name)
    jobs = jobs or contender.jobs
    contender.prepare()
    contender.fill(jobs)
    probe.reset()
    processes.wait_for_quiet()
    began = time.monotonic()
    with workers(contender) as pids:
        wait_for_hits(1, START_LIMIT)
        with watch(pids):
            first = usage(pids)
            wait_for_hits(jobs, DRAIN_LIMIT)
            executed_at = time.monotonic()
            wait_until_settled(contender)
            last = usage(pids)
    done, span = last.hits - first.hits, last.at - first.at
    ours = sum(getattr(last, part) - getattr(first, part) for part in ("worker", "database", "driver"))
    worker_us, supervisor_us, database_us, kernel_us = (
        round((getattr(last, part) - getattr(first, part)) / done * 1e6, 1)
        for part in ("worker", "supervisor", "database", "kernel")
    )
    return Drain(
        contender=name,
        jobs=jobs,
        jobs_per_s=round(done / span, 1),
        executed_per_s=round(done / (executed_at - first.at), 1),
        start_s=round(first.at - began, 2),
        worker_us=worker_us,
        supervisor_us=supervisor_us,
        executor_us=round(worker_us - supervisor_us, 1),
        database_us=database_us,
        kernel_us=kernel_us,
        others_cores=round((last.machine - first.machine - ours) / span, 2),
        completed=contender.completed(),
    )


def usage(pids: list[int]) -> Usage:
    servers = [int(os.environ.get(f"BENCH_{kind}_PID") or 0) for kind in ("POSTGRES", "REDIS")]
    databases = [pid for pid in servers if pid]
    own = os.times()
    return Usage(
        at=time.monotonic(),
        hits=probe.hits(),
        worker=sum(processes.cpu_of(pid) for pid in pids),
        supervisor=sum(processes.own_cpu_of(pid) for pid in pids),
        database=sum(processes.cpu_of(pid) for pid in databases),
        kernel=sum(processes.kernel_of(pid) for pid in (*pids, *databases)),
        machine=processes.machine_busy(),
        driver=own.user + own.system,
    )


@contextmanager
def workers(contender: Contender, commands: list[list[str]] | None = None) -> Iterator[list[int]]:
    """The contender's worker processes, each leader of its own session; killed with all descendants at the end."""
    environment = {**os.environ, **contender.worker_environment()}
    with open(probe.run_directory() / f"{contender.name}.log", "ab") as log:
        started = [
            subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
            for command in commands or contender.worker_commands()
        ]
        try:
            yield [process.pid for process in started]
        finally:
            for process in started:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    doomed = processes.tree(process.pid) if process.poll() is None else []
    for pid in doomed:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def wait_for_hits(wanted: int, limit: float) -> None:
    until = time.monotonic() + limit
    while (seen := probe.hits()) < wanted:
        if time.monotonic() > until:
            raise SystemExit(f"only {seen} of {wanted} jobs were executed within {limit:.0f} s")
        time.sleep(0.002)


def wait_until_settled(contender: Contender, limit: float = 60.0) -> None:
    until = time.monotonic() + limit
    while left := contender.unsettled():
        if time.monotonic() > until:
            raise SystemExit(f"{left} jobs are still not settled {limit:.0f} s after the last execution")
        time.sleep(0.01)


def main(name: str, jobs: int | None) -> None:
    print(json.dumps(asdict(drain(name, jobs))))
