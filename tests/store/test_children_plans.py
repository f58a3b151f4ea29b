"""EXPLAIN: what a running job asks about its steps and children reads its own rows, however many others have."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support.plans import filled, plan_of, run, scans, sqlite_schema
from tests.support.postgres import PostgresServer
from unstuck.store.drivers.statements import Statements
from unstuck.store.rows import packed

JOBS = 30_000
#: Jobs 1 to 200 have a hundred children each; half of those have ended. Five are left. 200 jobs have a hundred steps.
FILL = f"""
INSERT INTO unstuck_routes (tenant, queue, workflow) SELECT 't' || n, 'q', 'w' FROM generate_series(1, 20) n;
INSERT INTO unstuck_policies (digest, body, timeout_us, grace_us) VALUES ('d', '{{}}', 1, 1);
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at,
                          available_at, state)
SELECT 'uid-' || n, 't' || 1 + n % 20, 'q', 'w', 1 + n % 20, 0, n, '{{}}', 1, n, n, 'QUEUED'
  FROM generate_series(1, {JOBS}) n;
INSERT INTO unstuck_done (job, route, run, state, token, event_count, finished_at)
SELECT id, route, 1, 'COMPLETED', 1, 3, id FROM unstuck_jobs WHERE id > 500 AND id % 2 = 0;
INSERT INTO unstuck_running (job, token, claim, worker, route, policy, run, event_count, claimed_at)
SELECT id, 1, 'c', 1, route, 1, 1, 2, id FROM unstuck_jobs WHERE id <= 500;
INSERT INTO unstuck_children (child, parent, run, name, ordinal, depth, on_end, left_at, payer)
SELECT 1000 + n, 1 + n / 100, 1, 'w', 1 + n % 100, 1, 'cancel', CASE WHEN n % 4000 = 1 THEN n END, 1 + n / 100
  FROM generate_series(0, 19999) n;
INSERT INTO unstuck_steps (job, name, ordinal, run, token, at, duration_ms, result)
SELECT 1 + n / 100, 'step', 1 + n % 100, 1, 1, n, 1, '{{}}' FROM generate_series(0, 19999) n;
INSERT INTO unstuck_parts (job, name, number, run, token, serial, at, value)
SELECT 1 + n / 100, 'part ' || n % 100, 1 + n % 100, 1, 1, 1 + n % 100, n, '{{}}' FROM generate_series(0, 19999) n;
INSERT INTO unstuck_usage (job, run, unit, used, token, serial, tree)
SELECT n, 1, 'tokens', 1, 1, 1, 1 FROM generate_series(1, 20000) n;
INSERT INTO unstuck_dependencies (job, on_job) SELECT 1000 + n, 5000 + n FROM generate_series(1, 3000) n;
"""
CHILDREN = "{" + ",".join(f"uid-{1000 + n}" for n in range(10)) + "}"  # an array, as PostgreSQL writes it
STEPS = packed(
    [{"job": n, "name": "new", "ordinal": 1, "duration_ms": 1, "result": "1"} for n in range(1, 11)],
)
SPAWNED = packed([{"parent": 1, "place": n, "uid": f"uid-{1000 + n}"} for n in range(10)])
WAITERS = packed([{"waiter": n, "jobs": [1001, 1003], "targets": [1], "above": [n]} for n in (1, 2)])
SPENT = '[{"unit":"tokens","amount":1}]'
PAGE = {"job": 7, "run": 1, "skip": 0, "most": 50, "room": 1 << 20}
HOT: list[tuple[str, dict[str, Any], int]] = [
    ("attempt_run", {"job": 7, "token": 1, "claim": "c"}, 2),
    ("add_steps", {"rows": STEPS}, 20),
    ("count_steps", {"jobs": [7, 8], "most": 200}, 210),
    ("forgive_losses", {"jobs": [7, 8]}, 4),
    ("journal_steps", {name: PAGE[name] for name in ("job", "skip", "most", "room")}, 60),
    ("journal_waits", PAGE, 10),
    ("journal_children", {name: PAGE[name] for name in ("job", "skip", "most")}, 120),
    ("steps_of", {"job": 7}, 110),
    ("steps_page", {name: PAGE[name] for name in ("job", "skip", "most", "room")}, 110),
    ("output_marks", {"jobs": ["uid-7", "uid-8"]}, 210),
    ("drop_steps", {"job": 7}, 110),
    ("usage", {"job": 7, "run": 1}, 2),
    ("add_usage", {"job": 7, "run": 1, "token": 1, "serial": 2, "in_tree": 1, "rows": SPENT}, 2),
    ("charge_payer", {"payer": 7, "run": 1, "rows": SPENT}, 2),
    ("tree_usage", {"job": 7, "run": 1}, 2),
    ("payers", {"job": 1003}, 10),
    ("policy_of_job", {"job": 7}, 2),
    ("parts_so_far", {"job": 7}, 110),
    ("has_part", {"job": 7, "name": "part 3"}, 2),
    (
        "keep_part",
        {"job": 7, "name": "new", "number": 101, "run": 1, "token": 1, "serial": 101, "value": "1"},
        2,
    ),
    ("parts_of", {"job": 7, "after": 90, "most": 100}, 12),
    ("drop_parts", {"job": 7}, 110),
    ("blank_parts", {"job": 20_000}, 2),
    ("forget_parts", {"jobs": [7, 8]}, 210),
    ("child_named", {"parent": 7, "name": "w", "ordinal": 3}, 4),
    ("child_by_id", {"parent": 1, "uid": "uid-1003"}, 4),
    ("children_of", {"job": 7}, 210),
    ("parent_of", {"uid": "uid-1003", "tenant": "t4"}, 4),
    ("count_children", {"parent": 7, "most": 1000}, 110),
    ("set_child_apart", {"parent": 7, "name": "w", "ordinal": 3}, 2),
    ("set_children_apart", {"job": 7}, 110),
    ("ancestors", {"job": 1003}, 10),
    ("find_children", {"job": 1, "children": CHILDREN}, 20),
    ("bytes_of_children", {"rows": SPAWNED}, 30),
    ("ends_of_children", {"rows": SPAWNED, "most": 1000}, 30),
    ("ancestors_of_all", {"jobs": [1003, 1005]}, 20),
    ("forgettable", {"jobs": list(range(1002, 1202, 2)), "retention": 1_000_000}, 110),
    ("watch_children", {"rows": SPAWNED}, 20),
    ("who_waits", {"jobs": [1001, 1003]}, 4),
    ("needed_by", {"rows": WAITERS, "most": 20_000}, 40),
    ("leave_children", {"rows": '[{"job": 7, "every": 1}, {"job": 8, "every": 0}]'}, 410),
    ("left_children", {"after_at": 0, "after_child": 0, "batch": 100}, 20),
    ("left_child", {"child": 1003}, 4),
    ("tended", {"child": 1003}, 2),
]
BIG = {
    "unstuck_jobs",
    "unstuck_done",
    "unstuck_running",
    "unstuck_children",
    "unstuck_steps",
    "unstuck_parts",
    "unstuck_usage",
    "unstuck_dependencies",
}
IDS = [name for name, _, _ in HOT]


@pytest.fixture(scope="module")
def full(postgres_server: PostgresServer) -> Iterator[str]:
    with filled(postgres_server, run(FILL), what=__name__) as url:
        yield url


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("name", "values", "most"), HOT, ids=IDS)
def test_only_its_own_rows_are_touched(
    full: str, name: str, values: dict[str, Any], most: int, generic: bool
) -> None:
    for scan in scans(plan_of(full, name, values, generic)):
        if scan["Relation Name"] in BIG and scan["Actual Loops"]:
            assert scan["Node Type"] != "Seq Scan", f"{name} reads all of {scan['Relation Name']}"
            touched = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)
            assert touched * scan["Actual Loops"] <= most, f"{name}: {scan}"


@pytest.mark.parametrize(("name", "values", "most"), HOT, ids=IDS)
def test_sqlite_never_reads_a_whole_table(name: str, values: dict[str, Any], most: int) -> None:
    given = {key: packed(value) if isinstance(value, list) else value for key, value in values.items()}
    with closing(sqlite3.connect(":memory:")) as file:
        file.create_function("unstuck_now", 0, lambda: 0)
        file.create_function("unstuck_ahead", 0, lambda: 0)
        file.executescript(sqlite_schema())
        plan = [row[3] for row in file.execute("EXPLAIN QUERY PLAN " + Statements("sqlite")[name], given)]
    whole = [step for step in plan if step.startswith("SCAN") and "VIRTUAL TABLE" not in step and "USING" not in step]
    assert [step for step in whole if step.split()[1] not in _OWN and "(subquery" not in step] == []


#: Parts of the statement itself, never tables.
_OWN = {"found", "one", "k", "p", "s", "w", "above", "needed", "counted", "CONSTANT"}
