"""The doctor's port: in which condition the database itself is, and the little that can be mended there.

Nothing here takes a lock that anybody else wants, and what reads the catalogs of a server opens no table of ours: one
of them may be locked even against reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from unstuck.records import dataclass

#: What stands between us and a server: nothing, a pooler that keeps a session for each client, or one that lends a
#: session for a transaction.
Pooler = Literal["none", "session", "transaction"]


class ClockOffset(NamedTuple):
    """How many seconds the database's clock is ahead of this host's, and by how much that may be wrong."""

    seconds: float
    within: float


@dataclass(frozen=True, slots=True)
class ServerStand:
    """A PostgreSQL server. `settings` are those that a session of anybody has to begin with: ours set some for
    themselves. `sessions` of `most_sessions` are taken; `pool`: so many one process of ours may have. `xid_age`: how
    many transactions old the oldest row may be."""

    version: int
    settings: Mapping[str, str]
    sessions: int
    most_sessions: int
    is_remote: bool
    #: Milliseconds after which this session's lines are given up that nobody answers on; 0: never.
    tcp_user_timeout: int
    xid_age: int
    pool: int
    pooler: Pooler
    prepares: bool


@dataclass(frozen=True, slots=True)
class FileStand:
    """A SQLite file. `log`: how many bytes its write-ahead log has. `disk_free` of `disk` bytes are free where it
    lies; `kind` is the file system there, None where nobody says."""

    path: str
    sqlite: str
    kind: str | None
    log: int
    disk: int
    disk_free: int
    pages: int
    free_pages: int
    page_size: int


@dataclass(frozen=True, slots=True)
class TableStand:
    """A table of ours on a server: rows that live, rows that are dead and not cleaned away, and since when."""

    name: str
    live: int
    dead: int
    bytes: int
    #: Rows that changed since the planner looked at it last.
    changed: int
    vacuumed_at: datetime | None
    analyzed_at: datetime | None
    is_autovacuumed: bool


@dataclass(frozen=True, slots=True)
class LongTransaction:
    """What keeps a server from cleaning up: a session (`pid`), a prepared transaction or a replication slot (`name`).
    `lasts`: seconds; None: it does not say."""

    what: Literal["session", "prepared", "slot"]
    pid: int | None
    name: str
    user: str
    state: str
    lasts: float | None


class ConditionPort(Protocol):
    def server_stand(self) -> ServerStand | None:
        """None: the database is a file."""
        ...

    def file_stand(self) -> FileStand | None:
        """None: a server has the database."""
        ...

    def clock_offset(self) -> ClockOffset | None:
        """None: a file has the clock of its host."""
        ...

    def has_current_schema(self) -> bool:
        """Whether a migration would find nothing to do, views and functions included."""
        ...

    def table_stands(self) -> list[TableStand]:
        """Of a server."""
        ...

    def long_transactions(self, longer: float) -> list[LongTransaction]:
        """Of a server: those that have lasted longer, the oldest first."""
        ...

    def dead_body_marks(self, late: float, most: int = 100) -> int:
        """How many body marks stand although their worker's lease ended so many seconds ago: nobody lives in them."""
        ...

    def fold_log(self, within: float) -> bool:
        """Move the write-ahead log of a file into the file and cut it. False: somebody writes, or reads what is only
        there, all the time."""
        ...

    def analyze(self, within: float) -> None:
        """Let the planner of a server look at our tables anew; those that somebody holds are passed by."""
        ...

    def note_fix(self, by: str, check: str, did: str) -> None:
        """A line of the audit."""
        ...
