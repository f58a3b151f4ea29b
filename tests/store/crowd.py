"""A crowd: jobs of three tenants in every place a job can be in, laid down by SQL, from a seed."""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg

from unstuck.store.drivers.connect import sqlite_path

TENANTS = ("acme", "beta", "core")
QUEUES = ("default", "slow")
WORKFLOWS = ("crawl", "index", "mail")
TARGETS = ("t1", "t2")
TAGS = ("blue", "red")
ERRORS = ("Boom", "ValueError")
HOUR = 3_600_000_000
SPAN = 2 * HOUR

Execute = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]


@contextmanager
def hand(url: str) -> Iterator[Execute]:
    if url.startswith("postgres"):
        with psycopg.connect(url) as server:
            cursor = psycopg.ClientCursor(server)

            def ask(text: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
                cursor.execute(text.replace("?", "%s").encode(), values)
                return cursor.fetchall() if cursor.description else []

            yield ask
        return
    with closing(sqlite3.connect(sqlite_path(url), isolation_level=None)) as file:
        file.execute("BEGIN IMMEDIATE")
        yield lambda text, values: file.execute(text, values).fetchall()
        file.execute("COMMIT")


def gather(url: str, seed: int, count: int) -> list[tuple[str, str]]:
    """Tenant and id of each, oldest first; the clock of the database is taken to be this machine's."""
    with hand(url) as execute:
        return _Crowd(execute, random.Random(seed)).gather(count)


class _Crowd:
    def __init__(self, execute: Execute, chance: random.Random) -> None:
        self._execute = execute
        self._chance = chance
        self._now = time.time_ns() // 1000
        self._blocked: set[int] = set()
        self._heads: set[int] = set()
        self._routes = {
            (tenant, queue, workflow): self._insert("routes", tenant=tenant, queue=queue, workflow=workflow)
            for tenant in TENANTS
            for queue in QUEUES
            for workflow in WORKFLOWS
        }
        self._targets = {
            (tenant, name): self._insert("targets", tenant=tenant, name=name)
            for tenant in TENANTS
            for name in TARGETS
        }
        self._policy = self._insert("policies", digest="d", body="{}", timeout_us=1, grace_us=1)
        self._worker = self._insert(
            "workers", incarnation="i", name="w", host="h", boot_id="b", pid_namespace="p", pid=1, pid_start=1,
            queues="[]", code_version="v", started_at=0, beat_at=self._now, lease_until=self._now + HOUR,
        )  # fmt: skip

    def gather(self, count: int) -> list[tuple[str, str]]:
        return [self._join(place, count) for place in range(count)]

    def _join(self, place: int, count: int) -> tuple[str, str]:
        pick = self._chance.choice
        tenant, queue, workflow = pick(TENANTS), pick(QUEUES), pick(WORKFLOWS)
        stand = pick(_STANDS)
        # A job with a target is ready only as the head of it; who waits stands in the line.
        has_target = stand == "line" or (stand != "ready" and self._chance.random() < 0.3)
        target = self._targets[tenant, pick(TARGETS)] if has_target else None
        tags = sorted(self._chance.sample(TAGS, self._chance.randrange(len(TAGS) + 1)))
        # Numbers follow the clock, but not to the second.
        created_at = self._now - SPAN + place * SPAN // count + self._chance.randrange(-28_000_000, 28_000_000)
        job = {
            "uid": _name(self._chance), "tenant": tenant, "queue": queue, "workflow": workflow,
            "route": self._routes[tenant, queue, workflow], "target": target, "priority": 0, "rank": created_at,
            "payload": "{}", "policy": self._policy, "created_at": created_at,
            "tags": json.dumps(tags) if tags else None,
            "available_at": self._now + HOUR if stand == "later" else created_at,
            "state": stand if stand in ("PENDING", "WAITING", "PAUSED") else "QUEUED",
            "failures": pick((0, 1)), "losses": pick((0, 0, 1)), "error_type": pick((None, None, *ERRORS)),
        }  # fmt: skip
        number = self._insert("jobs", **job)
        for tag in tags:
            self._insert("tags", tenant=tenant, tag=tag, job=number)
        self._stand(stand, number, job)
        return tenant, str(job["uid"])

    def _stand(self, stand: str, number: int, job: dict[str, Any]) -> None:
        route, target = job["route"], job["target"]
        match stand:
            case "ready":
                self._insert("ready", route=route, rank=job["rank"], job=number)
            case "later":
                self._insert("timers", kind="start", due_at=job["available_at"], job=number, route=route)
            case "line":
                self._insert("line", target=target, place=0, job=number, route=route)
            case "running":
                request = self._chance.choice((None, "cancel", "interrupt"))
                mine = None if target in self._heads else target  # one attempt per target
                self._heads.add(target)
                self._insert(
                    "running", job=number, token=1, claim="c", worker=self._worker, route=route, policy=self._policy,
                    target=mine, run=1, event_count=2, claimed_at=job["created_at"], request=request,
                )  # fmt: skip
            case "PENDING" | "WAITING" | "PAUSED":
                self._may_block(stand, number, target)
            case ended:
                error = None if ended == "COMPLETED" else self._chance.choice(ERRORS)
                self._insert(
                    "done", job=number, route=route, run=1, state=ended, token=1, event_count=3,
                    finished_at=self._now, error_type=error,
                )  # fmt: skip
                if ended == "FAILED" and self._chance.random() < 0.5:
                    self._insert("body_marks", job=number, worker=self._worker, since_at=self._now, reason="x")
                self._may_block(ended, number, target)

    def _may_block(self, state: str, number: int, target: int | None) -> None:
        if state in ("PAUSED", "FAILED", "TIMEOUT") and target is not None and target not in self._blocked:
            self._blocked.add(target)
            self._execute(
                "UPDATE unstuck_targets SET blocked_by = ?, blocked_at = ?, head = ? WHERE id = ?",
                (number, self._now, number, target),
            )

    def _insert(self, table: str, **columns: Any) -> int:
        marks = ", ".join("?" * len(columns))
        back = "RETURNING id" if table in _NUMBERED else ""
        text = f"INSERT INTO unstuck_{table} ({', '.join(columns)}) VALUES ({marks}) {back}"
        rows = self._execute(text, tuple(columns.values()))
        return int(rows[0][0]) if rows else 0


def _name(chance: random.Random) -> str:
    return "".join(chance.choices("0123456789abcdef", k=32))


_NUMBERED = {"routes", "targets", "policies", "workers", "jobs"}
_STANDS = (
    "ready", "ready", "later", "later", "line", "line", "running", "running", "PENDING", "WAITING", "PAUSED",
    "COMPLETED", "COMPLETED", "FAILED", "FAILED", "TIMEOUT", "CANCELLED", "DEAD",
)  # fmt: skip
