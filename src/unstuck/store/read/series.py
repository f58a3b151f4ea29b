"""Series: how many runs ended in each minute.

Theory of operation. Whoever ends a job writes nothing for this. A worker's janitor reads what has ended since the
last time, in the order of its end and a batch at a time, and adds it to its minutes; how far it came is moved in the
same transaction, under the lock of that one row. So an end is counted once, whoever dies and however many count.
An end gets its time before it commits. It must not appear behind the place that has been counted up to: so what is
younger than `settled_after`, longer than any transaction of ours lives, is left for later.
"""

from __future__ import annotations

from unstuck.model.errors import ErrorType
from unstuck.model.lifecycle import JobState
from unstuck.model.series import BUCKETS, MINUTE
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.port import SeriesPoint
from unstuck.store.rows import instant, span

_MINUTE = span(MINUTE)
_ENDS = tuple(state for state in JobState if state.is_final)


def count_ends(database: Database, settled_after: float, batch: int) -> int:
    # Most looks find nothing to do: no lock, and on SQLite no writer, for those.
    if not database.read(lambda t: _uncounted(t.one("counted"), settled_after)):
        return 0
    return database.write(lambda t: _count(t, settled_after, batch))


def _count(t: Transaction, settled_after: float, batch: int) -> int:
    uncounted = _uncounted(t.one("lock_counted"), settled_after)
    if uncounted is None:
        return 0
    since, until = uncounted
    found = t.one("next_ends", since=since, until=until, batch=batch)
    assert found is not None
    if found["ends"] >= batch:
        until = found["last"] + 1  # with all that ended in the same instant
    if found["ends"]:
        t.run("count_ends", since=since, until=until)
        t.run("add_totals", since=since, until=until, stuck=ErrorType.EXECUTION_STUCK)
    t.run("move_counted", until=until)
    return int(found["ends"])


def _uncounted(row: Row | None, settled_after: float) -> tuple[int, int] | None:
    """From when to when. None: another worker counts, or no minute is old enough."""
    if row is None:
        return None
    settled = row["now"] - span(settled_after)
    until = settled - settled % _MINUTE
    return (row["until"], until) if row["until"] < until else None


def point_of(row: Row) -> SeriesPoint:
    return SeriesPoint(
        at=instant(row["at"]),
        name=row["name"],
        ended={state: int(row[state.lower()]) for state in _ENDS},
        wait=tuple(int(row[f"wait_{number}"]) for number in range(1, BUCKETS + 1)),
        run=tuple(int(row[f"run_{number}"]) for number in range(1, BUCKETS + 1)),
    )
