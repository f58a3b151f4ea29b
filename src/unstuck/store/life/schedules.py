"""Schedules: how they are kept, and how a tick becomes a job once.

Theory of operation. A schedule's row says which tick comes next and when that is due. Whoever fires it locks the row,
sees that it still stands as it was when it was planned (its version and its next tick), writes the firing under the
key of schedule and tick, stores the job and moves the row on to the tick after it: one transaction. So whoever dies
leaves all of it or nothing, and two that fire at once are one: the second finds the row locked, or moved on, or the
key taken. There is no leader, and nobody waits for anybody.

An edit is a new version: what was planned by the old one finds that out under the lock, and is planned again. What an
edit changes about the ticks counts from the instant of the edit, and never from before the last tick that was decided
about. A schedule that its code declares no more keeps its row, for a rollback.

Overlap. A firing whose job may not have ended is *open*. `skip` makes no job while there is one. `queue` and `cancel`
rely on a target: one body at a time, and the next starts when the one before it is really gone (its body mark too).
The jobs that `cancel` is to stop are asked behind the commit, by what the firing's row says, until that is done.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from unstuck.model import schedules as rules_of_ticks
from unstuck.model.alerts import RULES
from unstuck.model.errors import (
    Conflict,
    DeclaredByCode,
    ScheduleExists,
    TooManySchedules,
    UnknownSchedule,
)
from unstuck.model.guard import schedule_rules_of
from unstuck.model.job import NewJob
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import clean_text
from unstuck.model.schedules import SILENT_AFTER, Overlap, ScheduleRules, ScheduleSpec, ScheduleState, next_tick
from unstuck.model.spelling import about, given, screen
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit
from unstuck.store.life import news, submit
from unstuck.store.life.changes import MAX_MESSAGE, ahead_of, moment
from unstuck.store.order.name_ids import Numbers
from unstuck.store.port import FiringRecord, NewFiring, Overlapped, ScheduleRecord
from unstuck.store.rows import instant, instant_or_none, microseconds, span
from unstuck.telemetry import emit

_LAST = 1 << 62
#: Open firings that one look goes through.
MOST_OPEN = 1000
#: So many are counted for the metrics.
MOST_COUNTED = 100_000
SILENT = RULES["schedule_silent"].title
UNREADABLE = (ValueError, TypeError, AttributeError)
_MICROSECOND = timedelta(microseconds=1)


def rules(t: Transaction) -> ScheduleRules:
    """Read in the transaction that goes by them."""
    return schedule_rules_of((row["name"], row["value"]) for row in t.all("settings_set"))


# --- what people ask ----------------------------------------------------------------------------------------------


def create(
    t: Transaction, tenant: str, name: str, spec: ScheduleSpec, by: str, owner: str | None = None
) -> ScheduleRecord:
    """By a person, or (`owner`) for the code of an app. One that was removed makes room."""
    in_force = rules(t)
    row = t.one("lock_schedule", tenant=tenant, name=name)
    if row is not None and row["removed_at"] is None:
        raise ScheduleExists(name, row["owner"])
    counted = t.one("count_schedules", tenant=tenant)
    if counted is not None and counted["schedules"] >= in_force.most:
        raise TooManySchedules(tenant, in_force.most)
    who = clean_text(by, 200)
    if row is not None:
        change(t, row, spec, who, owner)
    else:
        _add(t, tenant, name, spec, who, owner, in_force)
    if owner is None:
        audit.note(t, who, "schedules.create", name, tenant, _told(spec))
    return record_of(_row(t, tenant, name))


def _add(
    t: Transaction, tenant: str, name: str, spec: ScheduleSpec, by: str, owner: str | None, in_force: ScheduleRules
) -> None:
    clock = {"now": moment(t), "ahead": ahead_of(t)}
    checked = rules_of_ticks.checked(spec, _clock(clock, spec), in_force)
    facts = {"tenant": tenant, "name": name, "owner": owner, "workflow": checked.workflow, "body": checked.to_json()}
    if t.one("add_schedule", **facts, by=by) is None:
        raise ScheduleExists(name, None)  # at this instant, by somebody else
    row = _row(t, tenant, name)
    _expect(t, row, checked, _clock(row, checked) - _MICROSECOND)


def update(t: Transaction, tenant: str, name: str, spec: ScheduleSpec, by: str, seen: int | None) -> ScheduleRecord:
    row = _locked(t, tenant, name)
    if row["owner"] is not None:
        raise DeclaredByCode(name, row["owner"])
    if seen is not None and row["version"] != seen:
        look = about("unstuck schedules show", name)
        raise Conflict(f"schedule {name} was changed meanwhile; look at it again: {look}")
    who = clean_text(by, 200)
    change(t, row, spec, who, None)
    audit.note(t, who, "schedules.update", name, tenant, _told(spec))
    return record_of(_row(t, tenant, name))


def change(t: Transaction, row: Row, spec: ScheduleSpec, by: str, owner: str | None) -> None:
    """A new version of a schedule that this transaction has locked."""
    checked = rules_of_ticks.checked(spec, _clock(row, spec), rules(t))
    was = record_of(row).spec
    body, number = checked.to_json(), row["id"]
    t.run("change_schedule", number=number, owner=owner, workflow=checked.workflow, body=body, by=by)
    if row["removed_at"] is not None or checked.when != was.when or checked.jitter != was.jitter:
        now = _clock(row, checked)
        keeps = checked.when == was.when and row["removed_at"] is None and row["next_tick"] is not None
        _expect(t, row, checked, instant(row["next_tick"]) - _MICROSECOND if keeps else now)


def remove(t: Transaction, row: Row, by: str) -> None:
    t.run("remove_schedule", number=row["id"], by=clean_text(by, 200))


def delete(t: Transaction, tenant: str, name: str, by: str) -> ScheduleRecord:
    row = _locked(t, tenant, name)
    if row["owner"] is not None:
        raise DeclaredByCode(name, row["owner"])
    t.run("forget_cancels", number=row["id"])
    t.run("delete_schedule", number=row["id"])
    audit.note(t, by, "schedules.delete", name, tenant, _told(record_of(row).spec))
    return replace(record_of(row), removed_at=instant(row["now"]), next_tick=None, due_at=None)


def pause(
    t: Transaction, tenant: str, name: str, by: str, until: datetime | None, reason: str | None
) -> ScheduleRecord:
    row = _locked(t, tenant, name)
    why = clean_text(reason, MAX_MESSAGE) if reason else None
    end = None if until is None else microseconds(until)
    who = clean_text(by, 200)
    t.run("pause_schedule", number=row["id"], until=end, by=who, reason=why)
    spec = record_of(row).spec
    _expect(t, {**row, "paused_at": row["now"], "paused_until": end}, spec, _clock(row, spec))
    told = {"until": None if until is None else until.isoformat(), "reason": why}
    audit.note(t, who, "schedules.pause", name, tenant, told)
    facts = {"schedule": name, "by": who, **told}
    news.tell(t, [NewsItem(NewsKind.SCHEDULE_PAUSED, facts, tenant, workflow=row["workflow"])])
    return record_of(_row(t, tenant, name))


def resume(t: Transaction, tenant: str, name: str, by: str) -> ScheduleRecord:
    """The ticks of the pause are not made up for."""
    row = _locked(t, tenant, name)
    record = record_of(row)
    if record.is_paused:
        t.run("unpause_schedule", number=row["id"])
        _expect(t, {**row, "paused_at": None, "paused_until": None}, record.spec, record.now)
        audit.note(t, by, "schedules.resume", name, tenant)
        facts = {"schedule": name, "by": clean_text(by, 200)}
        news.tell(t, [NewsItem(NewsKind.SCHEDULE_RESUMED, facts, tenant, workflow=row["workflow"])])
    return record_of(_row(t, tenant, name))


def one(t: Transaction, tenant: str, name: str) -> ScheduleRecord | None:
    row = t.one("schedule", tenant=tenant, name=name)
    return None if row is None or row["removed_at"] is not None else record_of(row)


def page(t: Transaction, tenant: str | None, after: int, limit: int) -> list[ScheduleRecord]:
    return [record_of(row) for row in t.all("schedules", tenant=tenant, after=after, most=limit)]


def firings(t: Transaction, schedule: int, before: int | None, limit: int) -> list[FiringRecord]:
    rows = t.all("firings", number=schedule, before=before or _LAST, most=limit)
    return [firing_of(row) for row in rows]


def silent(t: Transaction, tenant: str | None, late: float, limit: int) -> list[ScheduleRecord]:
    rows = t.all("silent_schedules", tenant=tenant, late=span(late), quiet=SILENT_AFTER, most=limit)
    return [record_of(row) for row in rows]


def states(t: Transaction, tenant: str | None) -> dict[ScheduleState, int]:
    """As `ScheduleRecord.state` has it."""
    rows = t.all("schedule_states", tenant=tenant, looked=MOST_COUNTED)
    return {ScheduleState(row["state"]): int(row["schedules"]) for row in rows}


# --- ticks --------------------------------------------------------------------------------------------------------


def next_in(t: Transaction) -> float | None:
    row = t.one("next_schedule")
    assert row is not None
    if row["has_cancels"]:
        return 0.0
    return None if row["due_at"] is None else max(0, row["due_at"] - row["now"]) / 1_000_000


def due(t: Transaction, batch: int) -> list[ScheduleRecord]:
    """One that cannot be read keeps no other from its turn; lists show it, and health tells that nobody fires it."""
    found = []
    for row in t.all("due_schedules", batch=batch):
        try:
            found.append(record_of(row, ScheduleSpec.from_json(row["body"])))
        except UNREADABLE as problem:
            emit("schedule_unreadable", level=logging.WARNING, schedule=row["name"], problem=repr(problem))
    return found


def fire(t: Transaction, firing: NewFiring, numbers: Numbers | None, key_life: float) -> FiringRecord | None:
    """`numbers`: what its job refers to; None: it has none."""
    seen, is_tick = firing.schedule, firing.kind == "tick"
    row = t.one("lock_free_schedule", number=seen.number) if is_tick else _still(t, seen)
    if row is None or row["version"] != seen.version or row["removed_at"] is not None:
        return None
    if is_tick and row["next_tick"] != microseconds(firing.first or firing.tick):
        return None
    decided, job, cancels = _overlapped(t, row, firing)
    added = t.one(
        "add_firing",
        schedule=seen.number,
        tick=microseconds(decided.tick),
        kind=decided.kind,
        outcome=decided.outcome,
        by=None if decided.by is None else clean_text(decided.by, 200),
        version=row["version"],
        job=None if job is None else job.id,
        reason=None if decided.reason is None else clean_text(decided.reason, MAX_MESSAGE),
        ticks=decided.ticks,
        first_tick=microseconds(decided.first or decided.tick),
        cancels=int(cancels),
        again=int(decided.kind == "backfill"),
    )
    if added is not None and job is not None:
        assert numbers is not None
        submit.submit(t, [job], numbers, key_life)
    if is_tick:
        _move_on(t, row, seen.spec, decided)
    elif added is not None and decided.told is not None:
        told = {**decided.told, "job": None if job is None else job.id, "reason": decided.reason}
        audit.note(t, decided.by or "?", f"schedules.{decided.kind}", seen.name, seen.tenant, told)
    if added is None:
        return None
    found = t.one("firing", number=seen.number, tick=microseconds(decided.tick))
    assert found is not None
    _tell(t, row, decided, None if job is None else found["job"])
    return firing_of(found)


def _tell(t: Transaction, row: Row, firing: NewFiring, job: str | None) -> None:
    """What came of a tick, in the feed; about its job, where it made one."""
    told: dict[str, Any] = {"schedule": row["name"], "tick": firing.tick.isoformat(), "firing": firing.kind}
    told |= {"by": None if firing.by is None else clean_text(firing.by, 200)}
    if job is not None:
        placed = t.one("job", tenant=row["tenant"], uid=job)
        number = None if placed is None else placed["number"]
        news.tell(t, [NewsItem(NewsKind.SCHEDULE_FIRED, told, row["tenant"], workflow=row["workflow"], job=number)])
        return
    reason = None if firing.reason is None else clean_text(firing.reason, MAX_MESSAGE)
    told |= {"outcome": firing.outcome, "reason": reason, "ticks": firing.ticks if firing.ticks > 1 else None}
    news.tell(t, [NewsItem(NewsKind.SCHEDULE_NOT_FIRED, told, row["tenant"], workflow=row["workflow"])])


def _still(t: Transaction, seen: ScheduleRecord) -> Row | None:
    """A person waits for whoever fires it at this moment."""
    row = t.one("lock_schedule", tenant=seen.tenant, name=seen.name)
    return row if row is not None and row["id"] == seen.number else None


def _overlapped(t: Transaction, row: Row, firing: NewFiring) -> tuple[NewFiring, NewJob | None, bool]:
    """What becomes of it and its job while earlier jobs of the schedule have not ended, and whether those are to be
    asked to stop."""
    job = firing.job
    if job is None:
        return firing, None, False
    overlap: Overlap = firing.overlap or firing.schedule.spec.overlap
    if overlap == "allow":
        return firing, job, False
    t.run("close_firings", number=row["id"])
    before = t.all("open_firings", number=row["id"], most=MOST_OPEN)
    if not before:
        return firing, job, False
    if overlap == "skip":
        newest = before[0]
        state = "a body of it may still run" if newest["has_ended"] else "it has not ended"
        told = f"job {newest['job']} of {instant(newest['tick']).isoformat()} is in its way: {state}"
        return replace(firing, outcome="skipped", reason=told, job=None), None, False
    # Those on another target, of an earlier version, would not be waited for by the line of this one.
    elsewhere = [each["job"] for each in before if each["target"] != job.target and not each["has_ended"]]
    if elsewhere:
        job = replace(job, after=tuple(elsewhere[: submit.MOST_AFTER]), after_failure="run")
    return firing, job, overlap == "cancel"


def _move_on(t: Transaction, row: Row, spec: ScheduleSpec, firing: NewFiring) -> None:
    quiet = {"fired": 0, "missed": row["quiet"]}.get(firing.outcome, row["quiet"] + 1)
    t.run("decide_tick", number=row["id"], tick=microseconds(firing.tick), quiet=quiet)
    _set_next(t, row, spec, firing.next_tick)
    if quiet == SILENT_AFTER and firing.outcome != "missed":
        name, tenant = row["name"], row["tenant"]
        message = (
            f"schedule {name} of tenant {tenant} made no job at its last {quiet} ticks; the last time: "
            f"{firing.reason}; what was: {about('unstuck schedules firings', name, given('--tenant', tenant))}"
        )
        audit.notify(t, SILENT, message, screen("schedules", name), "warning", tenant, row["workflow"])
        reason = None if firing.reason is None else clean_text(firing.reason, MAX_MESSAGE)
        facts = {"schedule": name, "ticks": quiet, "reason": reason}
        news.tell(t, [NewsItem(NewsKind.SCHEDULE_SILENT, facts, tenant, workflow=row["workflow"])])


def _expect(t: Transaction, row: Mapping[str, Any], spec: ScheduleSpec, after: datetime) -> None:
    """Its next tick is the first after this instant that is neither in a pause nor decided about."""
    if row["paused_at"] is not None and row["paused_until"] is None:
        _set_next(t, row, spec, None)
        return
    begin = [after]
    if row["paused_at"] is not None:
        begin.append(instant(row["paused_until"]) - _MICROSECOND)
    if row["last_tick"] is not None:
        begin.append(instant(row["last_tick"]))
    _set_next(t, row, spec, next_tick(spec, max(begin)))


def _set_next(t: Transaction, row: Mapping[str, Any], spec: ScheduleSpec, tick: datetime | None) -> None:
    if tick is None:
        t.run("expect_tick", number=row["id"], next_tick=None, appointed=None, due_at=None)
        return
    at = microseconds(tick + rules_of_ticks.delay(row["id"], tick, spec.jitter))
    is_cron = spec.cron is not None
    due_at = at + row["ahead"] if is_cron else at
    t.run(
        "expect_tick",
        number=row["id"],
        next_tick=microseconds(tick),
        appointed=at if is_cron else None,
        due_at=due_at,
    )


def overlapped(t: Transaction, batch: int, after: Overlapped | None) -> list[Overlapped]:
    firing, place = (0, 0) if after is None else (after.firing, after.place)
    rows = t.all("overlapped", batch=batch, firing=firing, place=place)
    return [Overlapped(row["firing"], row["tenant"], row["name"], row["job"], row["place"]) for row in rows]


# --- rows ---------------------------------------------------------------------------------------------------------


def _clock(row: Mapping[str, Any], spec: ScheduleSpec) -> datetime:
    """What the clock says that its rule goes by: a cron line names instants of the database's clock, an interval is a
    distance, which no leap of that clock changes."""
    return instant(row["now"] - row["ahead"] if spec.cron is not None else row["now"])


def _row(t: Transaction, tenant: str, name: str) -> Row:
    row = t.one("schedule", tenant=tenant, name=name)
    assert row is not None
    return row


def _locked(t: Transaction, tenant: str, name: str) -> Row:
    row = t.one("lock_schedule", tenant=tenant, name=name)
    if row is None or row["removed_at"] is not None:
        raise UnknownSchedule(name)
    return row


def _told(spec: ScheduleSpec) -> dict[str, Any]:
    """For the audit: without the arguments, which may be nobody's business."""
    return {k: v for k, v in json.loads(spec.to_json()).items() if k not in ("args", "kwargs")}


def record_of(row: Row, spec: ScheduleSpec | None = None) -> ScheduleRecord:
    """Of a row that was damaged nothing but its workflow: who reads it must still see the others."""
    if spec is None:
        try:
            spec = ScheduleSpec.from_json(row["body"])
        except UNREADABLE:
            spec = ScheduleSpec(row["workflow"])
    return ScheduleRecord(
        number=row["id"],
        tenant=row["tenant"],
        name=row["name"],
        owner=row["owner"],
        spec=spec,
        version=row["version"],
        created_at=instant(row["created_at"]),
        created_by=row["created_by"],
        changed_at=instant(row["changed_at"]),
        changed_by=row["changed_by"],
        removed_at=instant_or_none(row["removed_at"]),
        paused_at=instant_or_none(row["paused_at"]),
        paused_until=instant_or_none(row["paused_until"]),
        paused_by=row["paused_by"],
        pause_reason=row["pause_reason"],
        last_tick=instant_or_none(row["last_tick"]),
        next_tick=instant_or_none(row["next_tick"]),
        due_at=instant_or_none(row["due_at"]),
        quiet=row["quiet"],
        now=_clock(row, spec),
    )


def firing_of(row: Row) -> FiringRecord:
    return FiringRecord(
        number=row["id"],
        tick=instant(row["tick"]),
        kind=row["kind"],
        outcome=row["outcome"],
        at=instant(row["at"]),
        version=row["version"],
        job=row["job"],
        reason=row["reason"],
        by=row["by"],
        ticks=row["ticks"],
        first_tick=instant(row["first_tick"]),
    )


def closed(t: Transaction, firings: Sequence[int]) -> int:
    return t.run("overlap_cancelled", firings=list(firings))
