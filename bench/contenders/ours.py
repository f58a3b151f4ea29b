"""unstuck as a user runs it: one worker command, two executor processes, every promise kept."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg

from bench import enqueue, probe, worlds
from bench.contender import Contender, analyze, count, postgres_url, recreate_database
from bench.probe import run_directory
from bench.worlds import by_hand, copy, open_store
from unstuck.app.workflow import Call
from unstuck.store.port import EVERY, Limit, Share

APP = "bench.contenders.ours_app:app"
DATABASE = "bench_unstuck"
CHUNK = 5000
PLACES = 2_000
KEYS = 10_000
UNSETTLED = """
SELECT (SELECT count(*) FROM unstuck_line) + (SELECT count(*) FROM unstuck_ready)
       + (SELECT count(*) FROM unstuck_running)"""
COMPLETED = "SELECT count(*) FROM unstuck_done WHERE state = 'COMPLETED'"
COPY_LIMIT = """
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, set_by, set_at)
WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < {copies})
SELECT l.kind, 'place:' || copy.i, l.tenant, l.concurrency, l.set_by, l.set_at
  FROM unstuck_limits l CROSS JOIN copy"""


class Ours(Contender):
    setting = "unstuck worker APP --concurrency 400 --processes 2"
    keeps = "history, result, fence on every write, lease; at least once, a killed worker's jobs within seconds"
    bodies = "functions"
    workflow = "no_op"
    signature = "plain"
    stamped = "stamped"

    def url(self) -> str:
        raise NotImplementedError

    def prepare(self) -> None:
        # Before the app is imported, which then reads it: the enqueuing side runs in this process.
        os.environ["UNSTUCK_DATABASE"] = self.url()
        subprocess.run([sys.executable, "-m", "unstuck", "db", "migrate"], check=True, stdout=subprocess.DEVNULL)

    def fill(self, jobs: int) -> None:
        from bench.contenders import ours_app

        workflow = getattr(ours_app, self.workflow)
        for start in range(0, jobs, CHUNK):
            workflow.enqueue_many([self.arguments(number) for number in range(start, min(start + CHUNK, jobs))])
        ours_app.app.close()

    def arguments(self, number: int) -> tuple[int, ...] | Call:
        return Call(*enqueue.call(self.signature, number))

    def worker_commands(self) -> list[list[str]]:
        return [[*command, "--concurrency", "400", "--processes", "2"] for command in self.lone_worker_commands()]

    def lone_worker_commands(self) -> list[list[str]]:
        return [[sys.executable, "-m", "unstuck", "worker", APP]]

    def submit_stamped(self) -> None:
        from bench.contenders import ours_app

        getattr(ours_app, self.stamped).enqueue(probe.now())


class Placed:
    """Jobs that are told of a place; `workflow` decides whether it is their target."""

    workflow = "no_op_for"

    def arguments(self, number: int) -> tuple[int, ...]:
        return (number % PLACES,)


class Keyed(Ours):
    """Jobs of ten thousand limit keys, under limits that are counted and hardly ever reached."""

    workflow = "no_op_keyed"
    jobs = 2 * KEYS

    def arguments(self, number: int) -> tuple[int, ...]:
        return (number % KEYS,)

    def prepare(self) -> None:
        super().prepare()
        store = open_store(self.url())
        for limit in self.limits():
            store.set_limit(limit)
        store.close()

    def limits(self) -> list[Limit]:
        return []


class FamilyLimit(Keyed):
    """One row for all keys."""

    def limits(self) -> list[Limit]:
        return [Limit("key", "place:*", EVERY, "bench", concurrency=1)]


class OwnLimits(Keyed):
    """A row per key."""

    def limits(self) -> list[Limit]:
        return [Limit("key", "place:0", EVERY, "bench", concurrency=1)]

    def prepare(self) -> None:
        super().prepare()
        with by_hand(self.url()) as execute:
            execute(COPY_LIMIT.format(copies=KEYS - 1))


class TwoLimits(Keyed):
    """The key's, and the workflow's, which counts everything that runs."""

    def limits(self) -> list[Limit]:
        return [
            Limit("key", "place:*", EVERY, "bench", concurrency=1),
            Limit("workflow", self.workflow, EVERY, "bench", concurrency=1_000),
        ]


class RateLimit(Keyed):
    """Starts are counted, and written, per key."""

    def limits(self) -> list[Limit]:
        return [Limit("key", "place:*", EVERY, "bench", rate=100, per=60.0)]


class OnPostgresSync(Ours):
    def url(self) -> str:
        return postgres_url(DATABASE)

    def prepare(self) -> None:
        recreate_database(DATABASE)
        super().prepare()

    def fill(self, jobs: int) -> None:
        super().fill(jobs)
        analyze(DATABASE)

    def unsettled(self) -> int:
        return count(DATABASE, UNSETTLED)

    def completed(self) -> int:
        return count(DATABASE, COMPLETED)


class AtADistance:
    """The same worker, which has a server's address in place of the database; the server's CPU counts as its own."""

    setting = "unstuck server, and unstuck worker APP --server URL --concurrency 400 --processes 2"

    def worker_commands(self) -> list[list[str]]:
        server, worker = self.lone_worker_commands()
        return [server, [*worker, "--concurrency", "400", "--processes", "2"]]

    def lone_worker_commands(self) -> list[list[str]]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        command = [sys.executable, "-m", "unstuck"]
        url = f"http://127.0.0.1:{port}"
        return [[*command, "server", "--port", port], [*command, "worker", APP, "--server", url]]


class OnPostgresRemote(AtADistance, OnPostgresSync):
    pass


class OnPostgresAsync(OnPostgresSync):
    bodies = "coroutines"
    workflow = "no_op_async"
    stamped = "stamped_async"


class OnPostgresSyncRich(OnPostgresSync):
    workflow = "no_op_rich"
    signature = "rich"


class OnPostgresAsyncRich(OnPostgresSync):
    bodies = "coroutines"
    workflow = "no_op_rich_async"
    signature = "rich"


class OnPostgresPlaced(Placed, OnPostgresSync):
    pass


class OnPostgresTargets(OnPostgresPlaced):
    workflow = "no_op_on"


class FewWaiting(OnPostgresSync):
    """The yardstick of what follows: only the first of them are waited for, and none is left."""

    jobs = 20_000

    def unsettled(self) -> int:
        return 0


class ManyWaiting(FewWaiting):
    """Half a million behind those."""

    def fill(self, jobs: int) -> None:
        super().fill(jobs)
        copy(self.url(), worlds.COPY_JOBS, worlds.COPY_READY, worlds.COPY_EVENTS, copies=480_000)
        analyze(DATABASE)


class HundredKeys(OnPostgresSync):
    """A hundred keys, of which each may run ten at once."""

    workflow = "no_op_keyed"
    jobs = 20_000
    blocked = 0

    def prepare(self) -> None:
        super().prepare()
        store = open_store(self.url())
        store.set_limit(Limit("key", "place:*", EVERY, "bench", concurrency=10))
        store.close()

    def arguments(self, number: int) -> tuple[int, ...]:
        return (100 + number % 100,)

    def unsettled(self) -> int:
        return super().unsettled() - self.blocked


class BehindBlockedKeys(HundredKeys):
    """A hundred more, each with ten that run elsewhere and a thousand that wait, all older."""

    blocked = 101_000

    def fill(self, jobs: int) -> None:
        from bench.contenders import ours_app

        for start in range(0, self.blocked, CHUNK):
            ours_app.no_op_keyed.enqueue_many([(n % 100,) for n in range(start, min(start + CHUNK, self.blocked))])
        store = open_store(self.url())
        worker = worlds.a_worker(store).number
        shares = [Share(front.route, 10, is_limited=True) for front in store.open_routes()]
        assert len(store.claim(worker, worlds.chance.nonce(), shares)) == 1_000
        store.close()
        super().fill(jobs)


class OnPostgresKeyed(Keyed, OnPostgresSync):
    pass


class OnPostgresFamilyLimit(FamilyLimit, OnPostgresSync):
    pass


class OnPostgresOwnLimits(OwnLimits, OnPostgresSync):
    pass


class OnPostgresTwoLimits(TwoLimits, OnPostgresSync):
    pass


class OnPostgresRateLimit(RateLimit, OnPostgresSync):
    pass


class BesideOldTransaction(OnPostgresSync):
    """Somebody's forgotten transaction, older than every claim: nothing that dies can be cleared away."""

    def fill(self, jobs: int) -> None:
        super().fill(jobs)
        self.forgotten = psycopg.connect(self.url())
        self.forgotten.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self.forgotten.execute("SELECT pg_current_xact_id(), (SELECT count(*) FROM unstuck_routes)")

    def completed(self) -> int:
        status = self.forgotten.info.transaction_status
        assert status is psycopg.pq.TransactionStatus.INTRANS, "the old transaction did not last"
        return super().completed()


class OnSqliteSync(Ours):
    jobs = 20_000

    def file(self) -> Path:
        return (run_directory() / "disk").resolve() / "unstuck.db"

    def url(self) -> str:
        return f"sqlite:///{self.file()}"

    def prepare(self) -> None:
        for leftover in self.file().parent.glob("unstuck.db*"):
            leftover.unlink()
        super().prepare()

    def unsettled(self) -> int:
        return self._count(UNSETTLED)

    def completed(self) -> int:
        return self._count(COMPLETED)

    def _count(self, query: str) -> int:
        connection = sqlite3.connect(f"file:{self.file()}?mode=ro", uri=True)
        try:
            return int(connection.execute(query).fetchone()[0])
        finally:
            connection.close()


class OnSqliteRemote(AtADistance, OnSqliteSync):
    pass


class OnSqliteAsync(OnSqliteSync):
    bodies = "coroutines"
    workflow = "no_op_async"
    stamped = "stamped_async"


class OnSqliteSyncRich(OnSqliteSync):
    workflow = "no_op_rich"
    signature = "rich"


class OnSqliteAsyncRich(OnSqliteSync):
    bodies = "coroutines"
    workflow = "no_op_rich_async"
    signature = "rich"


class OnSqlitePlaced(Placed, OnSqliteSync):
    pass


class OnSqliteTargets(OnSqlitePlaced):
    workflow = "no_op_on"


class OnSqliteKeyed(Keyed, OnSqliteSync):
    pass


class OnSqliteFamilyLimit(FamilyLimit, OnSqliteSync):
    pass


class OnSqliteOwnLimits(OwnLimits, OnSqliteSync):
    pass


class OnSqliteTwoLimits(TwoLimits, OnSqliteSync):
    pass


class OnSqliteRateLimit(RateLimit, OnSqliteSync):
    pass
