"""Schedules: what runs by the clock, when next, and what was done about each tick."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.redaction import Redactions
from unstuck.model.schedules import CatchUp, FiringKind, FiringOutcome, Overlap, ScheduleState, explained
from unstuck.store.port import FiringRecord, ScheduleRecord
from unstuck.views import View


class ScheduleView(View, frozen=True, kw_only=True):
    """One schedule. It has a `cron` line and its `zone`, or an interval, `every` so many seconds. `owner`: the app
    whose code declares it; None: a person made it. `silent`: its last ticks made no job. `next_at` is the tick that
    comes next; with a `jitter` it fires a little later."""

    name: str
    tenant: str
    state: ScheduleState
    owner: str | None
    workflow: str
    cron: str | None
    every: float | None
    zone: str
    #: The rule in words.
    meaning: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tick_as: str | None
    queue: str | None
    priority: int
    target: str | None
    tags: tuple[str, ...]
    policy: dict[str, Any]
    overlap: Overlap
    catch_up: CatchUp
    catch_up_most: int
    jitter: float
    begin_at: datetime | None
    end_at: datetime | None
    last_at: datetime | None
    next_at: datetime | None
    silent: bool
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    pause_reason: str | None
    version: int
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str

    @classmethod
    def of(cls, record: ScheduleRecord, hidden: Redactions, silent_after: int) -> ScheduleView:
        spec = record.spec
        args, kwargs = hidden[spec.workflow].call(spec.args, spec.kwargs)
        is_paused = record.is_paused
        return cls(
            name=record.name,
            tenant=record.tenant,
            state=record.state,
            owner=record.owner,
            workflow=spec.workflow,
            cron=spec.cron,
            every=spec.every,
            zone=spec.zone,
            meaning=explained(spec),
            args=tuple(args),
            kwargs=dict(kwargs),
            tick_as=spec.tick_as,
            queue=spec.queue,
            priority=spec.priority,
            target=spec.target,
            tags=spec.tags,
            policy=dict(spec.policy),
            overlap=spec.overlap,
            catch_up=spec.catch_up,
            catch_up_most=spec.catch_up_most,
            jitter=spec.jitter,
            begin_at=spec.begin_at,
            end_at=spec.end_at,
            last_at=record.last_tick,
            next_at=record.next_tick,
            silent=record.quiet >= silent_after and not is_paused,
            paused_at=record.paused_at if is_paused else None,
            paused_until=record.paused_until if is_paused else None,
            paused_by=record.paused_by if is_paused else None,
            pause_reason=record.pause_reason if is_paused else None,
            version=record.version,
            created_at=record.created_at,
            created_by=record.created_by,
            changed_at=record.changed_at,
            changed_by=record.changed_by,
        )


class FiringView(View, frozen=True, kw_only=True):
    """What was done about a tick: its `job`, or the `reason` why there is none. Of `missed` ones a single firing
    stands for `ticks` of them, at least, from `first_at` on. `by`: the person who asked for it."""

    number: int
    tick_at: datetime
    kind: FiringKind
    outcome: FiringOutcome
    at: datetime
    by: str | None
    job: str | None
    reason: str | None
    ticks: int
    first_at: datetime | None
    version: int

    @classmethod
    def of(cls, record: FiringRecord) -> FiringView:
        return cls(
            number=record.number,
            tick_at=record.tick,
            kind=record.kind,
            outcome=record.outcome,
            at=record.at,
            by=record.by,
            job=record.job,
            reason=record.reason,
            ticks=record.ticks,
            first_at=record.first_tick,
            version=record.version,
        )


class TicksView(View, frozen=True, kw_only=True):
    """The ticks that come next; fewer, or none, of a schedule that ends or is paused."""

    name: str
    zone: str
    ticks: tuple[datetime, ...]
