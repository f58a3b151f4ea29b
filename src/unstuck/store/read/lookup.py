"""Lookup: what people read. Pages by keyset; nothing here takes a lock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, takewhile
from typing import Any, NamedTuple

from unstuck.model.call import WantedArgument
from unstuck.model.errors import InvalidInput, UnknownJob
from unstuck.model.job import WorkerRecord
from unstuck.store.database import Row, Transaction
from unstuck.store.order.name_ids import NameIds
from unstuck.store.port import MOST_CHARACTERS, JobFilter, JobPage, LetterTerms
from unstuck.store.read.arguments import ArgumentSearch
from unstuck.store.read.sources import Search, merged
from unstuck.store.rows import job_of, letter_terms, microseconds, span, terms_of, worker_of

#: The number of jobs that are looked at for one page; a page that found too few comes back short, with a cursor.
BUDGET = 20_000
BATCH = 1000
#: Of jobs with all that they hold so many rows are read at once.
ROWS = 100
#: Numbers follow the clock up to the length of a transaction, and a clock may be set back a little. In microseconds.
SLACK = 60_000_000
BEYOND = 1 << 62


def can_exist(*names: str | None) -> bool:
    """False for what no database can hold (NUL, lone surrogates): submit refused it, so there is nothing to find."""
    return all(name is None or ("\x00" not in name and _has_bytes(name)) for name in names)


def can_match(tenant: str | None, filter: JobFilter) -> bool:
    return can_exist(tenant, filter.workflow, filter.queue, filter.error_type, filter.target, filter.tag)


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


def page(
    t: Transaction, name_ids: NameIds, tenant: str | None, filter: JobFilter, limit: int, after: str | None
) -> JobPage:
    """Of one tenant, or with None of all."""
    numbers, found = _candidates(t, tenant, filter, after), None
    if filter.argument is not None:
        found = _look_for(t, filter.argument, tenant, filter, limit, numbers)
        numbers = iter(found.jobs)
    rows, last = _look(t, "list_rows", tenant, filter, limit, numbers)
    jobs = tuple(job_of(row, name_ids.policy(t, row["policy"])) for row in rows)
    is_heavy = sum(map(_characters, rows)) >= MOST_CHARACTERS
    if found is not None and last is None:
        last = found.looked_to
    return JobPage(jobs, None if last is None else str(last), found.looked if found else 0, is_heavy)


class Matching(NamedTuple):
    """Numbers of jobs, how far was looked (None: to the end), and how many payloads were read."""

    jobs: list[int]
    looked_to: int | None
    looked: int = 0


def matching(
    t: Transaction,
    tenant: str,
    filter: JobFilter,
    limit: int,
    after: int = 0,
    upto: int = BEYOND,
    budget: int | None = None,
) -> Matching:
    """The oldest first, above `after` and up to `upto`; as bounded as a page, or by `budget`."""
    oldest_first = replace(filter, newest_first=False)
    numbers = takewhile(lambda number: number <= upto, _candidates(t, tenant, oldest_first, str(after)))
    if filter.argument is not None:
        return _look_for(t, filter.argument, tenant, oldest_first, limit, numbers, budget)
    rows, last = _look(t, "list_matching", tenant, oldest_first, limit, numbers, budget)
    return Matching([row["number"] for row in rows], last)


def still_matching(t: Transaction, tenant: str, filter: JobFilter, jobs: Sequence[int]) -> list[Row]:
    """Of these jobs: number, uid and state. What they call does not change, and is not asked again."""
    return t.all("list_matching", numbers=list(jobs), most=len(jobs), **_wanted(tenant, filter))


def _look(
    t: Transaction,
    statement: str,
    tenant: str | None,
    filter: JobFilter,
    limit: int,
    numbers: Iterator[int],
    budget: int | None = None,
) -> tuple[list[Row], int | None]:
    """Candidates in batches, until the page is full, or the sources are empty, or the budget is spent. The number
    from which to go on; None: there are no more."""
    wanted = _wanted(tenant, filter)
    rows: list[Row] = []
    held, looked, most = 0, 0, min(budget or BUDGET, BUDGET)
    # A page of few rows is bounded by them; then as many are looked at as a filter that wants hardly any needs.
    each = min(ROWS, BATCH) if statement == "list_rows" and limit > ROWS else BATCH
    size = min(limit + 1, each, most)
    while batch := list(islice(numbers, size)):
        for row in t.all(statement, numbers=batch, most=limit + 1 - len(rows), **wanted):
            if len(rows) == limit or held >= MOST_CHARACTERS:
                return rows, rows[-1]["number"]
            rows.append(row)
            held += _characters(row)
        looked += len(batch)
        if looked >= most:
            return rows, batch[-1]
        size = min(each, most - looked)
    return rows, None


def _characters(row: Row) -> int:
    return len(row.get("payload") or "") + len(row.get("result") or "")


def _look_for(
    t: Transaction,
    argument: WantedArgument,
    tenant: str | None,
    filter: JobFilter,
    limit: int,
    numbers: Iterator[int],
    budget: int | None = None,
) -> Matching:
    """The same for those that have the argument too, until enough payloads were read."""
    search, wanted = ArgumentSearch(t, argument), _wanted(tenant, filter)
    found: list[int] = []
    candidates, most = 0, min(budget or BUDGET, BUDGET)
    while batch := list(islice(numbers, min(BATCH, most - candidates))):
        candidates += len(batch)
        rows = t.all("list_matching", numbers=batch, most=len(batch), **wanted)
        for job, has_argument in search.among([row["number"] for row in rows]):
            found += [job] * has_argument
            if len(found) > limit:
                return Matching(found[:limit], found[limit - 1], search.looked)
            if search.is_over:
                return Matching(found, job, search.looked)
        if candidates >= most:
            return Matching(found, batch[-1], search.looked)
    return Matching(found, None, search.looked)


def workers(t: Transaction, after: int, limit: int, ended_within: float | None) -> list[WorkerRecord]:
    if ended_within is None:
        rows = t.all("all_workers", after=after, most=limit)
    else:
        rows = t.all("workers", after=after, most=limit, silent=span(ended_within))
    return [worker_of(row) for row in rows]


def _candidates(t: Transaction, tenant: str | None, filter: JobFilter, after: str | None) -> Iterator[int]:
    """From the cursor, or where the wanted time begins, to where that time ends."""
    lowest = 0 if filter.since is None else _number_at(t, microseconds(filter.since) - SLACK) - 1
    highest = BEYOND if filter.before is None else _number_at(t, microseconds(filter.before) + SLACK)
    start, way = (highest, -1) if filter.newest_first else (lowest, 1)
    if after is not None:
        start = way * max(way * start, way * _number_of(after))
    numbers = merged(t, Search(t, tenant, filter).sources(), start, filter.newest_first)
    return takewhile(lambda number: lowest < number < highest, numbers)


def _number_at(t: Transaction, at: int) -> int:
    row = t.one("number_at", at=at)
    assert row is not None
    return int(row["number"])


def _number_of(cursor: str) -> int:
    if not cursor.isdecimal() or len(cursor) > 18:
        raise InvalidInput(f"{cursor!r} is not a cursor that a page gave out")
    return int(cursor)


def _wanted(tenant: str | None, filter: JobFilter) -> dict[str, Any]:
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
        "has_letter": None if filter.letter is None else 1,
        **{f"letter_{name}": value for name, value in letter_terms(filter.letter or LetterTerms()).items()},
        **terms_of(filter.within),
    }
