"""Lookup: what people read. Pages by keyset, counts with a ceiling; nothing here takes a lock."""

from __future__ import annotations

from unstuck.model.errors import InvalidInput
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.store.database import Transaction
from unstuck.store.dimensions import Dimensions
from unstuck.store.port import JobFilter, Page
from unstuck.store.rows import job_of

_TROUBLED = FINAL - {JobState.COMPLETED}
_RESTING = frozenset({JobState.PENDING, JobState.WAITING, JobState.PAUSED})
_NEWEST = 1 << 62


def can_exist(*names: str | None) -> bool:
    """False for what no database can hold (NUL, lone surrogates): submit refused it, so there is nothing to find."""
    return all(name is None or ("\x00" not in name and _has_bytes(name)) for name in names)


def _has_bytes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def page(
    t: Transaction, dimensions: Dimensions, tenant: str, filter: JobFilter, limit: int, after: str | None
) -> Page:
    order = "newest" if filter.newest_first else "oldest"
    rows = t.all(
        f"{_phase(filter)}_{order}",
        tenant=tenant,
        after=_cursor(filter, after),
        states=f",{','.join(filter.states)}," if filter.states else None,
        workflow=filter.workflow,
        queue=filter.queue,
        error_type=filter.error_type,
        most=limit + 1,
    )
    jobs = tuple(job_of(row, dimensions.policy(t, row["policy"])) for row in rows[:limit])
    return Page(jobs, next=str(jobs[-1].number) if len(rows) > limit and jobs else None)


def _phase(filter: JobFilter) -> str:
    """A state tells in which table its jobs are: looking only there spares a walk over all the others."""
    states = set(filter.states)
    if not states:
        return "jobs"
    if states == {JobState.RUNNING}:
        return "running_jobs"
    if states <= _TROUBLED:
        return "troubled_jobs"
    return "resting_jobs" if states <= _RESTING else "jobs"


def _cursor(filter: JobFilter, after: str | None) -> int:
    if after is None:
        return _NEWEST if filter.newest_first else 0
    if not after.isdecimal() or len(after) > 18:
        raise InvalidInput(f"{after!r} is not a cursor that a page gave out")
    return int(after)


def counts(t: Transaction, tenant: str | None, ceiling: int) -> dict[JobState, int]:
    found = dict.fromkeys(JobState, 0)
    for row in t.all("counts", tenant=tenant, ceiling=ceiling):
        state = JobState(row["state"])
        found[state] = min(ceiling, found[state] + row["jobs"])
    return found
