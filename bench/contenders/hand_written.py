"""The least a durable queue on PostgreSQL can do: one table, claim and finish in batches of 100, one NOTIFY for all.

No fence, no history, no lease, no isolation of handlers, no result: a yardstick, not an engine.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, NoReturn

import asyncpg
import uvloop

from bench import probe
from bench.contender import Contender, analyze, count, postgres_url, recreate_database

DATABASE = "bench_hand_written"
BATCH = 100

TABLE = """
CREATE TABLE job (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue       text NOT NULL,
    task        text NOT NULL,
    args        jsonb NOT NULL,
    status      smallint NOT NULL DEFAULT 0,
    priority    smallint NOT NULL DEFAULT 0,
    run_at      timestamptz NOT NULL DEFAULT now(),
    attempt     smallint NOT NULL DEFAULT 0,
    worker      int,
    started_at  timestamptz,
    finished_at timestamptz
) WITH (fillfactor = 70);
CREATE INDEX job_ready ON job (queue, priority DESC, id) WHERE status = 0;
"""

CLAIM = """
WITH picked AS (
    SELECT id
      FROM job
     WHERE status = 0 AND queue = 'q' AND run_at <= now()
     ORDER BY priority DESC, id
     LIMIT $1
       FOR UPDATE SKIP LOCKED
)
UPDATE job
   SET status = 1, attempt = attempt + 1, worker = $2, started_at = now()
  FROM picked
 WHERE job.id = picked.id
RETURNING job.id, job.task, job.args
"""

FINISH = """
UPDATE job
   SET status = 2, finished_at = now()
  FROM unnest($1::bigint[]) AS finished (id)
 WHERE job.id = finished.id
"""


#: One statement, one commit; wakes whoever listens.
INSERT = """
WITH job AS (INSERT INTO job (queue, task, args) VALUES ('q', $1, $2) RETURNING id)
SELECT id, pg_notify('job', '') FROM job
"""


class HandWritten(Contender):
    setting = "2 processes, asyncpg (1 connection each), batches of 100, one table, no history, uvloop"
    keeps = "the row and its times; no fence; at most once: nobody asks for a killed worker's jobs"
    bodies = "coroutines"
    _loop: asyncio.AbstractEventLoop | None = None

    def prepare(self) -> None:
        recreate_database(DATABASE)
        asyncio.run(self._execute(TABLE))

    def fill(self, jobs: int) -> None:
        async def copy() -> None:
            connection = await asyncpg.connect(postgres_url(DATABASE))
            for start in range(0, jobs, 5000):
                await put(connection, "work", ["[]"] * min(5000, jobs - start))
            await connection.close()

        asyncio.run(copy())
        analyze(DATABASE)

    def work(self) -> NoReturn:
        async def run() -> None:
            connection = await asyncpg.connect(postgres_url(DATABASE))
            told = asyncio.Event()
            await connection.add_listener("job", lambda *_: told.set())
            while True:
                told.clear()
                rows = await connection.fetch(CLAIM, BATCH, 1)
                if not rows:
                    await told.wait()
                    continue
                for row in rows:
                    await TASKS[row["task"]](json.loads(row["args"]))
                await connection.execute(FINISH, [row["id"] for row in rows])

        uvloop.run(run())
        raise SystemExit("the worker returned")

    def submit_stamped(self) -> None:
        """From one loop and one connection that stay open, as an application has them."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._connection = self._loop.run_until_complete(asyncpg.connect(postgres_url(DATABASE)))
        self._loop.run_until_complete(self._connection.execute(INSERT, "stamped", json.dumps([probe.now()])))

    def unsettled(self) -> int:
        return count(DATABASE, "SELECT count(*) FROM job WHERE status <> 2")

    def completed(self) -> int:
        return count(DATABASE, "SELECT count(*) FROM job WHERE status = 2")

    async def _execute(self, script: str) -> None:
        connection = await asyncpg.connect(postgres_url(DATABASE))
        await connection.execute(script)
        await connection.close()


async def put(connection: asyncpg.Connection, task: str, args: Sequence[str]) -> None:
    records = [("q", task, each) for each in args]
    await connection.copy_records_to_table("job", columns=["queue", "task", "args"], records=records)
    await connection.execute("NOTIFY job")


async def no_op(args: list[object]) -> None:
    probe.hit()


async def stamped(args: list[int]) -> None:
    probe.stamp(*args)


TASKS: dict[str, Any] = {"work": no_op, "stamped": stamped}
