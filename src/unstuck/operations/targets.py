"""Targets: where jobs run one at a time; whose turn it is, and what blocks."""

from __future__ import annotations

from datetime import datetime

from unstuck.model.errors import UnknownTarget
from unstuck.operations import gating
from unstuck.operations.kinds import Duration
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.gates import PauseView, TargetView, TargetWhole, UnpauseView
from unstuck.views.jobs import JobView

IN_LINE = 20


@operation(role=READER, paged="after", errors=(UnknownTarget,))
def list_(caller: Caller, *, blocked: bool = False, after: str = "", limit: int = 50) -> Page[TargetView]:
    """The targets by name, above `after`; with `blocked` only those that a job blocks, the longest blocked first."""
    found = caller.lookup.targets(blocked=blocked, after=after, limit=limit)
    items = tuple(TargetView.of(record) for record in found)
    return Page(items=items, next=items[-1].name if len(items) == limit else None)


@operation(role=READER, errors=(UnknownTarget,), command="targets show")
def get(caller: Caller, target: str) -> TargetWhole:
    """One target: whose turn it is, who blocks it since when, who waits, its pause."""
    found = caller.lookup.target(target)
    line = caller.lookup.line(found.name, IN_LINE)
    # Its head may have gone, and even been forgotten, since the look above.
    head = caller.store.get(caller.one, found.head) if found.head else None
    now, hidden = caller.store.now(), caller.redactions
    turn = JobView.of(head, now, hidden[head.workflow]) if head else None
    waiting = tuple(JobView.of(job, now, hidden[job.workflow]) for job in line)
    return TargetWhole.of(found, turn=turn, line=waiting)


@operation(role=OPERATOR, effect="change", repeat="same", audited="targets.pause", errors=(UnknownTarget,))
def pause(
    caller: Caller,
    target: str,
    *,
    seconds: Duration | None = None,
    until: datetime | None = None,
    reason: str | None = None,
) -> PauseView:
    """Start nothing new on a target. What runs there goes on."""
    return gating.pause(caller, "target", target, seconds, until, reason)


@operation(role=OPERATOR, effect="change", repeat="same", audited="targets.unpause", errors=(UnknownTarget,))
def unpause(caller: Caller, target: str) -> UnpauseView:
    """Lift the pause of a target."""
    return gating.unpause(caller, "target", target)
