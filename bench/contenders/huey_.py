"""Huey on SQLite (WAL, fsync on, one thread: more were slower) and on Redis (four processes), results off.

It takes a job off its queue before it runs it: at most once, so nothing is left to settle afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from huey import Huey, RedisHuey, SqliteHuey

from bench import enqueue, probe
from bench.contender import Contender
from bench.probe import run_directory


class Made(NamedTuple):
    engine: Huey
    work: Callable[..., Any]
    stamped: Callable[..., Any]


def database() -> Path:
    return run_directory() / "disk" / "huey.sqlite"


@cache
def made(kind: str) -> Made:
    """Made when it is first asked for: the cell wipes the storage before."""
    if kind == "sqlite":
        engine = SqliteHuey("bench", filename=str(database()), results=False, fsync=True, journal_mode="wal")
    else:
        engine = RedisHuey("bench", url=os.environ["BENCH_REDIS"], results=False)
    return Made(engine, engine.task(name="work")(_work), engine.task(name="stamped")(probe.stamp))


def __getattr__(name: str) -> Huey:
    """The consumer imports an engine by name."""
    if name not in ("sqlite", "redis"):
        raise AttributeError(name)
    return made(name).engine


def _work(name: str, number: int) -> None:
    probe.hit()


class HueySqlite(Contender):
    setting = "WAL, fsync on, consumer -k thread -w 1, results off"
    keeps = "no history, no fence; at most once: popped before it runs"
    bodies = "functions"
    jobs = 10_000
    kind = "sqlite"

    def prepare(self) -> None:
        for leftover in database().parent.glob("huey.sqlite*"):
            leftover.unlink()

    def fill(self, jobs: int) -> None:
        for number in range(jobs):
            made(self.kind).work(*enqueue.call("plain", number).args)

    def worker_commands(self) -> list[list[str]]:
        return self.lone_worker_commands()

    def lone_worker_commands(self) -> list[list[str]]:
        return [self._command("thread", 1)]

    def _command(self, workers: str, number: int) -> list[str]:
        consumer = Path(sys.executable).parent / "huey_consumer"
        return [str(consumer), f"{__name__}.{self.kind}", "-k", workers, "-w", str(number), "-q"]

    def submit_stamped(self) -> None:
        made(self.kind).stamped(probe.now())

    def unsettled(self) -> int:
        return int(made(self.kind).engine.pending_count())


class HueyRedis(HueySqlite):
    setting = "consumer -k process -w 4, results off"
    keeps = f"{HueySqlite.keeps}; a machine's crash may cost 1 s"
    kind = "redis"

    def prepare(self) -> None:
        made(self.kind).engine.flush()

    def worker_commands(self) -> list[list[str]]:
        return [self._command("process", 4)]
