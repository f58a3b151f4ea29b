"""EXPLAIN: news of a few jobs, and a full queue cap, read a few rows, however many jobs have ended."""

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

JOBS = 30_000
#: The last 3000 jobs wait for one each of those before them; most of all jobs have ended.
FILL = f"""
INSERT INTO unstuck_routes (tenant, queue, workflow) SELECT 't' || n, 'q', 'w' FROM generate_series(1, 20) n;
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us) VALUES ('d', '{{}}', 1, 1);
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at,
                          available_at, state)
SELECT 'uid-' || n, 't' || 1 + n % 20, 'q', 'w', 1 + n % 20, 0, n, '{{}}', 1, n, n,
       CASE WHEN n > {JOBS} - 3000 THEN 'PENDING' ELSE 'QUEUED' END
  FROM generate_series(1, {JOBS}) n;
INSERT INTO unstuck_done (job, route, run, state, token, event_count, finished_at)
SELECT id, route, 1, 'COMPLETED', 1, 3, id FROM unstuck_jobs WHERE id <= {JOBS} - 4000;
INSERT INTO unstuck_running (job, token, claim, worker, route, policy, run, event_count, claimed_at)
SELECT id, 1, 'c', 1, route, 1, 1, 2, id FROM unstuck_jobs WHERE id BETWEEN {JOBS} - 3999 AND {JOBS} - 3000;
INSERT INTO unstuck_ready (route, rank, job) SELECT 20, n, n FROM generate_series(1, 10000) n;
INSERT INTO unstuck_dependencies (job, on_job) SELECT id, id - 3000 FROM unstuck_jobs WHERE id > {JOBS} - 3000;
"""
NUMBERS = list(range(JOBS - 10, JOBS))
WANTED = packed([{"tenant": f"t{1 + n % 20}", "uid": f"uid-{n}"} for n in range(1, 11)])
HOT: list[tuple[str, dict[str, Any], int]] = [
    ("dependants", {"jobs": NUMBERS}, 20),
    ("lock_awaited", {"jobs": NUMBERS}, 20),
    ("lock_waiting", {"jobs": NUMBERS, "newcomers": NUMBERS}, 30),
    ("dependencies_of", {"jobs": NUMBERS}, 20),
    ("pending_jobs", {"jobs": NUMBERS}, 20),
    ("drop_dependencies", {"jobs": NUMBERS}, 20),
    ("known_jobs", {"rows": WANTED}, 20),
    ("queued_of_tenant", {"tenant": "t1", "most": 50}, 200),
    ("queued_of_queue", {"queue": "q", "tenant": "t1", "most": 50}, 200),
]
BIG = {"unstuck_jobs", "unstuck_done", "unstuck_dependencies", "unstuck_ready"}


@pytest.fixture(scope="module")
def full(postgres_server: PostgresServer) -> Iterator[str]:
    with filled(postgres_server, run(FILL), what=__name__) as url:
        yield url


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("name", "values", "most"), HOT, ids=[name for name, _, _ in HOT])
def test_few_rows_are_touched(full: str, name: str, values: dict[str, Any], most: int, generic: bool) -> None:
    for scan in scans(plan_of(full, name, values, generic)):
        if scan["Relation Name"] in BIG and scan["Actual Loops"]:
            assert scan["Node Type"] != "Seq Scan", f"{name} reads all of {scan['Relation Name']}"
            touched = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)
            assert touched * scan["Actual Loops"] <= most, f"{name}: {scan}"


@pytest.mark.parametrize("name", [name for name, _, _ in HOT])
def test_sqlite_searches_what_it_touches(tmp_path: Path, name: str) -> None:
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.create_function("unstuck_now", 0, lambda: 0)
        connection.create_function("unstuck_ahead", 0, lambda: 0)
        connection.executescript(sqlite_schema())
        text = Statements("sqlite")[name]
        values = dict.fromkeys(re.findall(r":(\w+)", text))
        steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    assert not [step for step in steps if re.match(r"SCAN (unstuck_\w+|[ader-z]|o2)\b(?! VIRTUAL)", step)], steps
