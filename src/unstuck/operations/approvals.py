"""Approvals: the questions that jobs ask of people, and the answers."""

from __future__ import annotations

from unstuck.model.errors import AmbiguousJob, NotAsked, NotWaiting, UnknownJob
from unstuck.observe.flow import approvals
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.flow import ApprovalView, WaitView

_REFUSED = (UnknownJob, AmbiguousJob, NotWaiting, NotAsked)


@operation(role=READER, limited="kept", whose="any", paged="after")
def list_(caller: Caller, *, after: str | None = None, limit: int = 50) -> Page[ApprovalView]:
    """What waits for a decision, the oldest first: who is asked, until when, and what happens then."""
    found = approvals(caller.store, caller.listed, after=after, limit=limit, within=caller.within)
    items = tuple(ApprovalView.of(record) for record in found)
    return Page(items=items, next=items[-1].cursor if len(items) == limit else None)


@operation(
    role=OPERATOR, limited="kept", effect="change", repeat="refused", audited="approvals.approve", errors=_REFUSED
)
def approve(caller: Caller, job: str, *, comment: str | None = None, key: str | None = None) -> WaitView:
    """Say yes to the question that a job asks (`key`: to this one): the job goes on. NotWaiting if none is open or
    somebody was faster, NotAsked if the question is for others."""
    record = caller.lookup.job(job)
    decided = caller.flow.approve(record.id, comment=comment, key=key)
    return WaitView.of(decided, caller.redactions[record.workflow])


@operation(
    role=OPERATOR, limited="kept", effect="change", repeat="refused", audited="approvals.reject", errors=_REFUSED
)
def reject(caller: Caller, job: str, *, comment: str | None = None, key: str | None = None) -> WaitView:
    """Say no: the job hears of it, and fails unless it knows what to do then."""
    record = caller.lookup.job(job)
    decided = caller.flow.reject(record.id, comment=comment, key=key)
    return WaitView.of(decided, caller.redactions[record.workflow])
