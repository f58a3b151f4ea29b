"""Flow: what people see of jobs that wait for them, and of parents and children."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.errors import InvalidInput, UnknownJob, quoted
from unstuck.model.job import JobRecord
from unstuck.model.keys import Within
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import check_wording
from unstuck.model.waits import OnTimeout, WaitKind, WaitRecord
from unstuck.records import dataclass
from unstuck.store.port import Store

MOST_LISTED = 10_000
#: Deeper than jobs may be nested: a climb that goes higher goes round in circles.
_HIGHEST = 64


@dataclass(frozen=True, slots=True)
class Approval:
    """A question that somebody must decide. `key` names it among the questions of its job."""

    job: str
    workflow: str
    tenant: str
    key: str
    question: str
    who: tuple[str, ...]
    asked_at: datetime
    until_at: datetime
    on_timeout: OnTimeout
    #: What `after=` takes to go on behind this one.
    cursor: str = ""

    @classmethod
    def of(cls, record: WaitRecord) -> Approval:
        wait = record.wait
        return cls(
            record.job,
            record.workflow,
            record.tenant,
            wait.key,
            wait.name,
            wait.who,
            record.asked_at,
            record.until_at,
            wait.on_timeout,
            record.cursor,
        )


def approvals(
    store: Store, tenant: str | None, *, after: str | None = None, limit: int = 100, within: Within | None = None
) -> list[Approval]:
    """The open ones, the oldest first; of all tenants with None. `after`: the cursor of the one to go on behind."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_LISTED:
        raise InvalidInput(f"limit={quoted(limit)} is not a whole number between 1 and {MOST_LISTED}")
    behind = check_wording(after, "after") or ""
    found = store.open_waits(tenant, kind=WaitKind.APPROVAL.value, after=behind, limit=limit, within=within)
    return [Approval.of(record) for record in found]


@dataclass(frozen=True, slots=True)
class Branch:
    """A job and those that it spawned. `name` and `ordinal`: what its parent calls it. `left_out`: children for which
    there was no room."""

    id: str
    workflow: str
    state: JobState
    name: str | None = None
    ordinal: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    children: tuple[Branch, ...] = ()
    left_out: int = 0


def family(store: Store, tenant: str, job: str, limit: int = 1000) -> Branch:
    """The whole tree that this job stands in, from the topmost parent that is still known; at most `limit` jobs."""
    top = _topmost(store, tenant, job)
    return _Growth(store, tenant, limit - 1).branch(top)


def _topmost(store: Store, tenant: str, job: str) -> JobRecord:
    record = store.get(tenant, job)
    if record is None:
        raise UnknownJob(job)
    for _ in range(_HIGHEST):
        parent = store.parent_of(tenant, record.id)
        above = None if parent is None else store.get(tenant, parent)
        if above is None:
            break
        record = above
    return record


class _Growth:
    """Draws a tree as long as there is room."""

    def __init__(self, store: Store, tenant: str, room: int) -> None:
        self._store = store
        self._tenant = tenant
        self._room = room

    def branch(self, record: JobRecord, **called: Any) -> Branch:
        children = self._store.children_of(self._tenant, record.id)
        shown = children[: max(0, self._room)]
        self._room -= len(shown)
        grown = []
        for child in shown:
            below = self._store.get(self._tenant, child.id)
            if below is not None:  # it may be forgotten by now
                grown.append(self.branch(below, name=child.name, ordinal=child.ordinal))
        return Branch(
            record.id,
            record.workflow,
            record.state,
            error_type=record.error_type,
            error_message=record.error_message,
            children=tuple(grown),
            left_out=len(children) - len(shown),
            **called,
        )
