"""Every error we raise or record.

UnstuckError
├── InvalidResult          what a handler returned is not what its signature says
├── InvalidInput           refused at the door; nothing was written
│   ├── NotAnApp           what was named as the app is there, and is something else
│   ├── InvalidArguments   they do not fit the workflow's signature
│   ├── WrongArguments     a request whose arguments do not fit its route; `problems` says where
│   ├── NotStorable        a value that no database could give back unchanged
│   ├── InvalidPolicy      an option of a workflow or job that cannot hold
│   ├── AmbiguousWorker    a pid, or a name, that several workers have
│   ├── SignatureRefused   a signature is missing where one is required, or does not hold
│   ├── AddressRefused     a webhook's host is not one that may be dialled
│   └── InvalidSettings    settings that cannot keep their promises, all problems at once
├── UnknownJob, UnknownWorkflowName, UnknownWorker, UnknownProcess, UnknownTarget, UnknownTenant
├── UnknownSetting, UnknownNotification, UnknownAlert, UnknownBulk, UnknownOrder, UnknownKey, UnknownSession,
│   UnknownSchedule, UnknownHook, UnknownWebhook, UnknownDelivery
├── Unauthenticated        no key was shown, or one that does not work
├── TooManyAttempts        too many keys that do not work; `retry_after` says when to try again
├── NotBlacklisted         nothing to lift: the workflow is not on the blacklist
├── NotQuarantined         nothing to try again: nothing of the job was set aside
├── NoDeadLetter           the job has no dead letter, or none any more
├── AmbiguousJob           a prefix that names several jobs
├── NotPermitted           the caller's role, its tenant, or what its key may touch does not allow it
├── TooManyQueued          a queue cap is reached; `retry_after` says when to try again
├── Conflict
│   ├── IllegalMove        the job's state does not allow it
│   ├── NotBlocking        a skip of a job that blocks no target
│   ├── NeedsSignature     a redrive of a dead letter that would be refused again
│   ├── NoSigningKey       a new signature is wanted where no key is held
│   ├── SecretNotOpened    a stored secret is sealed by a key that this process lacks
│   ├── CanaryNotCompleted the rest of the dead letters waits for the first
│   ├── BulkEnded          a cancel of a bulk that has ended
│   ├── OtherCount         a bulk about other jobs than its asker expects
│   ├── ScheduleExists     another schedule of the tenant has this name
│   ├── DeclaredByCode     a change of a schedule that the code of an app declares
│   ├── TooManySchedules   a tenant has as many schedules as it may
│   ├── WebhookExists      another webhook of the tenant has this name
│   ├── TooManyWebhooks    a tenant has as many webhooks as it may
│   ├── NotActive          a test of a webhook that is paused or disabled
│   ├── HookExists         another hook of the tenant has this name
│   ├── TooManyHooks       a tenant has as many hooks as it may
│   ├── WorkflowBlacklisted nothing of this workflow is accepted until somebody lifts its entry
│   ├── NoStack            the job does not run, and no attempt of it left a stack
│   ├── StaleCursor        a place in the feed that is no longer kept; `go_on` is where to go on from
│   ├── KeyConflict        the idempotency key belongs to a job with another body
│   ├── IdConflict         the id that the caller chose belongs to another job
│   ├── EventConflict      the id of an event was sent before, with another event
│   ├── KeyEnded           a key that was revoked, has expired or was rotated cannot be rotated
│   ├── NotAsked           a decision by a person whom the approval's `who` does not name
│   └── NotWaiting         a decision on an approval that is not open, an event for a job that has ended
├── TargetDeadlock         a child on a target that its waiting parent keeps
├── BudgetExceeded         `ctx.spend()` of more than the job may use
├── ApprovalRejected       what `ctx.approval()` raises when somebody said no
├── ChildrenFailed         what `ctx.gather()` raises when a child did not complete
├── StepTimeout            a step took longer than its timeout
├── StoreError
│   ├── StoreUnavailable   not reached; nothing was written
│   ├── StoreBusy          reached, refused for now; nothing was written
│   │   └── StoreLocked    another process keeps everybody from writing
│   ├── OutcomeUnknown     the answer was lost: it may have been written; safe to repeat
│   └── SchemaMismatch     the database's schema is older or newer than this code can use
├── JobFailed              `job.result()` of a job that did not complete; carries its view
├── StillRunning           `job.result(timeout=…)` ran out; the job goes on
└── NoAnswer               a worker did not answer an order in time; the order stands

Control flow of a handler (raise them; never caught by `except Exception` where they must not be):
├── Retry(after=…)         try again, at the cost of one failure
├── Fail(…)                fail now, whatever budget is left
├── Cancelled              (BaseException) what `ctx.check()` raises once the job was asked to stop
└── Unwind                 (BaseException) what a wait raises: let it pass, the job goes on when it is answered
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any


class ErrorType(StrEnum):
    """The closed list of our own reasons; a handler's exception is recorded by its class name."""

    EXECUTION_STUCK = "ExecutionStuck"
    WORKER_LOST = "WorkerLost"
    PROCESS_DIED = "ProcessDied"
    OUT_OF_MEMORY = "OutOfMemory"
    WORKFLOW_BLACKLISTED = "WorkflowBlacklisted"
    SIGNATURE_INVALID = "SignatureInvalid"
    WAIT_TIMEOUT = "WaitTimeout"
    APPROVAL_REJECTED = "ApprovalRejected"
    BUDGET_EXCEEDED = "BudgetExceeded"
    RESULT_NOT_STORABLE = "ResultNotStorable"
    INVALID_RESULT = "InvalidResult"
    INVALID_JOB = "InvalidJob"
    UNKNOWN_WORKFLOW = "UnknownWorkflow"
    DEPENDENCY_FAILED = "DependencyFailed"
    TARGET_DEADLOCK = "TargetDeadlock"
    QUEUE_TIMEOUT = "QueueTimeout"
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"
    TIMEOUT = "Timeout"


NEVER_RETRIED = frozenset(
    {
        ErrorType.SIGNATURE_INVALID,
        ErrorType.WORKFLOW_BLACKLISTED,
        ErrorType.EXECUTION_STUCK,
        ErrorType.INVALID_JOB,
        ErrorType.RESULT_NOT_STORABLE,
        ErrorType.INVALID_RESULT,
        ErrorType.UNKNOWN_WORKFLOW,
        ErrorType.WAIT_TIMEOUT,
        ErrorType.APPROVAL_REJECTED,
        ErrorType.BUDGET_EXCEEDED,
        ErrorType.TARGET_DEADLOCK,
    }
)


#: So much of what was given stands in a message about it.
_REPEATED = 200

#: What moves a terminal's cursor, colours it, renames its window or turns its letters round. Not lines and tabs.
_COMMANDS = re.compile("[\x01-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def told(value: object, limit: int = _REPEATED) -> str:
    """A value as a message may repeat it: short, and text that every stream and store can take."""
    text = (value or "''") if isinstance(value, str) else _represented(value)
    if len(text) > limit:
        text = f"{text[:limit]}… ({len(text):,} characters)"
    return harmless(text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode())


def harmless(text: str) -> str:
    """Text whose escape codes are shown instead of reaching the terminal."""
    return _COMMANDS.sub(lambda found: repr(found[0])[1:-1], text)


def quoted(value: object) -> str:
    """The same as Python writes it: text in quotes, so that spaces and escapes show."""
    if isinstance(value, str) and len(value) > _REPEATED:
        return f"{value[:_REPEATED]!r}… ({len(value):,} characters)"
    return told(_represented(value))


def _represented(value: object) -> str:
    try:
        return repr(value)
    except Exception:  # a class of the caller's own, or an integer too long to be written out
        return f"a value of type {type(value).__name__}"


def _nearest(name: str, known: Iterable[str]) -> str:
    """Names that are close to it: the writer may have meant one of these."""
    from difflib import get_close_matches  # imported only where a mistake was made

    names = sorted(set(known))
    near = get_close_matches(name, names, n=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there are: {', '.join(names[:20])}" if names else ""


class UnstuckError(Exception):
    """Anything this library refuses or reports."""


class InvalidInput(UnstuckError):
    """What was asked cannot be accepted; nothing was written."""


class NotPermitted(UnstuckError, PermissionError):
    """Who asked may not; nothing was read or written."""


class InvalidResult(UnstuckError):
    """A handler's fault, and so its job's: nobody could read the result as what it was declared to be."""

    def __init__(self, workflow: str, problem: str) -> None:
        super().__init__(f"the result of {workflow} is not what its signature says: {problem}")
        self.workflow = workflow
        self.problem = problem


class NotAnApp(InvalidInput):
    """What the name leads to is there, and is something else: a later try would find the same."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(f"{name} is not an App; its type is {kind}")
        self.found = kind


class InvalidArguments(InvalidInput):
    def __init__(self, workflow: str, problem: str) -> None:
        super().__init__(f"{workflow} cannot be called like this: {problem}")
        self.workflow = workflow
        self.problem = problem


class WrongArguments(InvalidInput):
    """What was sent does not fit the route. `problems`: (place, JSON Pointer, what is wrong); a place is "path",
    "query" or "body"."""

    def __init__(self, problems: Sequence[tuple[str, str, str]]) -> None:
        said = [f"{pointer.removeprefix('/') or place}: {detail}" for place, pointer, detail in problems]
        super().__init__("; ".join(said))
        self.problems = tuple(problems)


class NotStorable(InvalidInput):
    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where} cannot be stored: {problem}")
        self.where = where
        self.problem = problem


class SignatureRefused(InvalidInput):
    """Nothing was stored. `problem`: a code of `model.signing.SignatureProblem`; `checked`: what the signature was
    held against, without the payload."""

    def __init__(self, problem: str, sentence: str, job: str | None = None, checked: Any = None) -> None:
        about = f"job {told(job)}" if job else "the job"
        super().__init__(f"{about} is refused: {sentence}")
        self.problem = problem
        self.job = job
        self.checked = checked


class AddressRefused(InvalidInput):
    """Nothing was dialled. Which address it was is not told."""

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(
            f"host {told(host)} is not asked: {problem}; a platform's admin can allow it: "
            "unstuck settings set webhook_allow HOST,NETWORK"
        )
        self.host = host
        self.problem = problem


class InvalidPolicy(InvalidInput):
    def __init__(self, owner: str, problems: Sequence[str]) -> None:
        super().__init__(f"{owner}: {'; '.join(problems)}")
        self.owner = owner
        self.problems = tuple(problems)


class InvalidSettings(InvalidInput):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("these settings cannot hold:\n" + "\n".join(f"  - {p}" for p in problems))
        self.problems = tuple(problems)


class UnknownJob(UnstuckError):
    """`tenant`: whose jobs were looked at, where that may explain it."""

    def __init__(self, job: str, tenant: str | None = None) -> None:
        whose = f" of tenant {told(tenant)}" if tenant else ""
        super().__init__(f"there is no job {told(job)}{whose}; `unstuck jobs list` shows the ones there are")
        self.job = job


class AmbiguousJob(UnstuckError):
    def __init__(self, prefix: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{told(prefix)} names several jobs: {', '.join(candidates)}; give more of the id")
        self.prefix = prefix
        self.candidates = tuple(candidates)


class UnknownWorkflowName(UnstuckError):
    def __init__(self, workflow: str, known: Iterable[str] = (), hint: str | None = None) -> None:
        names = ", ".join(sorted(known))
        hint = hint or (f"known here: {names}" if names else "start a worker of the app that defines it first")
        super().__init__(f"there is no workflow {told(workflow)}; {hint}")
        self.workflow = workflow


class UnknownWorker(UnstuckError):
    """`is_past`: there was one, but it is gone."""

    def __init__(
        self, worker: str, known: Iterable[str] = (), hint: str | None = None, *, is_past: bool = False
    ) -> None:
        hint = hint or _nearest(worker, known) or "`unstuck workers` shows the ones there are"
        super().__init__(f"there is no worker {told(worker)}{' any more' if is_past else ''}; {hint}")
        self.worker = worker


class UnknownProcess(UnstuckError):
    """No worker that lives says it has such an executor."""

    def __init__(self, pid: int, known: Iterable[int] = (), hint: str | None = None) -> None:
        pids = ", ".join(str(other) for other in sorted(set(known))[:20])
        hint = hint or (f"the workers have: {pids}" if pids else "no worker that lives has any")
        super().__init__(
            f"there is no process {told(pid)} of a worker; {hint}; `unstuck workers` shows whose they are"
        )
        self.pid = pid


class AmbiguousWorker(InvalidInput):
    """A name or pid that several workers have; the message says how to choose."""

    def __init__(self, what: str, candidates: Sequence[str], how: str) -> None:
        super().__init__(f"{what} is not one but {len(candidates)}: {', '.join(candidates[:20])}; {how}")
        self.candidates = tuple(candidates)


class UnknownTarget(UnstuckError):
    def __init__(self, target: str) -> None:
        super().__init__(f"there is no target {told(target)}; `unstuck targets` shows the ones there are")
        self.target = target


class UnknownTenant(UnstuckError):
    def __init__(self, tenant: str) -> None:
        super().__init__(f"there is no tenant {told(tenant)}; `unstuck tenants` shows the ones there are")
        self.tenant = tenant


class UnknownSetting(UnstuckError):
    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        hint = _nearest(name, known) or "`unstuck settings list` shows the ones there are"
        super().__init__(f"there is no runtime setting {told(name)}; {hint}")
        self.setting = name


class UnknownNotification(UnstuckError):
    def __init__(self, number: object) -> None:
        super().__init__(
            f"there is no notification {told(number)}; `unstuck notifications --all` shows the ones there are"
        )
        self.number = number


class UnknownAlert(UnstuckError):
    def __init__(self, number: object) -> None:
        super().__init__(f"there is no alert {told(number)}; `unstuck alerts --all` shows the ones there are")
        self.number = number


class UnknownBulk(UnstuckError):
    def __init__(self, number: object) -> None:
        super().__init__(f"there is no bulk {told(number)}; `unstuck bulks` shows the ones there are")
        self.number = number


class UnknownSchedule(UnstuckError):
    def __init__(self, name: object) -> None:
        super().__init__(f"there is no schedule {told(name)}; `unstuck schedules` shows the ones there are")
        self.name = name


class UnknownWebhook(UnstuckError):
    def __init__(self, name: object) -> None:
        super().__init__(f"there is no webhook {told(name)}; `unstuck webhooks` shows the ones there are")
        self.name = name


class UnknownDelivery(UnstuckError):
    def __init__(self, number: object) -> None:
        super().__init__(
            f"there is no delivery {told(number)}, or none any more; `unstuck deliveries` shows those that are kept"
        )
        self.number = number


class UnknownHook(UnstuckError):
    def __init__(self, name: object) -> None:
        super().__init__(f"there is no hook {told(name)}; `unstuck hooks` shows the ones there are")
        self.name = name


class UnknownOrder(UnstuckError):
    def __init__(self, number: object) -> None:
        super().__init__(f"there is no order {told(number)} to a worker; those that were answered are soon forgotten")
        self.number = number


class UnknownKey(UnstuckError):
    def __init__(self, key: object) -> None:
        super().__init__(f"there is no API key {told(key)}; `unstuck keys list` shows the ones there are")
        self.key = key


class UnknownSession(UnstuckError):
    def __init__(self, session: object) -> None:
        super().__init__(
            f"there is no browser session {told(session)}, or it has ended; `unstuck sessions` shows those that go on"
        )
        self.session = session


class Unauthenticated(UnstuckError):
    """Of a key that does not work it never says why: unknown, wrong, mistyped, expired and revoked look alike."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(
            message
            or "this API key does not work; show one that does: `unstuck keys list` shows which there are, "
            "`unstuck keys create NAME --role ROLE` makes one"
        )


class TooManyAttempts(UnstuckError):
    """Nothing was looked at. Whose key worked a moment ago is not concerned."""

    def __init__(self, retry_after: float) -> None:
        super().__init__(
            f"too many API keys that do not work were tried; try again in {max(1.0, retry_after):.0f} s, "
            "with one that `unstuck keys list` shows"
        )
        self.retry_after = retry_after


class NotBlacklisted(UnstuckError):
    def __init__(self, workflow: str, hint: str = "`unstuck blacklist list` shows what is") -> None:
        super().__init__(f"workflow {told(workflow)} is not on the blacklist; {hint}")
        self.workflow = workflow


class NotQuarantined(UnstuckError):
    def __init__(self, job: str) -> None:
        super().__init__(f"nothing of job {told(job)} is set aside; `unstuck quarantine list` shows what is")
        self.job = job


class NoDeadLetter(UnstuckError):
    def __init__(self, job: str) -> None:
        super().__init__(
            f"job {told(job)} has no dead letter, or none any more; `unstuck dead-letters list` shows those there "
            f"are, `unstuck jobs show {told(job)}` what became of the job"
        )
        self.job = job


class TooManyQueued(UnstuckError):
    """A queue cap is reached: nothing was stored."""

    def __init__(self, what: str, most: int, retry_after: float = 5.0) -> None:
        super().__init__(
            f"{what} has {most} jobs waiting, as many as it may; nothing was stored, try again in {retry_after:g} s"
        )
        self.what = what
        self.most = most
        self.retry_after = retry_after


class Conflict(UnstuckError):
    """It exists, but not in a shape that allows this."""


#: The moves that a person may ask for; the others are the engine's own affair.
_ASKED = frozenset({"release", "cancel", "interrupt", "resume", "resolve", "redrive"})


class IllegalMove(Conflict):
    """`possible` are the moves of its state; the message names those that a person can ask for."""

    def __init__(self, job: str, state: str, move: str, possible: Iterable[str]) -> None:
        asked = {str(verb) for verb in possible} & _ASKED
        if "resume" in asked or state == "QUEUED":  # as a verb it means: from the start, or now instead of later
            asked.add("retry")
        can = f"; it can be: {', '.join(_done(verb) for verb in sorted(asked))}" if asked else ": it has ended"
        article = "an" if state[0] in "AEIOU" else "a"
        super().__init__(f"job {job}: {article} {state} job cannot be {_done(move)}{can}")
        self.job = job
        self.state = state
        self.move = move


#: What is done to a job, where it is not the verb with "ed" or "d" behind it.
_PARTICIPLES = {
    "cancel": "cancelled",
    "retry": "retried",
    "hurry": "hurried",
    "redrive": "redriven",
    "bury": "buried",
    "wake": "woken",
    "give back": "given back",
    "hold": "held",
    "stick": "declared stuck",
    "lose": "lost",
    "time out": "timed out",
}


def _done(verb: str) -> str:
    return _PARTICIPLES.get(verb) or f"{verb}{'d' if verb.endswith('e') else 'ed'}"


class NeedsSignature(Conflict):
    """A redrive of a job whose signature was refused: it would be refused again."""

    def __init__(self, job: str, reason: str, sentence: str) -> None:
        super().__init__(
            f"job {told(job)} would be a dead letter again: {sentence} ({reason}); sign it anew: `unstuck "
            f"dead-letters resign {told(job)}`; if keys or rules of the workers were mended since: redrive it with "
            "--force"
        )
        self.job = job
        self.reason = reason


class NoSigningKey(Conflict):
    """A new signature is wanted of a process that has no key for it."""

    def __init__(self, job: str, tenant: str) -> None:
        super().__init__(
            f"job {told(job)}: this process holds no key that signs submits of tenant {told(tenant)} now; ask where "
            "one is held (signing_keys), or give a signature that was made elsewhere (docs/dead-letters.md)"
        )
        self.job = job
        self.tenant = tenant


class SecretNotOpened(Conflict):
    """A stored secret cannot be opened here: its sealing key is not held, or its row was changed."""


class CanaryNotCompleted(Conflict):
    """The rest of the dead letters is let go on only when the first has completed."""

    def __init__(self, job: str, state: str) -> None:
        then = "wait for its end" if state in ("QUEUED", "RUNNING", "WAITING", "PENDING") else "see why"
        super().__init__(
            f"the canary, job {told(job)}, is {state} and not COMPLETED: nothing was redriven; {then}: "
            f"`unstuck jobs show {told(job)}`"
        )
        self.job = job
        self.state = state


class NotBlocking(Conflict):
    def __init__(self, job: str, target: str | None) -> None:
        where = f"does not block target {target}" if target else "has no target"
        super().__init__(
            f"job {job} {where}: there is nothing to skip; `unstuck targets --blocked` lists what blocks"
        )
        self.job = job
        self.target = target


class BulkEnded(Conflict):
    def __init__(self, number: int, state: str) -> None:
        super().__init__(f"bulk {number} is {state}: there is nothing left to cancel")
        self.number = number
        self.state = state


class OtherCount(Conflict):
    """Nothing was started: the jobs that match are not as many as the caller has seen."""

    def __init__(self, expected: int, found: int, *, is_exact: bool) -> None:
        super().__init__(
            f"{expected} jobs were expected, and {'' if is_exact else 'at least '}{found} match; "
            "nothing was started, count again"
        )
        self.expected = expected
        self.found = found


class ScheduleExists(Conflict):
    def __init__(self, name: str, owner: str | None) -> None:
        whose = "" if owner is None else f", declared by the code of app {told(owner)}"
        super().__init__(f"there is a schedule {told(name)} already{whose}; change that one, or choose another name")
        self.name = name
        self.owner = owner


class DeclaredByCode(Conflict):
    def __init__(self, name: str, owner: str) -> None:
        super().__init__(
            f"schedule {told(name)} is declared by the code of app {told(owner)}: change it there, or pause it here"
        )
        self.name = name
        self.owner = owner


class TooManySchedules(Conflict):
    def __init__(self, tenant: str, most: int) -> None:
        super().__init__(
            f"tenant {told(tenant)} has {most} schedules, as many as it may; delete one, or raise the setting: "
            "unstuck settings set schedules_per_tenant NUMBER"
        )
        self.tenant = tenant
        self.most = most


class WebhookExists(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"there is a webhook {told(name)} already; change that one, or choose another name")
        self.name = name


class TooManyWebhooks(Conflict):
    def __init__(self, tenant: str, most: int) -> None:
        super().__init__(
            f"tenant {told(tenant)} has {most} webhooks, as many as it may; delete one, or raise the setting: "
            "unstuck settings set webhooks_per_tenant NUMBER"
        )
        self.tenant = tenant
        self.most = most


class HookExists(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"there is a hook {told(name)} already; change that one, or choose another name")
        self.name = name


class TooManyHooks(Conflict):
    def __init__(self, tenant: str, most: int) -> None:
        super().__init__(
            f"tenant {told(tenant)} has {most} hooks, as many as it may; delete one, or raise the setting: "
            "unstuck settings set hooks_per_tenant NUMBER"
        )
        self.tenant = tenant
        self.most = most


class NotActive(Conflict):
    def __init__(self, name: str, state: str) -> None:
        from unstuck.model.spelling import about

        super().__init__(f"webhook {told(name)} is {state}: {about('unstuck webhooks enable', name)}")
        self.name = name
        self.state = state


class WorkflowBlacklisted(Conflict):
    """Nothing was stored. `entry` says everything about it; `tenant` is whose it is, "*" for everybody's."""

    def __init__(self, workflow: str, tenant: str, message: str, entry: Any = None) -> None:
        super().__init__(message)
        self.workflow = workflow
        self.tenant = tenant
        self.entry = entry


class NoStack(Conflict):
    """Nothing shows where a job stands, or stood."""

    def __init__(self, job: str, state: str, why: str) -> None:
        super().__init__(f"job {job} is {state} and has no stack to show: {why}")
        self.job = job
        self.state = state


class StaleCursor(Conflict):
    """The feed cannot go on from this cursor without leaving something out; from `go_on` it can."""

    def __init__(self, message: str, cursor: str, go_on: str, reason: str) -> None:
        super().__init__(message)
        self.cursor = cursor
        self.go_on = go_on
        #: "expired", "ahead" or "foreign".
        self.reason = reason

    @classmethod
    def expired(cls, cursor: str, oldest: str) -> StaleCursor:
        return cls(
            f"cursor {told(cursor)} is older than what the feed keeps: events after it are gone from the feed; "
            f"what is kept begins after {oldest}",
            cursor,
            oldest,
            "expired",
        )

    @classmethod
    def ahead(cls, cursor: str, newest: str) -> StaleCursor:
        return cls(
            f"cursor {told(cursor)} is ahead of the feed, as after a restore from a backup; it ends at {newest}",
            cursor,
            newest,
            "ahead",
        )

    @classmethod
    def foreign(cls, cursor: str, oldest: str) -> StaleCursor:
        return cls(
            f"cursor {told(cursor)} is one of another database's feed; what this one keeps begins after {oldest}",
            cursor,
            oldest,
            "foreign",
        )


class KeyConflict(Conflict):
    def __init__(self, key: str, job: str) -> None:
        super().__init__(
            f"idempotency key {key!r} belongs to job {job}, which has another body; use another key for another job"
        )
        self.key = key
        self.job = job


class IdConflict(Conflict):
    """Of a job with another workflow or other arguments, and of another tenant's: which, it does not say."""

    def __init__(self, job: str) -> None:
        super().__init__(f"the id {job} belongs to another job; use another id for another job")
        self.job = job


class EventConflict(Conflict):
    def __init__(self, id: str) -> None:
        super().__init__(
            f"an event with the id {told(id)!r} was sent there before, with another name or payload; "
            "use another id for another event"
        )
        self.id = id


class NotAsked(Conflict):
    """A question that was put to certain people, and this is none of them. Nothing was written."""

    def __init__(self, job: str, question: str, who: Sequence[str], by: str) -> None:
        names = ", ".join(told(name) for name in who)
        super().__init__(
            f"{told(question)!r} of job {job} is asked of {names}: {told(by)!r} cannot decide it; "
            "name who decides: by=… or --by NAME"
        )
        self.job = job
        self.who = tuple(who)
        self.by = by


class KeyEnded(Conflict):
    """`state`: revoked, expired or rotated. `to`: the key that took its place."""

    def __init__(self, key: str, state: str, to: str | None = None) -> None:
        hint = f"rotate {to}, which took its place" if to else "make another one: `unstuck keys create`"
        super().__init__(f"API key {key} is {state} and cannot be rotated; {hint}")
        self.key = key
        self.state = state


class NotWaiting(Conflict):
    """Nothing was written: nobody waits for this."""


class TargetDeadlock(UnstuckError):
    """It would wait for a child that waits for its own turn on the target."""


class BudgetExceeded(UnstuckError):
    """More was spent than the job may use: it ends FAILED, whatever its handler does now."""


class ApprovalRejected(UnstuckError):
    """The answer was no; uncaught, the job fails."""

    def __init__(self, question: str, by: str | None = None, comment: str | None = None) -> None:
        super().__init__(f"{question!r} was rejected by {by or 'nobody'}" + (f": {comment}" if comment else ""))
        self.question = question
        self.by = by
        self.comment = comment


class ChildrenFailed(UnstuckError):
    """Not all children completed. `failed`: what is known of each that did not."""

    def __init__(self, message: str, failed: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.failed = tuple(failed)


class StepTimeout(UnstuckError, TimeoutError):
    """A step took longer than it may."""


class StoreError(UnstuckError):
    """The database did not do what was asked."""


class StoreUnavailable(StoreError):
    """Not reached; nothing was written."""


class StoreBusy(StoreError):
    """Reached, but refused for now (a lock, a full disk, read-only); nothing was written."""


class StoreLocked(StoreBusy):
    """Another process keeps everybody from writing, as SQLite's one lock allows: no item is to blame for it."""


class OutcomeUnknown(StoreError):
    """The answer was lost on the way: it may have been written. Every verb is safe to repeat."""


class SchemaMismatch(StoreError):
    """The database's schema does not fit this code; the message says which command mends it."""


class JobFailed(UnstuckError):
    """The job ended, but not COMPLETED. `view` is the job as it ended."""

    def __init__(self, job: str, state: str, error_type: str | None, message: str | None, view: Any = None) -> None:
        super().__init__(f"job {job} is {state}: {error_type or 'no error'}: {message or ''}".rstrip(": "))
        self.job = job
        self.state = state
        self.error_type = error_type
        self.message = message
        self.view = view


class StillRunning(UnstuckError, TimeoutError):
    """The wait ran out; the job goes on."""

    def __init__(self, job: str, state: str, waited: float) -> None:
        outlook = "it stays so until somebody resumes or resolves it" if state == "PAUSED" else "it goes on"
        super().__init__(f"job {job} is still {state} after {waited:g} s; {outlook}")
        self.job = job
        self.state = state


class NoAnswer(UnstuckError, TimeoutError):
    """The wait ran out; the order stands, and its worker may still carry it out."""

    def __init__(self, order: str, worker: str, waited: float, why: str | None = None) -> None:
        why = why or "it may be frozen or cut off from the database"
        super().__init__(
            f"worker {worker} did not answer the order to {_ORDERS.get(order, order)} within {waited:g} s: {why}"
        )
        self.worker = worker


#: What an order asks for, as a sentence says it.
_ORDERS = {"stack": "show a stack", "recycle": "recycle a process", "drain": "drain", "kill": "end a process"}


class Retry(Exception):
    """Raise it in a handler: try again, after these seconds, at the cost of one failure."""

    def __init__(self, message: str = "asked for a retry", *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


class Fail(Exception):
    """Raise it in a handler: fail now, whatever budget is left."""


class Cancelled(BaseException):
    """What `ctx.check()` raises once the job was asked to stop; `except Exception` lets it pass."""


class Unwind(BaseException):
    """What a wait raises in a handler: its job is parked, and goes on from the top when the wait is answered."""
