"""EXPLAIN on full databases: a list or a count touches as many rows as it may return, not as many as there are."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from bench.counts import fill
from tests.support.plans import filled
from tests.support.postgres import PostgresServer
from unstuck.store.drivers.connect import open_database
from unstuck.store.drivers.statements import Statements

JOBS = 60_000
CEILING = 200
OURS, KEYED = list(range(1, 21)), list(range(21, 1021))
DOWN = {"after": 50_000, "newest": 100, "oldest": 0}
UP = {"after": 50_000, "newest": 0, "oldest": 100}

#: statement, its values, the most rows that one scan of a big table may touch
READS: list[tuple[str, dict[str, Any], int]] = [
    *(
        (name, {**values, **way}, 210)
        for way in (DOWN, UP)
        for name, values in (
            ("list_tenant", {"tenant": "much"}),
            ("list_route", {"route": 1}),
            ("list_everything", {}),
            ("list_everything_running", {}),
            ("list_target", {"target": 9}),
            ("list_tag", {"tenant": "much", "tag": "x"}),
            ("list_letters", {"tenant": "much"}),
            ("list_resting", {"tenant": "much", "state": "PAUSED"}),
            ("list_troubled", {"state": "FAILED"}),
            ("list_ended_by_error", {"error_type": "ValueError"}),
            ("list_met_by_error", {"error_type": "ValueError"}),
        )
    ),
    ("list_queued", {"routes": OURS, "most": CEILING}, 2 * CEILING),
    ("list_later", {"routes": OURS, "most": CEILING}, 2 * CEILING),
    ("list_ended", {"routes": OURS, "state": "TIMEOUT", "most": CEILING}, 2 * CEILING),
    ("list_ended", {"routes": KEYED, "state": "FAILED", "most": CEILING}, 2 * CEILING),
    ("list_blocked", {"tenant": "much", "most": CEILING}, 2 * CEILING),
    ("number_at", {"at": 1}, 60),
    ("counts", {"routes": OURS, "tenant": "much", "queue": None, "workflow": None, "ceiling": CEILING}, 2 * CEILING),
    ("counts", {"routes": KEYED, "tenant": "keyed", "queue": None, "workflow": None, "ceiling": CEILING}, 1500),
    ("counts_everywhere", {"ceiling": CEILING}, 3 * CEILING),
    *(
        (
            name,
            {
                "numbers": list(range(1000, 1060)), "most": 50, "tenant": tenant, "states": ",FAILED,",
                "workflow": None, "queue": None, "error_type": None, "target": None, "tag": None, "since": None,
                "before": None, "way": -1, "in_queues": None, "in_workflows": None, "has_letter": None,
                "letter_reason": None, "letter_since": None, "letter_before": None,
            },
            60,
        )
        for name in ("list_rows", "list_matching")
        for tenant in ("much", None)
    ),
]  # fmt: skip
BIG = {"unstuck_ready", "unstuck_jobs", "unstuck_done", "unstuck_timers", "unstuck_line", "unstuck_tags"}
NAMES = [f"{name}-{place}" for place, (name, _, _) in enumerate(READS)]


@pytest.fixture(scope="module")
def full(postgres_server: PostgresServer) -> Iterator[str]:
    with filled(postgres_server, lambda url: fill(url, JOBS), what=__name__, vacuumed=True) as url:
        yield url


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("name", "values", "most"), READS, ids=NAMES)
def test_a_list_or_count_touches_no_more_rows_than_it_may_return(
    full: str, name: str, values: dict[str, Any], most: int, generic: bool
) -> None:
    for scan in _scans(_plan(full, name, values, generic)):
        if scan.get("Relation Name") in BIG and scan["Actual Loops"]:
            touched = scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)
            assert touched * scan["Actual Loops"] <= most, f"{name}: {scan}"


def test_sqlite_reads_lists_and_counts_by_an_index(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'full.db'}"
    database = open_database(url)
    database.migrate()
    database.close()
    fill(url, 5000)
    statements = Statements("sqlite")
    with closing(sqlite3.connect(tmp_path / "full.db")) as connection:
        connection.create_function("unstuck_now", 0, lambda: 0)
        connection.create_function("unstuck_ahead", 0, lambda: 0)
        for name, values, _ in READS:
            given = {key: json.dumps(value) if isinstance(value, list) else value for key, value in values.items()}
            steps = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statements[name]}", given)]
            assert not any("BLOOM" in step or "AUTOMATIC" in step for step in steps), f"{name}: {steps}"
            if name != "counts_everywhere":  # it has no route to search by, and stops at its ceiling
                assert not any(step.startswith(f"SCAN {table}") for step in steps for table in BIG), (
                    f"{name}: {steps}"
                )


def _plan(url: str, name: str, values: dict[str, Any], generic: bool) -> dict[str, Any]:
    text = Statements("postgres")[name].replace("%%", "%")
    for place, key in enumerate(values, 1):
        text = text.replace(f"%({key})s", f"${place}")
    types = ", ".join(map(_type_of, values.values()))
    arguments = sql.SQL(", ").join(sql.Literal(value) for value in values.values())
    with psycopg.connect(url) as connection:
        mode = "force_generic_plan" if generic else "force_custom_plan"
        connection.execute(sql.SQL("SET plan_cache_mode = {}").format(sql.Identifier(mode)))
        connection.execute("SET jit = off")
        connection.execute(f"PREPARE read ({types}) AS {text}".encode())
        explained = connection.execute(
            sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE read ({})").format(arguments)
        ).fetchone()
        assert explained is not None
        plan: dict[str, Any] = explained[0][0]["Plan"]
        return plan


def _type_of(value: object) -> str:
    if isinstance(value, list):
        return "bigint[]"
    return "bigint" if isinstance(value, int) else "text"


def _scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Scan" in node["Node Type"]:
        yield node
    for below in node.get("Plans", ()):
        yield from _scans(below)
