"""settle(standing, outcome): what an attempt's end means for its job.

Theory of operation. An attempt ends in one of a few ways (Outcome). A request may be pending (cancel, interrupt,
timeout, …), made durable before the handler heard of it. `settle` crosses the two, so that a request is never lost,
however it is settled: the worker's report, a stuck verdict and a janitor's recovery all come through here. Pure: the
store reads the standing and applies the settlement in one transaction.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Literal

from unstuck.model.errors import NEVER_RETRIED, ErrorType
from unstuck.model.lifecycle import MOVES, JobState, Move, RequestKind, stronger
from unstuck.model.policy import LOSS_BACKOFF, Policy
from unstuck.model.waits import Wait
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """What went wrong, as people will read it."""

    type: str
    message: str
    stack: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a running job stands: what a settlement may depend on."""

    policy: Policy
    failures: int = 0
    losses: int = 0
    suspects: int = 0
    request: RequestKind | None = None
    #: What the request's maker said; of a budget what was used and allowed.
    request_reason: str | None = None
    request_by: str | None = None


@dataclass(slots=True)
class Returned:
    """The handler returned; `result` is JSON text that was checked to be storable."""

    result: str | None = None


@dataclass(frozen=True, slots=True)
class Raised:
    """The handler raised. `retry` is the handler's own word (Fail, Retry, retry_on), None leaves it to the policy."""

    error: ErrorInfo
    retry: bool | None = None
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Stopped:
    """The handler obeyed a request. `asked` is what its supervisor asked; the durable request may be stronger."""

    asked: RequestKind | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The handler never began: it goes back uncharged."""

    reason: str = "given back before it started"


#: own: the process died under this job alone, or the job is known to be the culprit. worker: its whole worker was
#: lost. suspect: one of several in a process that died. bystander: all of its worker's processes fell at once, or new
#: ones die one after the other, maybe of their start, or its handler had just ended and others had not; and it had
#: not run by itself before. neighbour: another job is known to be the culprit. uncharged: the worker had announced
#: its drain, or fenced itself as the store was away.
Blame = Literal["own", "worker", "suspect", "bystander", "neighbour", "uncharged"]


@dataclass(frozen=True, slots=True)
class Lost:
    """Its process or worker is gone."""

    error: ErrorInfo
    blame: Blame


@dataclass(frozen=True, slots=True)
class Stuck:
    """It ignored its request for the whole grace; its body may still live, in the executor with this pid, unless it
    `is_gone` with its process. Not `is_proven`: that process was silent as a whole, beside others, and nothing says
    whose doing that was."""

    error: ErrorInfo
    pid: int | None = None
    is_gone: bool = False
    is_proven: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """Its handler must not begin, now or ever: its signature does not hold. `problem`: a code of
    `model.signing.SignatureProblem`. Nothing that was asked of it changes that."""

    error: ErrorInfo
    problem: str


@dataclass(frozen=True, slots=True)
class Parked:
    """The handler unwound to wait for something without a slot."""

    wait: Wait


Outcome = Returned | Raised | Stopped | NotStarted | Lost | Stuck | Parked | Refused


@dataclass(frozen=True, slots=True)
class Settlement:
    """What to write: where the job goes, what is kept, what is charged."""

    move: Move
    error: ErrorInfo | None = None
    result: str | None = None
    delay: float = 0.0
    late: bool = False
    failure: int = 0
    loss: int = 0
    suspect: int = 0
    alone: bool = False
    body_may_live: bool = False
    wait: Wait | None = None
    state: JobState = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", MOVES[JobState.RUNNING][self.move])


INTERRUPTED_BY_USER = "Job was interrupted by user"


def settle(standing: Standing, outcome: Outcome, jitter: float = 0.0) -> Settlement:
    """Decide what an attempt's outcome means for its job; jitter in [0, 1)."""
    settlement = _settle(standing, outcome, jitter)
    return settlement if isinstance(outcome, NotStarted) else _within_retries(standing, settlement)


def _within_retries(standing: Standing, settlement: Settlement) -> Settlement:
    """`max_retries` counts every time that a handler begins anew, also where nobody else would charge the job."""
    most = standing.policy.max_retries
    if most is None or settlement.move not in (Move.RETRY, Move.LOSE, Move.GIVE_BACK):
        return settlement
    if not (settlement.failure or settlement.loss or settlement.suspect):
        settlement = replace(settlement, loss=1)
    if standing.failures + standing.losses + standing.suspects < most:
        return settlement
    return replace(settlement, move=Move.FAIL, delay=0.0, alone=False)


def _settle(standing: Standing, outcome: Outcome, jitter: float) -> Settlement:
    asked = outcome.asked if isinstance(outcome, Stopped) else None
    request = stronger(standing.request, asked)
    match outcome:
        case Stuck(error):
            return Settlement(Move.STICK, error=error, body_may_live=not outcome.is_gone)
        case Refused(error):
            return Settlement(Move.BURY, error=error)
        case Returned(result):
            return _returned(standing, request, result)
        case NotStarted():
            return _never_started(standing, request, outcome)
        case Parked(wait):
            return _parked(standing, request, wait)
        case _ if request is not None:
            return _stopped(standing, request, outcome, jitter)
        case Raised():
            return _raised(standing, outcome, jitter)
        case Lost():
            return _lost(standing, outcome, jitter)
        case Stopped():
            return Settlement(Move.GIVE_BACK, error=_error_of(outcome, "stopped by its worker"))


def _returned(standing: Standing, request: RequestKind | None, result: str | None) -> Settlement:
    match request:
        case RequestKind.CANCEL:
            return Settlement(Move.CANCEL, error=_cancelled(standing), result=result)
        case RequestKind.BUDGET:
            return Settlement(Move.FAIL, error=_over_budget(standing), result=result)
        case RequestKind.TIMEOUT:
            return Settlement(Move.COMPLETE, result=result, late=True)
        case _:
            return Settlement(Move.COMPLETE, result=result)


def _never_started(standing: Standing, request: RequestKind | None, outcome: NotStarted) -> Settlement:
    match request:
        case RequestKind.CANCEL:
            return Settlement(Move.CANCEL, error=_cancelled(standing))
        case RequestKind.INTERRUPT:
            return Settlement(Move.INTERRUPT, error=_INTERRUPTED)
        case RequestKind.BUDGET:
            return Settlement(Move.FAIL, error=_over_budget(standing))
        case _:
            return Settlement(Move.GIVE_BACK, error=ErrorInfo("NotStarted", outcome.reason))


def _parked(standing: Standing, request: RequestKind | None, wait: Wait) -> Settlement:
    match request:
        case RequestKind.CANCEL:
            return Settlement(Move.CANCEL, error=_cancelled(standing))
        case RequestKind.BUDGET:
            return Settlement(Move.FAIL, error=_over_budget(standing))
        case RequestKind.INTERRUPT:
            return Settlement(Move.INTERRUPT, error=_INTERRUPTED)
        case _:
            return Settlement(Move.PARK, wait=wait)


def _stopped(standing: Standing, request: RequestKind, outcome: Raised | Stopped | Lost, jitter: float) -> Settlement:
    """It stopped, raised or was lost while a request was pending: the request's kind decides."""
    match request:
        case RequestKind.CANCEL:
            return Settlement(Move.CANCEL, error=_by(outcome, _cancelled(standing)))
        case RequestKind.BUDGET:
            return Settlement(Move.FAIL, error=_over_budget(standing))
        case RequestKind.INTERRUPT:
            return Settlement(Move.INTERRUPT, error=_by(outcome, _INTERRUPTED))
        case RequestKind.TIMEOUT:
            return _timed_out(standing, outcome, jitter)
        case RequestKind.DRAIN:
            return _drained(standing, outcome, jitter)


def _by(outcome: Outcome, error: ErrorInfo) -> ErrorInfo:
    """An attempt that did not stop by itself, but lost its process or worker meanwhile: the error says so."""
    if not isinstance(outcome, Lost):
        return error
    return replace(error, message=f"{error.message}; {outcome.error.message}", stack=outcome.error.stack)


def _timed_out(standing: Standing, outcome: Outcome, jitter: float) -> Settlement:
    limit = standing.policy.timeout
    error = _by(outcome, ErrorInfo(ErrorType.TIMEOUT, f"stopped after its time limit of {limit} seconds"))
    if standing.policy.retry_on_timeout and standing.failures < standing.policy.retries:
        delay = standing.policy.backoff.delay(standing.failures + 1, jitter)
        return Settlement(Move.RETRY, error=error, delay=delay, failure=1)
    return Settlement(Move.EXPIRE, error=error)


def _drained(standing: Standing, outcome: Raised | Stopped | Lost, jitter: float) -> Settlement:
    error = _error_of(outcome, "its worker was shutting down")
    if standing.policy.on_drain_timeout == "expire":
        return _lost(standing, Lost(error, "worker"), jitter)
    if isinstance(outcome, Lost):  # that its process died was our doing, and no news about the job
        error = ErrorInfo(ErrorType.INTERRUPTED, "its worker was shutting down, and it did not stop in time")
    match standing.policy.on_drain_timeout:
        case "pause":
            return Settlement(Move.INTERRUPT, error=error)
        case _:
            return Settlement(Move.GIVE_BACK, error=error)


def _raised(standing: Standing, outcome: Raised, jitter: float) -> Settlement:
    policy, error = standing.policy, outcome.error
    retryable = outcome.retry is not False and error.type not in NEVER_RETRIED
    if not retryable or standing.failures >= policy.retries:
        return Settlement(Move.FAIL, error=error, failure=1)
    delay = outcome.after if outcome.after is not None else policy.backoff.delay(standing.failures + 1, jitter)
    return Settlement(Move.RETRY, error=error, delay=delay, failure=1)


def _lost(standing: Standing, outcome: Lost, jitter: float) -> Settlement:
    policy, error = standing.policy, outcome.error
    match policy.on_lost:
        case "fail":
            return Settlement(Move.FAIL, error=error, loss=1)
        case "pause":
            return Settlement(Move.INTERRUPT, error=error, loss=1)
    match outcome.blame:
        case "neighbour" | "uncharged":
            return Settlement(Move.LOSE, error=error)
        case "bystander":
            return Settlement(Move.LOSE, error=error, alone=True)
        case "suspect" if standing.suspects >= policy.suspect_runs:
            return Settlement(Move.FAIL, error=error, suspect=1)
        case "suspect":
            return Settlement(Move.LOSE, error=error, suspect=1, alone=True)
        case _ if standing.losses >= policy.max_lost:
            return Settlement(Move.FAIL, error=error, loss=1)
        case _:
            delay = LOSS_BACKOFF.delay(standing.losses, jitter) if standing.losses else 0.0
            return Settlement(Move.LOSE, error=error, delay=delay, loss=1, alone=outcome.blame == "own")


def _error_of(outcome: Raised | Stopped | Lost, otherwise: str) -> ErrorInfo:
    if isinstance(outcome, Stopped):
        return ErrorInfo("Stopped", outcome.message or otherwise)
    return outcome.error


_INTERRUPTED = ErrorInfo(ErrorType.INTERRUPTED, INTERRUPTED_BY_USER)


def cancelled(by: str | None, reason: str | None) -> ErrorInfo:
    """The end of a cancelled job tells who cancelled it, and why."""
    who = f"cancelled by {by or 'request'}"
    return ErrorInfo(ErrorType.CANCELLED, f"{who}: {reason}" if reason else who)


def _cancelled(standing: Standing) -> ErrorInfo:
    """A cancel that only the outcome tells of has no author: the request on record is a weaker one."""
    if standing.request is not RequestKind.CANCEL:
        return cancelled(None, None)
    return cancelled(standing.request_by, standing.request_reason)


def _over_budget(standing: Standing) -> ErrorInfo:
    return ErrorInfo(ErrorType.BUDGET_EXCEEDED, standing.request_reason or "used more than its budget allows")
