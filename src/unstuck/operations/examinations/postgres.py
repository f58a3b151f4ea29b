"""A PostgreSQL server: what its settings, its sessions and its tables will do to us."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.spelling import ending_session
from unstuck.model.wording import count, duration, size
from unstuck.operations.examinations.exam import DoctorCheck, Exam, finding
from unstuck.store.port import LongTransaction, ServerStand, TableStand
from unstuck.views.doctor import FindingView, Severity

#: From here on a transaction keeps dead rows of ours from being cleaned away for longer than they should stay.
TOO_LONG = 600.0
#: So many dead rows, and no fewer than live ones, are more than autovacuum leaves where it keeps up.
MANY_DEAD = 50_000
#: So many rows that changed since the planner looked make its plans guesses.
MANY_CHANGED = 50_000
#: Of the sessions that the server lets in.
NEARLY_ALL = 0.9
#: Of two billion transactions, after which a server refuses writes.
OLD_ROWS = 1_000_000_000
#: What a worker has besides its pool: the connection that listens.
LISTENS = 1


def settings(exam: Exam) -> Iterator[FindingView]:
    server = exam.server
    if server is None:
        return
    for name, wrong, severity, what, why, remedy in _SETTINGS:
        if server.settings.get(name) == wrong:
            yield finding("postgres_settings", severity, f"setting {name}", what, why, remedy)
    if server.is_remote and server.tcp_user_timeout == 0:
        yield finding(
            "postgres_settings",
            "warning",
            "setting tcp_user_timeout",
            "tcp_user_timeout is 0 in our sessions: a pooler or the server took away what we set",
            "a session whose client is gone may keep its locks until the kernel gives up: a quarter of an hour",
            "SET tcp_user_timeout for the user that unstuck logs in as: ALTER ROLE … SET tcp_user_timeout = '10s'",
        )


#: Name, the value that is told, how bad, what, why, the remedy.
_SETTINGS: tuple[tuple[str, str, Severity, str, str, str], ...] = (
    (
        "fsync",
        "off",
        "error",
        "fsync is off",
        "a crash of the server's host can destroy the whole database, not only the last jobs",
        "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()",
    ),
    (
        "full_page_writes",
        "off",
        "warning",
        "full_page_writes is off",
        "a page that was half written when the power went cannot be repaired, unless the file system guarantees it",
        "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()",
    ),
    (
        "synchronous_commit",
        "off",
        "warning",
        "synchronous_commit is off for sessions other than ours",
        "a job that is enqueued in a transaction of your own (connection=…) may be lost by a crash after its commit; "
        "our own sessions set it on",
        "ALTER DATABASE … SET synchronous_commit = on",
    ),
    (
        "autovacuum",
        "off",
        "warning",
        "autovacuum is off",
        "tables that change with every job grow without end, and each claim reads more dead rows than the last",
        "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()",
    ),
    (
        "track_counts",
        "off",
        "warning",
        "track_counts is off",
        "autovacuum does not know where rows died, and does nothing",
        "ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf()",
    ),
    (
        "idle_in_transaction_session_timeout",
        "0",
        "note",
        "idle_in_transaction_session_timeout is 0 for sessions other than ours",
        "a psql that somebody left open in a transaction keeps rows locked, and dead rows from being cleaned away, "
        "until it is noticed",
        "ALTER DATABASE … SET idle_in_transaction_session_timeout = '10min'",
    ),
)


def connections(exam: Exam) -> Iterator[FindingView]:
    server = exam.server
    if server is None or server.pooler != "none":  # a pooler has its own idea of how many
        return
    taken = f"{server.sessions} of {server.most_sessions}"
    if server.sessions >= NEARLY_ALL * server.most_sessions:
        yield finding(
            "connections",
            "warning",
            "setting max_connections",
            f"{taken} sessions are taken",
            "who comes when all are taken is refused: a worker cannot renew its lease, a program cannot enqueue",
            "raise max_connections, or put a pooler in front (docs/operating.md)",
        )
    here = [worker for worker in exam.alive if worker.key is None]
    wanted = len(here) * (server.pool + LISTENS)
    if wanted > server.most_sessions:
        yield finding(
            "connections",
            "warning",
            "setting max_connections",
            f"{count(len(here), 'worker')} may want {wanted} sessions, the server lets {server.most_sessions} in",
            "they need as many when they are busiest, and are refused then",
            "raise max_connections, or put a pooler in front (docs/operating.md)",
        )


def pooler(exam: Exam) -> Iterator[FindingView]:
    server = exam.server
    if server is None or server.pooler == "none":
        return
    if server.pooler == "session":
        yield finding(
            "pooler",
            "note",
            "the pooler",
            "a pooler in session mode stands before the server",
            "each connection of ours keeps one of its sessions for as long as it lasts",
        )
    elif server.prepares:
        yield finding(
            "pooler",
            "error",
            "the pooler",
            "a pooler in transaction mode stands before the server, and statements are prepared",
            "what is prepared, and what is set for a session, belongs to one that is somebody else's in the next "
            "moment: statements fail, and notifications are lost",
            "add ?prepare=off to the URL of the database",
        )
    else:
        yield finding(
            "pooler",
            "note",
            "the pooler",
            "a pooler in transaction mode stands before the server",
            "notifications do not pass it: idle workers go by `poll`",
        )


def tables(exam: Exam) -> Iterator[FindingView]:
    """The worst by itself, the others by number."""
    stands = exam.caller.store.table_stands()
    bloated = [stand for stand in stands if stand.dead >= MANY_DEAD and stand.dead >= stand.live]
    if bloated:
        first = bloated[0]
        yield finding(
            "tables",
            "warning",
            f"table {first.name}",
            f"{first.dead:,} dead rows beside {first.live:,} live ones, {size(first.bytes)}{_others(bloated)}",
            "every look at it reads them, too. Autovacuum does not keep up, or a long transaction keeps it from it",
            f"VACUUM (ANALYZE) {first.name}",
        )
    untended = [stand for stand in stands if not stand.is_autovacuumed]
    if untended:
        yield finding(
            "tables",
            "warning",
            f"table {untended[0].name}",
            f"autovacuum is switched off for it{_others(untended)}",
            "its dead rows stay for ever",
            f"ALTER TABLE {untended[0].name} RESET (autovacuum_enabled)",
        )
    unknown = [stand for stand in stands if stand.changed >= max(MANY_CHANGED, stand.live)]
    if unknown:
        first = unknown[0]
        when = "never" if first.analyzed_at is None else "long ago"
        yield finding(
            "tables",
            "note",
            f"table {first.name}",
            f"{first.changed:,} rows changed since the planner looked at it ({when}){_others(unknown)}",
            "it plans by what the table was like then",
            "unstuck doctor --fix",
            fixable=True,
        )


def _others(stands: list[TableStand]) -> str:
    return f" (and {count(len(stands) - 1, 'table')} more)" if len(stands) > 1 else ""


def analyze(exam: Exam) -> str:
    exam.caller.store.analyze(within=20.0)
    return "the planner has looked at our tables anew (ANALYZE)"


def transactions(exam: Exam) -> Iterator[FindingView]:
    for held in exam.caller.store.long_transactions(TOO_LONG):
        yield finding("transactions", "warning", *_transaction(held))


def _transaction(held: LongTransaction) -> tuple[str, str, str, str]:
    lasts = "" if held.lasts is None else f" for {duration(held.lasts)}"
    whose = " ".join(word for word in (held.name, f"of {held.user}" if held.user else "") if word)
    kept = "rows that died since then cannot be cleaned away, of any table: ours grow meanwhile"
    match held.what:
        case "session":
            said = "; ".join(word for word in (held.state, whose) if word)
            what = f"its transaction has been open{lasts}{f' ({said})' if said else ''}"
            return f"session {held.pid}", what, kept, ending_session(held.pid or 0)
        case "prepared":
            remedy = f"ROLLBACK PREPARED '{held.name.replace(chr(39), chr(39) * 2)}'"
            return f"prepared transaction {held.name}", f"it has been prepared{lasts}", kept, remedy
        case _:
            what = "nobody reads from this replication slot"
            why = "the server keeps its whole log for it, until the disk is full"
            return f"replication slot {held.name}", what, why, f"SELECT pg_drop_replication_slot('{held.name}')"


def wraparound(exam: Exam) -> Iterator[FindingView]:
    server: ServerStand | None = exam.server
    if server is not None and server.xid_age >= OLD_ROWS:
        yield finding(
            "wraparound",
            "error",
            "the database",
            f"its oldest row is {server.xid_age:,} transactions old",
            "at two billion the server stops taking writes",
            "find what keeps vacuum from freezing (unstuck doctor names long transactions), then: VACUUM (FREEZE)",
        )


CHECKS = (
    DoctorCheck(
        "postgres_settings",
        "settings of PostgreSQL on which durability and cleaning depend",
        settings,
        needs_schema=False,
    ),
    DoctorCheck("connections", "sessions that are taken, and that workers may want", connections),
    DoctorCheck("pooler", "whether a pooler stands before PostgreSQL, and in which mode", pooler, needs_schema=False),
    DoctorCheck("tables", "dead rows, autovacuum, and what the planner knows", tables, analyze),
    DoctorCheck("transactions", "transactions that stay open and keep dead rows", transactions, needs_schema=False),
    DoctorCheck("wraparound", "how old the oldest row of PostgreSQL is", wraparound, needs_schema=False),
)
