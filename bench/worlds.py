"""Large systems in a moment: one job travels by the store's own verbs, and SQL copies what it left a million times.

Every world also has some jobs waiting on a route of their own, submitted last; those are the ones that are claimed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import psycopg

from unstuck.chance import SystemChance
from unstuck.model.job import AttemptRef, NewJob, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Outcome, Raised, Returned
from unstuck.store.drivers.connect import open_database, sqlite_path
from unstuck.store.port import NewWorker, Pause, Report, Share, Verdict
from unstuck.store.sql_store import SqlStore

TENANT = "default"
WAITING = 1_000
LEASE = 6 * 3600.0
CHUNK = 1_000

chance = SystemChance()

COPY_JOBS = """
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, target, priority, rank, payload, policy, created_at,
                          available_at, state, run, token, event_count, started, failures, losses, error_type,
                          error_message)
WITH RECURSIVE copy (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM copy WHERE i < {copies})
SELECT j.uid || '-' || copy.i, j.tenant, j.queue, j.workflow, j.route, j.target, j.priority, j.rank + copy.i,
       j.payload, j.policy, j.created_at, j.available_at, j.state, j.run, j.token, j.event_count, j.started,
       j.failures, j.losses, j.error_type, j.error_message
  FROM unstuck_jobs j CROSS JOIN copy
 WHERE j.id = {job}"""
COPY_READY = "INSERT INTO unstuck_ready (route, rank, job) SELECT route, rank, id FROM unstuck_jobs WHERE id > {job}"
COPY_LINE = """
INSERT INTO unstuck_line (target, place, job, route)
SELECT j.target, l.place, j.id, j.route
  FROM unstuck_jobs j CROSS JOIN unstuck_line l
 WHERE j.id > {job} AND l.job = {job}"""
COPY_DONE = """
INSERT INTO unstuck_done (job, route, run, state, token, event_count, worker, claimed_at, finished_at, duration_ms,
                          result)
SELECT j.id, d.route, d.run, d.state, d.token, d.event_count, d.worker, d.claimed_at, d.finished_at + j.id,
       d.duration_ms, d.result
  FROM unstuck_jobs j CROSS JOIN unstuck_done d
 WHERE j.id > {job} AND d.job = {job}"""
COPY_EVENTS = """
INSERT INTO unstuck_events (job, number, at, kind, run, token, data)
SELECT j.id, e.number, e.at, e.kind, e.run, e.token, e.data
  FROM unstuck_jobs j CROSS JOIN unstuck_events e
 WHERE j.id > {job} AND e.job = {job}"""
MAKE_ROUTES = """
INSERT INTO unstuck_routes (tenant, queue, workflow)
WITH RECURSIVE copy (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM copy WHERE i < {copies} - 1)
SELECT 'tenant-' || (copy.i / {workflows}), 'default', 'workflow-' || (copy.i % {workflows}) FROM copy"""
SPREAD_JOBS = """
UPDATE unstuck_jobs
   SET (route, tenant, workflow) = (SELECT o.id, o.tenant, o.workflow FROM unstuck_routes o
                                     WHERE o.id = unstuck_jobs.id - {job} + {route})
 WHERE id > {job}"""


@dataclass
class World:
    """A database in some situation, and the route from which to claim."""

    name: str
    url: str
    store: SqlStore
    worker: WorkerRecord
    routes: list[int]
    claims: int = 0

    def share(self) -> Share:
        """One job, of the next route in turn."""
        self.claims += 1
        return Share(self.routes[self.claims % len(self.routes)], 1)


Maker = Callable[["Workshop"], None]


class Workshop:
    """A fresh database in the making."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = open_store(url)
        self.store.migrate()
        self.worker = a_worker(self.store)

    def submit(self, workflow: str, count: int = 1, *, tenant: str = TENANT, target: str | None = None) -> None:
        jobs = [a_job(workflow, tenant, target) for _ in range(count)]
        for start in range(0, count, CHUNK):
            self.store.submit(jobs[start : start + CHUNK])
        self.store.ingest()

    def run_one(self, outcome: Outcome) -> None:
        """Claim the first job there is and end it."""
        (front,) = self.store.open_routes()
        (job,) = self.store.claim(self.worker.number, chance.nonce(), [Share(front.route, 1)])
        settle(self.store, self.worker, job.ref, outcome)

    def copy(self, *texts: str, copies: int, **values: int) -> None:
        copy(self.url, *texts, copies=copies, **values)

    def only(self, state: JobState, at_least: int) -> None:
        """Consistent, as the store itself reads it."""
        found = self.store.counts(None, ceiling=1_000)
        assert found.get(state, 0) >= min(1_000, at_least), f"{state}: {found}"


def copy(url: str, *texts: str, copies: int, **values: int) -> None:
    """What the last job left, so many times."""
    with by_hand(url) as execute:
        (job,) = execute("SELECT MAX(id) FROM unstuck_jobs")[0]
        for text in texts:
            execute(text.format(job=job, copies=copies, **values))


def a_job(workflow: str, tenant: str = TENANT, target: str | None = None) -> NewJob:
    return NewJob(
        id=chance.job_id(),
        tenant=tenant,
        queue="default",
        workflow=workflow,
        payload="{}",
        policy=Policy(retries=0),
        target=target,
    )


def a_worker(store: SqlStore) -> WorkerRecord:
    return store.register_worker(
        NewWorker(
            incarnation=chance.nonce(),
            name="bench",
            host="bench",
            boot_id="bench",
            pid_namespace="bench",
            pid=1,
            pid_start=1,
            queues=("default",),
            code_version="bench",
            lease=LEASE,
        )
    )


def settle(store: SqlStore, worker: WorkerRecord, ref: AttemptRef, outcome: Outcome) -> None:
    (answer,) = store.settle(worker.number, [Report(ref, outcome, duration_ms=1)])
    assert answer.verdict is Verdict.DONE, answer


def open_store(url: str) -> SqlStore:
    return SqlStore(open_database(url, store_call=30.0))


@contextmanager
def by_hand(url: str) -> Iterator[Callable[[str], list[tuple[int, ...]]]]:
    if url.startswith("postgresql:"):
        with psycopg.connect(url, autocommit=True) as server:

            def on_server(text: str) -> list[tuple[int, ...]]:
                cursor = server.execute(text.encode())
                return cursor.fetchall() if cursor.description else []

            yield on_server
        return
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=30.0)) as file:
        file.execute("PRAGMA cache_size = -500000")
        file.execute("PRAGMA synchronous = OFF")  # what is made here need not outlive the machine
        file.create_function("unstuck_now", 0, lambda: time.time_ns() // 1000)
        yield lambda text: file.execute(text).fetchall()


# --- the situations -----------------------------------------------------------------------------------------------


def empty(_: Workshop) -> None:
    """Nothing but what is claimed: the yardstick."""


def many_waiting(shop: Workshop) -> None:
    """A million on the very route that is claimed from."""
    shop.submit("claimed")
    shop.copy(COPY_JOBS, COPY_READY, COPY_EVENTS, copies=1_000_000)
    shop.only(JobState.QUEUED, 1_000_000)


def blocked_target(shop: Workshop) -> None:
    """Half a million behind a job that failed after it had started."""
    shop.submit("claimed", target="one")
    shop.run_one(Raised(ErrorInfo("ValueError", "boom")))
    (target,) = shop.store.targets(TENANT)
    assert target.blocked_by is not None, target
    shop.submit("claimed", target="one")
    shop.copy(COPY_JOBS, COPY_LINE, COPY_EVENTS, copies=500_000)
    (target,) = shop.store.targets(TENANT, blocked=True)
    assert target.waiting >= 10_000, target
    assert shop.store.open_routes() == [], "what stands behind a blocker is not claimable"


def many_routes(shop: Workshop) -> None:
    """Ten thousand tenants with twenty workflows each, one job in each of the 200 000 routes."""
    shop.submit("claimed")
    (template,) = shop.store.open_routes()
    shop.copy(
        COPY_JOBS,
        MAKE_ROUTES,
        SPREAD_JOBS,
        COPY_READY,
        COPY_EVENTS,
        copies=200_000,
        workflows=20,
        route=template.route,
    )
    assert len(shop.store.open_routes(template.route, 1000)) == 1000
    shop.only(JobState.QUEUED, 200_000)


def many_ended(shop: Workshop) -> None:
    """A million that completed, with their history."""
    shop.submit("claimed")
    shop.run_one(Returned('"ok"'))
    shop.copy(COPY_JOBS, COPY_DONE, COPY_EVENTS, copies=1_000_000)
    shop.only(JobState.COMPLETED, 1_000_000)


def paused_in_front(shop: Workshop) -> None:
    """A hundred routes with older jobs, all of them paused."""
    for number in range(100):
        shop.submit(f"paused-{number}", 20)
        shop.store.pause(Pause("workflow", f"paused-{number}", TENANT, by="bench"))
    assert shop.store.open_routes() == [], "paused routes are not shown"


SITUATIONS: dict[str, Maker] = {
    "empty": empty,
    "1 000 000 waiting": many_waiting,
    "500 000 behind a blocked target": blocked_target,
    "200 000 routes": many_routes,
    "1 000 000 ended": many_ended,
    "100 paused routes in front": paused_in_front,
}


def make(name: str, url: str, waiting: int = WAITING) -> World:
    shop = Workshop(url)
    SITUATIONS[name](shop)
    shop.submit("claimed", waiting)
    routes = _routes_to_claim_from(shop, spread=name == "200 000 routes")
    shop.store.close()  # what follows wants the file for itself
    with by_hand(url) as execute:
        # What autovacuum would have done by itself after a while.
        execute("VACUUM ANALYZE" if url.startswith("postgresql:") else "PRAGMA optimize")
    return World(name, url, open_store(url), shop.worker, routes)


def _routes_to_claim_from(shop: Workshop, *, spread: bool) -> list[int]:
    """The route of the jobs submitted last; or thousands of routes, from all over the table."""
    if not spread:
        with by_hand(shop.url) as execute:
            return [execute("SELECT route FROM unstuck_jobs ORDER BY id DESC LIMIT 1")[0][0]]
    return [front.route for after in range(10, 200_000, 10_000) for front in shop.store.open_routes(after, 200)]
