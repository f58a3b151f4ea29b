"""What `health.check` asks beside the obvious: is one thing in trouble, although everything answers?

Each check is one bounded question, and silent while all is well. Fatal is what keeps jobs from ending although
a worker lives that could end them: a database that cannot be written, a role that fails on every worker, a rescue
that no worker carries out. The rest concerns single things, and warns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from unstuck import clock
from unstuck.model.alerts import RULES, SEVERITIES
from unstuck.model.dead_letters import sentence_of
from unstuck.model.errors import StoreError
from unstuck.model.job import JobRecord, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import about, ending_session
from unstuck.model.times import Times
from unstuck.model.webhooks import WebhookState
from unstuck.model.why import Why
from unstuck.model.why.remedies import of_tenant
from unstuck.model.wording import age, count, duration
from unstuck.observe import conditions
from unstuck.observe.why import holding
from unstuck.operations.table import Caller
from unstuck.store.port import JobFilter, Overdue, Waiting
from unstuck.store.port.refused import refusal
from unstuck.views.health import CheckView
from unstuck.views.workers import RoleView, WorkerView

#: Seconds. Our own transactions are over in milliseconds, the slowest within a store call.
HOLDS_TOO_LONG = 2.0
#: What fails for so long on every worker will not pass with the next try.
FAILS_TOO_LONG = 10.0
#: So many entries are more than a claim and a sweep work off by the way.
FULL_INBOX = 10_000
#: So many places of the feed are more than webhooks are behind by the way.
WEBHOOKS_BEHIND = 10_000
#: Lists are looked at so far.
LOOK = 100
#: So many of those in trouble are named.
NAMED = 10
#: A poll takes half a minute at most.
DEAF_AFTER = timedelta(minutes=2)
#: So many kinds of waiting jobs are asked why.
ASKED = 5
#: Seconds for which a leap of the clock is told.
LEAP_IS_NEWS = 86400.0
LOOK_AT_WORKERS = "unstuck workers"


def answered(name: str, ok: bool, detail: str, *, fatal: bool = True, remedy: str | None = None) -> CheckView:
    """`detail` is told with its remedy behind it."""
    told = detail if remedy is None or detail.endswith(remedy) else f"{detail}: {remedy}"
    return CheckView(name=name, ok=ok, detail=told, fatal=fatal, remedy=remedy)


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
        yield answered("locks", False, f"{holding(held[0])}{more}; {remedy}", fatal=False, remedy=remedy)


def writes(caller: Caller) -> Iterator[CheckView]:
    """Reads may go on while nothing can be written: SQLite has one writer, and who it is stands in the error."""
    before = clock.boot()
    try:
        caller.store.probe()
    except StoreError as error:
        waited = duration(clock.boot() - before)
        yield answered("writes", False, f"nothing could be written for {waited}: {error}")
    except Exception as error:  # somebody's trigger on the one row that is written to see; other rows may fare better
        if (refused := refusal(error)) is None:
            raise
        yield answered("writes", False, f"a write to see whether one is possible failed: {refused}", fatal=False)


def leaps(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """As long as it is news, or the times that we show are not the clock's."""
    if (told := leapt(caller, now)) is not None:
        yield answered("clock", False, told, fatal=False)


def leapt(caller: Caller, now: datetime) -> str | None:
    return conditions.leapt(caller.store.clock_stand(), now, LEAP_IS_NEWS)


def schema(caller: Caller) -> CheckView:
    found, wanted = caller.store.schema_version(), caller.store.shipped_version()
    if found < wanted:
        remedy = f"unstuck db migrate{caller.repeats}"
        if found == 0:
            return answered("schema", False, "there are no tables yet; make them", remedy=remedy)
        return answered("schema", False, f"version {found} is behind this code, which needs {wanted}", remedy=remedy)
    return answered("schema", True, f"version {found}")


# --- the engine ---------------------------------------------------------------------------------------------------


def workers(found: Sequence[WorkerView], needed: bool, now: datetime, times: Times) -> Iterator[CheckView]:
    alive = [w for w in found if w.is_alive]
    lost = [w.name for w in found if w.state in ("lost", "offline", "fenced") and w.is_news(now)]
    # One that was started again under its name is as well as anybody.
    silent = [name for name in lost if name not in {w.name for w in alive}]
    # Their lease holds, but what fails there cannot be told either.
    silent += [w.name for w in alive if times.is_silent(w.heartbeat_at, w.lease_until, now)]
    broken = [w.name for w in alive if w.import_error]
    barren = [w.name for w in alive if w.start_error]
    ready = sum(w.ready for w in found)
    far = sum(w.key is not None for w in alive)
    told = f"{len(alive)} alive, {ready} ready, running {sum(w.running for w in alive)}"
    told += f", {far} at a distance" if far else ""
    yield (
        answered("workers", True, told, fatal=needed)
        if alive
        else answered("workers", False, "none alive", fatal=needed, remedy="unstuck worker")
    )
    if alive and not ready:
        yield answered("ready", False, "no worker takes new jobs: they drain, or still start", fatal=False)
    if silent:
        more = f" and {len(silent) - NAMED} more" if len(silent) > NAMED else ""
        named = f"{', '.join(silent[:NAMED])}{more}"
        yield answered("silent", False, f"{named}: no beat for too long", fatal=False, remedy=LOOK_AT_WORKERS)
    # Of one that beats; what is silent altogether is told above.
    deaf = [w for w in alive if w.polled_at is not None and w.heartbeat_at - w.polled_at > DEAF_AFTER]
    if deaf:
        first = deaf[0]
        yield answered(
            "polls",
            False,
            f"{', '.join(w.name for w in deaf[:NAMED])} beat, but the polls by which they hear of cancels are not "
            f"answered (server {first.server}, last {age(first.polled_at, now)}): does something on the way cut "
            "requests that take half a minute?",
            fatal=False,
        )
    if broken:
        yield answered("import", False, f"{', '.join(broken)} cannot import the app", remedy=LOOK_AT_WORKERS)
    if barren:
        yield answered("processes", False, f"{', '.join(barren)} cannot start them", remedy=LOOK_AT_WORKERS)


def roles(alive: Sequence[WorkerView]) -> Iterator[CheckView]:
    """What workers say that they cannot do."""
    failing = {worker.name: worker.roles for worker in alive}
    told = [(name, role) for name, found in failing.items() for role in found]
    if not told:
        return
    everywhere = {role.name for _, role in told if all(_fails(found, role.name) for found in failing.values())}
    for_good = {name for name in everywhere if conditions.moves_jobs(name)}
    told.sort(key=lambda each: (each[1].name not in for_good, each[1].name not in everywhere, -each[1].failing_ms))
    name, role = told[0]
    more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
    where = "every worker" if role.name in everywhere and len(alive) > 1 else f"worker {name}"
    detail = f"{role.name} has failed on {where} for {duration(role.failing_ms / 1000)}: {role.error}{more}"
    yield answered("roles", False, detail, fatal=bool(for_good), remedy=LOOK_AT_WORKERS)


def _fails(found: Sequence[RoleView], name: str) -> bool:
    return any(role.name == name and role.failing_ms >= FAILS_TOO_LONG * 1000 for role in found)


def sweeps(caller: Caller, now: datetime) -> Iterator[CheckView]:
    times = caller.times
    found = caller.store.overdue(late(times), times.kill_grace + times.lease)
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield answered("sweeps", False, f"{_told(caller, found[0], now)}{more}", remedy=LOOK_AT_WORKERS)


def _told(caller: Caller, found: Overdue, now: datetime) -> str:
    """Another tenant's job is not named."""
    job = found.job if found.job and caller.own in (None, found.tenant) else "of another tenant"
    return conditions.late_sentence(found, job, now)


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


def targets(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Only if some are blocked: most people use none."""
    blocked = caller.lookup.targets(blocked=True, limit=LOOK)
    if blocked:
        number = _many(len(blocked))
        since = f"the first {age(blocked[0].blocked_at, now)} by {blocked[0].blocked_by}"
        yield answered(
            "targets", False, f"{number} blocked, {since}", fatal=False, remedy="unstuck targets --blocked"
        )


def schedules(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Those whose tick nobody fires, or whose ticks make no job."""
    found = caller.store.silent_schedules(caller.own, late(caller.times), limit=LOOK)
    if found:
        first = found[0]
        what = conditions.silent_sentence(first, now)
        remedy = about("unstuck schedules firings", first.name, of_tenant(first.tenant))
        told = f"{_many(len(found))} silent, first {first.name}: it {what}"
        yield answered("schedules", False, told, fatal=False, remedy=remedy)


def secrets(caller: Caller) -> Iterator[CheckView]:
    """Of hooks, that whoever reads the database, or a copy of it, can read."""
    number, first = caller.store.clear_hooks(caller.own)
    if number:
        detail = (
            f"{count(number, 'hook')}, like {first}, with secrets in clear text: set sealing_keys, then rotate them"
        )
        yield answered("secrets", False, detail, fatal=False)


def ends(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Of the platform: jobs of those who follow ends that a full queue refused so far."""
    found = caller.store.waiting_ends(LOOK) if caller.own is None else []
    if found:
        first = min(found, key=lambda each: each.since_at)
        what = f"first {first.follower} after job {first.job}, {age(first.since_at, now)}: {_line(first.reason)}"
        yield answered("ends", False, f"{_many(len(found))} not followed yet, {what}", fatal=False)


def webhooks(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Those that were disabled because they took nothing, and those that fail; and how far behind the feed they
    are."""
    found = caller.store.failing_webhooks(caller.own, limit=LOOK)
    if found:
        disabled = [each for each in found if each.state is WebhookState.DISABLED]
        first = (disabled or found)[0]
        what = (
            f"was disabled {age(first.state_at, now)}: {_line(first.state_reason or '')}"
            if disabled
            else f"has not taken its last {first.failures:,} tries: {_line(first.last_error or '')}"
        )
        remedy = about("unstuck webhooks show", first.name, of_tenant(first.tenant))
        detail = f"{_many(len(found))} in trouble, first {first.name}: it {what}"
        yield answered("webhooks", False, detail, fatal=False, remedy=remedy)
    behind = caller.store.copying()
    if behind is not None and behind > WEBHOOKS_BEHIND:
        detail = f"{behind:,} places of the feed are not copied out for webhooks yet: do workers or servers run?"
        yield answered("webhooks", False, detail, fatal=False)


def quarantine(caller: Caller, now: datetime) -> Iterator[CheckView]:
    found = caller.store.quarantined(caller.own, limit=LOOK)
    if found:
        first = min(found, key=lambda each: each.since_at)
        what = f"target {first.target}" if first.duty == "target" else f"job {first.job}"
        oldest = f"{what} ({first.duty}) {age(first.since_at, now)}: {_line(first.error)}"
        told = f"{_many(len(found))} set aside, first {oldest}"
        yield answered("quarantine", False, told, fatal=False, remedy="unstuck quarantine")


def dead_letters(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Counted as far as the metrics count, with the reason of the oldest."""
    found = [stand for stand in caller.store.trouble_stands(caller.own) if stand.what == "dead_letters"]
    if found:
        first = min(found, key=lambda stand: stand.since_at or now)
        number = sum(stand.number for stand in found)
        oldest = f"the oldest {age(first.since_at, now)}: {first.kind}, {sentence_of(first.kind)}"
        yield answered("dead_letters", False, f"{number:,}, {oldest}", fatal=False, remedy="unstuck dead-letters")


def alerts(caller: Caller, now: datetime) -> Iterator[CheckView]:
    """Those that are open and not muted, the worst first."""
    found = [stand for stand in caller.store.alert_stands(caller.own) if stand.number > stand.muted]
    if found:
        worst = min(found, key=lambda stand: (SEVERITIES.index(stand.severity), stand.since_at))
        number = sum(stand.number - stand.muted for stand in found)
        detail = f"{number:,} open, the worst {worst.severity}: {RULES[worst.rule].title}, {age(worst.since_at, now)}"
        yield answered("alerts", False, detail, fatal=False, remedy="unstuck alerts")


def notifications(caller: Caller, now: datetime) -> Iterator[CheckView]:
    found = caller.store.notifications(caller.own, limit=LOOK)
    if found:
        newest = f"{found[0].title} {age(found[0].at, now)}"
        detail = f"{_many(len(found))} that nobody took note of, the newest: {newest}"
        yield answered("notifications", False, detail, fatal=False, remedy="unstuck notifications")


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
        if why.state is JobState.QUEUED and (why.is_runnable or why.codes[0] in conditions.TROUBLES):
            told = f"due for {duration(_waited(job, now))} and nobody took it: {job.workflow} {job.id}"
            return answered("queue", False, f"{told}: {why.verdict}", fatal=False)
    waited = _waited(first, now)
    detail = f"the oldest due job waits {duration(waited)}: {first.workflow} {first.id}"
    patient = caller.store.alert_numbers()["job_queued"]
    if not patient or waited < patient:
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
    return (
        why is not None and why.state is JobState.QUEUED and (why.is_runnable or why.codes[0] in conditions.TROUBLES)
    )


def _of_each_kind(due: Sequence[JobRecord]) -> list[JobRecord]:
    """The oldest of each queue, workflow and target: one that is paused must not hide the others."""
    kinds: dict[tuple[str, str, str | None], JobRecord] = {}
    for job in due:
        kinds.setdefault((job.queue, job.workflow, job.target), job)
    return list(kinds.values())[:ASKED]


def _waited(job: JobRecord, now: datetime) -> float:
    return (now - job.available_at).total_seconds()


def _why(caller: Caller, job: str) -> Why | None:
    return conditions.asked(caller.store, caller.one, job, caller.times)
