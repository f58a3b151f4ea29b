"""Lookup: what people read. Pages by keyset; nothing here takes a lock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any

from unstuck.model.errors import InvalidInput, UnknownJob
from unstuck.model.job import WorkerRecord
from unstuck.store.database import Row, Transaction
from unstuck.store.order.name_ids import NameIds
from unstuck.store.port import JobFilter, JobPage
from unstuck.store.read.sources import Search, merged
from unstuck.store.rows import job_of, microseconds, span, worker_of

#: The number of jobs that are looked at for one page; a page that found too few comes back short, with a cursor.
BUDGET = 20_000
BATCH = 1000
#: Numbers follow the clock up to the length of a transaction, and a clock may be set back a little.
SLACK = timedelta(seconds=60)
_BEYOND = 1 << 62


def can_exist(*names: str | None) -> bool:
    """False for what no database can hold (NUL, lone surrogates): submit refused it, so there is nothing to find."""
    return all(name is None or ("\x00" not in name and _has_bytes(name)) for name in names)


def _has_bytes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def job_row(t: Transaction, tenant: str, uid: str) -> Row:
    """As its readers see it. UnknownJob if there is none."""
    row = t.one("job", tenant=tenant, uid=uid)
    if row is None:
        raise UnknownJob(uid)
    return row


def page(t: Transaction, name_ids: NameIds, tenant: str, filter: JobFilter, limit: int, after: str | None) -> JobPage:
    """Candidates in batches, until the page is full, or the sources are empty, or the budget is spent."""
    numbers = _candidates(t, tenant, filter, after)
    wanted = _wanted(tenant, filter)
    rows: list[Row] = []
    looked = 0
    size = min(limit + 1, BATCH, BUDGET)
    while batch := list(islice(numbers, size)):
        rows += t.all("list_rows", numbers=batch, most=limit + 1 - len(rows), **wanted)
        looked += len(batch)
        if len(rows) > limit:
            return _page_of(t, name_ids, rows[:limit], rows[limit - 1]["number"])
        if looked >= BUDGET:
            return _page_of(t, name_ids, rows, batch[-1])
        size = min(BATCH, BUDGET - looked)
    return _page_of(t, name_ids, rows, None)


def _page_of(t: Transaction, name_ids: NameIds, rows: list[Row], last: int | None) -> JobPage:
    jobs = tuple(job_of(row, name_ids.policy(t, row["policy"])) for row in rows)
    return JobPage(jobs, next=None if last is None else str(last))


def workers(t: Transaction, after: int, limit: int, ended_within: float | None) -> list[WorkerRecord]:
    if ended_within is None:
        rows = t.all("all_workers", after=after, most=limit)
    else:
        rows = t.all("workers", after=after, most=limit, silent=span(ended_within))
    return [worker_of(row) for row in rows]


def _candidates(t: Transaction, tenant: str, filter: JobFilter, after: str | None) -> Iterator[int]:
    """From the cursor, or where the wanted time begins, to where that time ends."""
    lowest = 0 if filter.since is None else _number_at(t, filter.since - SLACK) - 1
    highest = _BEYOND if filter.before is None else _number_at(t, filter.before + SLACK)
    start, way = (highest, -1) if filter.newest_first else (lowest, 1)
    if after is not None:
        start = way * max(way * start, way * _number_of(after))
    numbers = merged(t, Search(t, tenant, filter).sources(), start, filter.newest_first)
    return takewhile(lambda number: lowest < number < highest, numbers)


def _number_at(t: Transaction, at: datetime) -> int:
    row = t.one("number_at", at=microseconds(at))
    assert row is not None
    return int(row["number"])


def _number_of(cursor: str) -> int:
    if not cursor.isdecimal() or len(cursor) > 18:
        raise InvalidInput(f"{cursor!r} is not a cursor that a page gave out")
    return int(cursor)


def _wanted(tenant: str, filter: JobFilter) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "states": f",{','.join(filter.states)}," if filter.states else None,
        "workflow": filter.workflow,
        "queue": filter.queue,
        "error_type": filter.error_type,
        "target": filter.target,
        "tag": filter.tag,
        "since": None if filter.since is None else microseconds(filter.since),
        "before": None if filter.before is None else microseconds(filter.before),
        "way": -1 if filter.newest_first else 1,
    }
