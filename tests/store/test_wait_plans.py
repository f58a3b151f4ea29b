"""EXPLAIN: parks, events, decisions and wakes read a few rows, however many waits, letters and jobs there are."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.plans import filled, plan_of, run, scans, sqlite_schema
from tests.support.postgres import PostgresServer
from unstuck.store.drivers.statements import Statements
from unstuck.store.rows import packed

JOBS = 20_000
OPEN = JOBS - 3000
#: The last 3000 jobs wait, a third of them each for an event, for one on a topic, for a person; the others have
#: waited twice each, and one of those that wait did so 3000 times before. Every tenth of all has letters. A few
#: timers are due, most are not.
FILL = f"""
INSERT INTO unstuck_routes (tenant, queue, workflow) SELECT 't' || n, 'q', 'w' FROM generate_series(1, 20) n;
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us) VALUES ('d', '{{}}', 1, 1);
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at,
                          available_at, state)
SELECT 'uid-' || n, 't' || 1 + n % 20, 'q', 'w', 1 + n % 20, 0, n, '{{}}', 1, n, n,
       CASE WHEN n > {OPEN} THEN 'WAITING' ELSE 'QUEUED' END
  FROM generate_series(1, {JOBS}) n;
INSERT INTO unstuck_done (job, route, run, state, token, event_count, finished_at)
SELECT id, route, 1, 'COMPLETED', 1, 3, id FROM unstuck_jobs WHERE id <= {OPEN};
INSERT INTO unstuck_waits (job, run, key, tenant, kind, name, address, token, asked_at, until_at, answer, answered_at)
SELECT id, 1, 'event#' || k, tenant, 'event', 'paid', 'job:' || uid, k, id, id + 1000, 'event', id
  FROM unstuck_jobs CROSS JOIN generate_series(1, 2) k WHERE id <= {OPEN};
INSERT INTO unstuck_waits (job, run, key, tenant, kind, name, address, token, asked_at, until_at)
SELECT id, 1, 'wait#1', tenant, CASE id % 3 WHEN 0 THEN 'approval' ELSE 'event' END, 'paid',
       CASE id % 3 WHEN 1 THEN 'job:' || uid WHEN 2 THEN 'topic:orders' END, 1, id,
       CASE WHEN id > {JOBS} - 20 THEN id ELSE 1 << 60 END
  FROM unstuck_jobs WHERE id > {OPEN};
INSERT INTO unstuck_waits (job, run, key, tenant, kind, name, token, asked_at, until_at, answer, answered_at)
SELECT id, 1, 'time#' || k, tenant, 'time', '', -k, id, id, 'due', id
  FROM unstuck_jobs CROSS JOIN generate_series(1, 3000) k WHERE id = {JOBS} - 1;
INSERT INTO unstuck_timers (kind, due_at, job) SELECT 'wait', until_at, job FROM unstuck_waits WHERE answer IS NULL;
INSERT INTO unstuck_unclaimed_events (tenant, address, event, payload, run, by, sent_at, expires_at)
SELECT tenant, 'job:' || uid, 'paid', '1', 1, 'ada', id, CASE WHEN id < 20 THEN 1 ELSE CAST(1 AS BIGINT) << 60 END
  FROM unstuck_jobs WHERE id % 10 = 0;
""".replace("ELSE 1 << 60", "ELSE CAST(1 AS BIGINT) << 60")
NUMBERS = list(range(JOBS - 10, JOBS))
DONE = list(range(100, 110))
PLACES = packed([{"job": n, "run": 1, "key": "wait#1"} for n in NUMBERS])
ANSWERS = packed(
    [{"job": n, "run": 1, "key": "wait#1", "answer": "due", "payload": None, "by": "timeout"} for n in NUMBERS]
)
EVENT = {"tenant": "t11", "address": "job:uid-19990", "event": "paid"}
LETTERS = packed([{**EVENT, "job": n, "run": 1, "turn": n} for n in (0, 1)])
TIMERS = packed([{"due_at": n, "job": n} for n in NUMBERS])
HOT: list[tuple[str, dict[str, Any], int]] = [
    ("waits_asked", {"rows": PLACES}, 20),
    ("take_unclaimed_events", {"rows": LETTERS}, 6),
    ("oldest_wait", {**EVENT, "run": 1}, 3),
    ("oldest_wait", {**EVENT, "address": "topic:orders", "run": 1}, 60),
    (
        "answer_wait",
        {"job": JOBS, "run": 1, "key": "wait#1", "answer": "due", "payload": "1", "by": "a", "comment": ""},
        3,
    ),
    ("decide_wait", {"job": JOBS, "key": "wait#1", "answer": "approved", "by": "a", "comment": ""}, 3),
    ("answer_waits", {"rows": ANSWERS}, 30),
    ("open_waits_of", {"jobs": NUMBERS}, 20),
    ("waiting_jobs", {"jobs": NUMBERS}, 20),
    ("last_waits_of", {"jobs": NUMBERS}, 20),
    ("due_wait_timers", {"after_at": 0, "after_job": 0, "batch": 100}, 60),
    ("lock_free_targets_of", {"jobs": NUMBERS}, 20),
    ("due_waits", {"timers": TIMERS, "targets": [1]}, 40),
    ("due_timers_of_waits", {"jobs": [JOBS]}, 5),
    ("next_timer", {"kind": "wait"}, 1),
    ("count_waits", {"rows": PLACES, "most": 10}, 20),
    ("drop_wait_timers", {"job": JOBS, "run": 1}, 3),
    ("drop_open_wait", {"job": JOBS, "run": 1}, 3),
    ("drop_unclaimed_events", {"tenant": "t11", "address": "job:uid-19990", "run": 2}, 3),
    ("forget_unclaimed_events", {"batch": 100, "past": 0}, 60),
    (
        "open_waits",
        {
            "tenant": "t1",
            "kind": "approval",
            "after_at": 0,
            "after_job": 0,
            "most": 10,
            "in_queues": None,
            "in_workflows": None,
        },
        60,
    ),
    ("job_waits", {"tenant": "t11", "uid": "uid-19990"}, 3),
    ("waits_page", {"job": 19_990, "skip": 0, "most": 50, "room": 1 << 20}, 3),
    ("forget_waits", {"jobs": DONE}, 40),
    ("forget_steps", {"jobs": DONE}, 40),
    ("forget_usage", {"jobs": DONE}, 40),
    ("forget_children", {"jobs": DONE}, 40),
    ("forget_unclaimed_of_jobs", {"jobs": DONE}, 40),
]
NAMES = [f"{name}-{number}" for number, (name, _, _) in enumerate(HOT)]
BIG = {"unstuck_jobs", "unstuck_waits", "unstuck_unclaimed_events", "unstuck_timers"}


@pytest.fixture(scope="module")
def full(postgres_server: PostgresServer) -> Iterator[str]:
    with filled(postgres_server, run(FILL), what=__name__) as url:
        yield url


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("name", "values", "most"), HOT, ids=NAMES)
def test_few_rows_are_touched(full: str, name: str, values: dict[str, Any], most: int, generic: bool) -> None:
    for scan in scans(plan_of(full, name, values, generic)):
        if scan["Relation Name"] in BIG and scan["Actual Loops"]:
            assert scan["Node Type"] != "Seq Scan", f"{name} reads all of {scan['Relation Name']}"
            touched = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)
            assert touched * scan["Actual Loops"] <= most, f"{name}: {scan}"


@pytest.mark.parametrize(
    "name", sorted({name for name, _, _ in HOT} - {"take_unclaimed_events"} | {"take_unclaimed_event"})
)
def test_sqlite_searches_what_it_touches(tmp_path: Path, name: str) -> None:
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.create_function("unstuck_now", 0, lambda: 0)
        connection.create_function("unstuck_ahead", 0, lambda: 0)
        connection.executescript(sqlite_schema())
        text = Statements("sqlite")[name]
        values = dict.fromkeys(re.findall(r":(\w+)", text))
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    assert not [step for step in steps if re.match(r"SCAN (unstuck_\w+|[gjlw])\b(?! VIRTUAL)", step)], steps
