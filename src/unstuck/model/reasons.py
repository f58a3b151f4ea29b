"""Why a job is not running: one code per gate of the claim, with its rule and its sentence side by side.

Theory of operation. The store gathers the `Facts` about one job in one read: the same rows, and for the gates of a
route the very same view, that a claim looks at. `explain` asks every rule that applies to the job's state; a rule
that finds its gate shut says so in a sentence: since when, until when, who must act, and the command to type. A
QUEUED job that no gate shuts out is *runnable*: a claim that looked at it first would return it (after an ingest,
which gives each target its head). "All slots are busy" and "others go first" are details of runnable, not gates. What
a person must do stands before what passes by itself. The table in docs/why.md is drawn from RULES.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from unstuck.model.errors import ErrorType
from unstuck.model.guard import how_to_lift
from unstuck.model.job import DEFAULT_TENANT, JobRecord
from unstuck.model.lifecycle import FINAL, JobState, RequestKind
from unstuck.model.spelling import about, ending_session, given
from unstuck.model.standing import (
    CEILING,
    HELD_TOO_LONG,
    Code,
    Facts,
    FailingRole,
    Hold,
    Lock,
    Locker,
    LockKind,
    SetAside,
    Shut,
    TargetFacts,
    WorkerFacts,
)
from unstuck.model.times import Times
from unstuck.model.waits import Answer, OnTimeout, WaitKind, WaitRecord

#: In place of a tenant: all of them.
_EVERY = "*"


class Actor(StrEnum):
    """Who must act for it to go on."""

    NOBODY = "nobody"
    ENGINE = "the engine"
    OPERATOR = "an operator"
    OWNER = "the job's owner"
    SENDER = "whoever sends the event"
    APPROVER = "whoever is asked"


#: What a person must do is said before what passes by itself.
_URGENCY = {Actor.OPERATOR: 0, Actor.OWNER: 0, Actor.SENDER: 0, Actor.APPROVER: 0, Actor.ENGINE: 1, Actor.NOBODY: 2}


#: What is amiss is said before what somebody wanted so.
_AMISS = {Code.ROW_LOCKED, Code.QUARANTINED, Code.WORKER_FAILING}


# --- what is said about it ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reason:
    """One gate, or one detail. `remedy` is a command to type; `until` when it passes by itself, if that is known."""

    code: Code
    sentence: str
    actor: Actor
    since: datetime | None = None
    until: datetime | None = None
    remedy: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Why:
    """The whole answer: one sentence, then the reasons, the most important first."""

    job: str
    state: JobState
    is_runnable: bool
    verdict: str
    reasons: tuple[Reason, ...]
    at: datetime

    @property
    def codes(self) -> tuple[Code, ...]:
        return tuple(reason.code for reason in self.reasons)

    def __str__(self) -> str:
        return self.verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found; whatever it leaves out, the rule's own line in the table supplies."""

    sentence: str
    since: datetime | None = None
    until: datetime | None = None
    remedy: str | None = None
    actor: Actor | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    #: It is worth saying, and yet a claim would take the job.
    is_detail: bool = False


@dataclass(frozen=True, slots=True)
class WhyView:
    """What every rule looks at."""

    facts: Facts
    now: datetime
    times: Times

    @property
    def job(self) -> JobRecord:
        return self.facts.job

    def command(self, text: str) -> str:
        """A command about this job's tenant."""
        return f"{text} {of_tenant(self.job.tenant)}".rstrip()

    def ago(self, at: datetime | None) -> str:
        return "" if at is None else f" {lasting(self.now - at)} ago"

    def soon(self, at: datetime) -> str:
        return f"in {lasting(at - self.now)}" if at > self.now else "now"


Find = Callable[[WhyView], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A gate (or, if it does not shut, a detail) of jobs in these states."""

    code: Code
    meaning: str
    actor: Actor
    remedy: str | None
    states: frozenset[JobState]
    shuts: bool
    find: Find

    def reasons(self, view: WhyView) -> Iterator[tuple[Reason, bool]]:
        """What it found, and whether that shuts the job out."""
        for said in self.find(view):
            remedy = said.remedy or (self.remedy and self._of_job(view, self.remedy))
            actor = said.actor or self.actor
            reason = Reason(self.code, said.sentence, actor, said.since, said.until, remedy, said.details)
            yield reason, self.shuts and not said.is_detail

    @staticmethod
    def _of_job(view: WhyView, remedy: str) -> str:
        """Workers and health are nobody's own: a tenant is named only where a job is."""
        return view.command(remedy.replace("JOB", view.job.id)) if "JOB" in remedy else remedy


RULES: dict[Code, Rule] = {}


def _rule(
    code: Code,
    meaning: str,
    actor: Actor,
    remedy: str | None = None,
    *,
    of: Iterable[JobState] = (JobState.QUEUED,),
    shuts: bool = True,
) -> Callable[[Find], Find]:
    def add(find: Find) -> Find:
        RULES[code] = Rule(code, meaning, actor, remedy, frozenset(of), shuts, find)
        return find

    return add


def explain(facts: Facts, now: datetime, times: Times | None = None) -> Why:
    """The answer to "why is this job not running?"; pure."""
    view = WhyView(facts, now, times or Times())
    state = facts.job.state
    asked = [rule for rule in RULES.values() if state in rule.states]
    found = [each for rule in asked if rule.shuts for each in rule.reasons(view)]
    is_runnable = state is JobState.QUEUED and not any(shuts for _, shuts in found)
    if is_runnable:
        found += [each for rule in asked if not rule.shuts for each in rule.reasons(view)]
    reasons = [reason for reason, _ in found]
    reasons.sort(key=lambda reason: (_URGENCY[reason.actor], reason.code not in _AMISS))
    return Why(facts.job.id, state, is_runnable, _verdict(state, is_runnable, reasons), tuple(reasons), now)


def _verdict(state: JobState, is_runnable: bool, reasons: list[Reason]) -> str:
    stand = "runnable" if is_runnable else _STANDS.get(state, "not runnable")
    if not reasons:
        return stand
    more = len(reasons) - 1
    rest = f" (and {more} more {'reason' if more == 1 else 'reasons'})" if more and not is_runnable else ""
    return f"{stand}: {reasons[0].sentence}{rest}"


_STANDS = {JobState.RUNNING: "running", JobState.WAITING: "parked", **dict.fromkeys(FINAL, "ended")}


# --- the gates: time, hold, dependencies --------------------------------------------------------------------------


def _is_retry(job: JobRecord) -> bool:
    return bool(job.failures or job.losses or job.suspects)


@_rule(Code.SCHEDULED, "its start time has not come, or was not noticed yet", Actor.ENGINE, "unstuck jobs retry JOB")
def _scheduled(view: WhyView) -> Iterator[Finding]:
    due = view.facts.due_at
    if due is not None and not _is_retry(view.job):
        yield Finding(_due(view, due, "it starts"), view.job.created_at, due)


@_rule(
    Code.RETRY_BACKOFF, "an attempt failed or was lost; the next one waits", Actor.ENGINE, "unstuck jobs retry JOB"
)
def _retry_backoff(view: WhyView) -> Iterator[Finding]:
    due, job = view.facts.due_at, view.job
    if due is None or not _is_retry(job):
        return
    what = f"failed with {job.error_type}" if job.error_type else "was lost" if job.losses else "failed"
    budget = f"{job.failures} of {job.policy.retries + 1} tries used" if job.failures else f"{job.losses} lost"
    details = {"failures": job.failures, "losses": job.losses, "retries": job.policy.retries, "error": job.error_type}
    yield Finding(
        f"attempt {job.token} {what} ({budget}); {_due(view, due, 'the next try')}", None, due, details=details
    )


def _due(view: WhyView, due: datetime, what: str) -> str:
    if due > view.now:
        verb = "starts " if what == "it starts" else "is "
        subject = "it" if what == "it starts" else what
        return f"{subject} {verb}in {lasting(due - view.now)}, at {clock(due)}"
    came = f"{'its time' if what == 'it starts' else what} came{view.ago(due)}"
    return came if _aside(view, "start") else f"{came}; the next sweep brings it into the queue"


@_rule(
    Code.HELD,
    "it was submitted on hold, and nobody has released it",
    Actor.OWNER,
    "unstuck jobs release JOB",
    of=[JobState.PENDING],
)
def _held(view: WhyView) -> Iterator[Finding]:
    if view.job.on_hold and not _entries(view):
        yield Finding("it is held until somebody releases it", view.job.created_at)


@_rule(
    Code.WAITING_DEPENDENCIES,
    "jobs that it comes after have not ended",
    Actor.ENGINE,
    "unstuck jobs release JOB --force",
    of=[JobState.PENDING],
)
def _waiting_dependencies(view: WhyView) -> Iterator[Finding]:
    waited_for = view.facts.dependencies
    if not waited_for:
        return
    unfinished = [d for d in waited_for if d.state is None or not d.state.is_final]
    details = {"after": [{"job": d.job, "state": d.state} for d in waited_for]}
    if unfinished:
        some = ", ".join(f"{d.job} ({d.state or 'unknown'})" for d in unfinished[:3])
        more = " …" if len(unfinished) > 3 else ""
        yield Finding(f"{_unfinished(len(unfinished), len(waited_for))} not ended: {some}{more}", details=details)
    else:
        yield Finding("the jobs that it comes after have ended; the next look releases or fails it", details=details)


def _unfinished(some: int, all_: int) -> str:
    if all_ == 1:
        return "the job that it comes after has"
    return f"{some} of {all_} jobs that it comes after {'has' if some == 1 else 'have'}"


@_rule(Code.UNPLACED, "it is between two places, or something is wrong with the database", Actor.OPERATOR)
def _unplaced(view: WhyView) -> Iterator[Finding]:
    facts = view.facts
    if not facts.is_ready and facts.place is None and facts.due_at is None:
        yield Finding(
            "it is QUEUED, but neither ready, nor in a line, nor on a timer; ask again, and report it if it stays so",
            remedy=view.command(f"unstuck jobs show {view.job.id}"),
        )


# --- what somebody holds in the database --------------------------------------------------------------------------

#: What is held, and what comes of it.
_HELD_THINGS: dict[LockKind, tuple[str, str]] = {
    "ready": ("its row in unstuck_ready is", "every claim passes over it"),
    "job": ("its row in unstuck_jobs is", "nothing can be written about it"),
    "attempt": ("its row in unstuck_running is", "what becomes of its attempt cannot be written"),
    "worker": ("the row of its worker {name} is", "that worker's lease cannot be renewed"),
    "timer": ("its timer is", "every sweep passes over it"),
    "wait": ("what it waits for is", "no answer to it can be written"),
    "line": ("its place in the line of target {name} is", "it cannot get its turn"),
    "inbox": ("the word in unstuck_inbox that tells of it is", "nobody looks at it"),
    "target": ("target {name} is", "the turn on it passes to nobody"),
    "limit": ("the limit of {name} is", "nothing can be counted against it, and nothing of it starts"),
    "workflow": ("the row of workflow {name} is", "no worker can register it"),
    "table": ("table {name} is", "nothing can be written there"),
    "guard": ("the guard of the blacklist is", "no claim gets past it"),
}

_EVERY_START = {"unstuck_ready", "unstuck_running", "unstuck_events"}
_TABLES: dict[JobState, set[str]] = {
    JobState.QUEUED: _EVERY_START,
    JobState.PENDING: {"unstuck_jobs", "unstuck_dependencies", "unstuck_events"},
    JobState.WAITING: {"unstuck_jobs", "unstuck_waits", "unstuck_timers", "unstuck_events"},
    JobState.RUNNING: {"unstuck_running", "unstuck_done", "unstuck_jobs", "unstuck_workers", "unstuck_events"},
    JobState.PAUSED: {"unstuck_jobs", "unstuck_events"},
}
_THINGS: dict[JobState, set[LockKind]] = {
    JobState.PENDING: {"job", "inbox"},
    JobState.WAITING: {"job", "wait", "inbox"},
    JobState.RUNNING: {"job", "attempt", "worker", "target"},
    JobState.PAUSED: {"job"},
}


@_rule(
    Code.ROW_LOCKED,
    "a session of the database has held a row, table or lock that it needs for longer than a second",
    Actor.OPERATOR,
    "SELECT pg_terminate_backend(PID)",
    of=list(_TABLES),
)
def _row_locked(view: WhyView) -> Iterator[Finding]:
    for lock in view.facts.locks:
        if not _is_needed(view, lock):
            continue
        (thing, then), by = _HELD_THINGS[lock.what], lock.by
        mode = f" in {lock.mode}" if lock.mode else ""
        yield Finding(
            f"{thing.format(name=lock.name)} held by {session_named(by)}{mode}{_for_how_long(view, by)}; until its "
            f"transaction ends {then}. Commit or roll back there; ending that session is the last resort",
            by.since_at,
            remedy=ending_session(by.pid),
            details={
                "what": lock.what,
                "name": lock.name,
                "table": lock.table,
                "pid": by.pid,
                "application": by.application,
                "user": by.user,
                "doing": by.doing,
            },
        )


def _is_needed(view: WhyView, lock: Lock) -> bool:
    """Whether what its next move needs is held: a queued job needs other rows than one that runs."""
    state = view.job.state
    if state is not JobState.QUEUED:
        return lock.name in _TABLES[state] if lock.what == "table" else lock.what in _THINGS[state]
    facts = view.facts
    if facts.due_at is not None:
        is_due = facts.due_at <= view.now
        return is_due and (lock.what == "timer" or (lock.what == "table" and lock.name == "unstuck_timers"))
    things: set[str] = {"ready", "limit", "guard"} | ({"workflow"} if _unserved(view) else set())
    tables = _EVERY_START
    if not facts.is_ready:
        things |= {"line", "inbox", "target"}
        tables = tables | {"unstuck_line", "unstuck_targets", "unstuck_inbox"}
    return lock.name in tables if lock.what == "table" else lock.what in things


def session_named(by: Locker) -> str:
    """A session of the database, as far as it lets itself be known."""
    if by.pid is None:
        return "a prepared transaction"
    known = [by.application, by.user and f"user {by.user}", by.doing]
    rest = ", ".join(word for word in known if word)
    return f"session {by.pid}{f' ({rest})' if rest else ''}"


def _for_how_long(view: WhyView, by: Locker) -> str:
    if by.since_at is None:
        return " (for how long, the database does not tell this user)"
    return f" for {lasting(view.now - by.since_at)} (more than {HELD_TOO_LONG:g}s, and ours take milliseconds)"


# --- what cannot be written, although the database answers --------------------------------------------------------

#: Of each duty: what could not be done.
_SET_ASIDE = {
    "claim": "a worker has a slot for it, and that it takes it cannot be written",
    "settle": "its handler has ended, and its result cannot be written",
    "recover": "its worker was lost, and it cannot be taken back",
    "overdue": "it ran beyond its time, and the verdict cannot be written",
    "start": "its time has come, and it cannot be brought into the queue",
    "expire": "it stayed for too long, and its end cannot be written",
    "wait": "its time to go on has come, and it cannot be woken",
    "orphan": "no worker knows its workflow, and its end cannot be written",
    "blacklist": "its workflow is blacklisted, and it can be neither failed nor held",
    "children": "what the end of its parent means for it cannot be written",
    "dependants": "what it came after has ended, and what that means cannot be written",
    "target": "the turn on its target cannot be given to anybody",
    "hold": "its old body is gone, and that cannot be noted",
}
_OF_ATTEMPTS = {"settle", "recover", "overdue"}


@_rule(
    Code.QUARANTINED,
    "something about it, or its target, cannot be written; it was set aside and is tried again alone",
    Actor.OPERATOR,
    "unstuck quarantine retry JOB",
    of=[JobState.QUEUED, JobState.PENDING, JobState.WAITING, JobState.PAUSED, JobState.RUNNING],
)
def _quarantined(view: WhyView) -> Iterator[Finding]:
    for aside in _aside(view):
        again = "its worker tries again" if aside.duty == "settle" else "every sweep tries it again, alone"
        yield Finding(
            f"{_SET_ASIDE[aside.duty]}{_since(aside.since_at)} (tried {_times(aside.tries)}): "
            f"{_first_line(aside.error)}; {again}",
            aside.since_at,
            details={"duty": aside.duty, "tries": aside.tries, "error": aside.error},
            is_detail=not _keeps(view, aside),
        )


def _aside(view: WhyView, *duties: str) -> list[SetAside]:
    """Of these duties, or of all that can concern it now: what was about another attempt is over."""
    is_running = view.job.state is JobState.RUNNING
    return [
        aside
        for aside in view.facts.quarantine
        if aside.duty in (duties or _SET_ASIDE) and (aside.duty in _OF_ATTEMPTS) == is_running
    ]


def _keeps(view: WhyView, aside: SetAside) -> bool:
    """A queued job can be claimed all the same, unless this is what must bring it into the queue."""
    facts = view.facts
    match aside.duty:
        case "start":
            return facts.due_at is not None
        case "target":
            return not facts.is_ready
        case "claim":
            return facts.is_ready
        case "blacklist":
            return bool(_entries(view))
        case _:
            return view.job.state is not JobState.QUEUED


@_rule(
    Code.WORKER_FAILING,
    "the worker that runs it cannot write results, or those that serve it cannot claim",
    Actor.OPERATOR,
    "unstuck workers",
    of=[JobState.QUEUED, JobState.RUNNING],
)
def _worker_failing(view: WhyView) -> Iterator[Finding]:
    if view.job.state is JobState.RUNNING:
        for role in view.facts.worker_roles:
            if role.name == _SETTLE and _has_lease(view):
                yield _failing(view, role, f"worker {view.job.worker} cannot write what becomes of its jobs")
        return
    serving = [worker for worker in view.facts.workers if worker.serves]
    failing = [[role for role in worker.roles if role.name in (_CLAIM, _SETTLE)] for worker in serving]
    if failing and all(failing):
        yield _failing(view, failing[0][0], f"{_serving(len(serving))} cannot take it")


#: Roles of a worker without which it runs nothing: who cannot write results takes nothing new.
_SETTLE, _CLAIM = "settle", "claim"


def _failing(view: WhyView, role: FailingRole, what: str) -> Finding:
    span = timedelta(seconds=role.failing_for)
    return Finding(
        f"{what}: {role.name} has failed there for {lasting(span)} ({_times(role.failures)}): {role.error}",
        view.now - span,
        details={"role": role.name, "failures": role.failures, "error": role.error},
    )


# --- parked: what it waits for ------------------------------------------------------------------------------------


def _open_wait(view: WhyView, kind: WaitKind) -> WaitRecord | None:
    record = view.facts.wait
    return record if record is not None and record.answer is None and record.wait.kind is kind else None


@_rule(
    Code.WAITING_EVENT,
    "it waits for an event that nobody has sent",
    Actor.SENDER,
    "unstuck events send JOB EVENT",
    of=[JobState.WAITING],
)
def _waiting_event(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.EVENT)
    if record is None:
        return
    wait = record.wait
    where = "" if wait.topic is None else f" on topic {wait.topic}"
    yield Finding(
        f"it waits for event {wait.name}{where}; {_unanswered(view, record)}",
        record.asked_at,
        record.until_at,
        how_to_send(view.job.id, wait.name, wait.topic, view.job.tenant),
        details=_waited(record) | {"event": wait.name, "topic": wait.topic},
    )


@_rule(
    Code.WAITING_APPROVAL,
    "it asks a question that nobody has decided",
    Actor.APPROVER,
    "unstuck approvals approve JOB",
    of=[JobState.WAITING],
)
def _waiting_approval(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.APPROVAL)
    if record is None:
        return
    wait = record.wait
    who = ", ".join(wait.who) or "somebody"
    yield Finding(
        f'it waits for {who} to decide "{_first_line(wait.name)}"; {_unanswered(view, record)}',
        record.asked_at,
        record.until_at,
        how_to_decide("approve", view.job.id, wait.key, view.job.tenant),
        details=_waited(record)
        | {
            "question": wait.name,
            "who": list(wait.who),
            "other_remedies": [how_to_decide("reject", view.job.id, wait.key, view.job.tenant)],
        },
    )


@_rule(
    Code.WAITING_CHILDREN,
    "jobs that it spawned, and waits for, have not ended",
    Actor.ENGINE,
    "unstuck jobs tree JOB",
    of=[JobState.WAITING],
)
def _waiting_children(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.CHILDREN)
    if record is None:
        return
    left, all_ = view.facts.children_open, len(record.wait.children)
    unfinished = [d for d in view.facts.dependencies if d.state is None or not d.state.is_final]
    some = ", ".join(f"{d.job} ({d.state or 'unknown'})" for d in unfinished[:3])
    named = f": {some}{' …' if len(unfinished) > 3 else ''}" if some else ""
    stand = f"{left} of {_count(all_, 'child job')} {'has' if left == 1 else 'have'} not ended{named}"
    if not left:
        stand = "all of its children have ended, and the next look wakes it"
    yield Finding(
        f"{stand}; {_unanswered(view, record)}",
        record.asked_at,
        record.until_at,
        details=_waited(record) | {"open": left, "children": list(record.wait.children)},
    )


@_rule(Code.WAITING_TIME, "it parked itself until a time that has not come", Actor.ENGINE, of=[JobState.WAITING])
def _waiting_time(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.TIME)
    if record is None:
        return
    until = record.until_at
    when = (
        f"{view.soon(until)}, at {clock(until)}" if until > view.now else f"with the next sweep: {_came(view, until)}"
    )
    yield Finding(f"it parked itself and goes on {when}", record.asked_at, until, details=_waited(record))


@_rule(Code.WAITING, "what it waited for has come; it is being woken", Actor.ENGINE, of=[JobState.WAITING])
def _waiting(view: WhyView) -> Iterator[Finding]:
    record = view.facts.wait
    if record is None:
        yield Finding("it is parked: it holds no slot and wakes by itself", until=view.facts.due_at)
    elif record.answer is not None:
        by = f" by {record.by}" if record.by else ""
        yield Finding(
            f"{_answered(record)}{by}{view.ago(record.answered_at)}; the next look wakes it",
            record.answered_at,
            details=_waited(record) | {"answer": record.answer, "by": record.by},
        )


def _unanswered(view: WhyView, record: WaitRecord) -> str:
    """What becomes of it when nobody answers."""
    then = what_then(record.wait.on_timeout)
    if record.until_at > view.now:
        return f"if not {view.soon(record.until_at)}, {then}"
    return f"{_came(view, record.until_at)}: with the next sweep {then}"


def _came(view: WhyView, until: datetime) -> str:
    return f"its time came{view.ago(until)}"


def what_then(on_timeout: OnTimeout) -> str:
    """What its deadline does to a wait."""
    match on_timeout:
        case "reject":
            return "it counts as rejected"
        case "approve":
            return "it counts as approved"
        case "default":
            return "it goes on with the default that it named"
        case _:
            return "it fails"


def _answered(record: WaitRecord) -> str:
    match record.answer:
        case Answer.EVENT:
            return f"event {record.wait.name} was sent"
        case Answer.APPROVED | Answer.REJECTED:
            return f'"{_first_line(record.wait.name)}" was {record.answer}'
        case Answer.ENDED:
            return "its children have ended"
        case _:
            return "its time came"


def _waited(record: WaitRecord) -> dict[str, Any]:
    return {"kind": record.wait.kind, "key": record.wait.key, "on_timeout": record.wait.on_timeout}


def how_to_send(job: str, event: str, topic: str | None, tenant: str) -> str:
    """The command that answers a wait for this event."""
    if topic is not None:
        return about("unstuck events send", event, f"{given('--topic', topic)} {of_tenant(tenant)}".strip())
    return about(f"unstuck events send {job}", event, of_tenant(tenant))


def how_to_decide(verb: str, job: str, key: str, tenant: str) -> str:
    """It names the question: pasted too late, it must not decide the next one."""
    return f"unstuck approvals {verb} {job} {given('--key', key)} {of_tenant(tenant)}".strip()


def how_to_raise(job: JobRecord) -> str:
    """The command that does a job again with a larger budget. MOST is a word to replace: pasted it is refused."""
    said = (job.error_message or "").split("; ")
    over = [unit for unit, _ in job.policy.budget if any(part.endswith(f" {unit}") for part in said)] or ["UNIT"]
    most = " ".join(given("--budget", f"{unit}=MOST") for unit in over)
    return f"unstuck jobs replay {job.id} {most} {of_tenant(job.tenant)}".strip()


def of_tenant(tenant: str) -> str:
    """The option that a command about this tenant needs, whatever tenant the shell is of."""
    return "" if tenant == DEFAULT_TENANT else given("--tenant", tenant)


@_rule(Code.PAUSED, "it was interrupted", Actor.OWNER, "unstuck jobs resume JOB", of=[JobState.PAUSED])
def _paused(view: WhyView) -> Iterator[Finding]:
    yield Finding(f"it was interrupted, and goes on when somebody resumes it{_blocks(view)}", details=_blocking(view))


def _blocks(view: WhyView) -> str:
    target = view.facts.target
    if target is None or not view.job.is_blocker:
        return ""
    return f"; until then target {target.name} is blocked, {_count(target.waiting, 'job')} behind it"


def _blocking(view: WhyView) -> dict[str, Any]:
    target = view.facts.target
    return {"blocks": target.name, "waiting": target.waiting} if target and view.job.is_blocker else {}


@_rule(Code.BODY_MAY_LIVE, "an old body of it, or of a job on its target, may still live", Actor.ENGINE)
def _body_may_live(view: WhyView) -> Iterator[Finding]:
    hold = view.facts.hold
    if hold is None:
        return
    whose = "its last attempt" if hold.job == view.job.id else f"job {hold.job} on the same target"
    process = f" (process {hold.pid})" if hold.pid else ""
    yield _held_up(
        view,
        hold,
        f"{whose} did not stop when asked; worker {hold.worker or '?'}{process} may still run it; nothing starts "
        "before that process is known to be gone",
    )


@_rule(
    Code.STUCK,
    "it did not stop when asked, and its process is being emptied and ended",
    Actor.ENGINE,
    "unstuck stack JOB",
    of=[JobState.FAILED],
)
def _stuck(view: WhyView) -> Iterator[Finding]:
    hold, job = view.facts.hold, view.job
    if hold is None or hold.job != job.id:
        return
    process = f"process {hold.pid}" if hold.pid else "its process"
    worker = hold.worker or "?"
    ending = (
        f"{process} on worker {worker} drains"
        if _is_kept(view, hold)
        else f"worker {worker} fell silent before {process} was seen to be gone; any other lifts this"
    )
    yield _held_up(view, hold, f"it ignored its cancel for {job.policy.grace:g} s; {ending}")


def _is_kept(view: WhyView, hold: Hold) -> bool:
    """Whether the worker that must see the body die is there to see it."""
    return hold.lease_until is not None and hold.lease_until > view.now


def _held_up(view: WhyView, hold: Hold, sentence: str) -> Finding:
    """While its worker lives the hold has no end of its own: only after a lost one does time lift it."""
    until = None
    if hold.lease_until is not None and not _is_kept(view, hold):
        until = hold.lease_until + timedelta(seconds=view.times.margin + view.times.sweep)
    details = {"job": hold.job, "worker": hold.worker, "pid": hold.pid}
    return Finding(sentence, hold.since_at, until if until and until > view.now else None, details=details)


# --- the gates: its target ----------------------------------------------------------------------------------------


@_rule(
    Code.TARGET_BLOCKED, "a job that failed or paused blocks its target", Actor.OWNER, "unstuck jobs resume BLOCKER"
)
def _target_blocked(view: WhyView) -> Iterator[Finding]:
    target = view.facts.target
    if target is None or target.blocked_by is None or target.blocked_by == view.job.id:
        return
    error = f" ({target.blocker_error})" if target.blocker_error else ""
    yield Finding(
        f"target {target.name} is blocked by {target.head_state} job {target.blocked_by}{error}"
        f"{_since(target.blocked_at)}; {_count(target.waiting, 'job')} behind it. Resume, resolve or skip that one",
        target.blocked_at,
        remedy=view.command(f"unstuck jobs resume {target.blocked_by}"),
        details={
            "target": target.name,
            "blocked_by": target.blocked_by,
            "waiting": target.waiting,
            "other_remedies": [
                # RESULT is a word to replace: pasted as it stands it is refused.
                view.command(f"unstuck jobs resolve {target.blocked_by} RESULT"),
                view.command(f"unstuck jobs skip {target.blocked_by}"),
            ],
        },
    )


@_rule(Code.TARGET_PAUSED, "an operator paused its target", Actor.OPERATOR, "unstuck targets unpause TARGET")
def _target_paused(view: WhyView) -> Iterator[Finding]:
    target = view.facts.target
    if target is None or target.pause is None or view.facts.is_ready:
        return
    until = target.pause.until_at
    if until is None or until > view.now:
        yield _pause(view, target.pause, "target")
    elif not target.is_expected:
        sentence = f"the pause of target {target.name} ended{view.ago(until)}; the next sweep lets its jobs go on"
        yield Finding(sentence, target.pause.since_at, until, _lift(target.pause, "target"), Actor.ENGINE)


@_rule(Code.TARGET_BUSY, "it is another job's turn on its target", Actor.ENGINE, "unstuck why OTHER")
def _target_busy(view: WhyView) -> Iterator[Finding]:
    target = view.facts.target
    if target is None or target.blocked_by is not None or _is_its_turn(view.facts, target):
        return
    other = _whose_turn(view.facts, target)
    if other is None:
        return
    doing = _doing(view, target) if other == target.head else "is next"
    ahead = target.ahead - (other == target.first and other != target.head)
    behind = f", {_count(ahead, 'other job')} before this one" if ahead > 0 else ""
    yield Finding(
        f"target {target.name} runs one job at a time; job {other} {doing}{behind}",
        target.head_since,
        remedy=view.command(f"unstuck why {other}"),
        details={"target": target.name, "job": other, "ahead": max(0, ahead)},
    )


def _doing(view: WhyView, target: TargetFacts) -> str:
    """What the head does with its turn."""
    match target.head_state:
        case JobState.RUNNING:
            return f"is running, begun{view.ago(target.head_since)}"
        case JobState.QUEUED if target.head_due_at and target.head_due_at > view.now:
            return f"keeps its turn until its next try {view.soon(target.head_due_at)}"
        case JobState.WAITING:
            return "is parked and keeps its turn"
        case _:
            return "is next"


def _is_its_turn(facts: Facts, target: TargetFacts) -> bool:
    """As it will be after the next ingest: an unclaimed head yields to a newcomer with a higher priority."""
    if facts.due_at is not None or (facts.place is None and not facts.is_ready):
        return True  # not in the line yet: that is another gate's story
    if facts.is_ready:
        return not _head_yields(target) or any(
            lock.what == "target" for lock in facts.locks
        )  # nobody can take it away
    if target.first != facts.job.id:
        return False
    return target.head in (None, facts.job.id) or _head_yields(target)


def _head_yields(target: TargetFacts) -> bool:
    return (
        target.head_is_ready
        and target.first_place is not None
        and target.head_place is not None
        and target.first_place < target.head_place
    )


def _whose_turn(facts: Facts, target: TargetFacts) -> str | None:
    if facts.is_ready or _head_yields(target):
        return target.first
    return target.head if target.head not in (None, facts.job.id) else target.first


# --- the gates: its route -----------------------------------------------------------------------------------------


def _pause(view: WhyView, shut: Shut, kind: str) -> Finding:
    """Sentence and remedy of any pause."""
    everywhere = " for every tenant" if shut.tenant == _EVERY and kind != "tenant" else ""
    until = f", until {clock(shut.until_at)}" if shut.until_at else ", until somebody lifts it"
    reason = f' ("{shut.reason}")' if shut.reason else ""
    sentence = f"{kind} {shut.name} is paused{everywhere} by {shut.by or '?'}{_since(shut.since_at)}{reason}{until}"
    details = {"kind": kind, "name": shut.name, "tenant": shut.tenant, "by": shut.by, "reason": shut.reason}
    return Finding(sentence, shut.since_at, shut.until_at, _lift(shut, kind), details=details)


def _lift(shut: Shut, kind: str) -> str:
    return about(f"unstuck {kind}s unpause", shut.name, _whose(shut, kind))


def _whose(shut: Shut, kind: str) -> str:
    """The option that says of which tenants a gate is."""
    if kind == "tenant" or shut.tenant == DEFAULT_TENANT:
        return ""
    return "--all-tenants" if shut.tenant == _EVERY else given("--tenant", shut.tenant)


def _pauses(code: Code, kind: str) -> Find:
    def find(view: WhyView) -> Iterator[Finding]:
        return (_pause(view, shut, kind) for shut in view.facts.gates if shut.code is code)

    return find


for _code, _kind in (
    (Code.QUEUE_PAUSED, "queue"),
    (Code.TENANT_PAUSED, "tenant"),
    (Code.WORKFLOW_PAUSED, "workflow"),
):
    _command = f"unstuck {_kind}s unpause {_kind.upper()}"
    _rule(_code, f"an operator paused its {_kind}", Actor.OPERATOR, _command)(_pauses(_code, _kind))


@_rule(
    Code.BLACKLISTED,
    "its workflow is on the blacklist",
    Actor.OPERATOR,
    "unstuck blacklist remove WORKFLOW",
    of=[JobState.QUEUED, JobState.PENDING],
)
def _blacklisted(view: WhyView) -> Iterator[Finding]:
    """A queued one waits only for the next sweep to fail or hold it; a held one is released when the entry goes."""
    for shut in _entries(view):
        whose = " for every tenant" if shut.tenant == _EVERY else ""
        after = "it goes on when somebody lifts that"
        if view.job.state is JobState.QUEUED:
            then = "holds" if view.job.policy.on_blacklist == "hold" else "fails"
            after = f"the next sweep {then} it"
        yield Finding(
            f"workflow {shut.name} is blacklisted{whose} by {shut.by or '?'}{_since(shut.since_at)} ({shut.reason}); "
            f"{after}",
            shut.since_at,
            remedy=how_to_lift(shut.tenant, shut.name),
            details={"workflow": shut.name, "tenant": shut.tenant, "by": shut.by, "reason": shut.reason},
        )


def _entries(view: WhyView) -> list[Shut]:
    return [shut for shut in view.facts.gates if shut.code is Code.BLACKLISTED]


@_rule(Code.CONCURRENCY_LIMIT, "as many run already as a limit allows", Actor.ENGINE)
def _concurrency_limit(view: WhyView) -> Iterator[Finding]:
    for shut in _limits(view, Code.CONCURRENCY_LIMIT):
        used = f"{shut.used} of {shut.most}" if shut.used is not None else f"all {shut.most}"
        yield Finding(
            f"{_limited(shut)} has {used} running; it starts when one of them ends",
            remedy=_change_limit(shut, "--concurrency N"),
            details=_limit_details(shut),
        )


@_rule(Code.RATE_LIMITED, "as many started lately as a limit allows", Actor.ENGINE)
def _rate_limited(view: WhyView) -> Iterator[Finding]:
    for shut in _limits(view, Code.RATE_LIMITED):
        free = f"; the next may start {view.soon(shut.free_at)}" if shut.free_at else ""
        yield Finding(
            f"{_limited(shut)} has used {shut.used} of the {shut.most} starts that its rate allows{free}",
            until=shut.free_at,
            remedy=_change_limit(shut, "--rate N/PERIOD"),
            details=_limit_details(shut),
        )


def _limits(view: WhyView, code: Code) -> Iterator[Shut]:
    return (shut for shut in view.facts.gates if shut.code is code)


def _limited(shut: Shut) -> str:
    together = " (all tenants together)" if shut.tenant == _EVERY and shut.kind != "tenant" else ""
    return f"{shut.kind} {shut.name}{together}"


def _change_limit(shut: Shut, option: str) -> str:
    verb = "limits key" if shut.kind == "key" else f"{shut.kind}s limit"
    return about(f"unstuck {verb}", shut.name, f"{option} {_whose(shut, shut.kind)}".rstrip())


def _limit_details(shut: Shut) -> dict[str, Any]:
    return {"kind": shut.kind, "name": shut.name, "tenant": shut.tenant, "used": shut.used, "most": shut.most}


# --- the gates: workers -------------------------------------------------------------------------------------------


def _unserved(view: WhyView) -> bool:
    return not any(worker.serves for worker in view.facts.workers)


def _draining(view: WhyView) -> list[WorkerFacts]:
    return [w for w in view.facts.workers if w.is_live and w.state == "draining" and w.is_loaded and w.knows_workflow]


def _lacking(view: WhyView) -> list[WorkerFacts]:
    return [
        w for w in view.facts.workers if w.is_live and w.state == "active" and w.is_loaded and not w.knows_workflow
    ]


def _loading(view: WhyView) -> list[WorkerFacts]:
    return [w for w in view.facts.workers if w.is_live and w.state == "active" and not w.is_loaded]


@_rule(Code.NO_WORKER, "no live worker serves its queue", Actor.OPERATOR, "unstuck worker MODULE:APP")
def _no_worker(view: WhyView) -> Iterator[Finding]:
    if not _unserved(view) or _draining(view) or _lacking(view) or _loading(view):
        return
    seen = max((w.beat_at for w in view.facts.workers), default=None)
    last = f"the last one was seen{view.ago(seen)}" if seen else "none ever did"
    yield Finding(
        f"no live worker serves queue {view.job.queue}; {last}",
        seen,
        remedy=f"unstuck worker MODULE:APP {given('--queues', view.job.queue)}",
        details={"queue": view.job.queue, "last_seen_at": seen},
    )


@_rule(
    Code.WORKER_LACKS_CODE,
    "live workers serve its queue, but none has its workflow",
    Actor.OPERATOR,
    "unstuck workers",
)
def _worker_lacks_code(view: WhyView) -> Iterator[Finding]:
    lacking = _lacking(view)
    if not lacking or not _unserved(view):
        return
    facts, job = view.facts, view.job
    versions = sorted({w.code_version for w in lacking})
    known = (
        f"; code {facts.known_version} had it, last registered{view.ago(facts.known_at)}"
        if facts.known_version
        else ""
    )
    yield Finding(
        f"{_count(len(lacking), 'live worker')} on queue {job.queue}, none has workflow {job.workflow} "
        f"(code {', '.join(versions)}){known}",
        facts.known_at,
        details={"workflow": job.workflow, "versions": versions, "known_version": facts.known_version},
    )


@_rule(
    Code.APP_NOT_LOADED,
    "the workers that may serve it have not imported their app",
    Actor.OPERATOR,
    "unstuck workers",
)
def _app_not_loaded(view: WhyView) -> Iterator[Finding]:
    loading = _loading(view)
    if not loading or not _unserved(view):
        return
    failed = next((w for w in loading if w.problem), None)
    if failed is None:
        who = (
            "a worker that may serve it imports its" if len(loading) == 1 else f"{len(loading)} workers import their"
        )
        yield Finding(f"{who} app; what they serve is known after that", actor=Actor.ENGINE)
        return
    last_line = (failed.problem or "").strip().splitlines()[-1][:200]
    yield Finding(
        f"worker {failed.name} cannot import its app, and tries again: {last_line}",
        details={"worker": failed.name, "problem": failed.problem},
    )


@_rule(Code.WORKERS_DRAINING, "the workers that serve it are shutting down", Actor.OPERATOR, "unstuck workers")
def _workers_draining(view: WhyView) -> Iterator[Finding]:
    draining = _draining(view)
    if draining and _unserved(view):
        names = ", ".join(w.name for w in draining[:3])
        yield Finding(
            f"{_serving(len(draining))} {_be(len(draining))} shutting down ({names})",
            details={"workers": [w.name for w in draining]},
        )


@_rule(
    Code.ENGINE_STALLED,
    "it is the engine's turn, but no worker is alive or none sweeps",
    Actor.OPERATOR,
    "unstuck health",
    of=[JobState.QUEUED, JobState.PENDING, JobState.WAITING, JobState.RUNNING],
)
def _engine_stalled(view: WhyView) -> Iterator[Finding]:
    """Timers, lost workers and dependants need somebody who sweeps; one of them is late by three sweeps."""
    facts, job = view.facts, view.job
    late_after = timedelta(seconds=3 * view.times.sweep + view.times.lost_grace)
    lease = job.lease_until if job.state is JobState.RUNNING else None
    overdue = facts.due_at if job.state is JobState.QUEUED else _wake_due(facts) or lease
    pending = job.state is JobState.PENDING and bool(facts.dependencies) and not facts.sweepers
    if not pending and (overdue is None or overdue + late_after > view.now):
        return
    if facts.sweepers and (_aside(view) or any(_is_needed(view, lock) for lock in facts.locks)):
        return  # whoever sweeps passes over it: that is not for lack of sweepers
    alive = (
        "no worker is alive" if not facts.sweepers else f"{_count(facts.sweepers, 'worker')} alive, but none sweeps"
    )
    yield Finding(
        f"{alive}: timers, lost workers and dependants are looked after by workers, and one is needed",
        overdue,
        remedy=None if facts.sweepers else "unstuck worker MODULE:APP",
        details={"live_workers": facts.sweepers},
    )


def _wake_due(facts: Facts) -> datetime | None:
    """When somebody should have woken it: once it was answered, or its time came."""
    record = facts.wait if facts.job.state is JobState.WAITING else None
    return None if record is None else record.answered_at or record.until_at


# --- details of runnable ------------------------------------------------------------------------------------------


def _slots(view: WhyView) -> tuple[int, int, int]:
    serving = [w for w in view.facts.workers if w.serves]
    known = [w for w in serving if w.slots is not None]
    return len(serving), sum(w.running for w in known), sum(w.slots or 0 for w in known)


def _is_full(view: WhyView) -> bool:
    _, busy, total = _slots(view)
    return 0 < total <= busy


@_rule(Code.WORKERS_FULL, "all slots of the workers that serve it are busy", Actor.ENGINE, shuts=False)
def _workers_full(view: WhyView) -> Iterator[Finding]:
    count, busy, total = _slots(view)
    if _is_full(view):
        yield Finding(
            f"all {total} slots of {_serving(count)} are busy; it starts when one is free",
            details={"busy": busy, "slots": total, "before": view.facts.before},
        )


@_rule(Code.LOWER_PRIORITY, "jobs with a higher priority go first", Actor.ENGINE, shuts=False)
def _lower_priority(view: WhyView) -> Iterator[Finding]:
    count = view.facts.before_by_priority
    if count:
        verb = "goes" if count == 1 else "go"
        yield Finding(
            f"{_count(count, 'job')} of its workflow with a higher priority {verb} first", details={"jobs": count}
        )


@_rule(Code.OTHERS_FIRST, "jobs that have waited longer go first", Actor.ENGINE, shuts=False)
def _others_first(view: WhyView) -> Iterator[Finding]:
    count = view.facts.before - view.facts.before_by_priority
    if count > 0:
        verb = "goes" if count == 1 else "go"
        yield Finding(
            f"{_count(count, 'job')} of its workflow that waited longer {verb} first", details={"jobs": count}
        )


@_rule(Code.CLAIMABLE, "nothing keeps it", Actor.NOBODY, shuts=False)
def _claimable(view: WhyView) -> Iterator[Finding]:
    if _is_full(view) or view.facts.before:
        return
    count, _, _ = _slots(view)
    within = lasting(timedelta(seconds=view.times.poll))
    yield Finding(f"nothing keeps it; {'' if count == 1 else 'one of '}{_serving(count)} takes it within {within}")


@_rule(Code.RUNS_ALONE, "its next attempt gets a process for itself", Actor.NOBODY, shuts=False)
def _runs_alone(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if not job.alone:
        return
    why = (
        f"one of several in a process that died, {_times(job.suspects)} so far, and nobody knows whose fault it was"
        if job.suspects
        else "in a process that died"
    )
    yield Finding(
        f"its next attempt runs alone in a process: it was {why}",
        details={"suspects": job.suspects, "suspect_runs": job.policy.suspect_runs, "losses": job.losses},
    )


# --- what runs, what ended ----------------------------------------------------------------------------------------

_RUNNING = [JobState.RUNNING]


def _has_lease(view: WhyView) -> bool:
    lease = view.job.lease_until
    return lease is not None and lease > view.now


@_rule(Code.RUNNING, "it is running", Actor.NOBODY, of=_RUNNING)
def _running(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if not _has_lease(view) or job.request is not None or _aside(view, "settle"):
        return
    timeout, started = job.policy.timeout, job.started_at
    until = started + timedelta(seconds=float(timeout)) if started and timeout != "unlimited" else None
    doing = f"runs on worker {job.worker}, begun" if started else f"was claimed by worker {job.worker}"
    yield Finding(
        f"attempt {job.token} {doing}{view.ago(started or job.claimed_at)}; last beat{view.ago(job.heartbeat_at)}"
        f"{_if_it_stays_silent(view)}",
        started or job.claimed_at,
        until,
        details={"worker": job.worker, "attempt": job.token, "heartbeat_at": job.heartbeat_at},
    )


@_rule(Code.CANCELLING, "its handler was asked to stop and has not stopped yet", Actor.ENGINE, of=_RUNNING)
def _cancelling(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if not _has_lease(view) or job.request is None or _aside(view, "settle"):
        return
    until = job.requested_at + timedelta(seconds=job.policy.grace) if job.requested_at else None
    if job.request is RequestKind.DRAIN:
        until = None
    by = f" by {view.facts.request_by}" if view.facts.request_by else ""
    why = f' ("{job.request_reason}")' if job.request_reason else ""
    yield Finding(
        f"its handler was asked to stop ({job.request}){by}{view.ago(job.requested_at)}{why}, and has not yet"
        f"{_grace_left(view, until)}{_if_it_stays_silent(view)}",
        job.requested_at,
        until,
        details={
            "worker": job.worker,
            "request": job.request,
            "by": view.facts.request_by,
            "grace": job.policy.grace,
            "grace_left": None if until is None else max(0.0, (until - view.now).total_seconds()),
        },
    )


def _grace_left(view: WhyView, until: datetime | None) -> str:
    if until is None:
        return ""
    if until > view.now:
        return f"; {lasting(until - view.now)} of its grace left, then it is stuck"
    # The judge is its worker. Should that one fail to judge, any other does.
    times = view.times
    backstop = until + timedelta(seconds=times.kill_grace + times.lease + times.sweep)
    return f"; its grace is over, and its worker ends it now, or any other {view.soon(backstop)} at the latest"


def _if_it_stays_silent(view: WhyView) -> str:
    """Two beats that did not come: its worker may be frozen or cut off, although its lease still holds."""
    job, times = view.job, view.times
    if job.heartbeat_at is None or job.lease_until is None:
        return ""
    silence = view.now - job.heartbeat_at
    if silence <= timedelta(seconds=2 * times.beat + times.store_call):
        return ""
    return (
        f"; if worker {job.worker} stays silent, any other recovers the job {_at_the_latest(view, job.lease_until)}"
    )


def _recovery(view: WhyView, lease: datetime) -> datetime:
    return lease + timedelta(seconds=view.times.lost_grace + view.times.sweep + view.times.store_call)


def _at_the_latest(view: WhyView, lease: datetime) -> str:
    return f"{view.soon(_recovery(view, lease))} at the latest"


@_rule(Code.LEASE_EXPIRED, "its worker fell silent; any other recovers it", Actor.ENGINE, of=_RUNNING)
def _lease_expired(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if _has_lease(view):
        return
    lease = job.lease_until
    until = None if lease is None else _recovery(view, lease)
    yield Finding(
        f"worker {job.worker} has been silent since its beat{view.ago(job.heartbeat_at)}, and its lease ended"
        f"{view.ago(lease)}; {_recovered(view, until)}",
        lease,
        until,
        details={"worker": job.worker, "heartbeat_at": job.heartbeat_at},
    )


def _recovered(view: WhyView, until: datetime | None) -> str:
    if not view.facts.sweepers:
        return "a worker must live to recover the job, and none does"
    if _aside(view, "recover", "overdue"):
        return "it has not been recovered"
    if until is None or until <= view.now:
        return "any other recovers the job with its next sweep"
    return f"any other recovers the job {view.soon(until)} at the latest"


@_rule(Code.ENDED, "it has ended", Actor.NOBODY, of=FINAL - {JobState.DEAD})
def _ended(view: WhyView) -> Iterator[Finding]:
    job = view.job
    error = f" with {job.error_type}: {_first_line(job.error_message)}" if job.error_type else ""
    remedy, actor = None, Actor.NOBODY
    if job.state in (JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED):
        remedy = view.command(f"unstuck jobs resume {job.id}")
        actor = Actor.OWNER
    yield Finding(
        f"{job.state}{error}{view.ago(job.finished_at)}{_blocks(view)}{_anew(job)}",
        job.finished_at,
        remedy=remedy,
        actor=actor,
        details={"error_type": job.error_type, **_blocking(view), **_larger(job)},
    )


def _anew(job: JobRecord) -> str:
    """What is spent belongs to the run."""
    is_over = job.error_type == ErrorType.BUDGET_EXCEEDED and job.state is JobState.FAILED
    return "; resumed, it has its whole budget anew and keeps its finished steps" if is_over else ""


def _larger(job: JobRecord) -> dict[str, Any]:
    return {"other_remedies": [how_to_raise(job)]} if _anew(job) else {}


@_rule(Code.DEAD, "a dead letter: it was never run", Actor.OPERATOR, "unstuck jobs show JOB", of=[JobState.DEAD])
def _dead(view: WhyView) -> Iterator[Finding]:
    job = view.job
    error = f": {job.error_type}: {_first_line(job.error_message)}" if job.error_type else ""
    yield Finding(
        f"it is a dead letter and was never run{error}", job.finished_at, details={"error_type": job.error_type}
    )


# --- words --------------------------------------------------------------------------------------------------------


def lasting(span: timedelta) -> str:
    """38s, 4m 10s, 2h 5m, 3d 4h."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < 60:
        return f"{seconds}s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    return f"{hours // 24}d {hours % 24}h"


def clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _since(at: datetime | None) -> str:
    return "" if at is None else f" since {clock(at)}"


def _count(number: int, noun: str) -> str:
    shown = f"{CEILING} or more" if number >= CEILING else str(number)
    return f"{shown} {noun}{'' if number == 1 else 's'}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _serving(count: int) -> str:
    return "the worker that serves it" if count == 1 else f"the {_count(count, 'worker')} that serve it"


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def _first_line(text: str | None) -> str:
    line = (text or "").strip().splitlines()[0] if (text or "").strip() else ""
    return line if len(line) <= 200 else line[:199] + "…"
