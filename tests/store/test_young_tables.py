"""Tables that have just grown on PostgreSQL: names are looked up by key, whatever the statistics say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest

from tests.support.builders import a_job
from tests.support.plans import copied, keep_autovacuum_away, plan_of, scans
from tests.support.postgres import PostgresServer
from unstuck.store.drivers.connect import open_database
from unstuck.store.rows import packed
from unstuck.store.sql_store import SqlStore

GROWN = 10_000

GROW = f"""
INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key)
SELECT 'default', 'default', 'greet', 'account:' || n FROM generate_series(1, {GROWN}) n;
INSERT INTO unstuck_targets (tenant, name) SELECT 'default', 't' || n FROM generate_series(1, {GROWN}) n;
INSERT INTO unstuck_policies (digest, body, grace_us) SELECT 'd' || n, '{{}}', 1 FROM generate_series(1, {GROWN}) n;
INSERT INTO unstuck_keys (tenant, key, fingerprint, job, created_at, expires_at)
SELECT 'default', 'k' || n, 'f', 'j', n, n FROM generate_series(1, {GROWN}) n;
INSERT INTO unstuck_jobs (uid, tenant, queue, workflow, route, priority, rank, payload, policy, created_at,
                          available_at)
SELECT 'uid-' || n, 'default', 'default', 'greet', 1, 0, n, '{{}}', 1, n, n FROM generate_series(1, {GROWN}) n;
INSERT INTO unstuck_events (job, number, at, kind, run, token)
SELECT id, e, id, CASE e WHEN 1 THEN 'submitted' ELSE 'completed' END, 1, 1
  FROM unstuck_jobs, generate_series(1, 2) e;
INSERT INTO unstuck_children (child, parent, run, name, ordinal, depth, on_end)
SELECT id, 1, 1, 'c', id, 1, 'leave' FROM unstuck_jobs;
INSERT INTO unstuck_limits (kind, name, tenant, concurrency, rate, per_us, set_at, set_by)
SELECT 'key', 'account:' || n, '*', 1, 5, 60000000, 0, 'x' FROM generate_series(1, {GROWN}) n;
"""
ASKED = range(5000, 5500)
LOOKUPS: list[tuple[str, dict[str, Any]]] = [
    (
        "find_routes",
        {
            "rows": packed(
                [
                    {"tenant": "default", "queue": "default", "workflow": "greet", "limit_key": f"account:{n}"}
                    for n in ASKED
                ]
            )
        },
    ),
    ("find_targets", {"rows": packed([{"tenant": "default", "name": f"t{n}"} for n in ASKED])}),
    ("find_policies", {"rows": packed([{"digest": f"d{n}"} for n in ASKED])}),
    ("known_keys", {"rows": packed([{"tenant": "default", "key": f"k{n}"} for n in ASKED])}),
    ("known_jobs", {"rows": packed([{"tenant": "default", "uid": f"uid-{n}"} for n in ASKED])}),
    ("endings", {"rows": packed([{"job": n, "token": 1} for n in ASKED])}),
    ("find_children", {"children": [f"uid-{n}" for n in ASKED], "job": 1}),
    ("lock_limits", {"routes": list(ASKED)}),
    ("calls_of_jobs", {"uids": [f"uid-{n}" for n in ASKED]}),
    ("calls_by_number", {"jobs": list(ASKED)}),
    ("places_of_jobs", {"jobs": list(ASKED)}),
]


@pytest.fixture(scope="module", params=["never analyzed", "analyzed when small"])
def young(postgres_server: PostgresServer, request: pytest.FixtureRequest) -> Iterator[str]:
    def grow(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            keep_autovacuum_away(connection)
            if request.param == "analyzed when small":
                connection.execute(GROW.replace(f"{GROWN})", "3)").encode())
                connection.execute("ANALYZE")
                connection.execute(
                    b"TRUNCATE unstuck_routes, unstuck_targets, unstuck_policies, unstuck_keys, unstuck_jobs, "
                    b"unstuck_events, unstuck_children, unstuck_limits RESTART IDENTITY"
                )
            connection.execute(GROW.encode())

    with copied(postgres_server, f"{__name__}: {request.param}", grow) as url:
        yield url


@pytest.mark.parametrize("generic", [False, True], ids=["custom", "generic"])
@pytest.mark.parametrize(("name", "values"), LOOKUPS, ids=[name for name, _ in LOOKUPS])
def test_a_bulk_lookup_in_a_young_table_reads_what_it_finds(
    young: str, name: str, values: dict[str, Any], generic: bool
) -> None:
    plan = plan_of(young, name, values, generic)
    assert plan["Actual Rows"] == len(ASKED)
    for scan in scans(plan):
        touched = (scan["Actual Rows"] + scan.get("Rows Removed by Filter", 0)) * scan["Actual Loops"]
        assert touched <= 4 * len(ASKED), f"{name}: {scan}"


def test_new_limit_keys_are_submitted_in_bulk_to_a_fresh_database(postgres_server: PostgresServer) -> None:
    """They filtered thousands of rows per probe until somebody analyzed, and missed their deadline."""
    url = postgres_server.create()
    with closing(SqlStore(open_database(url))) as store:
        for first in range(0, 12_000, 2000):
            answers = store.submit([a_job(limit_key=f"account:{n}") for n in range(first, first + 2000)])
            assert all(answer.created for answer in answers)
    postgres_server.drop(url)
