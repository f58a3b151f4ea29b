"""Schedules that came due -> jobs, once for each tick; and what code declares -> what runs.

The duty rests until the first tick is due, and no longer than a sweep: then it finds what others have made meanwhile.
Every worker and every server does it, at the same second; the store lets one of them have each tick. A schedule that
cannot be fired, whatever the reason, keeps no other from its turn, and is tried again with every sweep.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model import schedules
from unstuck.model.errors import (
    Conflict,
    OutcomeUnknown,
    SchemaMismatch,
    StoreBusy,
    StoreError,
    StoreLocked,
    StoreUnavailable,
    UnknownJob,
    UnstuckError,
)
from unstuck.model.job import NewJob
from unstuck.model.schedules import ScheduleRules, TickStep
from unstuck.model.spelling import screen
from unstuck.model.times import Times
from unstuck.store.port import FiringRecord, NewFiring, Overlapped, ScheduleRecord, Store
from unstuck.telemetry import emit

_SHORTEST_REST = 0.02
#: Others fire what is due as well: a tick that does not move is theirs, or locked.
_LONGEST_REST_OVERDUE = 1.0
#: As for limits: a worker that begins does it at once; this is for the end of a version's last worker.
_RECONCILE_EVERY = 60.0
#: Of these no schedule is to blame.
_AWAY = (StoreUnavailable, StoreLocked, OutcomeUnknown, SchemaMismatch)

#: The job of a tick; what a submit would refuse, it raises.
MakeJob = Callable[[ScheduleRecord, datetime], NewJob]


class SchedulesDuty(SweepDuty):
    name = "schedules"
    most = 100

    def __init__(self, store: Store, times: Times, make: MakeJob) -> None:
        super().__init__(store, times)
        self._make = make
        self._rest = times.sweep
        self._in_vain = 0
        self._reconcile_at = float("-inf")
        #: By number: one that could not be fired, and when it is tried again.
        self._failed: dict[int, float] = {}
        #: By number: another has it, or somebody holds its row.
        self._unmoved: set[int] = set()
        #: Jobs that could not be asked to stop: until when they are left alone.
        self._unasked: dict[str, float] = {}

    @property
    def every(self) -> float:
        return self._rest

    def tick(self, now: float, budget: Budget) -> int:
        self._rest = self._times.sweep  # should this turn fail
        moved = 0
        if now >= self._reconcile_at:
            moved += self._reconcile(now)
        ahead = self._store.next_schedule()
        if ahead == 0:
            moved += self._fire_due(now, budget)
            moved += self._cancel_overlapped(now, budget)
            ahead = self._store.next_schedule()
        self._in_vain = self._in_vain + 1 if ahead == 0 and not moved else 0
        self._rest = self._until(ahead)
        return moved

    def _reconcile(self, now: float) -> int:
        """What cannot be written there, because somebody holds a row or because it is damaged, is no reason to fire
        nothing."""
        self._reconcile_at = now + _RECONCILE_EVERY
        try:
            return self._store.reconcile_schedules()
        except _AWAY:
            self._reconcile_at = now
            raise
        except Exception as error:
            self._reconcile_at = now + self._times.sweep
            emit("schedules_not_reconciled", level=logging.WARNING, error=repr(error))
            return 0

    def _until(self, ahead: float | None) -> float:
        if ahead is None:
            return self._times.sweep
        shortest = min(_LONGEST_REST_OVERDUE, _SHORTEST_REST * 2.0 ** min(self._in_vain, 10))
        return min(self._times.sweep, max(ahead, shortest))

    # --- ticks --------------------------------------------------------------------------------------------------
    def _fire_due(self, now: float, budget: Budget) -> int:
        """Those that did not move the last time come last, and take nobody's place in the batch."""
        rules = self._store.schedule_rules()
        moved = 0
        due = self._store.due_schedules(self._batch.size + len(self._failed) + len(self._unmoved))
        self._unmoved &= {schedule.number for schedule in due}
        self._failed = {each.number: self._failed[each.number] for each in due if each.number in self._failed}
        for schedule in sorted(due, key=lambda schedule: schedule.number in self._unmoved):
            if self._failed.get(schedule.number, now) <= now:
                steps = self._fire_one(schedule, rules, now, budget)
                moved += steps
                if steps:
                    self._unmoved.discard(schedule.number)
                else:
                    self._unmoved.add(schedule.number)
            if budget.is_over():
                break
        return moved

    def _fire_one(self, schedule: ScheduleRecord, rules: ScheduleRules, now: float, budget: Budget) -> int:
        moved = 0
        try:
            for step in self._plan(schedule, rules):
                if not self._fire(schedule, step):
                    break  # another worker has it, or somebody has changed it
                moved += 1
                if budget.is_over():
                    break
        except StoreBusy:
            return moved  # held: the next turn
        except StoreError:
            raise
        except Exception as error:
            if schedule.number not in self._failed:
                logging.getLogger("unstuck").exception("schedule %s could not be fired", schedule.name)
            self._failed[schedule.number] = now + self._times.sweep
            self._tell(schedule, error)
        return moved

    def _plan(self, schedule: ScheduleRecord, rules: ScheduleRules) -> list[TickStep]:
        if schedule.next_tick is None:
            return []
        spec = schedule.spec
        return schedules.plan(
            spec,
            schedule.next_tick,
            schedule.now,
            rules.missed_after,
            lambda tick: schedules.delay(schedule.number, tick, spec.jitter),
        )

    def _fire(self, schedule: ScheduleRecord, step: TickStep) -> bool:
        if step.is_missed:
            missed = NewFiring(schedule, step.tick, "tick", "missed", step.next, ticks=step.ticks, first=step.first)
            return _counted(self._store.fire(missed))
        try:
            job = self._make(schedule, step.tick)
            fired = self._store.fire(NewFiring(schedule, step.tick, "tick", "fired", step.next, job))
        except StoreError:
            raise
        except UnstuckError as error:
            reason = f"{type(error).__name__}: {error}"
            fired = self._store.fire(NewFiring(schedule, step.tick, "tick", "refused", step.next, reason=reason))
            emit("schedule_refused", level=logging.WARNING, schedule=schedule.name, problem=reason)
        return _counted(fired)

    def _tell(self, schedule: ScheduleRecord, error: Exception) -> None:
        message = (
            f"schedule {schedule.name} of tenant {schedule.tenant} could not be fired: {error!r}; "
            "it is tried again, and no other waits for it"
        )
        self._store.notify("Schedule could not be fired", message, screen("schedules", schedule.name))

    # --- what a later firing takes the place of -------------------------------------------------------------------
    def _cancel_overlapped(self, now: float, budget: Budget) -> int:
        """Durable requests, before the firing's row forgets them: whoever dies leaves them to another. A job that
        cannot be asked keeps no other from being asked, and is left alone for a while."""
        self._unasked = {job: until for job, until in self._unasked.items() if until > now}
        asked, incomplete, open_firings = 0, set[int](), set[int]()
        last: Overlapped | None = None
        while True:
            found = self._store.overlapped(self._batch.size, last)
            for each in found:
                open_firings.add(each.firing)
                if each.job is not None and not self._is_asked(each, each.job, now):
                    incomplete.add(each.firing)
                elif each.job is not None:
                    asked += 1
                if budget.is_over():
                    return asked
            is_last_page = len(found) < self._batch.size
            # The last one of a full page may have more on the next.
            done = {firing for firing in open_firings if is_last_page or firing != found[-1].firing}
            if whole := sorted(done - incomplete):
                self._store.overlap_cancelled(whole)
            open_firings -= done
            if is_last_page:
                return asked
            last = found[-1]

    def _is_asked(self, overlapped: Overlapped, job: str, now: float) -> bool:
        if job in self._unasked:
            return False
        try:
            reason = f"the next tick of schedule {overlapped.name} takes its place"
            self._store.cancel(overlapped.tenant, job, by=f"schedule {overlapped.name}", reason=reason)
        except (Conflict, UnknownJob):
            pass  # it has ended meanwhile
        except _AWAY:
            raise
        except Exception as error:
            self._unasked[job] = now + self._times.sweep
            emit("overlap_not_cancelled", level=logging.WARNING, job=job, schedule=overlapped.name, error=repr(error))
            return False
        return True


def _counted(firing: FiringRecord | None) -> bool:
    """None: somebody else decided about it, and counts it."""
    if firing is not None:
        emit("tick_decided", level=logging.DEBUG, outcome=firing.outcome)
    return firing is not None
