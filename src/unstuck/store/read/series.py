"""Series: how many runs ended in each minute.

Theory of operation. Whoever ends a job writes nothing for this. A worker's janitor reads what has ended since the
last time, in the order of its end and a batch at a time, and adds it to its minutes; how far it came is moved in the
same transaction, under the lock of that one row. So an end is counted once, whoever dies and however many count.
An end gets its time before it commits. It must not appear behind the place that has been counted up to: so what is
younger than `settled_after`, longer than any transaction of ours lives, is left for later.

Jobs that were enqueued are counted for the totals in the same way, in the order of their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from unstuck.model.errors import ErrorType
from unstuck.model.lifecycle import JobState
from unstuck.model.series import BUCKETS, HOUR, MINUTE
from unstuck.model.totals import COLUMNS
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.port import SeriesPoint
from unstuck.store.rows import instant, packed, span

_MINUTE = span(MINUTE)
_STEPS = (round(MINUTE), round(HOUR))
_NAME = ("tenant", "queue", "workflow")
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
        ends = t.all("sorted_ends", since=since, until=until, stuck=ErrorType.EXECUTION_STUCK)
        t.run("add_series", rows=packed(_summed(ends, ("step", "at", *_NAME), _steps, _counted)))
        t.run("add_totals", rows=packed(_summed(ends, _NAME, _names, _counted)))
    t.run("move_counted", until=until)
    return int(found["ends"])


def count_enqueued(database: Database, settled_after: float, batch: int) -> int:
    settled = span(settled_after)
    found = database.read(lambda t: t.one("are_enqueued", settled=settled))
    if found is None or not found["are_some"]:
        return 0
    return database.write(lambda t: _count_enqueued(t, settled, batch))


def _count_enqueued(t: Transaction, settled: int, batch: int) -> int:
    if (row := t.one("lock_counted")) is None:
        return 0
    found = t.all("enqueued", after=row["enqueued_to"], settled=settled, batch=batch)
    if found:
        t.run("add_totals", rows=packed(_summed(found, _NAME, _names, lambda name: [("enqueued", name["jobs"])])))
        t.run("move_enqueued", last=max(name["last"] for name in found))
    return sum(name["jobs"] for name in found)


def _steps(end: Row) -> Iterator[tuple[Any, ...]]:
    for step in _STEPS:
        yield (step, end["minute"] - end["minute"] % span(step), *_name(end))


def _names(row: Row) -> tuple[tuple[str, str, str], ...]:
    """Of its tenant and of all tenants, by itself and with all other names."""
    tenant, queue, workflow = _name(row)
    return (tenant, queue, workflow), (tenant, "", ""), ("", queue, workflow), ("", "", "")


def _name(row: Row) -> tuple[str, str, str]:
    return row["tenant"], row["queue"], row["workflow"]


def _summed(
    rows: Sequence[Row],
    columns: Sequence[str],
    places: Callable[[Row], Iterable[tuple[Any, ...]]],
    counted: Callable[[Row], Iterable[tuple[str, int]]],
) -> list[dict[str, Any]]:
    """What all of them add to each of their places, which `columns` name."""
    sums: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in rows:
        adds = tuple(counted(row))
        for place in places(row):
            counts = sums.setdefault(place, dict.fromkeys(COLUMNS, 0))
            for column, number in adds:
                counts[column] += number
    return [dict(zip(columns, place, strict=True)) | counts for place, counts in sums.items()]


def _counted(end: Row) -> list[tuple[str, int]]:
    counted = [(end["state"].lower(), end["ends"]), ("waited", end["waited"]), ("ran", end["ran"] or 0)]
    counted += [(f"{what}_{end[what]}", end["ends"]) for what in ("wait", "run") if end[what] is not None]
    return [*counted, ("stuck", end["ends"])] if end["is_stuck"] else counted


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
