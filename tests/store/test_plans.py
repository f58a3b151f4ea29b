"""EXPLAIN on a full PostgreSQL: hot statements touch as many rows as they return, with custom and generic plans."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import filled, plan_of, run, scans, sqlite_schema
from tests.support.postgres import PostgresServer
from unstuck.store.drivers.statements import Statements
from unstuck.store.rows import packed

JOBS = 34_000  # in each of three phases: ended, waiting for a time, ready
ROUTES = 20
IDLE_ROUTES = 30_000

FILL = f"""
INSERT INTO unstuck_routes (tenant, queue, workflow)
SELECT 'default', 'q', 'w' || n FROM generate_series(1, {ROUTES}) n;
INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key)
SELECT 't' || n % 1000, 'other', 'o' || n, 'k:' || n FROM generate_series(1, {IDLE_ROUTES}) n;
INSERT INTO unstuck_pauses (kind, name, tenant, since_at, by)
SELECT 'tenant', 't' || n, 't' || n, 0, 'x' FROM generate_series(1, 1000) n;
INSERT INTO unstuck_blacklist (tenant, workflow, reason, blacklisted_at, blacklisted_by, removed_at)
SELECT CASE WHEN n % 3 = 0 THEN '*' ELSE 't' || n % 1000 END, 'o' || n, 'x', n, 'x', CASE WHEN n > 300 THEN n END
  FROM generate_series(1, 30000) n;
INSERT INTO unstuck_stucks (tenant, workflow, at, job, token, kind)
SELECT 't' || n % 1000, 'o' || n % 5000, n, n, 1, 'stuck' FROM generate_series(1, 30000) n;
INSERT INTO unstuck_breakers (tenant, workflow)
SELECT 't' || n % 1000, 'o' || n FROM generate_series(1, 5000) n;
INSERT INTO unstuck_blacklist (tenant, workflow, reason, blacklisted_at, blacklisted_by)
VALUES ('default', 'w20', 'x', 1, 'x');
INSERT INTO unstuck_audit (at, by, verb, subject, tenant)
SELECT n, 'x', 'jobs.cancel', n, 't' FROM generate_series(1, 30000) n;
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, set_at, set_by)
SELECT 'key', 'k:' || n, '*', 1, 5, 60000000, 0, 'x' FROM generate_series(1, 1000) n;
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, set_at, set_by)
VALUES ('workflow', 'w11', '*', 100000, 1000, 60000000, 0, 'x'), ('tenant', '*', '*', 100000, NULL, NULL, 0, 'x');
INSERT INTO unstuck_starts (limit_id, bucket, at, job)
SELECT 1 + n % 1001, 'b', n, n FROM generate_series(1, 20000) n;
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us) VALUES ('d', '{{}}', 1, 1);
INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues, code_version,
                             started_at, beat_at, lease_until)
SELECT 'i' || n, 'w', 'h', 'b', 'p', 1, 1, '[]', 'v', 0, 0, unstuck_now() + 1000000000000
  FROM generate_series(1, 20) n;
INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues, code_version,
                             state, started_at, beat_at, lease_until, ended_at)
SELECT 'gone' || n, 'w', 'h', 'b', 'p', 1, 1, '[]', 'v', 'lost', 0, 0, n, n FROM generate_series(1, 30000) n;
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at,
                          available_at)
SELECT 'uid-' || n, 'default', 'q', 'w', 1 + n % {ROUTES}, 0, n, '{{}}', 1, n, n
  FROM generate_series(1, {3 * JOBS}) n;
INSERT INTO unstuck_events (job, number, at, kind, run, token)
SELECT id, e, id, CASE e WHEN 1 THEN 'submitted' WHEN 2 THEN 'claimed' ELSE 'completed' END, 1, e / 2
  FROM unstuck_jobs, generate_series(1, 3) e WHERE id <= {JOBS};
INSERT INTO unstuck_done (job, route, run, state, token, event_count, finished_at)
SELECT id, route, 1, CASE WHEN id % 100 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 1, 3, id FROM unstuck_jobs
 WHERE id <= {JOBS};
INSERT INTO unstuck_ready (route, rank, job) SELECT route, rank, id FROM unstuck_jobs WHERE id > {2 * JOBS};
INSERT INTO unstuck_running (job, token, claim, worker, route, policy, run, event_count, claimed_at, overdue_at)
SELECT id, 1, 'c' || id % 50, 1 + id % 20, route, 1, 1, 2, id, unstuck_now() + 1000000000000 FROM unstuck_jobs
 WHERE id > {JOBS} AND id <= {JOBS} + 4000;
INSERT INTO unstuck_timers (kind, due_at, job)
SELECT CASE WHEN id % 2 = 0 THEN 'start' ELSE 'expire' END, unstuck_now() + id * 1000000, id FROM unstuck_jobs
 WHERE id > {JOBS} + 4000 AND id <= {2 * JOBS};
INSERT INTO unstuck_timers (kind, due_at, job)
SELECT 'start', id, id FROM unstuck_jobs WHERE id BETWEEN 50001 AND 50050;
INSERT INTO unstuck_targets (tenant, name, head, head_place, blocked_by, blocked_at)
SELECT 'default', 't' || n, CASE WHEN n % 2 = 0 THEN {JOBS} + n END, 0, CASE WHEN n % 100 = 0 THEN {JOBS} + n END, n
  FROM generate_series(1, 30000) n;
INSERT INTO unstuck_line (target, place, job, route)
SELECT 1 + n % 20000, 0, {JOBS} + n % 4000, 1 + n % {ROUTES} FROM generate_series(1, 100000) n
    ON CONFLICT DO NOTHING;
INSERT INTO unstuck_inbox (target) SELECT n FROM generate_series(1, 30000) n;
INSERT INTO unstuck_orders (worker, kind, subject, by, given_at, done_at, answer)
SELECT 1 + n % 20, 'stack', n || ':1', 'x', n, CASE WHEN n > 40 THEN n END, 'x' FROM generate_series(1, 30000) n;
INSERT INTO unstuck_news (number, tenant, by, key, told_at, expires_at)
SELECT n, 't' || n % 10, CASE WHEN n % 2 = 0 THEN 'x' END, CASE WHEN n % 2 = 0 THEN 'k' || n END, n,
       CASE WHEN n % 4 = 0 THEN n END
  FROM generate_series(1, 30000) n;
INSERT INTO unstuck_events (job, number, at, kind, run, token)
SELECT 0, n, n, 'x', 0, 0 FROM generate_series(1, 30000) n;
INSERT INTO unstuck_feed (first, last, at, jobs, numbers)
SELECT 500 * n + 1, 500 * n + 500, n,
       ARRAY(SELECT CASE WHEN i % 2 = 0 THEN 0 ELSE i END FROM generate_series(1, 500) i),
       ARRAY(SELECT CASE WHEN i % 2 = 0 THEN 500 * n + i ELSE 1 END FROM generate_series(1, 500) i)
  FROM generate_series(0, 59) n;
INSERT INTO unstuck_body_marks (job, worker, since_at, reason)
SELECT id, 1, 0, 'x' FROM unstuck_jobs WHERE id > {2 * JOBS} AND id <= {2 * JOBS} + 20;
"""

CLAIM = {"worker": 1, "claim": "new", "opened": 0, "data": "{}", "room": 99999, "without": "claim"}
RUNNING = [{"job": JOBS + n, "token": 1, "claim": f"c{(JOBS + n) % 50}"} for n in range(20, 2020, 20)]
COLUMNS = {
    **{f"{name}s": [row[name] for row in RUNNING] for name in ("job", "token", "claim")},
    "results": ["1"] * len(RUNNING),
    "durations": [1] * len(RUNNING),
}
TO_THE_END = {"last_rank": 1 << 62, "last_job": 1 << 62, "counted": True}
SHARES = [{"route": n, "most": 10, "rank": 2 * JOBS, "job": 0, **TO_THE_END} for n in range(1, 11)]
MIDDLE = [{"route": 1, "most": 100, "rank": 3 * JOBS - 3000, "job": 0, **TO_THE_END}]
FRESH = [
    {"place": n, "uid": f"new-{n}", "tenant": "default", "queue": "q", "workflow": "w", "route": 1, "priority": 0,
     "payload": "{}", "policy": 1, "start_at": None, "delay": 0, "expires_after": None, "key": None, "tags": None,
     "state": "QUEUED", "event_count": 1, "target": 1 + n, "on_hold": 0, "after_failure": None}
    for n in range(100)
]  # fmt: skip
RETRIED = [
    {"job": row["job"], "state": "QUEUED", "run": 1, "token": 1, "event_count": 3, "failures": 1, "losses": 0,
     "suspects": 0, "alone": 0, "started": 1, "available_at": None, "expires_at": None, "error_type": None,
     "error_message": None}
    for row in RUNNING
]  # fmt: skip
NUMBERS = [row["job"] for row in RUNNING]
TARGETS = list(range(100, 20000, 199))
TIMERS = [{"due_at": n, "job": n} for n in range(50001, 50051)]

#: statement, its values, the most rows that any scan of a big table may touch
HOT: list[tuple[str, dict[str, Any], int]] = [
    ("claim", {**CLAIM, "shares": packed(SHARES)}, 150),
    ("claim", {**CLAIM, "shares": packed(MIDDLE)}, 110),
    ("claimed_jobs", {"worker": 1, "claim": "c0", "rank": 0, "job": 0, "room": 99999}, 300),
    (
        "settle_returned",
        {"worker": 1, "by": '"w"', **COLUMNS, "targets": [1, 2], "earliest": 0, "latest": 1 << 62},
        150,
    ),
    ("lock_attempts", {"worker": 1, "rows": packed(RUNNING), "targets": [1, 2]}, 150),
    ("open_attempts_of", {"rows": packed(RUNNING)}, 150),
    ("attempts_seen", {"rows": packed(RUNNING)}, 150),
    ("close_attempts", {"jobs": NUMBERS}, 150),
    ("rest_jobs", {"rows": packed(RETRIED)}, 150),
    ("add_ready", {"jobs": NUMBERS}, 150),
    ("endings", {"rows": packed([{"job": n, "token": 1} for n in range(1, 101)])}, 400),
    ("submit_jobs", {"rows": packed(FRESH), "alone": 0, "earliest": 0, "latest": 0, "seen": None}, 150),
    ("open_routes", {"after": 0, "most": 1000}, 60),
    ("plain_routes", {"most": 100}, 130),
    ("waits", {"after": 0, "most": 1000}, 60),
    ("routes", {"numbers": list(range(1, 21))}, 30),
    ("paused_routes", {"routes": list(range(1, 21))}, 300),
    ("lock_limits", {"routes": list(range(1, 21))}, 300),
    ("limit_room", {"routes": list(range(1, 21))}, 300),
    ("tenants", {"after": "", "most": 10}, 30),
    ("entries_against", {"workflows": ["o7", "w1", "o12"]}, 5),
    ("count_stucks", {"tenant": "t7", "workflow": "o7", "span": 1 << 60}, 10),
    ("clear_window", {"workflow": "o7", "tenant": "t7"}, 10),
    ("at_the_gate", {"batch": 100, "aside": 0}, 400),
    ("blacklisted_jobs", {"jobs": list(range(70000, 70100)), "targets": [1, 2]}, 150),
    ("audit", {"tenant": None, "with_platform": 1, "verb": None, "subject": None, "before": 1 << 60, "most": 20}, 30),
    ("orphans_waiting", {"route": 1, "age": 1, "batch": 100}, 110),
    ("orphan_jobs", {"jobs": list(range(70000, 70100)), "age": 1, "targets": [1]}, 110),
    ("lock_targets_of_queued", {"jobs": list(range(70000, 70100))}, 110),
    ("due_timers", {"kind": "start", "after_due": 0, "after_job": 0, "batch": 100}, 110),
    ("latest_due_timers", {"kind": "start", "batch": 100}, 110),
    ("aside_timers", {"kind": "start", "batch": 20}, 20),
    ("release_due", {"rows": packed(TIMERS), "first": -(1 << 62)}, 110),
    ("expiring_jobs", {"rows": packed(TIMERS), "targets": [1, 2]}, 110),
    ("attempts_of_worker", {"worker": 1, "jobs": [row["job"] for row in RUNNING], "targets": [1]}, 150),
    ("overdue_attempts", {"margin": 1, "jobs": [row["job"] for row in RUNNING], "targets": [1]}, 150),
    ("lock_targets", {"targets": TARGETS}, 110),
    ("lock_targets_of_jobs", {"jobs": [row["job"] for row in RUNNING]}, 150),
    ("promote", {"targets": TARGETS}, 150),
    ("pass_turns", {"rows": packed([{"target": n, "job": JOBS + n} for n in TARGETS])}, 150),
    ("challenged_heads", {"targets": TARGETS, "first": -(1 << 62)}, 150),
    ("take_inbox", {"after": 0, "batch": 100}, 110),
    ("inbox_waits", {"after": 0}, 1),
    ("inbox_stand", {"ceiling": 100}, 100),
    ("locks_on", {"job": 3 * JOBS, "first": -(1 << 62), "longer": 1_000_000, "ours": 10_000_000}, 110),
    ("target_row", {"tenant": "default", "name": "t7", "ceiling": 10}, 11),
    ("targets", {"tenant": "default", "after": "t500", "most": 20, "ceiling": 10}, 210),
    ("blocked_targets", {"tenant": "default", "after": "", "most": 20, "ceiling": 10}, 210),
    ("job", {"tenant": "default", "uid": "uid-7"}, 5),
    ("history", {"tenant": "default", "uid": "uid-7", "after": 1, "most": 2}, 5),
    (
        "find",
        {
            "tenant": "default",
            "prefix": "uid-777",
            "beyond": "uid-777~",
            "most": 5,
            "in_queues": None,
            "in_workflows": None,
        },
        10,
    ),
    ("take_ready", {"route": 1, "rank": 2 * JOBS + 100, "job": 2 * JOBS + 100}, 1),
    ("end_stays", {"rows": packed([{"due_at": n, "job": n} for n in range(50001, 50051)])}, 60),
    ("take_timer", {"kind": "start", "due_at": 50001, "job": 50001}, 1),
    ("take_timers", {"kind": "start", "rows": packed(TIMERS)}, 60),
    (
        "take_ready_rows",
        {"rows": packed([{"route": 1 + n % 20, "rank": n, "job": n} for n in range(70000, 70100)])},
        150,
    ),
    ("start_attempts", {"worker": 1, "rows": packed([{"job": row["job"], "at": 1} for row in RUNNING])}, 150),
    ("ended_before", {"retention": 1_000_000, "at": 500, "job": 500, "most": 100}, 110),
    ("count_ended", {"span": 1_000_000, "most": 100}, 1),
    ("next_ends", {"since": 500, "until": JOBS, "batch": 100}, 110),
    ("enqueued", {"after": 500, "settled": 60_000_000, "batch": 100}, 110),
    ("are_enqueued", {"settled": 60_000_000}, 1),
    ("sorted_ends", {"since": 500, "until": 600, "stuck": "ExecutionStuck"}, 110),
    ("past_bound", {"tenant": None, "late": 20_000_000, "backstop": 35_000_000, "looked": 100}, 210),
    ("waiting_on", {"routes": [1, 2, 3], "each": 10, "most": 10}, 70),
    ("forgettable", {"jobs": list(range(1, 101)), "retention": 1_000_000}, 110),
    ("forget_events", {"jobs": NUMBERS}, 150),
    ("forget_routes", {"before": 1 << 60, "batch": 100, "past": 0}, 210),
    ("forget_targets", {"before": 1 << 60, "batch": 100, "past": 0}, 210),
    ("name_targets", {"numbers": TARGETS}, 110),
    ("asked", {"worker": 1}, 300),
    ("live_workers", {"boot_id": "b", "pid_namespace": "p"}, 30),
    ("workers", {"after": 0, "most": 100, "silent": 1_000_000}, 130),
    ("lost_workers", {"grace": 0, "after": 0}, 60),
    ("forget_workers", {"retention": 1, "batch": 100, "past": 0}, 220),
    ("open_orders", {"worker": 1}, 5),
    ("order_given", {"number": 7}, 1),
    ("give_order", {"worker": 1, "kind": "stack", "subject": "7:1", "by": "x"}, 5),
    ("answer_order", {"number": 7, "answer": "x", "refused": 0}, 1),
    ("holder", {"tenant": "default", "uid": f"uid-{JOBS + 20}"}, 1),
    ("overdue", {"late": 20_000_000, "backstop": 35_000_000}, 25),
    ("gate_facts", {"tenant": "default", "uid": f"uid-{3 * JOBS}", "first": -(1 << 62), "ceiling": 100}, 130),
]
NOBODY = dict.fromkeys(("tenant", "job", "workflow", "target", "topic", "kinds", "in_queues", "in_workflows"))
HOT += [
    ("feed_page", {"after": 20_000, "through": 20_100, "most": 100, **NOBODY}, 510),
    ("old_news", {"kept": 1_000_000, "held": 1_000_000, "batch": 100, "past": 0}, 110),
    ("surplus_from", {"most": 20}, 200),
    ("surplus_news", {"tenant": "t2", "upto": 20_000, "batch": 100}, 110),
    ("free_news", {"numbers": list(range(100, 200))}, 110),
    ("forget_news", {"numbers": list(range(100, 200))}, 110),
    ("forget_news_events", {"numbers": list(range(100, 200))}, 110),
    ("published", {"tenant": "t2", "key": "k2"}, 1),
    ("holds_attempt", {"job": JOBS + 20, "token": 1, "claim": f"c{(JOBS + 20) % 50}"}, 1),
]
BIG = {
    "unstuck_news",
    "unstuck_routes",
    "unstuck_starts",
    "unstuck_ready",
    "unstuck_jobs",
    "unstuck_events",
    "unstuck_done",
    "unstuck_timers",
    "unstuck_targets",
    "unstuck_line",
    "unstuck_inbox",
    "unstuck_orders",
    "unstuck_blacklist",
    "unstuck_stucks",
    "unstuck_audit",
    "unstuck_workers",
}
#: They ask about some routes of thousands.
ROUTED = {
    "forget_routes",
    "claim",
    "open_routes",
    "plain_routes",
    "waits",
    "routes",
    "paused_routes",
    "lock_limits",
    "limit_room",
}


@pytest.fixture(scope="module")
def full(postgres_server: PostgresServer) -> Iterator[str]:
    with filled(postgres_server, run(FILL), what=__name__) as url:
        yield url


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("name", "values", "most"), HOT, ids=[name for name, _, _ in HOT])
def test_a_hot_statement_touches_as_many_rows_as_it_returns(
    full: str, name: str, values: dict[str, Any], most: int, generic: bool
) -> None:
    for scan in scans(plan_of(full, name, values, generic)):
        big = BIG | {"unstuck_routes"} if name in ROUTED else BIG
        if scan["Relation Name"] in big and scan["Actual Loops"]:
            assert scan["Node Type"] != "Seq Scan", f"{name} reads all of {scan['Relation Name']}"
            touched = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)
            assert touched * scan["Actual Loops"] <= most, f"{name}: {scan}"


def test_sqlite_searches_what_it_touches_and_reads_a_batch_once(tmp_path: Path) -> None:
    with migrated(tmp_path / "empty.db") as connection:
        for name, steps in sqlite_plans(connection):
            if name in WALKS:
                continue
            for table in BIG:
                whole = [step for step in steps if re.match(rf"SCAN {table}\b", step) and _ACTIVE not in step]
                assert not whole, f"{name}: {steps}"
            batch = next((place for place, step in enumerate(steps) if step.startswith("SCAN r VIRTUAL")), 0)
            before = " ".join(steps[:batch])
            assert not re.search(r"(SEARCH|SCAN) [aej] ", before), f"{name} reads its batch once per row: {steps}"


def test_sqlite_finds_a_page_of_the_feed_by_its_place_among_all_news_too(tmp_path: Path) -> None:
    with migrated(tmp_path / "empty.db") as connection:
        [steps] = [steps for name, steps in sqlite_plans(connection) if name == "feed_page"]
        found = [step for step in steps if step.startswith("SEARCH e ")]
        assert found == ["SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"] * 2, steps


def test_sqlite_reads_no_whole_table_for_a_few_rows_once_it_knows_that_there_are_many(tmp_path: Path) -> None:
    """Who runs ANALYZE tells it so: then it may put all keys of a table into a filter before it looks up three."""
    with migrated(tmp_path / "full.db") as connection:
        connection.execute("ANALYZE")
        connection.execute("DELETE FROM sqlite_stat1")
        connection.execute(
            "INSERT INTO sqlite_stat1 (tbl, idx, stat)"
            " SELECT m.tbl_name, m.name, '1000000' || (SELECT GROUP_CONCAT(' 10', '') FROM pragma_index_info(m.name))"
            " FROM sqlite_master m WHERE m.type = 'index' AND m.tbl_name LIKE 'unstuck%'"
        )
    with closing(sqlite3.connect(tmp_path / "full.db")) as connection:
        told(connection)
        filters = {name: steps for name, steps in sqlite_plans(connection) if "BLOOM FILTER" in str(steps)}
    assert not filters


@contextmanager
def migrated(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        told(connection)
        connection.executescript(sqlite_schema())
        yield connection


def told(connection: sqlite3.Connection) -> None:
    connection.create_function("unstuck_now", 0, lambda: 0)
    connection.create_function("unstuck_ahead", 0, lambda: 0)


def sqlite_plans(connection: sqlite3.Connection) -> Iterator[tuple[str, list[str]]]:
    statements = Statements("sqlite")
    for name in statements.names():
        if "unstuck_" in statements[name] and not re.search("migration|repeatable|schema_version", name):
            values = dict.fromkeys(re.findall(r":(\w+)", statements[name]))
            yield name, [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statements[name]}", values)]


#: The index of what is on the blacklist now, beside a history that only grows.
_ACTIVE = "unstuck_blacklist_active"
#: They read a table on purpose: up to a ceiling, or a narrow index of it.
WALKS = {
    "counts_everywhere", "routes_everywhere", "standing", "resting_since", "standing_troubles", "chores",
    "standing_of_key",
}  # fmt: skip
