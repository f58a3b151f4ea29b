"""PgQueuer: two processes, asyncpg, batches of 100, durable tables as by default, uvloop."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
from typing import NoReturn

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench import enqueue, probe
from bench.contender import Contender, analyze, count, postgres_url, recreate_database

DATABASE = "bench_pgqueuer"
BATCH = 100


class Pgqueuer(Contender):
    setting = "2 processes, asyncpg (1 connection each), batch_size 100, durable tables, uvloop"
    keeps = "history of states; no fence; at least once, a killed worker's jobs after half a minute"
    bodies = "coroutines"
    signature = "plain"
    _loop: asyncio.AbstractEventLoop | None = None
    _queries: Queries

    def prepare(self) -> None:
        recreate_database(DATABASE)
        asyncio.run(self._with_queries(lambda queries: queries.install()))

    def fill(self, jobs: int) -> None:
        async def put(queries: Queries) -> None:
            for start in range(0, jobs, 5000):
                size = min(5000, jobs - start)
                calls = (enqueue.call(self.signature, number) for number in range(start, start + size))
                payloads = [json.dumps(each, default=dataclasses.asdict).encode() for each in calls]
                await queries.enqueue(["work"] * size, list(payloads), [0] * size)

        asyncio.run(self._with_queries(put))
        analyze(DATABASE)

    def work(self) -> NoReturn:
        logging.disable(logging.CRITICAL)

        async def run() -> None:
            queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(postgres_url(DATABASE))))

            @queue.entrypoint("work")
            async def work(job: Job) -> None:
                """Arguments are left to its users: JSON, as in `bench enqueue`."""
                json.loads(job.payload or b"")
                probe.hit()

            @queue.entrypoint("stamped")
            async def stamped(job: Job) -> None:
                probe.stamp(int(job.payload or b"0"))

            await queue.run(batch_size=BATCH)

        uvloop.run(run())
        raise SystemExit("the worker returned")

    def submit_stamped(self) -> None:
        """From one loop and one connection that stay open, as an application has them."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            connection = self._loop.run_until_complete(asyncpg.connect(postgres_url(DATABASE)))
            self._queries = Queries(AsyncpgDriver(connection))
        self._loop.run_until_complete(self._queries.enqueue("stamped", str(probe.now()).encode()))

    def unsettled(self) -> int:
        return count(DATABASE, "SELECT count(*) FROM pgqueuer WHERE status IN ('queued', 'picked')")

    async def _with_queries(self, act) -> None:  # type: ignore[no-untyped-def]
        connection = await asyncpg.connect(postgres_url(DATABASE))
        await act(Queries(AsyncpgDriver(connection)))
        await connection.close()


class PgqueuerRich(Pgqueuer):
    signature = "rich"
