"""Queues: what waits where, who serves it, and what shuts or limits it."""

from __future__ import annotations

from datetime import datetime

from unstuck.model.lifecycle import JobState
from unstuck.operations import gating
from unstuck.operations.kinds import UNSAID, Duration, Unsaid
from unstuck.operations.names import queue_names
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.store.port import Tally
from unstuck.views import Page
from unstuck.views.gates import LimitChange, LimitView, PauseView, QueueView, UnpauseView


@operation(role=READER, paged="after")
def list_(caller: Caller, *, after: str = "", limit: int = 50) -> Page[QueueView]:
    """The queues of a tenant by name, above `after`: those with jobs, and those that workers or workflows name."""
    found = _tallies(caller, after, limit)
    served = _served(caller)
    pauses = [PauseView.of(p) for p in caller.gates.pauses() if p.kind == "queue"]
    limits = [LimitView.of(x) for x in caller.gates.limits() if x.kind == "queue"]
    items = tuple(
        QueueView(
            name=tally.name,
            waiting=max(0, tally.states[JobState.QUEUED] - tally.scheduled),
            scheduled=tally.scheduled,
            running=tally.states[JobState.RUNNING],
            at_least=tuple(state.value for state in JobState if state in tally.at_least),
            oldest_due_at=tally.oldest_due_at,
            workers=tuple(served.get(tally.name, ())),
            pauses=tuple(p for p in pauses if p.name == tally.name),
            limits=tuple(x for x in limits if x.name == tally.name),
        )
        for tally in found
    )
    return Page(items=items, next=items[-1].name if len(items) == limit else None)


@operation(role=OPERATOR, limited="queue", effect="change", whose="any", repeat="same", audited="queues.pause")
def pause(
    caller: Caller,
    queue: str,
    *,
    seconds: Duration | None = None,
    until: datetime | None = None,
    reason: str | None = None,
) -> PauseView:
    """Start nothing new from a queue: for so long, until that instant, or until somebody lifts it. What runs goes on,
    what comes waits."""
    return gating.pause(caller, "queue", queue, seconds, until, reason)


@operation(role=OPERATOR, limited="queue", effect="change", whose="any", repeat="same", audited="queues.unpause")
def unpause(caller: Caller, queue: str) -> UnpauseView:
    """Lift the pause of a queue."""
    return gating.unpause(caller, "queue", queue)


@operation(role=OPERATOR, limited="queue", effect="change", whose="any", repeat="same", audited="queues.limit")
def limit(
    caller: Caller,
    queue: str,
    *,
    concurrency: int | Unsaid | None = UNSAID,
    rate: str | Unsaid | None = UNSAID,
    max_queued: int | Unsaid | None = UNSAID,
) -> LimitChange:
    """Limit how much of a queue runs at once, starts in a time ("100/m") or waits. What is not named stays as it
    stands, None lifts it."""
    return gating.limit(caller, "queue", queue, concurrency=concurrency, rate=rate, max_queued=max_queued)


@operation(
    role=OPERATOR,
    limited="queue",
    effect="change",
    whose="any",
    repeat="same",
    audited="queues.unlimit",
    command="queues limit",
)
def unlimit(caller: Caller, queue: str) -> LimitChange:
    """Lift what was set. What the code says holds again at once."""
    return gating.unlimit(caller, "queue", queue)


def _tallies(caller: Caller, after: str, limit: int) -> tuple[Tally, ...]:
    """With those where no job of this tenant ever was."""
    found = caller.lookup.tallies("queue", after=after, limit=limit)
    counted = {tally.name for tally in found}
    last = found[-1].name if len(found) == limit else None
    empty = [
        Tally(name, dict.fromkeys(JobState, 0))
        for name in queue_names(caller) - counted
        if name > after and (last is None or name < last)
    ]
    return tuple(sorted([*found, *empty], key=lambda tally: tally.name)[:limit])


def _served(caller: Caller) -> dict[str, tuple[str, ...]]:
    """By queue: the names of the live workers that claim from it."""
    served: dict[str, tuple[str, ...]] = {}
    for worker in caller.lookup.workers():
        if worker.state == "active":
            for queue in worker.serves.get("queues") or worker.queues:
                served[queue] = (*served.get(queue, ()), worker.name)
    return served
