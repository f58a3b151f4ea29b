"""Series: how many runs ended in each minute, how, and how long they waited and ran. Kept for seven days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.payload import check_instant, check_wording
from unstuck.model.series import HOUR, MINUTE
from unstuck.operations.kinds import Duration, seconds
from unstuck.operations.table import READER, Caller, operation
from unstuck.store.port import SeriesPer
from unstuck.views.series import PointView, SeriesView

#: The most steps that one answer has.
MOST_STEPS = 750
MOST_NAMES = 20
_MINUTE, _HOUR, _DAY = timedelta(seconds=MINUTE), timedelta(seconds=HOUR), timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_YEAR = 9998
_BEYOND = "since and until lie beyond any time of which something is kept"


@operation(role=READER, whose="any", command="series")
def get(
    caller: Caller,
    *,
    per: SeriesPer = "total",
    since: datetime | None = None,
    until: datetime | None = None,
    step: Duration = MINUTE,
    queue: str | None = None,
    workflow: str | None = None,
    limit: int = 10,
) -> SeriesView:
    """What ended, in steps of time: all together, or `per` "queue" or "workflow", and then the `limit` busiest of
    them. `since`: an hour ago, if nothing is said. Minutes are counted one or two minutes after they have passed."""
    kinds = get_args(SeriesPer)
    if per not in kinds:
        raise InvalidInput(f"per={quoted(per)} is none of: {', '.join(kinds)}")
    if type(limit) is not int or not 1 <= limit <= MOST_NAMES:
        raise InvalidInput(f"limit={quoted(limit)} is not between 1 and {MOST_NAMES}")
    width = _step(step)
    end = caller.store.now() if until is None else check_instant(until, "until")
    if end < _EPOCH or end.year > _LAST_YEAR:
        raise InvalidInput(_BEYOND)
    begin = end - timedelta(hours=1) if since is None else check_instant(since, "since")
    if begin >= end:
        raise InvalidInput(f"since={begin:%Y-%m-%dT%H:%M:%SZ} is not before until={end:%Y-%m-%dT%H:%M:%SZ}")
    if begin < _EPOCH:
        raise InvalidInput(_BEYOND)
    first, last = begin - (begin - _EPOCH) % width, end + (_EPOCH - end) % width
    if (steps := (last - first) // width) > MOST_STEPS:
        raise InvalidInput(
            f"that would be {steps:,} steps, and {MOST_STEPS} is the most: ask for longer ones, or for less time"
        )
    if end - begin > _DAY and width % _HOUR:
        raise InvalidInput("more than a day is told in steps of whole hours: ask for such, or for less time")
    found = caller.store.series(
        caller.listed,
        per,
        first,
        last,
        width.total_seconds(),
        queue=check_wording(queue, "queue"),
        workflow=check_wording(workflow, "workflow"),
        names=limit,
    )
    return SeriesView(
        per=per,
        tenant=caller.listed,
        since_at=first,
        until_at=last,
        step=int(width.total_seconds()),
        counted_until=found.counted_until,
        points=tuple(PointView.of(point) for point in found.points),
    )


def _step(step: Duration) -> timedelta:
    found = timedelta(seconds=seconds(step, "step"))
    if found % _MINUTE or not _MINUTE <= found <= _DAY:
        raise InvalidInput(f"step={quoted(step)} is not a number of whole minutes, a day at most")
    return found
