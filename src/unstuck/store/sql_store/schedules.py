"""The verbs of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from unstuck.model.schedules import DeclaredSchedule, ScheduleRules, ScheduleSpec, ScheduleState
from unstuck.store.database import Transaction
from unstuck.store.guard import isolation
from unstuck.store.life import declared as declarations
from unstuck.store.life import schedules, submit
from unstuck.store.port import FiringRecord, NewFiring, Overlapped, ScheduleRecord
from unstuck.store.read import lookup
from unstuck.store.rows import span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlSchedules(SqlVerbs):
    def schedule_rules(self) -> ScheduleRules:
        return self._database.read(schedules.rules)

    def create_schedule(self, tenant: str, name: str, spec: ScheduleSpec, by: str) -> ScheduleRecord:
        return self._database.write(lambda t: schedules.create(t, tenant, name, spec, by))

    def change_schedule(
        self, tenant: str, name: str, spec: ScheduleSpec, by: str, seen: int | None = None
    ) -> ScheduleRecord:
        return self._database.write(lambda t: schedules.update(t, tenant, name, spec, by, seen))

    def delete_schedule(self, tenant: str, name: str, by: str) -> ScheduleRecord:
        return self._database.write(lambda t: schedules.delete(t, tenant, name, by))

    def pause_schedule(
        self, tenant: str, name: str, by: str, *, until: datetime | None = None, reason: str | None = None
    ) -> ScheduleRecord:
        return self._database.write(lambda t: schedules.pause(t, tenant, name, by, until, reason))

    def resume_schedule(self, tenant: str, name: str, by: str) -> ScheduleRecord:
        return self._database.write(lambda t: schedules.resume(t, tenant, name, by))

    def schedule(self, tenant: str, name: str) -> ScheduleRecord | None:
        if not lookup.can_exist(tenant, name):
            return None
        return self._database.read(lambda t: schedules.one(t, tenant, name))

    def schedules(self, tenant: str | None, after: int = 0, limit: int = 100) -> list[ScheduleRecord]:
        return self._database.read(lambda t: schedules.page(t, tenant, after, limit))

    def firings(self, schedule: int, before: int | None = None, limit: int = 100) -> list[FiringRecord]:
        return self._database.read(lambda t: schedules.firings(t, schedule, before, limit))

    def next_schedule(self) -> float | None:
        return self._database.read(schedules.next_in)

    def due_schedules(self, batch: int = 100) -> list[ScheduleRecord]:
        self._database.before_timers()
        return self._database.read(lambda t: schedules.due(t, batch))

    def fire(self, firing: NewFiring) -> FiringRecord | None:
        job = firing.job
        if job is None:
            return self._database.write(
                lambda t: schedules.fire(t, firing, None, self._key_life), patience=isolation.PATIENCE
            )
        submit.check([job])
        fired = self._transactions.with_numbers(
            [job],
            lambda t, numbers: schedules.fire(t, firing, numbers, self._key_life),
            patience=isolation.PATIENCE,
        )
        if fired is not None and fired.job is not None:
            self._database.hint()
        return fired

    def overlapped(self, batch: int = 100, after: Overlapped | None = None) -> list[Overlapped]:
        return self._database.read(lambda t: schedules.overlapped(t, batch, after))

    def overlap_cancelled(self, firings: Sequence[int]) -> int:
        return self._database.write(lambda t: schedules.closed(t, firings))

    def silent_schedules(self, tenant: str | None, late: float, limit: int = 100) -> list[ScheduleRecord]:
        return self._database.read(lambda t: schedules.silent(t, tenant, late, limit))

    def schedule_states(self, tenant: str | None) -> dict[ScheduleState, int]:
        return self._database.read(lambda t: schedules.states(t, tenant)) if lookup.can_exist(tenant) else {}

    def forget_firings(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        kept = span(retention)

        def forget(t: Transaction) -> int:
            t.run("forget_declared", retention=kept)
            return t.run("forget_firings", retention=kept, batch=batch, past=past)

        return self._database.write(forget)

    def declare_schedules(
        self, app: str, origin: str, code_version: str, declared: Sequence[DeclaredSchedule]
    ) -> list[str]:
        return declarations.declare(self._database, app, origin, code_version, declared)

    def reconcile_schedules(self) -> int:
        return declarations.reconcile_all(self._database)
