"""Schedules for tests: made, and fired by a duty as janitors have it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.conftest import StoreClock
from tests.support.budgets import endless
from tests.support.builders import TENANT
from unstuck.intake.schedules import ScheduleVerbs, job_of
from unstuck.janitor.schedules import SchedulesDuty
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.times import Times
from unstuck.store.port import FiringRecord, ScheduleRecord, Store

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "day": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
    "x-positional": ["name"],
}


def register(store: Store, name: str = "greet", version: str = "v1", **facts: Any) -> None:
    store.register_workflows([WorkflowRecord(name, version, "default", Policy(), SCHEMA, **facts)])


def verbs(store: Store, tenant: str = TENANT) -> ScheduleVerbs:
    return ScheduleVerbs(store, tenant=tenant, by="ada")


def made(store: Store, name: str = "nightly", *, workflow: str = "greet", **said: Any) -> ScheduleRecord:
    """Every minute, unless it is said otherwise, with an argument that fits."""
    if store.workflow(workflow) is None:
        register(store, workflow)
    rule = {} if "cron" in said or "every" in said else {"every": 60.0}
    return verbs(store).create(name, workflow, **{"kwargs": {"name": "ada"}, **rule, **said})


def the_duty(store: Store) -> SchedulesDuty:
    def make(schedule: ScheduleRecord, tick: datetime) -> NewJob:
        return job_of(store, schedule.tenant, schedule.name, schedule.spec, tick)

    return SchedulesDuty(store, Times(), make)


def turn(store: Store) -> int:
    return the_duty(store).tick(0.0, endless())


def seen(store: Store, name: str = "nightly") -> ScheduleRecord:
    return verbs(store).get(name)


def come(store: Store, clock: StoreClock, name: str = "nightly", late: float = 1.0) -> datetime:
    """Its next tick is over by so many seconds; which one that is."""
    schedule = seen(store, name)
    assert schedule.next_tick is not None
    clock.advance((schedule.next_tick - schedule.now + timedelta(seconds=late)).total_seconds())
    return schedule.next_tick


def fired(store: Store, name: str = "nightly") -> list[FiringRecord]:
    """The oldest first."""
    return store.firings(seen(store, name).number, limit=1000)[::-1]


def outcomes(store: Store, name: str = "nightly") -> list[str]:
    return [firing.outcome for firing in fired(store, name)]
