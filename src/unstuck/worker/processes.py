"""The port for processes: what the supervisor may ask of executors, and what it hears from them.

`fleet.py` is the real one (zygote, socketpairs, pidfds, shared pages); tests have a fake twin. Everything here is
called from the supervisor's own thread; `hear` is the only call that waits, and `nudge` the only one that another
thread may make, to end that wait early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol

import msgspec

from unstuck.executor.messages import Question, Reply
from unstuck.model.job import AttemptRef, ClaimedJob, WorkflowRecord
from unstuck.model.lifecycle import RequestKind
from unstuck.model.schedules import DeclaredSchedule
from unstuck.model.settlement import Outcome
from unstuck.records import dataclass

ProcessState = Literal["starting", "active", "draining", "exited"]


@dataclass(frozen=True, slots=True)
class Imported:
    """The app was imported in the zygote; this is what it can run. `mode` says how executors start, and why."""

    workflows: tuple[WorkflowRecord, ...]
    code_version: str
    mode: Literal["fork", "spawn"]
    reason: str
    #: Workflows whose handlers are coroutines: they need a live event loop.
    coroutines: frozenset[str] = frozenset()
    #: What it declares to run by the clock, the name by which that is its own, and where it was imported from.
    schedules: tuple[DeclaredSchedule, ...] = ()
    app: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ImportFailed:
    """The app could not be imported (or hung); it is tried again, later each time."""

    error: str
    again_in: float


@dataclass(frozen=True, slots=True)
class ZygoteDied:
    """The process that had imported the app is gone, and its executors with it; the next one starts soon."""

    status: str
    again_in: float


@dataclass(frozen=True, slots=True)
class ExecutorReady:
    executor: int
    pid: int


@dataclass(slots=True)
class Started:
    """The handler's first line is about to run; `at` is BOOTTIME seconds. Not said if it ends right after."""

    executor: int
    ref: AttemptRef
    at: float


class Finished(msgspec.Struct):
    executor: int
    ref: AttemptRef
    outcome: Outcome
    duration_ms: int
    output: str | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """Answer to a recall: these had not started and never will here."""

    executor: int
    refs: tuple[AttemptRef, ...]


@dataclass(frozen=True, slots=True)
class HandlerOutput:
    """What a running handler printed, logged or reported as progress (`kind`); or the span that it runs in."""

    executor: int
    ref: AttemptRef
    kind: Literal["output", "progress", "span"]
    text: str


@dataclass(frozen=True, slots=True)
class FlowCall:
    """What a handler asks of the database; it waits for the answer under this serial. `number`: its attempt's, in
    that executor."""

    executor: int
    number: int
    ref: AttemptRef
    serial: int
    question: Question


@dataclass(frozen=True, slots=True)
class ExecutorDied:
    """The process is gone and reaped. `running` had started, `unstarted` had not; `ended` are those that had started
    and ended, and it died before their end was said. `culprit` only if it is known.

    `stack` and `culprit` only of a crash: a report that a KILLed process holds is not about its end.
    `expected`: drained to its end, or ended because the lease had run out; no job of it is to blame.
    `with_others`: it went down with the zygote and all its siblings; which job of the worker did it, nobody can say.
    """

    executor: int
    pid: int
    status: str
    running: tuple[AttemptRef, ...]
    unstarted: tuple[AttemptRef, ...]
    ended: tuple[AttemptRef, ...] = ()
    culprit: AttemptRef | None = None
    stack: str | None = None
    out_of_memory: bool = False
    expected: bool = False
    with_others: bool = False
    outputs: dict[AttemptRef, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """An attempt of this workflow has ended, and threads or tasks that it started have not; or it was interrupted
    within an import, and what it imported may not be importable in this process any more. `processes` of it were
    ended with it, by TERM or KILL; `poison` says what is wrong with the process that it ran in."""

    executor: int
    workflow: str
    threads: tuple[str, ...]
    broken_import: str = ""
    processes: tuple[str, ...] = ()
    is_killed: bool = False
    poison: str = ""


FleetEvent = (
    Imported
    | ImportFailed
    | ZygoteDied
    | ExecutorReady
    | Started
    | Finished
    | Recalled
    | HandlerOutput
    | FlowCall
    | LeftBehind
    | ExecutorDied
)


@dataclass(frozen=True, slots=True)
class ExecutorView:
    """One executor as the supervisor sees it without its help."""

    executor: int
    pid: int
    state: ProcessState
    since: float
    pulse_age: float
    jobs_done: int
    memory: int
    running: tuple[AttemptRef, ...]
    unstarted: tuple[AttemptRef, ...]
    reason: str = ""
    #: Those among `running` of which only the shared page says so yet, and when they began.
    unsaid: dict[AttemptRef, float] = field(default_factory=dict)
    #: Seconds since the event loop's last round. Means nothing in a process that runs its job alone.
    loop_age: float = 0.0
    #: The attempt whose code is on the main thread this instant: the one that blocks the loop, if it is blocked.
    on_loop: AttemptRef | None = None
    #: Those that run on the main thread (coroutines, the job of a process of its own): only they can be interrupted.
    on_main: frozenset[AttemptRef] = frozenset()
    #: While the process is silent: the attempt whose thread keeps the interpreter from all others, if it is known.
    holder: AttemptRef | None = None
    #: Stopped by a signal or a debugger: nothing in it can be blamed for its silence.
    is_stopped: bool = False
    #: While the process is silent, or its loop stands still: what it waits for would run, and gets no core.
    is_starved: bool = False


class FleetPort(Protocol):
    def start(self) -> None:
        """Begin: start the zygote and import the app. Never blocks; Imported or ImportFailed will be heard."""
        ...

    def spawn(self, executor: int, *, alone: bool = False, slots: int | None = None) -> None:
        """Start an executor under this number; ExecutorReady will be heard, or ExecutorDied. `slots`: how many jobs
        run in it at once, if not as many as in any other."""
        ...

    def feed(self, executor: int, jobs: Sequence[ClaimedJob]) -> None: ...

    def cancel(self, executor: int, ref: AttemptRef, kind: RequestKind | None, reason: str) -> None:
        """Ask the handler to stop: CancelledError in a coroutine, `ctx.check()` elsewhere. `kind` comes back in
        Stopped(asked=kind); None means the worker itself must stop it (lease lost)."""
        ...

    def answer(self, call: FlowCall, answer: Reply) -> bool:
        """The answer to a flow call; it is dropped if the attempt has ended. From any thread, one at a time. False: a
        rest of it could not be sent at once; a nudge makes the main thread go on with it."""
        ...

    def recall(self, executor: int, refs: Sequence[AttemptRef]) -> None:
        """Take back what has not started; Recalled names those that really had not, also when the executor cannot
        answer any more."""
        ...

    def interrupt(self, executor: int, ref: AttemptRef) -> None:
        """Raise in its handler, wherever it is, if that is what runs on the main thread when the signal arrives. Safe
        to repeat; hits nobody else."""
        ...

    def dump(self, executor: int, refs: Sequence[AttemptRef]) -> None:
        """Have the stacks of these written down, with the executor's help or without; `stack` reads them, some
        milliseconds later."""
        ...

    def stack(self, executor: int, ref: AttemptRef) -> str | None:
        """Where that attempt was at the last dump; None if nothing was heard (yet)."""
        ...

    def resume(self, executor: int) -> None:
        """CONT: it goes on if it was stopped."""
        ...

    def terminate(self, executor: int) -> None:
        """TERM to the process and to what it started: a last chance to clean up before the KILL."""
        ...

    def drain(self, executor: int, reason: str) -> None:
        """No new jobs; it ends (ExecutorDied, expected) once its last handler has."""
        ...

    def kill(self, executor: int, reason: str) -> None:
        """KILL it and its descendants; ExecutorDied will be heard."""
        ...

    def lease(self, until: float) -> None:
        """Write the BOOTTIME second after which nothing may still run into every shared page."""
        ...

    def hear(self, timeout: float) -> list[FleetEvent]:
        """What happened; waits at most so long for something to."""
        ...

    def nudge(self) -> None:
        """End a wait in `hear` early; safe from any thread."""
        ...

    def views(self) -> list[ExecutorView]: ...

    def pids(self) -> dict[str, Any]:
        """Pids and start times of zygote and executors, for others on this host to check after our death."""
        ...

    def close(self, stamp: Callable[[], None] = lambda: None) -> None:
        """KILL whatever is left and wait for it; `stamp` is called meanwhile, for on a busy machine it takes long."""
        ...
