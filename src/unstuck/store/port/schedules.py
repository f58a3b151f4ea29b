"""The schedules' port: what runs by the clock, what was done about each tick, and what the code of apps declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from unstuck.model.job import NewJob
from unstuck.model.schedules import (
    FiringKind,
    FiringOutcome,
    Overlap,
    ScheduleRules,
    ScheduleSpec,
    ScheduleState,
)
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    """A schedule as it stands. Ticks, and `now`, are instants of the clock by which its rule goes: a cron line's of
    the database's clock, an interval's of the engine's time. `owner`: the app whose code declares it."""

    number: int
    tenant: str
    name: str
    owner: str | None
    spec: ScheduleSpec
    version: int
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str
    removed_at: datetime | None
    paused_at: datetime | None
    paused_until: datetime | None
    paused_by: str | None
    pause_reason: str | None
    last_tick: datetime | None
    next_tick: datetime | None
    due_at: datetime | None
    #: So many ticks in a row made no job.
    quiet: int
    now: datetime

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None and (self.paused_until is None or self.paused_until > self.now)

    @property
    def state(self) -> ScheduleState:
        if self.removed_at is not None:
            return ScheduleState.REMOVED
        if self.is_paused:
            return ScheduleState.PAUSED
        return ScheduleState.ACTIVE if self.next_tick is not None else ScheduleState.ENDED


@dataclass(frozen=True, slots=True)
class NewFiring:
    """What is to be done about a tick of a schedule, as it was seen. `job`: what is stored with it; None: there is
    none, for the reason. `overlap`: in place of the schedule's own. A missed one stands for `ticks` from
    `first` on."""

    schedule: ScheduleRecord
    tick: datetime
    kind: FiringKind
    outcome: FiringOutcome
    next_tick: datetime | None = None
    job: NewJob | None = None
    reason: str | None = None
    overlap: Overlap | None = None
    by: str | None = None
    ticks: int = 1
    first: datetime | None = None
    #: What the audit says besides its job; None: nothing is written there.
    told: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class FiringRecord:
    number: int
    tick: datetime
    kind: FiringKind
    outcome: FiringOutcome
    at: datetime
    version: int
    job: str | None = None
    reason: str | None = None
    by: str | None = None
    ticks: int = 1
    first_tick: datetime | None = None


@dataclass(frozen=True, slots=True)
class Overlapped:
    """A job that a later firing of its schedule takes the place of; None: there is none left. `place`: that of its
    own firing, by which pages go on."""

    firing: int
    tenant: str
    name: str
    job: str | None
    place: int = 0


class SchedulesPort(Protocol):
    def schedule_rules(self) -> ScheduleRules:
        """The runtime settings of schedules, as they stand."""
        ...

    def create_schedule(self, tenant: str, name: str, spec: ScheduleSpec, by: str) -> ScheduleRecord:
        """ScheduleExists, TooManySchedules; InvalidInput for a rule that nobody can go by."""
        ...

    def change_schedule(
        self, tenant: str, name: str, spec: ScheduleSpec, by: str, seen: int | None = None
    ) -> ScheduleRecord:
        """A new version. What decides its ticks counts from now on if it changes, and no tick fires twice. `seen`:
        the version that is changed; Conflict if there is a newer one. UnknownSchedule, DeclaredByCode."""
        ...

    def delete_schedule(self, tenant: str, name: str, by: str) -> ScheduleRecord:
        """Its jobs stay. UnknownSchedule, DeclaredByCode."""
        ...

    def pause_schedule(
        self, tenant: str, name: str, by: str, *, until: datetime | None = None, reason: str | None = None
    ) -> ScheduleRecord:
        """No tick fires until then, or until it is resumed; those of the pause are not made up for."""
        ...

    def resume_schedule(self, tenant: str, name: str, by: str) -> ScheduleRecord: ...

    def schedule(self, tenant: str, name: str) -> ScheduleRecord | None: ...

    def schedules(self, tenant: str | None, after: int = 0, limit: int = 100) -> list[ScheduleRecord]:
        """Those that are there, in the order in which they were made."""
        ...

    def firings(self, schedule: int, before: int | None = None, limit: int = 100) -> list[FiringRecord]:
        """The newest first."""
        ...

    def next_schedule(self) -> float | None:
        """In how many seconds the first tick is due, 0 if it should have been fired; None: there is none."""
        ...

    def due_schedules(self, batch: int = 100) -> list[ScheduleRecord]:
        """Those whose next tick is due."""
        ...

    def fire(self, firing: NewFiring) -> FiringRecord | None:
        """Decide about a tick, and store its job, in one transaction. None: somebody else did, or the schedule is not
        as it was seen. What a submit refuses is raised, and nothing is written."""
        ...

    def overlapped(self, batch: int = 100, after: Overlapped | None = None) -> list[Overlapped]:
        """What is still to be asked to stop, because a later firing takes its place; behind `after`."""
        ...

    def overlap_cancelled(self, firings: Sequence[int]) -> int: ...

    def silent_schedules(self, tenant: str | None, late: float, limit: int = 100) -> list[ScheduleRecord]:
        """Those whose tick is overdue by so many seconds, or of which several ticks in a row made no job."""
        ...

    def schedule_states(self, tenant: str | None) -> dict[ScheduleState, int]:
        """How many there are of each, of the first hundred thousand."""
        ...

    def forget_firings(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Those older than this, but for those whose job has not ended; versions of code that nobody runs."""
        ...

    def reconcile_schedules(self) -> int:
        """Schedules by code become those of the versions that decide: how many changed."""
        ...
