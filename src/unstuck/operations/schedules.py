"""What runs by the clock: cron lines and intervals, when they fire next, and what came of each tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from unstuck.intake.schedules import ScheduleVerbs
from unstuck.model.errors import (
    DeclaredByCode,
    InvalidArguments,
    ScheduleExists,
    TooManyQueued,
    TooManySchedules,
    UnknownSchedule,
    UnknownWorkflowName,
    WorkflowBlacklisted,
)
from unstuck.model.schedules import SILENT_AFTER
from unstuck.operations.kinds import (
    UNSAID,
    CatchUp,
    Cursor,
    Duration,
    Overlap,
    Unsaid,
    number_of,
    seconds,
    seconds_or_none,
    whole_number,
)
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.store.port import ScheduleRecord
from unstuck.views import Page
from unstuck.views.schedules import FiringView, ScheduleView, TicksView

_MOST = 1000


@operation(role=READER, whose="any", paged="after")
def list_(caller: Caller, *, after: Cursor | None = None, limit: int = 50) -> Page[ScheduleView]:
    """The schedules of a tenant, in the order in which they were made."""
    most = whole_number(limit, "limit", least=1, most=_MOST)
    found = caller.store.schedules(caller.listed, number_of(after) or 0, most)
    items = tuple(_view(caller, record) for record in found)
    return Page(items=items, next=str(found[-1].number) if len(found) == most else None)


@operation(role=READER, errors=(UnknownSchedule,), command="schedules show")
def get(caller: Caller, schedule: str) -> ScheduleView:
    """One schedule: its rule, what it runs, when next."""
    return _view(caller, _verbs(caller).get(schedule))


@operation(
    role=OPERATOR,
    effect="change",
    repeat="refused",
    audited="schedules.create",
    errors=(ScheduleExists, TooManySchedules, UnknownWorkflowName, InvalidArguments),
    status=201,
)
def create(
    caller: Caller,
    name: str,
    workflow: str,
    *,
    cron: str | None = None,
    every: Duration | None = None,
    zone: str | None = None,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    tick_as: str | None = None,
    queue: str | None = None,
    priority: int = 0,
    target: str | None = None,
    tags: Sequence[str] = (),
    policy: Mapping[str, Any] | None = None,
    overlap: Overlap = "allow",
    catch_up: CatchUp = "last",
    catch_up_most: int = 100,
    jitter: Duration = 0,
    begin_at: datetime | None = None,
    end_at: datetime | None = None,
) -> ScheduleView:
    """Run a workflow by the clock: by a `cron` line in a time `zone`, or `every` so many seconds. `overlap`: what
    happens while a job of an earlier tick has not ended. `catch_up`: which ticks are made up for after an outage.
    `tick_as`: the argument that gets the tick."""
    made = _verbs(caller).create(
        name,
        workflow,
        cron=cron,
        every=seconds_or_none(every, "every"),
        zone=zone,
        args=list(args),
        kwargs=kwargs,
        tick_as=tick_as,
        queue=queue,
        priority=priority,
        target=target,
        tags=list(tags),
        policy=policy,
        overlap=overlap,
        catch_up=catch_up,
        catch_up_most=catch_up_most,
        jitter=seconds(jitter, "jitter"),
        begin_at=begin_at,
        end_at=end_at,
    )
    return _view(caller, made)


@operation(
    role=OPERATOR,
    effect="change",
    repeat="same",
    audited="schedules.update",
    errors=(UnknownSchedule, DeclaredByCode, UnknownWorkflowName, InvalidArguments),
    route="PATCH /schedules/{schedule}",
)
def update(
    caller: Caller,
    schedule: str,
    *,
    workflow: str | Unsaid = UNSAID,
    cron: str | Unsaid | None = UNSAID,
    every: Duration | Unsaid | None = UNSAID,
    zone: str | Unsaid = UNSAID,
    args: Sequence[Any] | Unsaid = UNSAID,
    kwargs: Mapping[str, Any] | Unsaid | None = UNSAID,
    tick_as: str | Unsaid | None = UNSAID,
    queue: str | Unsaid | None = UNSAID,
    priority: int | Unsaid = UNSAID,
    target: str | Unsaid | None = UNSAID,
    tags: Sequence[str] | Unsaid = UNSAID,
    policy: Mapping[str, Any] | Unsaid | None = UNSAID,
    overlap: Overlap | Unsaid = UNSAID,
    catch_up: CatchUp | Unsaid = UNSAID,
    catch_up_most: int | Unsaid = UNSAID,
    jitter: Duration | Unsaid = UNSAID,
    begin_at: datetime | Unsaid | None = UNSAID,
    end_at: datetime | Unsaid | None = UNSAID,
) -> ScheduleView:
    """Change a schedule; what is not named stays as it stands. No tick fires twice by it. One that code declares is
    changed there."""
    changed = _verbs(caller).update(
        schedule,
        workflow=workflow,
        cron=cron,
        every=every if isinstance(every, Unsaid) else seconds_or_none(every, "every"),
        zone=zone,
        args=args if isinstance(args, Unsaid) else list(args),
        kwargs=kwargs,
        tick_as=tick_as,
        queue=queue,
        priority=priority,
        target=target,
        tags=tags if isinstance(tags, Unsaid) else list(tags),
        policy=policy,
        overlap=overlap,
        catch_up=catch_up,
        catch_up_most=catch_up_most,
        jitter=jitter if isinstance(jitter, Unsaid) else seconds(jitter, "jitter"),
        begin_at=begin_at,
        end_at=end_at,
    )
    return _view(caller, changed)


@operation(
    role=OPERATOR,
    effect="change",
    repeat="refused",
    audited="schedules.delete",
    errors=(UnknownSchedule, DeclaredByCode),
    route="DELETE /schedules/{schedule}",
)
def delete(caller: Caller, schedule: str) -> ScheduleView:
    """Fire it no more, and forget it. Its jobs stay as they are. One that code declares is removed there."""
    return _view(caller, _verbs(caller).delete(schedule))


@operation(role=OPERATOR, effect="change", repeat="same", audited="schedules.pause", errors=(UnknownSchedule,))
def pause(
    caller: Caller,
    schedule: str,
    *,
    seconds: Duration | None = None,
    until: datetime | None = None,
    reason: str | None = None,
) -> ScheduleView:
    """Fire no tick: for so long, until that instant, or until somebody resumes it. The ticks of the pause are not
    made up for."""
    lasting = seconds_or_none(seconds, "seconds")
    return _view(caller, _verbs(caller).pause(schedule, lasting=lasting, until=until, reason=reason))


@operation(role=OPERATOR, effect="change", repeat="same", audited="schedules.resume", errors=(UnknownSchedule,))
def resume(caller: Caller, schedule: str) -> ScheduleView:
    """End the pause of a schedule: it goes on with its next tick."""
    return _view(caller, _verbs(caller).resume(schedule))


@operation(
    role=OPERATOR,
    effect="change",
    repeat="again",
    audited="schedules.run_now",
    errors=(UnknownSchedule, UnknownWorkflowName, InvalidArguments, TooManyQueued, WorkflowBlacklisted),
)
def run_now(caller: Caller, schedule: str) -> FiringView:
    """Make its job now, besides its ticks, also of a paused one. By its overlap rule it may be skipped."""
    return FiringView.of(_verbs(caller).run_now(schedule))


@operation(
    role=OPERATOR,
    effect="change",
    repeat="same",
    audited="schedules.backfill",
    errors=(UnknownSchedule, UnknownWorkflowName, InvalidArguments, TooManyQueued, WorkflowBlacklisted),
)
def backfill(
    caller: Caller, schedule: str, since: datetime, until: datetime, *, overlap: Overlap | None = None
) -> Page[FiringView]:
    """Make a job for each tick of a range of the past that made none, up to a thousand. They run one after the
    other unless the schedule, or `overlap`, lets them overlap."""
    found = _verbs(caller).backfill(schedule, since, until, overlap)
    return Page(items=tuple(FiringView.of(record) for record in found))


@operation(role=READER, errors=(UnknownSchedule,))
def next_(caller: Caller, schedule: str, *, count: int = 10) -> TicksView:
    """The ticks that come next."""
    verbs = _verbs(caller)
    ticks = verbs.next(schedule, whole_number(count, "count", least=1, most=_MOST))
    return TicksView(name=schedule, zone=verbs.get(schedule).spec.zone, ticks=tuple(ticks))


@operation(role=READER, paged="after", errors=(UnknownSchedule,))
def firings(caller: Caller, schedule: str, *, after: Cursor | None = None, limit: int = 50) -> Page[FiringView]:
    """What was done about each tick, the newest first: the job, or why there is none."""
    most = whole_number(limit, "limit", least=1, most=_MOST)
    found = caller.store.firings(_verbs(caller).get(schedule).number, number_of(after), most)
    items = tuple(FiringView.of(record) for record in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == most else None)


def _verbs(caller: Caller) -> ScheduleVerbs:
    return ScheduleVerbs(
        caller.store, tenant=caller.one, by=caller.by, max_timeout=caller.times.max_timeout, signing=caller.signing()
    )


def _view(caller: Caller, record: ScheduleRecord) -> ScheduleView:
    return ScheduleView.of(record, caller.redactions, SILENT_AFTER)
