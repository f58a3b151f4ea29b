"""A full PostgreSQL whose plans are the same in every run.

Autovacuum changes them in the middle of a test: by new statistics, by pages that are all visible (or not yet), and,
the least expected, by an ANALYZE of its own whose snapshot keeps the test's VACUUM from marking any page as visible.
Then index-only scans look dear, and the planner of a small database reads something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer
from unstuck.store.drivers.migrations import repeatables, shipped
from unstuck.store.drivers.statements import Statements

Fill = Callable[[str], object]

_OURS = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'unstuck%'"
_HIDDEN = """SELECT relname, relpages, relallvisible FROM pg_class
              WHERE relkind = 'r' AND relname LIKE 'unstuck%' AND relallvisible < relpages"""


@contextmanager
def filled(server: PostgresServer, fill: Fill, *, what: str, vacuumed: bool = False) -> Iterator[str]:
    """The URL of a database that `fill` has filled, analyzed by nobody but us; never vacuumed, or completely. `what`
    names its filling: it is done once in a run, and copied for each process that asks for it."""

    def whole(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            keep_autovacuum_away(connection)
            fill(url)
            connection.execute("ANALYZE")
            if vacuumed:
                # Autovacuum still comes for the catalogs: as long as it analyzes one, nothing becomes visible to all.
                eventually(lambda: _is_all_visible(connection), timeout=60, every=0.5)

    with copied(server, what, whole) as url:
        yield url


@contextmanager
def copied(server: PostgresServer, what: str, fill: Fill) -> Iterator[str]:
    url = server.create(template=server.template_of(what, fill))
    try:
        yield url
    finally:
        server.drop(url)


def keep_autovacuum_away(connection: psycopg.Connection) -> None:
    for (name,) in connection.execute(_OURS).fetchall():
        table = sql.Identifier(name)
        connection.execute(sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(table))


def run(text: str) -> Fill:
    """Rows by SQL."""

    def fill(url: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(text.encode())

    return fill


def _is_all_visible(connection: psycopg.Connection) -> bool:
    connection.execute("VACUUM (ANALYZE)")
    return not connection.execute(_HIDDEN).fetchall()


def sqlite_schema() -> str:
    """All of SQLite's schema as one script."""
    texts = [migration.sql for migration in shipped("sqlite")] + [one.sql for one in repeatables("sqlite")]
    return "\n".join(texts)


def plan_of(url: str, name: str, values: dict[str, Any], generic: bool) -> dict[str, Any]:
    """How PostgreSQL runs this statement with these values, and what it read; nothing of it is kept."""
    names = list(values)
    text = re.sub(r"%\((\w+)\)s", lambda found: f"${names.index(found[1]) + 1}", Statements("postgres")[name])
    types = ", ".join(_type_of(value) for value in values.values())
    arguments = sql.SQL(", ").join(sql.Literal(value) for value in values.values())
    with psycopg.connect(url) as connection, connection.transaction(force_rollback=True):
        mode = "force_generic_plan" if generic else "force_custom_plan"
        connection.execute(sql.SQL("SET LOCAL plan_cache_mode = {}").format(sql.Identifier(mode)))
        connection.execute(sql.SQL(f"PREPARE hot ({types}) AS {text.replace('%%', '%')}"))
        explained = connection.execute(
            sql.SQL("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE hot ({})").format(arguments)
        ).fetchone()
        assert explained is not None
        connection.execute("DEALLOCATE hot")
        plan: dict[str, Any] = explained[0][0]["Plan"]
        return plan


def _type_of(value: Any) -> str:
    if isinstance(value, list):
        return "text[]" if isinstance(value[0], str) else "bigint[]"
    return "bigint" if type(value) is int else "text"


def scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes of a plan that read a table."""
    if "Relation Name" in node and "Scan" in node["Node Type"]:
        yield node
    for below in node.get("Plans", ()):
        yield from scans(below)
