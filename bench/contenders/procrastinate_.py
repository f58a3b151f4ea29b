"""Procrastinate: two processes of ten coroutines each, psycopg's pool, LISTEN on, finished jobs kept (its default).

Concurrency is left to its users, the default is one; other values than ten were not tried here.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple, NoReturn

import procrastinate
from procrastinate.tasks import Task

from bench import enqueue, probe
from bench.contender import Contender, analyze, count, postgres_url, recreate_database

DATABASE = "bench_procrastinate"
CHUNK = 2000


class Made(NamedTuple):
    app: procrastinate.App
    work: Task[..., Any, Any]
    stamped: Task[..., Any, Any]


def made() -> Made:
    pool = procrastinate.PsycopgConnector(conninfo=postgres_url(DATABASE), min_size=4, max_size=20)
    app = procrastinate.App(connector=pool)

    @app.task(name="work")
    async def work(**arguments: Any) -> None:
        probe.hit()

    @app.task(name="stamped")
    async def stamped(submitted_at: int) -> None:
        probe.stamp(submitted_at)

    return Made(app, work, stamped)


class Procrastinate(Contender):
    setting = "2 processes × concurrency 10, psycopg pool, LISTEN on, finished jobs kept"
    keeps = "history of states; no fence; at least once, but the jobs of a killed worker wait for the user's own task"
    bodies = "coroutines"
    jobs = 2_000
    _loop: asyncio.AbstractEventLoop | None = None

    def prepare(self) -> None:
        recreate_database(DATABASE)

        async def install() -> None:
            async with made().app.open_async() as app:
                await app.schema_manager.apply_schema_async()

        asyncio.run(install())

    def fill(self, jobs: int) -> None:
        async def put() -> None:
            app, work, _ = made()
            async with app.open_async():
                for start in range(0, jobs, CHUNK):
                    calls = (enqueue.call("plain", number).args for number in range(start, min(start + CHUNK, jobs)))
                    await work.batch_defer_async(*({"name": name, "number": number} for name, number in calls))

        asyncio.run(put())
        analyze(DATABASE)

    def work(self) -> NoReturn:
        logging.disable(logging.CRITICAL)

        async def run() -> None:
            async with made().app.open_async() as app:
                await app.run_worker_async(concurrency=10)

        asyncio.run(run())
        raise SystemExit("the worker returned")

    def submit_stamped(self) -> None:
        """From one loop and one pool that stay open, as an application has them."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._made = made()
            self._loop.run_until_complete(self._made.app.open_async())
        self._loop.run_until_complete(self._made.stamped.defer_async(submitted_at=probe.now()))

    def unsettled(self) -> int:
        return count(DATABASE, "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')")

    def completed(self) -> int:
        return count(DATABASE, "SELECT count(*) FROM procrastinate_jobs WHERE status = 'succeeded'")
