"""The ledger: every attempt this worker holds, from the answer of its claim to the answer of its settle.

A beat tells the database what is held here, and what the database grants beyond that goes back. So an attempt must
be visible at every instant as one of: of a claim under way, held, being settled. Claims announce their id before
they call (`announce`) and a beat keeps them from beginning while it reconciles (`still`); every other step only
moves an attempt onward. Threads: the claimer admits, the supervisor's main thread moves, the settler removes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

import msgspec

from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.model.trace import TraceContext
from unstuck.records import dataclass
from unstuck.worker.shares import FreeRoom


class Stage(IntEnum):
    """In the order of the road; an attempt never goes back."""

    CLAIMED = 0
    FED = 1
    RUNNING = 2
    #: Its verdict is written but its body may still live: it holds no slot, only its process.
    STUCK = 3
    #: The database took it from us while its body may still live.
    REVOKED = 4
    ENDED = 5


class HeldAttempt(msgspec.Struct):
    """One attempt as its supervisor knows it. Instants are BOOTTIME seconds. (Made for every job: a Struct takes a
    fifth of a dataclass's time.)"""

    job: ClaimedJob
    claimed_at: float
    stage: Stage = Stage.CLAIMED
    executor: int | None = None
    fed_at: float | None = None
    started_at: float | None = None
    recalled: bool = False
    #: What the handler was told, and when. `asking` while the request is being made durable.
    asking: RequestKind | None = None
    asked: RequestKind | None = None
    told_at: float | None = None
    #: When its handler was last interrupted, and how often; when its stack was last asked for; `stack` once it
    #: was read.
    interrupted_at: float | None = None
    interrupts: int = 0
    dumped_at: float | None = None
    stack: str | None = None
    #: When it was interrupted because it kept others from their loop, without a request of its own.
    stalled_at: float | None = None
    start_reported: bool = False
    #: The traceparent of its handler, if it is traced: what its next attempt links to, however this one ends.
    span: str | None = None

    @property
    def ref(self) -> AttemptRef:
        return self.job.ref

    @property
    def facts(self) -> dict[str, object]:
        """Which attempt it is, for the log. `trace_id` is of the trace that it was submitted in, else its own."""
        job, span = self.job, TraceContext.read(self.span)
        trace = span or TraceContext.read(job.trace)
        return {
            "job": job.id,
            "workflow": job.workflow,
            "tenant": job.tenant,
            "attempt": job.attempt,
            **({"trace_id": trace.trace_id} if trace is not None else {}),
            **({"span_id": span.span_id} if span is not None else {}),
        }

    def begin(self, at: float, now: float) -> None:
        """Its handler runs, since `at` if that can be true: the executor's word is not trusted."""
        self.stage = Stage.RUNNING
        self.started_at = at if (self.fed_at or 0.0) <= at <= now else now

    def patience(self, times: Times, *, is_impatient: bool = False) -> float:
        """How long it may take to obey, once it is told."""
        if self.stage is Stage.REVOKED or self.asked is None:
            return times.kill_grace
        if self.asked is RequestKind.DRAIN and is_impatient:
            return times.kill_grace
        return self.job.policy.grace

    @property
    def is_suspect(self) -> bool:
        """Claimed for a slot like any other, but it must run by itself."""
        return self.job.alone and self.job.policy.isolation != "process"

    @property
    def needs_solitude(self) -> bool:
        """A suspect, or a workflow that wants a process to itself."""
        return self.job.alone or self.job.policy.isolation == "process"

    @property
    def has_body(self) -> bool:
        """Whether its handler may be running."""
        return Stage.RUNNING <= self.stage <= Stage.REVOKED


@dataclass(frozen=True, slots=True)
class BeatReport:
    """What a beat reports."""

    held: tuple[AttemptRef, ...]
    settling: tuple[AttemptRef, ...]
    pending_claims: tuple[str, ...]
    #: Attempts whose start the database does not know yet.
    unreported: tuple[tuple[AttemptRef, float], ...]


class Ledger:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gate = threading.Lock()
        self._holdings: dict[AttemptRef, HeldAttempt] = {}
        self._fresh: deque[HeldAttempt] = deque()
        self._pending: set[str] = set()
        #: How many jobs of a claim under way are known to be ours and come later.
        self._missing: dict[str, int] = {}
        self._settling: dict[AttemptRef, HeldAttempt] = {}
        self._room = FreeRoom(0)
        #: Set whenever there is room again: what the claimer waits for.
        self.has_room = threading.Event()

    # --- claims -------------------------------------------------------------------------------------------------
    def announce(self, claim: str) -> None:
        """Before the call: waits for a beat that is under way, which could not know this id."""
        with self._gate, self._lock:
            self._pending.add(claim)

    def admit(self, claim: str, jobs: Sequence[ClaimedJob], now: float, *, missing: int = 0) -> None:
        """The claim's answer is here: held from now on, and under way no more; but for so many that are its own and
        have not come yet. Those keep their room."""
        with self._lock:
            more = len(jobs) + missing - self._missing.pop(claim, 0)
            for job in jobs:
                if job.ref not in self._holdings:
                    self._holdings[job.ref] = holding = HeldAttempt(job, now)
                    self._fresh.append(holding)
            if missing:
                self._missing[claim] = missing
            else:
                self._pending.discard(claim)
            self._room = self._room.less(max(0, more))

    def settle_unseen(self, jobs: Iterable[ClaimedJob], now: float) -> None:
        """They end without ever being held: before `admit`, so that no beat takes them for forgotten."""
        with self._lock:
            for job in jobs:
                self._settling[job.ref] = HeldAttempt(job, now, stage=Stage.ENDED)

    def give_up(self, claim: str) -> None:
        """The claim's answer never came: what it may have opened goes back with the next beat."""
        with self._lock:
            self._missing.pop(claim, None)
            self._pending.discard(claim)

    @contextmanager
    def still(self) -> Iterator[BeatReport]:
        """A snapshot during which no claim begins."""
        with self._gate:
            yield self._snapshot()

    def _snapshot(self) -> BeatReport:
        with self._lock:
            held = [h for h in self._holdings.values() if h.stage not in (Stage.STUCK, Stage.REVOKED)]
            return BeatReport(
                held=tuple(h.ref for h in held),
                settling=tuple(self._settling),
                pending_claims=tuple(self._pending),
                unreported=tuple(
                    (h.ref, h.started_at) for h in held if h.started_at is not None and not h.start_reported
                ),
            )

    def room(self) -> FreeRoom:
        """How much a claim may ask for now."""
        self.has_room.clear()
        return self._room

    # --- the supervisor's own thread ----------------------------------------------------------------------------
    def take_fresh(self) -> list[HeldAttempt]:
        """What was claimed and has no place yet."""
        with self._lock:
            fresh = list(self._fresh)
            self._fresh.clear()
            return fresh

    def publish(self, room: FreeRoom) -> None:
        """How much is free, as the main thread counts it; what was admitted meanwhile it has not counted yet."""
        with self._lock:
            before, self._room = self._room, room.less(len(self._fresh) + sum(self._missing.values()))
            if self._room.total > before.total:
                self.has_room.set()

    def get(self, ref: AttemptRef) -> HeldAttempt | None:
        return self._holdings.get(ref)

    def holdings(self) -> list[HeldAttempt]:
        with self._lock:
            return list(self._holdings.values())

    def end(self, ref: AttemptRef) -> HeldAttempt | None:
        """A report about it was made: it is being settled from now on. None if it had ended before."""
        with self._lock:
            holding = self._holdings.pop(ref, None)
            if holding is None:
                return None
            holding.stage = Stage.ENDED
            self._settling[ref] = holding
            return holding

    def convict(self, holding: HeldAttempt) -> None:
        """Its verdict is being settled, while it keeps its place here until its process is gone."""
        with self._lock:
            holding.stage = Stage.STUCK
            self._settling[holding.ref] = holding

    def drop(self, ref: AttemptRef) -> HeldAttempt | None:
        """Forget it: nothing about it may be written any more."""
        with self._lock:
            return self._holdings.pop(ref, None)

    # --- flow calls ------------------------------------------------------------------------------------------------
    def is_ours(self, ref: AttemptRef) -> bool:
        """Whether something may still be written about it: held, or its report not settled yet."""
        with self._lock:
            holding = self._holdings.get(ref) or self._settling.get(ref)
            return holding is not None and holding.stage not in (Stage.STUCK, Stage.REVOKED)

    # --- the beat -----------------------------------------------------------------------------------------------
    def starts_known(self, refs: Iterable[AttemptRef]) -> None:
        for ref in refs:
            if holding := self._holdings.get(ref):
                holding.start_reported = True

    # --- the settler --------------------------------------------------------------------------------------------
    def settling(self, ref: AttemptRef) -> HeldAttempt | None:
        return self._settling.get(ref)

    def settled(self, refs: Iterable[AttemptRef]) -> None:
        with self._lock:
            for ref in refs:
                self._settling.pop(ref, None)

    # --- counts -------------------------------------------------------------------------------------------------
    @property
    def held(self) -> int:
        return len(self._holdings)

    @property
    def unsettled(self) -> int:
        return len(self._settling)

    @property
    def is_empty(self) -> bool:
        with self._lock:
            return not (self._holdings or self._settling or self._pending)
