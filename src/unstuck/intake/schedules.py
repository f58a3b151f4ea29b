"""Schedules: what runs by the clock; checked at the door, kept by the store, fired by janitors. How a tick becomes a
job is here too, the same for a tick, for "now" and for a range that is made up for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, get_args

from unstuck.intake.schema import pack
from unstuck.intake.signing import SigningDoor
from unstuck.intake.submit import Options, RoutedWorkflow, Submitter, Unsaid
from unstuck.model import schedules
from unstuck.model.errors import Conflict, InvalidInput, OutcomeUnknown, UnknownSchedule, UnknownWorkflowName, quoted
from unstuck.model.job import DEFAULT_TENANT, NewJob
from unstuck.model.payload import check_instant, check_name, check_wording, encode, plain_text
from unstuck.model.schedules import TAG, Overlap, ScheduleSpec
from unstuck.signing import NO_KEYS, SigningKeys
from unstuck.store.port import FiringRecord, NewFiring, ScheduleRecord, Store

#: One call makes up for so many ticks.
MOST_BACKFILLED = 1000
_MOST_LISTED = 1000
_TRIES = 5
_SPEC = frozenset(each.name for each in fields(ScheduleSpec))


class ScheduleVerbs:
    """Schedules of one tenant; `by` goes into the audit."""

    def __init__(
        self,
        store: Store,
        *,
        tenant: str = DEFAULT_TENANT,
        by: str = "app",
        max_timeout: float | None = None,
        signing: SigningKeys = NO_KEYS,
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._by = by
        self._max_timeout = max_timeout
        self._door = SigningDoor(signing, store)

    def create(self, name: str, workflow: str, **said: Any) -> ScheduleRecord:
        named = check_schedule_name(name)
        spec = self._checked(named, spec_of(workflow=check_name(workflow, "workflow"), **said))
        return self._store.create_schedule(self._tenant, named, spec, self._by)

    def update(self, name: str, **said: Any) -> ScheduleRecord:
        """What is not said stays as it stands. A change that meets another one is made upon that."""
        for _ in range(_TRIES):
            found = self.get(name)
            spec = self._checked(found.name, changed(found.spec, said))
            try:
                return self._store.change_schedule(self._tenant, found.name, spec, self._by, found.version)
            except Conflict:
                if self.get(name).version == found.version:
                    raise
        raise Conflict(f"schedule {name} is changed by others all the time; try again")

    def _checked(self, name: str, spec: ScheduleSpec) -> ScheduleSpec:
        """With the arguments of its next tick: what no call could be is told now, and not at three in the night."""
        now = self._store.now()
        checked = schedules.checked(spec, now, self._store.schedule_rules())
        job_of(self._store, self._tenant, name, checked, now, self._max_timeout)
        return checked

    def delete(self, name: str) -> ScheduleRecord:
        return self._store.delete_schedule(self._tenant, plain_text(name), self._by)

    def pause(
        self, name: str, *, lasting: float | None = None, until: datetime | None = None, reason: str | None = None
    ) -> ScheduleRecord:
        found, end = self.get(name), None
        if lasting is not None and until is not None:
            raise InvalidInput("a pause takes seconds=… or until=…, not both")
        if lasting is not None:
            end = found.now + timedelta(seconds=lasting)
        elif until is not None:
            end = check_instant(until, "until")
            if end <= found.now:
                raise InvalidInput(f"a pause until {end.isoformat()} would have ended already")
        why = check_wording(reason, "reason")
        return self._store.pause_schedule(self._tenant, found.name, self._by, until=end, reason=why)

    def resume(self, name: str) -> ScheduleRecord:
        return self._store.resume_schedule(self._tenant, plain_text(name), self._by)

    def get(self, name: str) -> ScheduleRecord:
        found = self._store.schedule(self._tenant, plain_text(name)) if isinstance(name, str) else None
        if found is None:
            raise UnknownSchedule(name)
        return found

    def next(self, name: str, count: int) -> list[datetime]:
        """Its next ticks; of a paused one those after its pause, if that has an end."""
        found = self.get(name)
        if found.next_tick is None:
            return []
        return list(islice(schedules.ticks(found.spec, found.next_tick - timedelta(microseconds=1)), count))

    # --- ticks that somebody asks for -----------------------------------------------------------------------------
    def run_now(self, name: str) -> FiringRecord:
        """As its next tick would, besides it. What a submit refuses is raised; by its overlap rule it may be
        skipped."""
        for _ in range(_TRIES):
            found = self.get(name)
            # Between the ticks, which are whole milliseconds: it takes the place of none of them.
            at = found.now.replace(microsecond=found.now.microsecond | 1)
            if (fired := self._fire(NewFiring(found, at, "run_now", "fired", by=self._by, told={}))) is not None:
                return fired
        raise Conflict(f"schedule {name} is changed by others all the time; try again")

    def backfill(
        self, name: str, since: datetime, until: datetime, overlap: Overlap | None = None
    ) -> list[FiringRecord]:
        """A job for each tick of a range, its ends included, that made none: before the schedule was there, or
        because it was missed, skipped, refused or paused. One after the other, unless the schedule lets them overlap
        or `overlap` says otherwise."""
        if overlap is not None and overlap not in get_args(Overlap):
            raise InvalidInput(f"overlap={quoted(overlap)} is not one of {', '.join(get_args(Overlap))}")
        found = self.get(name)
        since, until = check_instant(since, "since"), check_instant(until, "until")
        if until > found.now:
            raise InvalidInput(f"until={until.isoformat()} is not over yet; a backfill is about ticks of the past")
        how: Overlap = overlap or ("allow" if found.spec.overlap == "allow" else "queue")
        wanted = schedules.between(replace(found.spec, begin_at=_anchor(found.spec)), since, until, MOST_BACKFILLED)
        if len(wanted) > MOST_BACKFILLED:
            raise InvalidInput(
                f"that range has more than {MOST_BACKFILLED} ticks, the most that one call makes up for; the next "
                f"begins at {wanted[-1].isoformat()}"
            )
        fired: list[FiringRecord] = []
        for tick in wanted:
            for _ in range(_TRIES):
                # One line of audit for all of them, with the first that makes a job.
                told = None if fired else {"since": since.isoformat(), "until": until.isoformat()}
                made = self._fire(NewFiring(found, tick, "backfill", "fired", overlap=how, by=self._by, told=told))
                if made is not None or (newer := self.get(name)).version == found.version:
                    break  # or it has its job already
                found = newer
            if made is not None:
                fired.append(made)
        return fired

    def _fire(self, firing: NewFiring) -> FiringRecord | None:
        schedule = firing.schedule
        spec = schedule.spec if firing.overlap is None else replace(schedule.spec, overlap=firing.overlap)
        job = job_of(self._store, self._tenant, schedule.name, spec, firing.tick, self._max_timeout)
        whole = replace(firing, job=self._door.made(job, "schedule"))
        try:
            return self._store.fire(whole)
        except OutcomeUnknown:  # under the same key: a second one finds the first
            return self._store.fire(whole)


def _anchor(spec: ScheduleSpec) -> datetime | None:
    """A range may lie before the schedule begins; an interval still counts from there."""
    return spec.begin_at if spec.every is not None else None


def check_schedule_name(name: Any) -> str:
    named = check_name(name, "schedule")
    if len(named) > schedules.MOST_NAME:
        raise InvalidInput(f"schedule {quoted(named)} has a name of more than {schedules.MOST_NAME} characters")
    return named


def spec_of(**said: Any) -> ScheduleSpec:
    """What is None was not said. Its kinds are checked; the rest by `schedules.checked`."""
    return changed(ScheduleSpec(""), {name: value for name, value in said.items() if value is not None})


def changed(spec: ScheduleSpec, said: Mapping[str, Any]) -> ScheduleSpec:
    """What is not said stays. A cron line takes the place of an interval, and the other way round."""
    new = {name: value for name, value in said.items() if not isinstance(value, Unsaid)}
    if unknown := sorted(set(new) - _SPEC):
        raise InvalidInput(f"there is no option {unknown[0]} of a schedule; known: {', '.join(sorted(_SPEC))}")
    if new.get("cron") is not None and "every" not in new:
        new["every"] = None
    if new.get("every") is not None and "cron" not in new:
        new["cron"] = None
    usual = ScheduleSpec("")
    for name in ("zone", "priority", "overlap", "catch_up", "catch_up_most", "jitter"):
        if name in new and new[name] is None:
            new[name] = getattr(usual, name)
    if "args" in new:
        new["args"] = _listed(new["args"], "args")
    if "tags" in new:
        tags = new["tags"]
        new["tags"] = (tags,) if isinstance(tags, str) else _listed(tags, "tags")
    for name in ("kwargs", "policy"):
        if name in new and not isinstance(new[name] or {}, Mapping):
            raise InvalidInput(f"{name}={quoted(new[name])} is not a mapping")
        if name in new:
            new[name] = dict(new[name] or {})
    found = replace(spec, **{name: plain_text(value) for name, value in new.items()})
    encode({"args": list(found.args), "kwargs": dict(found.kwargs)}, f"the arguments of {found.workflow}")
    return found


def _listed(given: Any, what: str) -> tuple[Any, ...]:
    if given is None:
        return ()
    if not isinstance(given, list | tuple):
        raise InvalidInput(f"{what}={quoted(given)} is not a list")
    return tuple(given)


# --- a tick's job -------------------------------------------------------------------------------------------------


def job_of(
    store: Store,
    tenant: str,
    name: str,
    spec: ScheduleSpec,
    tick: datetime,
    max_timeout: float | None = None,
    known: RoutedWorkflow | None = None,
) -> NewJob:
    """Checked as any submit is: by the row of its workflow, or by the code itself (`known`)."""
    workflow = known or store.workflow(spec.workflow, tenant)
    if workflow is None:
        raise UnknownWorkflowName(spec.workflow, {each.name for each in store.workflows(tenant)})
    kwargs = dict(spec.kwargs)
    if spec.tick_as is not None:
        kwargs[spec.tick_as] = tick.astimezone(UTC).isoformat()
    payload = pack(workflow.name, workflow.schema, spec.args, kwargs)
    options = _options(name, spec, workflow)
    return Submitter(store, tenant=tenant, max_timeout=max_timeout).job(workflow, payload, options)


def _options(name: str, spec: ScheduleSpec, workflow: RoutedWorkflow) -> Options:
    said: dict[str, Any] = {"priority": spec.priority, "tags": (*spec.tags, f"{TAG}{name}"), **spec.policy}
    if spec.queue is not None:
        said["queue"] = spec.queue
    if spec.target is not None:
        said["target"] = spec.target
    elif spec.overlap in ("queue", "cancel") and workflow.target is None:
        # One body at a time. A failure is in nobody's way: the next tick is another call.
        said |= {"target": f"{TAG}{name}", "on_failure": spec.policy.get("on_failure", "continue")}
    strays = sorted(
        set(spec.policy) & {"priority", "tags", "queue", "target", "key", "id", "after", "delay", "at", "hold"}
    )
    if strays:
        raise InvalidInput(f"{strays[0]} is not an option of a policy")
    return Options().with_(**said)
