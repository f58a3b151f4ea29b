"""Huey on SQLite: WAL, fsync on, one consumer with one thread (more threads were slower), results off.

It takes a job off its queue before it runs it: at most once, so nothing is left to settle afterwards.
"""

from __future__ import annotations

import sys
from pathlib import Path

from huey import SqliteHuey

from bench import enqueue, probe
from bench.contender import Contender
from bench.probe import run_directory


def database() -> Path:
    return run_directory() / "disk" / "huey.sqlite"


def __getattr__(name: str) -> SqliteHuey:
    """`huey` is made when it is first asked for: the consumer imports it by name, the cell wipes its file first."""
    if name != "huey":
        raise AttributeError(name)
    huey = SqliteHuey("bench", filename=str(database()), results=False, fsync=True, journal_mode="wal")
    globals()["huey"] = huey
    globals()["work"] = huey.task(name="work")(_work)
    globals()["stamped"] = huey.task(name="stamped")(probe.stamp)
    return huey


def _work(name: str, number: int) -> None:
    probe.hit()


class HueySqlite(Contender):
    setting = "WAL, fsync on, consumer -k thread -w 1, results off (at most once: popped before it runs)"
    jobs = 10_000

    def prepare(self) -> None:
        for leftover in database().parent.glob("huey.sqlite*"):
            leftover.unlink()

    def fill(self, jobs: int) -> None:
        module = sys.modules[__name__]
        assert module.huey is not None
        for number in range(jobs):
            module.work(*enqueue.call("plain", number).args)

    def worker_commands(self) -> list[list[str]]:
        consumer = Path(sys.executable).parent / "huey_consumer"
        return [[str(consumer), "bench.contenders.huey_.huey", "-k", "thread", "-w", "1", "-q"]]

    def submit_stamped(self) -> None:
        module = sys.modules[__name__]
        assert module.huey is not None
        module.stamped(probe.now())

    def unsettled(self) -> int:
        return int(sys.modules[__name__].huey.pending_count())
