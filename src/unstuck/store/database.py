"""Database: the little a driver must give. One transaction, one closure, one deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

from unstuck.model.errors import StoreBusy
from unstuck.records import dataclass
from unstuck.store.hint import ANYWHERE, Hint

Row = Mapping[str, Any]
"""Rows are read by name on both databases."""

T = TypeVar("T")

#: Of a call's time one statement may take where patience is asked for: what is slower is the fault of one of many.
SLOW_SHARE = 1 / 3


class StoreSlow(StoreBusy):
    """It took too long for the database, although it waited for nobody. Nothing was written."""


@dataclass(frozen=True, slots=True)
class FileReach:
    """A file that this process opens: where it is, by which SQLite, on which file system, the bytes of its log."""

    path: str
    sqlite: str
    kind: str | None
    log: int
    disk: int
    disk_free: int


@dataclass(frozen=True, slots=True)
class ServerReach:
    """A server: how many connections this process may have, whether it prepares statements, what stands between."""

    pool: int
    prepares: bool
    pooler: Literal["none", "session", "transaction"]


class Transaction(Protocol):
    """What a closure may do between BEGIN and COMMIT; statements go by the name of their file.

    A list reaches PostgreSQL as an array (`= ANY (CAST(:ids AS BIGINT[]))`), SQLite as JSON (`json_each(:ids)`).
    """

    @property
    def one_table_per_statement(self) -> bool:
        """Whether a write to several tables needs several statements, as it does on SQLite."""
        ...

    def all(self, statement: str, /, **values: Any) -> list[Row]: ...

    def tuples(self, statement: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """By place: of what is read of every job that runs, where names cost more than all the rest."""
        ...

    def one(self, statement: str, /, **values: Any) -> Row | None:
        """At most one row; more than one is a mistake in the statement."""
        ...

    def run(self, statement: str, /, **values: Any) -> int:
        """How many rows were affected."""
        ...

    def is_refusal(self, error: Exception) -> bool:
        """Whether the database said no to what was written, as a trigger or a constraint does: it is there, and
        waits for nobody."""
        ...

    def apart(self, work: Callable[[], object]) -> Exception | None:
        """Under a savepoint. What it was refused for, and then nothing of it is written; all else is raised."""
        ...


class Database(Protocol):
    """Every call answers within its deadline, frozen server or not; lost connections heal by themselves.

    A closure handed to `write` may run more than once (a deadlock, a stale connection): it must take its effects
    from the transaction alone, and must not call this database again.
    """

    dialect: str  # "postgres" | "sqlite"
    is_file: bool  # a file that this process opens; else a server has it
    one_table_per_statement: bool  # as of its transactions
    store_call: float  # seconds that one call may take

    def write(
        self,
        work: Callable[[Transaction], T],
        within: float | None = None,
        *,
        patience: float | None = None,
        stop_after: float | None = None,
    ) -> T:
        """One transaction: commits, or rolls back on an exception. `patience`: how long it waits for a lock that
        somebody else holds before it gives up with StoreBusy, at the first try. It gives up so, too, about what is
        slow: a statement that takes a third of a call, on SQLite a transaction of half a second. `stop_after`: a
        statement that takes longer is stopped (StoreSlow), on SQLite a transaction that has the lock for longer."""
        ...

    def read(self, work: Callable[[Transaction], T], within: float | None = None) -> T:
        """SQLite gives the closure one snapshot, PostgreSQL one per statement: read what must agree in one."""
        ...

    def once(
        self, statement: str, /, *, stop_after: float | None = None, hint: Hint | None = None, **values: Any
    ) -> list[Row]:
        """One statement that writes: a transaction by itself, in one round trip where the database allows it. `hint`:
        and then, behind its commit, wake idle workers, in the same round trip."""
        ...

    def remember(self, worker: str, boot_id: str) -> None:
        """Somebody begins, under this name: what the clock did while nobody of its machine was there is looked up."""
        ...

    def expected_now(self) -> tuple[int, int]:
        """Between which instants of the engine's time this process thinks that it is; what is refused for it is for
        `check_clock`."""
        ...

    def likely_now(self) -> int | None:
        """The engine's time as this process knows it without asking, to a second or so; None: it has to ask."""
        ...

    def check_clock(self) -> bool:
        """Look whether the clock has leapt, and take that out of the engine's time: whether it had."""
        ...

    def before_rescue(self) -> None:
        """Somebody is about to take jobs from workers that did not renew. A file answers reads while another process
        keeps its write lock, and then they could not: so it is written to first. A server's answer says enough."""
        ...

    def before_timers(self) -> None:
        """Somebody is about to see what is due. The answers of a server tell its time, and are checked; of a file the
        clock is looked at now."""
        ...

    def hint(self, hint: Hint = ANYWHERE) -> None:
        """Wake idle workers. Call it after the commit; cheap when nobody is idle; never raises for a lost store."""
        ...

    def wait(self, timeout: float) -> Hint | None:
        """Sleep until a hint or the timeout (None); marks this process idle meanwhile.

        A process that has just been marked idle is told at once to look anywhere, because what came before the mark
        was hinted to nobody. The mark stays when the wait is over: who waits again and again, for one
        job at a time, marks itself once, and what comes in between is heard by the next wait.
        """
        ...

    def stay_awake(self) -> None:
        """No wait follows for a while: the mark goes, if there is one. Never raises for a lost store."""
        ...

    def migrate(self) -> list[str]:
        """Apply what is missing; answers the names that were applied now."""
        ...

    def schema_version(self) -> int:
        """The number of the newest migration that was applied; 0: none was."""
        ...

    def shipped_version(self) -> int:
        """The number of the newest migration that this code brings."""
        ...

    def has_current_schema(self) -> bool:
        """Whether `migrate` would find nothing to do."""
        ...

    def migration_sql(self) -> str: ...

    def reach(self) -> FileReach | ServerReach:
        """How the database is reached. Of a server it is asked, over two connections."""
        ...

    def fold_log(self, within: float) -> bool:
        """Move the write-ahead log of a file into it and cut it; True too where there is none. False: somebody keeps
        it from that."""
        ...

    def close(self) -> None: ...
