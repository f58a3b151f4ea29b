"""What a contender must offer to be measured. `contenders/` holds them; `cell.py` drives them."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

StoreKind = Literal["postgres", "sqlite", "redis"]


class Contender:
    """One engine in one setting. A cell calls the methods from top to bottom."""

    name = ""
    setting = ""
    #: What its user can rely on afterwards, and what not.
    keeps = ""
    #: What its jobs are in a drain: functions or coroutines.
    bodies = ""
    jobs = 30_000

    def prepare(self) -> None:
        """Wipe and create empty storage."""
        raise NotImplementedError

    def fill(self, jobs: int) -> None:
        """Enqueue so many no-op jobs, each of which will call `probe.hit()`."""
        raise NotImplementedError

    def worker_commands(self) -> list[list[str]]:
        """The worker processes that get the whole machine; by default two that call `work`."""
        return [[sys.executable, "-m", "bench", "work", self.name]] * 2

    def lone_worker_commands(self) -> list[list[str]]:
        """One worker as a user starts it, for few jobs."""
        return self.worker_commands()[:1]

    def worker_environment(self) -> dict[str, str]:
        return {}

    def work(self) -> NoReturn:
        """Inside a worker process: run jobs for ever."""
        raise NotImplementedError

    def submit_stamped(self) -> None:
        """Enqueue one job that will call `probe.stamp()` with the time of this call."""
        raise NotImplementedError

    def unsettled(self) -> int:
        """Jobs whose end is not in storage yet."""
        raise NotImplementedError

    def completed(self) -> int | None:
        """Jobs that storage remembers as completed; None if it does not remember."""
        return None


@dataclass(frozen=True)
class Entry:
    """Where a contender lives. Its module is imported only inside its own environment."""

    place: str
    store: StoreKind
    environment: Literal["own", "peers"]
    #: Which table it belongs to: beside peers, or beside ourselves in an easier setting.
    beside: Literal["peers", "ourselves"] = "peers"


ENTRIES = {
    "unstuck-async": Entry("bench.contenders.ours:OnPostgresAsync", "postgres", "own"),
    "unstuck-sync": Entry("bench.contenders.ours:OnPostgresSync", "postgres", "own"),
    "unstuck-async-rich": Entry("bench.contenders.ours:OnPostgresAsyncRich", "postgres", "own"),
    "unstuck-sync-rich": Entry("bench.contenders.ours:OnPostgresSyncRich", "postgres", "own"),
    "pgqueuer": Entry("bench.contenders.pgqueuer_:Pgqueuer", "postgres", "peers"),
    "pgqueuer-rich": Entry("bench.contenders.pgqueuer_:PgqueuerRich", "postgres", "peers"),
    "procrastinate": Entry("bench.contenders.procrastinate_:Procrastinate", "postgres", "peers"),
    "hand-written": Entry("bench.contenders.hand_written:HandWritten", "postgres", "peers"),
    "unstuck-sqlite-async": Entry("bench.contenders.ours:OnSqliteAsync", "sqlite", "own"),
    "unstuck-sqlite-sync": Entry("bench.contenders.ours:OnSqliteSync", "sqlite", "own"),
    "unstuck-sqlite-async-rich": Entry("bench.contenders.ours:OnSqliteAsyncRich", "sqlite", "own"),
    "unstuck-sqlite-sync-rich": Entry("bench.contenders.ours:OnSqliteSyncRich", "sqlite", "own"),
    "huey-sqlite": Entry("bench.contenders.huey_:HueySqlite", "sqlite", "peers"),
    "huey-redis": Entry("bench.contenders.huey_:HueyRedis", "redis", "peers"),
    "taskiq": Entry("bench.contenders.taskiq_:Taskiq", "redis", "peers"),
    "no-targets": Entry("bench.contenders.ours:OnPostgresPlaced", "postgres", "own", "ourselves"),
    "2000-targets": Entry("bench.contenders.ours:OnPostgresTargets", "postgres", "own", "ourselves"),
    "sqlite-no-targets": Entry("bench.contenders.ours:OnSqlitePlaced", "sqlite", "own", "ourselves"),
    "sqlite-2000-targets": Entry("bench.contenders.ours:OnSqliteTargets", "sqlite", "own", "ourselves"),
    "few-waiting": Entry("bench.contenders.ours:FewWaiting", "postgres", "own", "ourselves"),
    "500000-waiting": Entry("bench.contenders.ours:ManyWaiting", "postgres", "own", "ourselves"),
    "100-keys": Entry("bench.contenders.ours:HundredKeys", "postgres", "own", "ourselves"),
    "behind-blocked-keys": Entry("bench.contenders.ours:BehindBlockedKeys", "postgres", "own", "ourselves"),
    "old-transaction": Entry("bench.contenders.ours:BesideOldTransaction", "postgres", "own", "ourselves"),
    "remote": Entry("bench.contenders.ours:OnPostgresRemote", "postgres", "own", "ourselves"),
    "sqlite-remote": Entry("bench.contenders.ours:OnSqliteRemote", "sqlite", "own", "ourselves"),
    "keys": Entry("bench.contenders.ours:OnPostgresKeyed", "postgres", "own", "ourselves"),
    "keys-family-limit": Entry("bench.contenders.ours:OnPostgresFamilyLimit", "postgres", "own", "ourselves"),
    "keys-own-limits": Entry("bench.contenders.ours:OnPostgresOwnLimits", "postgres", "own", "ourselves"),
    "keys-two-limits": Entry("bench.contenders.ours:OnPostgresTwoLimits", "postgres", "own", "ourselves"),
    "keys-rate": Entry("bench.contenders.ours:OnPostgresRateLimit", "postgres", "own", "ourselves"),
    "sqlite-keys": Entry("bench.contenders.ours:OnSqliteKeyed", "sqlite", "own", "ourselves"),
    "sqlite-keys-family-limit": Entry("bench.contenders.ours:OnSqliteFamilyLimit", "sqlite", "own", "ourselves"),
    "sqlite-keys-own-limits": Entry("bench.contenders.ours:OnSqliteOwnLimits", "sqlite", "own", "ourselves"),
    "sqlite-keys-two-limits": Entry("bench.contenders.ours:OnSqliteTwoLimits", "sqlite", "own", "ourselves"),
    "sqlite-keys-rate": Entry("bench.contenders.ours:OnSqliteRateLimit", "sqlite", "own", "ourselves"),
    "unsigned": Entry("bench.contenders.signed:OnPostgresUnsigned", "postgres", "own", "ourselves"),
    "signed-hmac": Entry("bench.contenders.signed:OnPostgresHmac", "postgres", "own", "ourselves"),
    "signed-ed25519": Entry("bench.contenders.signed:OnPostgresEd25519", "postgres", "own", "ourselves"),
    "sqlite-unsigned": Entry("bench.contenders.signed:OnSqliteUnsigned", "sqlite", "own", "ourselves"),
    "sqlite-signed-hmac": Entry("bench.contenders.signed:OnSqliteHmac", "sqlite", "own", "ourselves"),
    "sqlite-signed-ed25519": Entry("bench.contenders.signed:OnSqliteEd25519", "sqlite", "own", "ourselves"),
}


def load(name: str) -> Contender:
    module, _, attribute = ENTRIES[name].place.partition(":")
    contender: Contender = getattr(importlib.import_module(module), attribute)()
    contender.name = name
    return contender


def postgres_url(database: str) -> str:
    return f"{os.environ['BENCH_POSTGRES']}/{database}"


def recreate_database(database: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {database}")


def analyze(database: str) -> None:
    """What autovacuum would have done by itself after a while; without it some engines get a bad plan."""
    import psycopg

    with psycopg.connect(postgres_url(database), autocommit=True) as connection:
        connection.execute("ANALYZE")


def count(database: str, query: str) -> int:
    """A number out of the contender's tables, over a connection that stays open: asked many times at the end."""
    import psycopg

    if database not in _connections:
        _connections[database] = psycopg.connect(postgres_url(database), autocommit=True)
    row = _connections[database].execute(query).fetchone()
    return int(row[0])


_connections: dict[str, Any] = {}
