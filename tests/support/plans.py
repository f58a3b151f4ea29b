"""A full PostgreSQL whose plans are the same in every run.

Autovacuum changes them in the middle of a test: by new statistics, by pages that are all visible (or not yet), and,
the least expected, by an ANALYZE of its own whose snapshot keeps the test's VACUUM from marking any page as visible.
Then index-only scans look dear, and the planner of a small database reads something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer
from unstuck.store.drivers.migrations import repeatables, shipped

Fill = Callable[[str], object]

_OURS = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'unstuck%'"
_HIDDEN = """SELECT relname, relpages, relallvisible FROM pg_class
              WHERE relkind = 'r' AND relname LIKE 'unstuck%' AND relallvisible < relpages"""


@contextmanager
def filled(server: PostgresServer, fill: Fill, *, vacuumed: bool) -> Iterator[str]:
    """The URL of a database that `fill` has filled, analyzed by nobody but us; never vacuumed, or completely."""
    url = server.create()
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            for (name,) in connection.execute(_OURS).fetchall():
                table = sql.Identifier(name)
                connection.execute(sql.SQL("ALTER TABLE {} SET (autovacuum_enabled = off)").format(table))
            fill(url)
            connection.execute("ANALYZE")
            if vacuumed:
                # Autovacuum still comes for the catalogs: as long as it analyzes one, nothing becomes visible to all.
                eventually(lambda: _is_all_visible(connection), timeout=60, every=0.5)
        yield url
    finally:
        server.drop(url)


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
