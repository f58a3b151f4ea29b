"""Pages of what one job has, bounded in rows and bytes: a step's result may be 8 MiB, and a job has thousands."""

from __future__ import annotations

from typing import Any, Final

from unstuck.store.database import Row, Transaction

PAGE_ROWS: Final = 500
PAGE_BYTES: Final = 1 << 20
#: SQLite must read what it measures: not too much of it at once. PostgreSQL need not.
CHUNK_ROWS: Final = 50


def rows_behind(t: Transaction, statement: str, skip: int, **facts: Any) -> list[Row]:
    """Those behind the first `skip`; one at least, if there is one."""
    found: list[Row] = []
    room = PAGE_BYTES
    while len(found) < PAGE_ROWS and room > 0:
        most = min(CHUNK_ROWS if t.one_table_per_statement else PAGE_ROWS, PAGE_ROWS - len(found))
        rows = t.all(statement, skip=skip + len(found), most=most, room=room, **facts)
        found += rows
        room -= sum(row["bytes"] for row in rows)
        if len(rows) < most:
            break
    return found
