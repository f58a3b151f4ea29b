"""Conditions: what is wrong, each defined once, for `health`, which tells it when asked, and for the alert rules.

A rule's look is one bounded set of questions by an index, for as long as its turn lasts; where there is more, it says
how far it came, and the next turn, whoever has it, goes on there. Nothing is locked that anybody waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from unstuck.model.alerts import MOST_OPEN, WINDOW, AlertFinding, RuleFindings, RuleLook, Severity, finding
from unstuck.model.dead_letters import LINK, TITLE, sentence_of
from unstuck.model.errors import StoreBusy, UnknownJob
from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.schedules import SILENT_AFTER
from unstuck.model.spelling import about, given, screen
from unstuck.model.times import Times
from unstuck.model.why import Why, of_tenant
from unstuck.model.why.codes import Code
from unstuck.model.why.facts import FailingRole, failing_roles, settle_of
from unstuck.model.wording import age, count, duration
from unstuck.observe.lookup import ALIVE, WORKERS_SHOWN, every_worker, seen_state
from unstuck.observe.why import why as ask_why
from unstuck.records import dataclass
from unstuck.store.port import ClockStand, LetterStand, Overdue, ScheduleRecord, Store, Waiting

#: Codes that mean a fault, and not a pause, a limit or a timer: somebody must look.
TROUBLES: Final = frozenset(
    {
        Code.ROW_LOCKED,
        Code.QUARANTINED,
        Code.WORKER_FAILING,
        Code.ENGINE_STALLED,
        Code.UNPLACED,
        Code.NO_WORKER,
        Code.NOT_GRANTED,
        Code.WORKER_LACKS_CODE,
        Code.APP_NOT_LOADED,
    }
)
#: Roles that only tell, tidy up or share, and those about a single job: without them all others go their way.
_TIDY: Final = (
    *("janitor/alerts", "janitor/ends", "janitor/enqueued", "janitor/pauses", "janitor/retention", "janitor/series"),
    *("janitor/webhooks", "janitor/unread", "claim/schedules", "claim/weights", settle_of(0)[:-1]),
)
#: A clock that runs too fast is a second off, and a little more, whenever that is noticed. In seconds.
CREEPS: Final = 2.0
#: Workers that are looked at; a crash loop leaves thousands an hour.
_MOST_WORKERS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionLook(RuleLook):
    """And where it looks."""

    store: Store
    times: Times

    @classmethod
    def at(cls, look: RuleLook, store: Store, times: Times) -> ConditionLook:
        asked = {field.name: getattr(look, field.name) for field in fields(look)}
        return cls(**asked, store=store, times=times)


Condition = Callable[[ConditionLook], RuleFindings]


# --- the database -------------------------------------------------------------------------------------------------


def leapt(stand: ClockStand, now: datetime, told_for: float) -> str | None:
    """As long as it is news, or the times that we show are not the clock's."""
    if stand.leapt_at is None:
        return None
    is_news = (now - stand.leapt_at).total_seconds() < told_for
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


def _clock_leapt(look: ConditionLook) -> RuleFindings:
    stand = look.store.clock_stand()
    is_lately = stand.leapt_at is not None and (look.now - stand.leapt_at).total_seconds() < WINDOW
    message = leapt(stand, look.now, WINDOW) if is_lately and abs(stand.leap) >= look.number else None
    return RuleFindings([finding("clock_leapt", ("clock",), "clock", message, "/health")] if message else [])


def _retention_lag(look: ConditionLook) -> RuleFindings:
    jobs, oldest = look.store.unforgotten(look.times.retention + look.number, look.most)
    if not jobs:
        return RuleFindings([])
    number = f"{count(jobs, 'ended job')}{' at least' if jobs >= look.most else ''}"
    message = (
        f"{number} should have been forgotten, the oldest ended {age(oldest, look.now)}, and jobs are kept for "
        f"{duration(look.times.retention)}; what fails: unstuck workers, unstuck health"
    )
    return RuleFindings([finding("retention_lag", ("jobs",), "jobs", message, "/health", count=jobs)])


def _feed_lag(look: ConditionLook) -> RuleFindings:
    """Readers give events their places. Where nobody reads, nobody misses them: then we try it ourselves, once."""
    since = look.store.feed_waits_since()
    if since is None or since > look.before:
        return RuleFindings([])
    try:
        is_held = look.store.sequence(look.times.feed_retention) < 0
        problem = "somebody holds the row that gives them their places: unstuck health"
    except StoreBusy as error:
        is_held, problem = True, str(error)
    if not is_held:
        return RuleFindings([])
    message = f"events have had no place in the feed since {age(since, look.now)}: {problem}"
    return RuleFindings([finding("feed_lag", ("feed",), "feed", message, "/health")])


# --- the engine ---------------------------------------------------------------------------------------------------

_LATE = {
    "lost": "job {job} of worker {worker}, whose lease ended {ago}, is RUNNING still: nobody recovers it",
    "backstop": "job {job} on worker {worker} should have ended {ago} at the latest: nobody judges it",
    "start": "job {job} was due {ago}: no sweep brings it into the queue",
    "expire": "job {job} should have expired {ago}: no sweep ends it",
    "wait": "job {job} should have been woken {ago}: no sweep does",
}


def late_sentence(found: Overdue, job: str, now: datetime) -> str:
    return _LATE[found.what].format(job=job, worker=found.worker, ago=age(found.due_at, now))


def _over_limit(look: ConditionLook) -> RuleFindings:
    """The platform's: a job that nobody judges is the engine's fault, whosever it is."""
    late = [each for each in look.store.overdue(look.number, 0.0) if each.what in ("lost", "backstop")]
    first = {each.what: each for each in reversed(late)}
    return RuleFindings(
        [
            finding(
                "job_over_limit",
                (what,),
                each.job or "?",
                f"{late_sentence(each, each.job or '?', look.now)}; see who is there: unstuck workers",
                f"/jobs/{each.job}",
                count=sum(other.what == what for other in late),
            )
            for what, each in first.items()
        ]
    )


def _workers(look: ConditionLook) -> list[WorkerRecord]:
    return list(islice(every_worker(look.store, WORKERS_SHOWN), _MOST_WORKERS))


def silent(workers: Sequence[WorkerRecord], now: datetime, after: float) -> list[WorkerRecord]:
    """Those that did not leave, and have not beaten for so long; one that was started again under its name is as well
    as anybody, and what became of it since is that one's news."""
    states = [(worker, seen_state(worker, now, after)) for worker in workers]
    alive = {worker.name for worker, state in states if state in ALIVE}
    newest = {worker.name: (worker, state) for worker, state in sorted(states, key=lambda each: each[0].number)}
    return [worker for name, (worker, state) in newest.items() if state == "offline" and name not in alive]


def _worker_silent(look: ConditionLook) -> RuleFindings:
    found = silent(_workers(look), look.now, look.number)
    return RuleFindings(
        [
            finding(
                "worker_silent",
                (worker.name,),
                worker.name,
                f"worker {worker.name} on {worker.host} last beat {age(worker.heartbeat_at, look.now)}, and did not "
                "leave; its jobs go to others when its lease ends: unstuck workers",
                screen("workers", worker.name),
            )
            for worker in found
        ]
    )


def moves_jobs(role: str) -> bool:
    """Whether jobs stay where they are without it."""
    return not role.startswith(_TIDY)


def _role_failing(look: ConditionLook) -> RuleFindings:
    """One for each role: what fails on every worker is one trouble."""
    alive = [worker for worker in _workers(look) if seen_state(worker, look.now, look.times.offline) in ALIVE]
    failing: dict[str, list[tuple[WorkerRecord, FailingRole, float]]] = {}
    for worker in alive:
        passed = max(0.0, (look.now - worker.heartbeat_at).total_seconds())
        for role in failing_roles(worker.info.get("roles")):
            if role.failing_for + passed >= look.number:
                failing.setdefault(role.name, []).append((worker, role, role.failing_for + passed))
    return RuleFindings([_failing_role(name, found, len(alive), look.times) for name, found in failing.items()])


def _failing_role(
    name: str, found: list[tuple[WorkerRecord, FailingRole, float]], alive: int, times: Times
) -> AlertFinding:
    worker, role, seconds = max(found, key=lambda each: each[2])
    is_everywhere = len(found) == alive
    where = f"every worker ({alive})" if is_everywhere and alive > 1 else f"worker {worker.name}"
    more = "" if is_everywhere or len(found) == 1 else f" and {len(found) - 1} more"
    message = (
        f"{name} has failed on {where}{more} for {duration(seconds)}: {role.error or 'no reason'}: unstuck workers"
    )
    severity: Severity = "critical" if is_everywhere and moves_jobs(name) else "warning"
    return finding("role_failing", (name,), name, message, "/workers", severity=severity, count=len(found))


def _draining(look: ConditionLook) -> RuleFindings:
    """A worker that was told to stop, or a process that drains beside its replacement."""
    found = []
    for worker in _workers(look):
        if seen_state(worker, look.now, look.times.offline) not in ALIVE:
            continue
        passed = max(0.0, (look.now - worker.heartbeat_at).total_seconds())
        for what, seconds in _drains(worker):
            if seconds + passed >= look.number:
                message = f"{what} has been draining for {duration(seconds + passed)}: unstuck workers"
                link = screen("workers", worker.name)
                found.append(finding("draining", (worker.name, what), worker.name, message, link))
    return RuleFindings(found)


def _drains(worker: WorkerRecord) -> Iterator[tuple[str, float]]:
    """What drains of it and for how long, as it said with its last beat; read with tolerance."""
    if worker.state == "draining":
        yield f"worker {worker.name}", _said(worker.info.get("draining_for"))
    processes = worker.info.get("executors")
    for process in processes if isinstance(processes, list) else ():
        if isinstance(process, dict) and process.get("state") == "draining":
            yield f"process {process.get('pid')} of worker {worker.name}", _said(process.get("draining_for"))


def _said(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _recoveries(look: ConditionLook) -> RuleFindings:
    found = []
    for each in look.store.recoveries(WINDOW, int(look.number), MOST_OPEN):
        jobs = f"{count(each.times, 'time')} within an hour ({count(each.jobs, 'job')} in all)"
        if each.worker is not None:
            message = f"jobs had to be recovered from worker {each.worker}, which was lost, {jobs}: unstuck workers"
            found.append(finding("recoveries", ("worker", each.worker), each.worker, message, "/workers"))
            continue
        tenant, workflow = each.tenant or "", each.workflow or ""
        message = (
            f"jobs of {workflow} were on a worker that was lost {jobs}: it may be what ends them; "
            f"look: {about('unstuck jobs list --workflow', workflow, of_tenant(tenant))}"
        )
        link = screen("workflows", workflow)
        more = {"tenant": tenant, "workflow": workflow, "count": each.times}
        found.append(finding("recoveries", ("workflow", tenant, workflow), workflow, message, link, **more))
    return RuleFindings(found)


def _stuck_rate(look: ConditionLook) -> RuleFindings:
    found = []
    for rate in look.store.stuck_rates(WINDOW):
        # What has just ended may not be counted yet.
        ends = max(rate.ends, rate.stucks)
        percent = 100 * rate.stucks / ends
        if percent > look.number:
            message = (
                f"{rate.stucks:,} of {count(ends, 'execution')} of tenant {rate.tenant} got stuck within an hour "
                f"({percent:.3g} %), most of them {rate.workflow}: "
                f"unstuck jobs list --state STUCK {of_tenant(rate.tenant)}".rstrip()
            )
            more = {"tenant": rate.tenant, "workflow": rate.workflow, "count": rate.stucks}
            found.append(finding("stuck_rate", (rate.tenant,), rate.workflow, message, "/jobs", **more))
    return RuleFindings(found)


# --- jobs ---------------------------------------------------------------------------------------------------------


def asked(store: Store, tenant: str, job: str, times: Times) -> Why | None:
    """Why it does not run; None: it was forgotten since."""
    try:
        return ask_why(store, tenant, job, times)
    except UnknownJob:
        return None


def _job_queued(look: ConditionLook) -> RuleFindings:
    """Of each tenant, queue and workflow the job that has been due longest, with the reason."""
    oldest: dict[tuple[str, str, str], Waiting] = {}
    place = int(look.place or 0)
    while True:
        page = look.store.waits(place, look.most)
        for first in page:
            if first.since <= look.before:
                key = (first.tenant, first.queue, first.workflow)
                known = oldest.get(key)
                oldest[key] = first if known is None or first.since < known.since else known
        place = page.looked_to
        if place == 0 or look.is_over():
            break
    firsts = sorted(oldest.values(), key=lambda first: first.since)[: MOST_OPEN + 1]
    found: list[AlertFinding] = []
    has_asked = False
    for first in firsts:
        made = _waiting_job(first)
        is_open = (made.cause, first.id) in look.told
        if not is_open and not (has_asked and look.is_over()):
            # One is asked about in any case: so each round gets further, however little time there is.
            has_asked = True
            reasoned = _with_reason(look, first, made)
            found += [] if reasoned is None else [reasoned]
        elif is_open or made.cause in look.open:
            found.append(made)
    return RuleFindings(found, str(place) if place else "")


def _waiting_job(first: Waiting) -> AlertFinding:
    """Without a word: it is as it was told last."""
    return finding(
        "job_queued",
        (first.tenant, first.queue, first.workflow),
        first.id,
        None,
        f"/jobs/{first.id}",
        tenant=first.tenant,
        workflow=first.workflow,
    )


def _with_reason(look: ConditionLook, first: Waiting, made: AlertFinding) -> AlertFinding | None:
    """None: it has gone on meanwhile. What waits for a pause or a limit does so on purpose."""
    why = asked(look.store, first.tenant, first.id, look.times)
    if why is None or why.state is not JobState.QUEUED:
        return None
    is_fault = why.is_runnable or (bool(why.codes) and why.codes[0] in TROUBLES)
    waited = duration((look.now - first.since).total_seconds())
    message = f"job {first.id} ({first.workflow}) of queue {first.queue} has been due for {waited}: {why.verdict}"
    return replace(made, message=message, severity="warning" if is_fault else "info")


def _resting(rule: str, state: JobState) -> Callable[[ConditionLook], RuleFindings]:
    def look_at(look: ConditionLook) -> RuleFindings:
        found: list[AlertFinding] = []
        after = look.place
        while (rest := look.store.resting_for(state, look.number, after, look.most)) is not None:
            after = rest.tenant
            if rest.jobs:
                found.append(_rests(rule, rest.tenant, state, rest.jobs, rest, look))
            if look.is_over():
                return RuleFindings(found, after)
        return RuleFindings(found)

    return look_at


def _rests(rule: str, tenant: str, state: JobState, jobs: int, rest: Any, look: ConditionLook) -> AlertFinding:
    number = f"{count(jobs, 'job')}{' at least' if jobs >= look.most else ''}"
    message = (
        f"{number} of tenant {tenant} {'has' if jobs == 1 else 'have'} been {state} for {duration(look.number)} or "
        f"longer, the first, {rest.job} ({rest.workflow}), since {age(rest.since_at, look.now)}: "
        f"{about('unstuck why', rest.job, of_tenant(tenant))}"
    )
    more = {"tenant": tenant, "workflow": rest.workflow, "count": jobs}
    return finding(rule, (tenant,), rest.job, message, f"/jobs/{rest.job}", **more)


def _target_blocked(look: ConditionLook) -> RuleFindings:
    found: list[AlertFinding] = []
    after = look.place
    while (blocked := look.store.blocked_for(look.number, after)) is not None:
        after = blocked.tenant
        if blocked.targets:
            more = "" if blocked.targets == 1 else f" (and {blocked.targets - 1} more)"
            how = about("unstuck targets show", blocked.target, of_tenant(blocked.tenant))
            message = (
                f"target {blocked.target} of tenant {blocked.tenant} was blocked {age(blocked.since_at, look.now)} "
                f"by job {blocked.job or '?'}{more}: {how}"
            )
            facts = {"tenant": blocked.tenant, "workflow": blocked.workflow, "count": blocked.targets}
            link = screen("targets", blocked.target)
            found.append(finding("target_blocked", (blocked.tenant,), blocked.target, message, link, **facts))
        if look.is_over():
            return RuleFindings(found, after)
    return RuleFindings(found)


def _dead_letters(look: ConditionLook) -> RuleFindings:
    found: list[AlertFinding] = []
    after = look.place
    while True:
        tenant, letters = look.store.letters_of_next(int(look.number), after, look.most)
        if not tenant:
            return RuleFindings(found)
        found += [_letters(each, look) for each in letters]
        after = tenant
        if look.is_over():
            return RuleFindings(found, after)


def _letters(stand: LetterStand, look: ConditionLook) -> AlertFinding:
    """Under the words of the notification that a dead letter makes: it is the same news."""
    number = f"{count(stand.letters, 'dead letter')}{' at least' if stand.letters >= look.most else ''}"
    how = f"unstuck dead-letters {given('--reason', stand.reason)} {of_tenant(stand.tenant)}".rstrip()
    message = (
        f"{number} of {stand.workflow} ({stand.reason}: {sentence_of(stand.reason)}), the oldest of "
        f"{age(stand.since_at, look.now)}: {how}"
    )
    parts = (stand.tenant, stand.workflow, stand.reason)
    more = {"title": TITLE.format(reason=stand.reason), "tenant": stand.tenant, "workflow": stand.workflow}
    return finding("dead_letters", parts, stand.workflow, message, LINK, count=stand.letters, **more)


def silent_sentence(schedule: ScheduleRecord, now: datetime) -> str:
    """What is wrong with one that is silent."""
    if schedule.quiet >= SILENT_AFTER:
        return f"made no job at its last {count(schedule.quiet, 'tick')}"
    return f"should have fired {age(schedule.due_at, now)}: nobody does"


def _schedule_silent(look: ConditionLook) -> RuleFindings:
    found = look.store.silent_schedules(None, look.number, limit=MOST_OPEN + 1)
    return RuleFindings([_silent_schedule(schedule, look) for schedule in found])


def _silent_schedule(schedule: ScheduleRecord, look: ConditionLook) -> AlertFinding:
    how = about("unstuck schedules firings", schedule.name, of_tenant(schedule.tenant))
    message = f"schedule {schedule.name} of tenant {schedule.tenant} {silent_sentence(schedule, look.now)}: {how}"
    more = {"tenant": schedule.tenant, "workflow": schedule.spec.workflow}
    link = screen("schedules", schedule.name)
    return finding("schedule_silent", (schedule.tenant, schedule.name), schedule.name, message, link, **more)


def _outbox_lag(look: ConditionLook) -> RuleFindings:
    """Webhooks whose tries fail, or that were disabled for it, as `health` has them."""
    found = []
    for each in look.store.failing_webhooks(None, limit=MOST_OPEN + 1):
        since = each.failing_since or each.state_at
        if since <= look.before:
            how = about("unstuck webhooks show", each.name, of_tenant(each.tenant))
            message = (
                f"webhook {each.name} has taken nothing since {age(since, look.now)} ({each.failures:,} tries in a "
                f"row): {each.last_error or each.state_reason or 'no reason'}: {how}"
            )
            parts, link = (each.tenant, each.name), screen("webhooks", each.name)
            found.append(finding("outbox_lag", parts, each.name, message, link, tenant=each.tenant))
    return RuleFindings(found)


# --- the rules themselves -----------------------------------------------------------------------------------------


def _rule_failing(look: ConditionLook) -> RuleFindings:
    found = []
    for stand in look.store.alert_rules():
        if stand.failing_at is not None and stand.failing_at <= look.before:
            since = age(stand.failing_at, look.now)
            message = f"the alert rule {stand.rule} has failed since {since}: {stand.error}: unstuck alerts rules"
            found.append(finding("rule_failing", (stand.rule,), stand.rule, message, "/alerts"))
    return RuleFindings(found)


#: How each rule looks, in the order of their turns.
LOOKS: Final[Mapping[str, Condition]] = {
    "worker_silent": _worker_silent,
    "role_failing": _role_failing,
    "job_over_limit": _over_limit,
    "clock_leapt": _clock_leapt,
    "recoveries": _recoveries,
    "stuck_rate": _stuck_rate,
    "draining": _draining,
    "dead_letters": _dead_letters,
    "schedule_silent": _schedule_silent,
    "target_blocked": _target_blocked,
    "job_paused": _resting("job_paused", JobState.PAUSED),
    "job_pending": _resting("job_pending", JobState.PENDING),
    "job_queued": _job_queued,
    "retention_lag": _retention_lag,
    "feed_lag": _feed_lag,
    "outbox_lag": _outbox_lag,
    "rule_failing": _rule_failing,
}
