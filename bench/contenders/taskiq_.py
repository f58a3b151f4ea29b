"""taskiq on Redis streams: two worker processes, acknowledged after the job has run, no result backend, uvloop."""

from __future__ import annotations

import asyncio
import os
import sys

import redis
from taskiq_redis import RedisStreamBroker

from bench import enqueue, probe
from bench.contender import Contender

STREAM = "bench_taskiq"
GROUP = "taskiq"
#: Consumers begin at the stream's start: by default they would miss what was sent before the first of them came.
broker = RedisStreamBroker(os.environ["BENCH_REDIS"], queue_name=STREAM, consumer_group_name=GROUP, consumer_id="0")


@broker.task(task_name="work")
async def work(name: str, number: int) -> None:
    probe.hit()


@broker.task(task_name="stamped")
async def stamped(submitted_at: int) -> None:
    probe.stamp(submitted_at)


class Taskiq(Contender):
    setting = "Redis streams, 2 worker processes × 30 coroutines, acknowledged after the run, uvloop"
    keeps = (
        "no history, no fence; at least once, a killed worker's jobs after 10 minutes; a machine's crash may cost 1 s"
    )
    bodies = "coroutines"
    jobs = 6_000
    _loop: asyncio.AbstractEventLoop | None = None

    def prepare(self) -> None:
        self._redis = redis.Redis.from_url(os.environ["BENCH_REDIS"])
        self._redis.flushdb()

    def fill(self, jobs: int) -> None:
        for number in range(jobs):
            self.run(work.kiq(*enqueue.call("plain", number).args))

    def worker_commands(self) -> list[list[str]]:
        return [self._command(2)]

    def lone_worker_commands(self) -> list[list[str]]:
        return [self._command(1)]

    def _command(self, processes: int) -> list[str]:
        limits = ["--max-async-tasks", "30", "--max-prefetch", "30", "--log-level", "CRITICAL"]
        place = f"{__name__}:broker"
        return [sys.executable, "-m", "taskiq", "worker", "-w", str(processes), *limits, place]

    def submit_stamped(self) -> None:
        self.run(stamped.kiq(probe.now()))

    def run(self, sending):  # type: ignore[no-untyped-def]
        """From one loop and one broker that stay open, as an application has them."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.run_until_complete(broker.startup())
        return self._loop.run_until_complete(sending)

    def unsettled(self) -> int:
        """Given out and not acknowledged, and one more if there are others that nobody was given yet."""
        stream, group = self._redis.xinfo_stream(STREAM), self._redis.xinfo_groups(STREAM)[0]
        return int(group["pending"]) + (stream["last-generated-id"] != group["last-delivered-id"])
