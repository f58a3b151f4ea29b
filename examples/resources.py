"""What must not cross a fork, and what belongs around every attempt.

unstuck worker examples.resources:app
unstuck enqueue lookup '"answer"' --app examples.resources:app --wait
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator

import unstuck

app = unstuck.App()
log = logging.getLogger(__name__)
connections: list[sqlite3.Connection] = []


@app.on_executor_start
def connect() -> None:
    """Once per process, after the fork: sockets and connections are never shared between processes."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE facts AS SELECT 'answer' AS name, 42 AS value")
    connections.append(connection)


@app.on_executor_stop
def disconnect() -> None:
    connections.pop().close()


@app.middleware
def announce(ctx: unstuck.Context) -> Iterator[None]:
    """Around every attempt, sync or async; what is logged here is kept with the attempt's output."""
    log.warning("attempt %s of %s begins", ctx.attempt, ctx.workflow)
    yield
    log.warning("attempt %s of %s ended well", ctx.attempt, ctx.workflow)


@app.workflow
def lookup(name: str) -> int:
    row = connections[0].execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    if row is None:
        raise unstuck.Fail(f"nothing is known about {name}")
    return int(row[0])
