"""What `health.check` asks beside the obvious: is one thing in trouble, although everything answers?

Each check is one bounded question, and silent while all is well. Fatal is what keeps jobs from ending although
a worker lives that could end them: a database that cannot be written, a role that fails on every worker, a rescue
that no worker carries out. The rest concerns single things, and warns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from unstuck import clock
from unstuck.model.dead_letters import sentence_of
from unstuck.model.errors import StoreError, UnknownJob
from unstuck.model.job import JobRecord, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.schedules import SILENT_AFTER
from unstuck.model.spelling import ending_session
from unstuck.model.times import Times
from unstuck.model.why import Why
from unstuck.model.why.codes import Code
from unstuck.model.why.facts import settle_of
from unstuck.model.wording import age, count, duration
from unstuck.observe.why import holding
from unstuck.observe.why import why as ask_why
from unstuck.operations.table import Caller
from unstuck.store.port import ClockStand, JobFilter, Overdue, Waiting
from unstuck.views.health import CheckView
from unstuck.views.workers import RoleView, WorkerView

#: Seconds. Our own transactions are over in milliseconds, the slowest within a store call.
HOLDS_TOO_LONG = 2.0
#: What fails for so long on every worker will not pass with the next try.
FAILS_TOO_LONG = 10.0
#: So many entries are more than a claim and a sweep work off by the way.
FULL_INBOX = 10_000
#: Lists are looked at so far.
LOOK = 100
#: So many kinds of waiting jobs are asked why.
ASKED = 5
#: Seconds for which a leap of the clock is told.
LEAP_IS_NEWS = 86400.0
#: A clock that runs too fast is a second off, and a little more, whenever that is noticed. In seconds.
CREEPS = 2.0

#: Codes that mean a fault, and not a pause, a limit or a timer: somebody must look.
TROUBLES = frozenset(
    {
        Code.ROW_LOCKED,
        Code.QUARANTINED,
        Code.WORKER_FAILING,
        Code.ENGINE_STALLED,
        Code.UNPLACED,
        Code.NO_WORKER,
        Code.WORKER_LACKS_CODE,
        Code.APP_NOT_LOADED,
    }
)


#: Roles that only tell, tidy up or share, and those about a single job: without them all others go their way.
_TIDY = (
    *("janitor/alerts", "janitor/enqueued", "janitor/pauses", "janitor/retention", "janitor/series"),
    *("janitor/unread", "claim/schedules", "claim/weights", settle_of(0)[:-1]),
)


def answered(name: str, ok: bool, detail: str, *, fatal: bool = True) -> CheckView:
    return CheckView(name=name, ok=ok, detail=detail, fatal=fatal)


def late(times: Times) -> float:
    """A sweep that is due may take its time; three of them may not."""
    return 3 * times.sweep + times.lost_grace + times.store_call


# --- the database -------------------------------------------------------------------------------------------------


def locks(caller: Caller) -> Iterator[CheckView]:
    """First of all: it reads no table of ours, and explains why the other checks cannot."""
    held = caller.store.lock_holders(HOLDS_TOO_LONG)
    if held:
        more = f" (and {count(len(held) - 1, 'session')} more)" if len(held) > 1 else ""
        remedy = f"end its transaction, or as the last resort: {ending_session(held[0].session.pid)}"
        yield answered("locks", False, f"{holding(held[0])}{more}; {remedy}", fatal=False)


def writes(caller: Caller) -> Iterator[CheckView]:
    """Reads may go on while nothing can be written: SQLite has one writer, and who it is stands in the error."""
    before = clock.boot()
    try:
        caller.store.probe()
    except StoreError as error:
        waited = duration(clock.boot() - before)
        yield answered("writes", False, f"nothing could be written for {waited}: {error}")


def leaps(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """As long as it is news, or the times that we show are not the clock's."""
    if (told := leapt(caller, now)) is not None:
        yield answered("clock", False, told, fatal=False)


def leapt(caller: Caller, now: datetime) -> str | None:
    stand = caller.store.clock_stand()
    if stand.leapt_at is None:
        return None
    is_news = (now - stand.leapt_at).total_seconds() < LEAP_IS_NEWS
    if not is_news and not stand.ahead:
        return None
    where = "forward" if stand.leap > 0 else "back"
    often = f", the last of {stand.leaps:,} leaps" if stand.leaps > 1 else ""
    told = (
        f"the database's clock leapt {_length(stand.leap)} {where} {age(stand.leapt_at, now)}"
        f" (noticed by {stand.noticed}{often}); nobody was charged, delays and leases keep their distance"
        f"{_creeping(stand)}"
    )
    if abs(stand.ahead) < 1:
        return told
    aside = "ahead of" if stand.ahead > 0 else "behind"
    return f"{told}; times shown here are {_length(stand.ahead)} {aside} that clock"


def _creeping(stand: ClockStand) -> str:
    """What nobody sets by hand, and comes again, is no step of the clock."""
    if stand.leaps < 2 or abs(stand.leap) >= CREEPS:
        return ""
    return f"; leaps as small as that, again and again: it runs too {'fast' if stand.leap > 0 else 'slow'}"


def _length(seconds: float) -> str:
    """How far it leapt; what was measured over a network is not exact."""
    return duration(abs(seconds) if abs(seconds) < 10 else round(abs(seconds)))


# --- the engine ---------------------------------------------------------------------------------------------------


def roles(alive: Sequence[WorkerView]) -> Iterator[CheckView]:
    """What workers say that they cannot do."""
    failing = {worker.name: worker.roles for worker in alive}
    told = [(name, role) for name, found in failing.items() for role in found]
    if not told:
        return
    everywhere = {role.name for _, role in told if all(_fails(found, role.name) for found in failing.values())}
    for_good = {name for name in everywhere if _moves_jobs(name)}
    told.sort(key=lambda each: (each[1].name not in for_good, each[1].name not in everywhere, -each[1].failing_ms))
    name, role = told[0]
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    where = "every worker" if role.name in everywhere and len(alive) > 1 else f"worker {name}"
    detail = f"{role.name} has failed on {where} for {duration(role.failing_ms / 1000)}: {role.error}{more}"
    yield answered("roles", False, f"{detail}: unstuck workers", fatal=bool(for_good))


def _moves_jobs(role: str) -> bool:
    """Whether jobs stay where they are without it."""
    return not role.startswith(_TIDY)


def _fails(found: Sequence[RoleView], name: str) -> bool:
    return any(role.name == name and role.failing_ms >= FAILS_TOO_LONG * 1000 for role in found)


_LATE = {
    "lost": "job {job} of worker {worker}, whose lease ended {ago}, is RUNNING still: nobody recovers it",
    "backstop": "job {job} on worker {worker} should have ended {ago} at the latest: nobody judges it",
    "start": "job {job} was due {ago}: no sweep brings it into the queue",
    "expire": "job {job} should have expired {ago}: no sweep ends it",
    "wait": "job {job} should have been woken {ago}: no sweep does",
}


def sweeps(caller: Caller, now: datetime) -> Iterator[CheckView]:
    times = caller.times
    found = caller.store.overdue(late(times), times.kill_grace + times.lease)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield answered("sweeps", False, f"{_told(caller, found[0], now)}{more}: unstuck workers")


def _told(caller: Caller, found: Overdue, now: datetime) -> str:
    """Another tenant's job is not named."""
    job = found.job if found.job and caller.own in (None, found.tenant) else "of another tenant"
    return _LATE[found.what].format(job=job, worker=found.worker, ago=age(found.due_at, now))


def inbox(caller: Caller, now: datetime) -> Iterator[CheckView]:
    stand, times = caller.store.inbox_stand(FULL_INBOX), caller.times
    if stand.since_at is None:
        return
    is_old = (now - stand.since_at).total_seconds() > late(times)
    if is_old or stand.entries >= FULL_INBOX:
        number = f"{stand.entries:,}{'+' if stand.entries >= FULL_INBOX else ''}"
        said = f"{number} {'entry' if stand.entries == 1 else 'entries'}, the oldest {age(stand.since_at, now)}"
        yield answered("inbox", False, f"{said}: targets and dependants wait to be looked at", fatal=False)


# --- single things ------------------------------------------------------------------------------------------------


def schedules(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Those whose tick nobody fires, or whose ticks make no job."""
    found = caller.store.silent_schedules(caller.own, late(caller.times), limit=LOOK)
    if found:
        first = found[0]
        what = (
            f"made no job at its last {count(first.quiet, 'tick')}"
            if first.quiet >= SILENT_AFTER
            else f"should have fired {age(first.due_at, now)}: nobody does"
        )
        remedy = f"unstuck schedules firings {first.name}"
        yield answered(
            "schedules", False, f"{_many(len(found))} silent, first {first.name}: it {what}: {remedy}", fatal=False
        )


def quarantine(caller: Caller, now: datetime) -> Iterator[CheckView]:
    found = caller.store.quarantined(caller.own, limit=LOOK)
    if found:
        first = min(found, key=lambda each: each.since_at)
        what = f"target {first.target}" if first.duty == "target" else f"job {first.job}"
        oldest = f"{what} ({first.duty}) {age(first.since_at, now)}: {_line(first.error)}"
        yield answered(
            "quarantine", False, f"{_many(len(found))} set aside, first {oldest}: unstuck quarantine", fatal=False
        )


def dead_letters(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Counted as far as the metrics count, with the reason of the oldest."""
    found = [stand for stand in caller.store.trouble_stands(caller.own) if stand.what == "dead_letters"]
    if found:
        first = min(found, key=lambda stand: stand.since_at or now)
        number = sum(stand.number for stand in found)
        oldest = f"the oldest {age(first.since_at, now)}: {first.kind}, {sentence_of(first.kind)}"
        yield answered("dead_letters", False, f"{number:,}, {oldest}: unstuck dead-letters", fatal=False)


def notifications(caller: Caller, now: datetime) -> Iterator[CheckView]:
    found = caller.store.notifications(caller.own, limit=LOOK)
    if found:
        newest = f"{found[0].title} {age(found[0].at, now)}"
        detail = f"{_many(len(found))} that nobody took note of, the newest: {newest}: unstuck notifications"
        yield answered("notifications", False, detail, fatal=False)


def _many(number: int) -> str:
    return f"{number}{'+' if number == LOOK else ''}"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else line[:199] + "…"


# --- the queue ----------------------------------------------------------------------------------------------------


def queue(caller: Caller, has_room: bool, now: datetime) -> CheckView:
    """The oldest job that is due. After some polls it must have started, if a slot is free and no gate is shut."""
    oldest = caller.store.jobs(caller.one, JobFilter(states=(JobState.QUEUED,), newest_first=False), LOOK).jobs
    due = sorted((job for job in oldest if job.available_at <= now), key=lambda job: job.available_at)
    if not due:
        return answered("queue", True, "nobody waits")
    first = due[0]
    times = caller.times
    patience = 3 * times.poll + times.store_call
    for job in _of_each_kind(due) if has_room else ():
        if _waited(job, now) <= patience or (why := _why(caller, job.id)) is None:
            continue
        if why.state is JobState.QUEUED and (why.is_runnable or why.codes[0] in TROUBLES):
            told = f"due for {duration(_waited(job, now))} and nobody took it: {job.workflow} {job.id}"
            return answered("queue", False, f"{told}: {why.verdict}", fatal=False)
    waited = _waited(first, now)
    detail = f"the oldest due job waits {duration(waited)}: {first.workflow} {first.id}"
    if not times.queued_alert or waited < times.queued_alert:
        return answered("queue", True, detail, fatal=False)
    found = _why(caller, first.id)
    return answered("queue", False, f"{detail}: {found.verdict if found else 'it has ended meanwhile'}", fatal=False)


def unclaimed(
    caller: Caller, waiting: Sequence[Waiting], workers: Sequence[WorkerRecord], now: datetime
) -> frozenset[str]:
    """Of the oldest of each kind, those that no gate keeps from running, or only a fault, although slots are free:
    somebody should have claimed them by now."""
    if not any(WorkerView.of(worker, now, whole=False).has_room for worker in workers):
        return frozenset()
    kinds: dict[tuple[str, str, str], Waiting] = {}
    for job in waiting:
        if (now - job.since).total_seconds() > late(caller.times):
            kinds.setdefault((job.tenant, job.queue, job.workflow), job)
    found = {
        job.id for job in list(kinds.values())[:ASKED] if _is_unclaimed(replace(caller, tenant=job.tenant), job.id)
    }
    return frozenset(found)


def _is_unclaimed(caller: Caller, job: str) -> bool:
    why = _why(caller, job)
    return why is not None and why.state is JobState.QUEUED and (why.is_runnable or why.codes[0] in TROUBLES)


def _of_each_kind(due: Sequence[JobRecord]) -> list[JobRecord]:
    """The oldest of each queue, workflow and target: one that is paused must not hide the others."""
    kinds: dict[tuple[str, str, str | None], JobRecord] = {}
    for job in due:
        kinds.setdefault((job.queue, job.workflow, job.target), job)
    return list(kinds.values())[:ASKED]


def _waited(job: JobRecord, now: datetime) -> float:
    return (now - job.available_at).total_seconds()


def _why(caller: Caller, job: str) -> Why | None:
    """None: it was forgotten since."""
    try:
        return ask_why(caller.store, caller.one, job, caller.times)
    except UnknownJob:
        return None
