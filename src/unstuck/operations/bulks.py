"""Bulks: one verb over all the jobs that a filter wants, carried out by the workers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from unstuck.intake.bulks import BulkVerbs
from unstuck.model.errors import BulkEnded, OtherCount, UnknownBulk
from unstuck.observe.lookup import State
from unstuck.operations.filters import job_filter
from unstuck.operations.kinds import Cursor, number_of
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.bulks import BulkView, CountView


@operation(role=READER)
def count(
    caller: Caller,
    *,
    state: State | Iterable[State] = (),
    workflow: str | None = None,
    queue: str | None = None,
    error_type: str | None = None,
    target: str | None = None,
    tag: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    argument: tuple[str, Any] | None = None,
) -> CountView:
    """How many jobs a filter wants, before a bulk of them is started. Counting ends somewhere: the number is exact,
    or there are at least so many."""
    wanted = job_filter(
        caller,
        state=state,
        workflow=workflow,
        queue=queue,
        error_type=error_type,
        target=target,
        tag=tag,
        before=before,
        since=since,
        argument=argument,
    )
    return CountView.of(wanted, _verbs(caller).count(wanted), caller.redactions)


@operation(
    role=OPERATOR,
    effect="change",
    repeat="again",
    over_filter=True,
    audited="bulks.start",
    errors=(OtherCount,),
    status=202,
    command="jobs cancel",
)
def start(
    caller: Caller,
    verb: str,
    *,
    state: State | Iterable[State] = (),
    workflow: str | None = None,
    queue: str | None = None,
    error_type: str | None = None,
    target: str | None = None,
    tag: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    argument: tuple[str, Any] | None = None,
    reason: str | None = None,
    from_start: bool = False,
    force: bool = False,
    expected: int | None = None,
    everything: bool = False,
) -> BulkView:
    """Cancel, interrupt, resume, retry, release or skip all the jobs that a filter wants. It is durable when this
    returns, and workers carry it out; jobs submitted from now on do not count. `expected`: how many were counted, and
    OtherCount if others match. A filter that wants every job is refused unless `everything` is said."""
    wanted = job_filter(
        caller,
        state=state,
        workflow=workflow,
        queue=queue,
        error_type=error_type,
        target=target,
        tag=tag,
        before=before,
        since=since,
        argument=argument,
    )
    started = _verbs(caller).start(
        verb,
        wanted,
        reason=reason,
        from_start=from_start,
        force=force,
        expected=expected,
        everything=everything,
    )
    return BulkView.of(started, caller.redactions)


@operation(role=READER, paged="after")
def list_(
    caller: Caller, *, state: str | None = None, after: Cursor | None = None, limit: int = 50
) -> Page[BulkView]:
    """The bulks of a tenant, the newest first."""
    found = _verbs(caller).list(state=state, before=number_of(after), limit=limit)
    hidden = caller.redactions
    items = tuple(BulkView.of(record, hidden) for record in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == limit else None)


@operation(role=READER, errors=(UnknownBulk,), command="bulks show")
def get(caller: Caller, number: int) -> BulkView:
    """How far one is, and the first jobs that it was refused for."""
    return BulkView.of(_verbs(caller).get(number), caller.redactions)


@operation(role=OPERATOR, effect="change", repeat="same", audited="bulks.cancel", errors=(UnknownBulk, BulkEnded))
def cancel(caller: Caller, number: int) -> BulkView:
    """It does nothing more; what it has done stays done."""
    return BulkView.of(_verbs(caller).cancel(number), caller.redactions)


def _verbs(caller: Caller) -> BulkVerbs:
    return BulkVerbs(caller.store, tenant=caller.one, by=caller.by)
