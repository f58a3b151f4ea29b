"""What a plan may ask for, and the reasons that it gives: what a process's death means for its jobs hangs on them."""

from __future__ import annotations

from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.records import dataclass

LEASE_GOING = "the lease could not be renewed"
STUCK_INSIDE = "a job in it ignored its request to stop"
HANDED_BACK = "the worker is shutting down"
FROZEN = "it showed no sign of life"
STALLED_LOOP = "its event loop stood still, and the jobs on it could not go on"
OVER_MEMORY = "it used more memory than memory_limit allows"
ORDERED = "an operator had it killed"


@dataclass(frozen=True, slots=True)
class Kill:
    """`culprit`: whose fault it is, if that can be told."""

    executor: int
    reason: str
    culprit: AttemptRef | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    executor: int
    reason: str


@dataclass(frozen=True, slots=True)
class Terminate:
    """A last chance to clean up, for the job of a process of its own; the Kill follows."""

    executor: int
    reason: str


@dataclass(frozen=True, slots=True)
class Continue:
    """CONT to a process that was stopped."""

    executor: int


@dataclass(frozen=True, slots=True)
class Convict:
    ref: AttemptRef


@dataclass(frozen=True, slots=True)
class Excuse:
    """So many seconds of its grace do not count: another kept it from obeying."""

    ref: AttemptRef
    seconds: float


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Raise in its handler. `stalls`: not for a request of its own, but because it blocks the loop of others."""

    ref: AttemptRef
    stalls: bool = False


@dataclass(frozen=True, slots=True)
class Dump:
    """Have their stacks written down, while their process lives."""

    executor: int
    refs: tuple[AttemptRef, ...]


@dataclass(frozen=True, slots=True)
class Tell:
    """Stop the handler without a request of its own: the lease is going."""

    ref: AttemptRef
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Make a request durable; the handler is told once it is."""

    ref: AttemptRef
    kind: RequestKind
    reason: str


@dataclass(frozen=True, slots=True)
class Recall:
    executor: int
    refs: tuple[AttemptRef, ...]


@dataclass(frozen=True, slots=True)
class GiveBack:
    ref: AttemptRef
    reason: str


@dataclass(frozen=True, slots=True)
class StartExecutor:
    alone: bool
    slots: int = 1
    is_spare: bool = False


@dataclass(frozen=True, slots=True)
class Promote:
    """The spare takes the place of an executor that goes."""

    executor: int


Action = (
    Kill
    | Drain
    | Terminate
    | Continue
    | Convict
    | Excuse
    | Interrupt
    | Dump
    | Tell
    | Ask
    | Recall
    | GiveBack
    | StartExecutor
    | Promote
)
