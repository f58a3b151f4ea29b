"""The states of a job and the one table of legal moves.

Theory of operation. A job is in exactly one state. A move is a verb; MOVES says which verbs a state knows and
where each leads. Everything that changes a job (a submit, a claim, a settlement, a janitor's duty, a person) names a
move; the store applies it together with the event of the same transaction, so that folding a job's events over
this table gives its row. End states never change: a resume or a resolve opens a new *run* of the same job.
The diagram in docs/lifecycle.md is drawn from this file.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from unstuck.model.errors import IllegalMove


class JobState(StrEnum):
    PENDING = "PENDING"
    QUEUED = "QUEUED"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"
    DEAD = "DEAD"

    @property
    def is_final(self) -> bool:
        return self in FINAL

    @classmethod
    def _missing_(cls, value: object) -> JobState | None:
        return ALIASES.get(value) if isinstance(value, str) else None


FINAL = frozenset(
    {JobState.COMPLETED, JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED, JobState.DEAD},
)

#: Names under which the documents this project grew from know the states: accepted as input, never given out.
ALIASES = {
    "SUCCESS": JobState.COMPLETED,
    "ERROR": JobState.FAILED,
    "CANCELED": JobState.CANCELLED,
    "DLQ": JobState.DEAD,
}


class Shown(StrEnum):
    """Parts of a state that people know by a name of their own: told and accepted by lists, never stored."""

    SCHEDULED = "SCHEDULED"
    RETRYING = "RETRYING"
    BLOCKED = "BLOCKED"
    CANCELLING = "CANCELLING"
    STUCK = "STUCK"

    @property
    def state(self) -> JobState:
        return _WHOLE[self]


_WHOLE = {
    Shown.SCHEDULED: JobState.QUEUED,
    Shown.RETRYING: JobState.QUEUED,
    Shown.BLOCKED: JobState.QUEUED,
    Shown.CANCELLING: JobState.RUNNING,
    Shown.STUCK: JobState.FAILED,
}


class Move(StrEnum):
    """What can happen to a job; the value is the verb people read."""

    SUBMIT = "submit"
    RELEASE = "release"
    CLAIM = "claim"
    GIVE_BACK = "give back"
    COMPLETE = "complete"
    RETRY = "retry"
    LOSE = "lose"
    FAIL = "fail"
    STICK = "stick"
    EXPIRE = "time out"
    CANCEL = "cancel"
    INTERRUPT = "interrupt"
    PARK = "park"
    WAKE = "wake"
    HOLD = "hold"
    BURY = "bury"
    RESUME = "resume"
    RESOLVE = "resolve"
    REDRIVE = "redrive"


_S = JobState
_M = Move

MOVES: dict[JobState, dict[Move, JobState]] = {
    _S.PENDING: {
        _M.RELEASE: _S.QUEUED,
        _M.FAIL: _S.FAILED,
        _M.CANCEL: _S.CANCELLED,
        _M.INTERRUPT: _S.PAUSED,
    },
    _S.QUEUED: {
        _M.CLAIM: _S.RUNNING,
        _M.HOLD: _S.PENDING,
        _M.FAIL: _S.FAILED,
        _M.BURY: _S.DEAD,
        _M.CANCEL: _S.CANCELLED,
        _M.INTERRUPT: _S.PAUSED,
    },
    _S.RUNNING: {
        _M.COMPLETE: _S.COMPLETED,
        _M.RETRY: _S.QUEUED,
        _M.GIVE_BACK: _S.QUEUED,
        _M.LOSE: _S.QUEUED,
        _M.PARK: _S.WAITING,
        _M.INTERRUPT: _S.PAUSED,
        _M.FAIL: _S.FAILED,
        _M.STICK: _S.FAILED,
        _M.EXPIRE: _S.TIMEOUT,
        _M.CANCEL: _S.CANCELLED,
        _M.BURY: _S.DEAD,
    },
    _S.WAITING: {
        _M.WAKE: _S.QUEUED,
        _M.FAIL: _S.FAILED,
        _M.CANCEL: _S.CANCELLED,
        _M.INTERRUPT: _S.PAUSED,
    },
    _S.PAUSED: {_M.RESUME: _S.QUEUED, _M.RESOLVE: _S.COMPLETED, _M.CANCEL: _S.CANCELLED},
    _S.FAILED: {_M.RESUME: _S.QUEUED, _M.RESOLVE: _S.COMPLETED},
    _S.TIMEOUT: {_M.RESUME: _S.QUEUED, _M.RESOLVE: _S.COMPLETED},
    _S.CANCELLED: {_M.RESUME: _S.QUEUED},
    _S.COMPLETED: {},
    _S.DEAD: {_M.REDRIVE: _S.QUEUED},
}


class EventKind(StrEnum):
    """What a job's history is made of: one kind per move, and requests, which move nothing by themselves."""

    SUBMITTED = "submitted"
    RELEASED = "released"
    CLAIMED = "claimed"
    GIVEN_BACK = "given_back"
    COMPLETED = "completed"
    RETRIED = "retried"
    LOST = "lost"
    FAILED = "failed"
    STUCK = "stuck"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"
    PARKED = "parked"
    WOKEN = "woken"
    HELD = "held"
    BURIED = "buried"
    RESUMED = "resumed"
    RESOLVED = "resolved"
    REDRIVEN = "redriven"
    REQUESTED = "requested"
    HURRIED = "hurried"
    REPRIORITISED = "reprioritised"
    SKIPPED = "skipped"
    UNHELD = "unheld"


EVENT_OF: dict[Move, EventKind] = {
    _M.SUBMIT: EventKind.SUBMITTED,
    _M.RELEASE: EventKind.RELEASED,
    _M.CLAIM: EventKind.CLAIMED,
    _M.GIVE_BACK: EventKind.GIVEN_BACK,
    _M.COMPLETE: EventKind.COMPLETED,
    _M.RETRY: EventKind.RETRIED,
    _M.LOSE: EventKind.LOST,
    _M.FAIL: EventKind.FAILED,
    _M.STICK: EventKind.STUCK,
    _M.EXPIRE: EventKind.TIMED_OUT,
    _M.CANCEL: EventKind.CANCELLED,
    _M.INTERRUPT: EventKind.INTERRUPTED,
    _M.PARK: EventKind.PARKED,
    _M.WAKE: EventKind.WOKEN,
    _M.HOLD: EventKind.HELD,
    _M.BURY: EventKind.BURIED,
    _M.RESUME: EventKind.RESUMED,
    _M.RESOLVE: EventKind.RESOLVED,
    _M.REDRIVE: EventKind.REDRIVEN,
}
#: The kinds of events after which a job may have ended.
ENDING = frozenset(EVENT_OF[move] for moves in MOVES.values() for move, state in moves.items() if state.is_final)
_MOVE_OF = {kind: move for move, kind in EVENT_OF.items()}


def target_of(job: str, state: JobState, move: Move) -> JobState:
    """Where the move leads, or an error that names what is possible."""
    try:
        return MOVES[state][move]
    except KeyError:
        raise IllegalMove(job, state, move, MOVES[state]) from None


def fold(kinds: Iterable[str]) -> JobState | None:
    """The state that a job's history leads to; None for an empty one, an error for an impossible one."""
    state: JobState | None = None
    for kind in map(EventKind, kinds):
        move = _MOVE_OF.get(kind)
        if move is None:
            continue
        state = JobState.QUEUED if move is Move.SUBMIT else target_of("?", _present(state, kind), move)
    return state


def _present(state: JobState | None, kind: EventKind) -> JobState:
    if state is None:
        raise ValueError(f"a history cannot begin with {kind}")
    return state


class RequestKind(StrEnum):
    """What a running job can be asked, strongest first: a weaker request never replaces a stronger one."""

    CANCEL = "cancel"
    BUDGET = "budget"
    INTERRUPT = "interrupt"
    TIMEOUT = "timeout"
    DRAIN = "drain"


_STRENGTH = {kind: -place for place, kind in enumerate(RequestKind)}


def stronger(one: RequestKind | None, other: RequestKind | None) -> RequestKind | None:
    asked = [r for r in (one, other) if r is not None]
    return max(asked, key=_STRENGTH.__getitem__, default=None)


def parse_state(name: str) -> JobState:
    """A state by our name or one of the known aliases, in any case."""
    upper = name.upper()
    return ALIASES.get(upper) or JobState(upper)


def parse_shown(name: str) -> JobState | Shown:
    """The same, and the names of parts of states."""
    upper = name.upper()
    return Shown(upper) if upper in Shown.__members__ else parse_state(upper)
