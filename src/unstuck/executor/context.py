"""Context and AsyncContext: what a handler sees of the attempt it runs in. Light to import: every app does.

Both are an AttemptContext, whose calls look where they are made: where an event loop runs they give an awaitable,
elsewhere they block and give the value itself. The two differ in what they tell type checkers: a function's Context
says that a call gives its value, a coroutine's AsyncContext that it must be awaited.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, overload

from unstuck.clock import boot, wall
from unstuck.executor.caller import UNSET, running_loop
from unstuck.model.errors import Cancelled, InvalidInput, UnstuckError, Unwind
from unstuck.model.logs import LogRecord, frame
from unstuck.model.payload import encode

if TYPE_CHECKING:
    from unstuck.executor.flow import Flow
    from unstuck.model.waits import ChildRef, Decision, Spent

R = TypeVar("R")

MAX_PROGRESS = 16 << 10
#: On an event loop that is not ours nobody can cancel the sleeping task for us, so it looks by itself.
_FOREIGN_SLICE = 0.1


class NoAttempt(UnstuckError, LookupError):
    """`unstuck.current()` outside of a handler."""

    def __init__(self, message: str = "") -> None:
        super().__init__(message or _NO_ATTEMPT)


_NO_ATTEMPT = (
    "no attempt runs here: unstuck.current() works inside a handler, and in threads it starts only if they "
    "were given its contextvars (asyncio.to_thread does, threading.Thread does not)"
)


class AttemptContext:
    """One attempt, as its handler sees it."""

    __slots__ = (
        "_add",
        "_asked",
        "_flow",
        "_lease_until",
        "_loop",
        "_make_flow",
        "_pid",
        "_say",
        "attempt",
        "deadline",
        "fence",
        "has_lost_lease",
        "job",
        "kind",
        "queue",
        "reason",
        "run",
        "tenant",
        "workflow",
    )

    def __init__(
        self,
        *,
        job: str,
        workflow: str,
        attempt: int = 1,
        run: int = 1,
        tenant: str = "default",
        queue: str = "default",
        token: int = 0,
        claim: str = "",
        deadline: float | None = None,
        loop: Any = None,
        say: Callable[[str], None] | None = None,
        add: Callable[[str], None] | None = None,
        lease_until: Callable[[], float] | None = None,
        make_flow: Callable[[AttemptContext], Flow] | None = None,
        pid: int = 0,
    ) -> None:
        self.job = job
        self.workflow = workflow
        self.attempt = attempt
        self.run = run
        self.tenant = tenant
        self.queue = queue
        #: For your own fenced writes: a later attempt of this job has a larger token.
        self.fence = (job, token, claim)
        #: The BOOTTIME second (`unstuck.clock.boot()`) at which the time limit is reached; None without a limit.
        self.deadline = deadline
        #: What was asked (cancel, interrupt, timeout, drain, …) and why, once `cancelled` is true.
        self.kind: str | None = None
        self.reason = ""
        self.has_lost_lease = False
        self._asked: threading.Event | None = None
        self._loop = loop
        self._say = say
        self._add = add
        self._lease_until = lease_until
        self._make_flow = make_flow
        #: The process of the handler; 0 if nobody asks.
        self._pid = pid
        self._flow: Flow | None = None

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was asked to stop."""
        return self._asked is not None and self._asked.is_set()

    def check(self) -> None:
        """Raise Cancelled if this attempt was asked to stop; call it wherever stopping is safe."""
        if self._flow is not None and self._flow.parked is not None:
            raise Unwind
        if self.cancelled:
            raise Cancelled(self.reason or "asked to stop")

    def check_lease(self) -> None:
        """Raise Cancelled if this attempt may have lost its right to run; call it right before an outside effect."""
        self.check()
        until = self._lease_until() if self._lease_until else 0.0
        if until and boot() >= until:
            self.has_lost_lease = True
            raise Cancelled("the worker's lease has run out")

    def remaining(self) -> float | None:
        """Seconds until the time limit; None without one."""
        return None if self.deadline is None else max(0.0, self.deadline - boot())

    def sleep(self, seconds: float) -> Any:
        """Wait so long, or until asked to stop (then Cancelled is raised).

        Blocks in a sync handler; in async code write `await ctx.sleep(…)`.
        """
        if (loop := running_loop()) is not None:
            return self._sleep_on(loop, seconds)
        self.check()
        if self._event().wait(max(0.0, seconds)):
            self.check()
        return _Slept()

    async def _sleep_on(self, loop: Any, seconds: float) -> None:
        import asyncio

        self.check()
        if loop is self._loop:
            await asyncio.sleep(seconds)
        else:
            until = boot() + seconds
            while (left := until - boot()) > 0:
                await asyncio.sleep(min(left, _FOREIGN_SLICE))
                self.check()
        self.check()

    def progress(self, value: Any) -> None:
        """Show how far it is: any JSON value; the latest counts."""
        if self._flow is not None and self._flow.parked is not None:
            raise Unwind
        text = encode(value, "progress", MAX_PROGRESS)
        if self._say:
            self._say(text)

    def log(self, message: str, /, *, level: str = "info", **fields: Any) -> None:
        """One record for this attempt's output: what happened, how important it is (debug, info, warning, error,
        critical), and the facts. Never refuses anything; what JSON cannot hold is kept as its repr."""
        if self._add:
            self._add(frame(LogRecord(wall(), level, message, fields)))

    def key(self, name: str) -> str:
        """A key for an effect, the same in every attempt of this run: hand it to services that deduplicate."""
        return f"{self.job}:{self.run}:{name}"

    # Durable flow. In a coroutine each of these gives an awaitable; elsewhere it blocks, and gives the value itself.

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        timeout: float | None = None,
        retries: int = 0,
        **kwargs: Any,
    ) -> Any:
        """Call it once and remember what it gave, as JSON: later attempts get that instead of calling it again.

        `timeout`: seconds until StepTimeout. `retries`: how often it is called again, within this attempt.
        """
        return self._durable("step").steps.step(name, function, args, kwargs, timeout, retries)

    def wait_for(
        self,
        event: str,
        *,
        timeout: float = UNSET,
        topic: str | None = None,
        default: Any = UNSET,
        name: str | None = None,
    ) -> Any:
        """The payload of an event that is sent to this job, or to a topic. Parks the job meanwhile.

        After `timeout` (300 s unless the policy says otherwise) the job fails, or goes on with the `default`.
        """
        return self._durable("wait_for").waits.wait_for(event, timeout, topic, default, name)

    def approval(
        self,
        question: str,
        *,
        who: str | Iterable[str] | None = None,
        timeout: float = UNSET,
        on_timeout: Literal["fail", "reject", "approve"] = "fail",
        name: str | None = None,
    ) -> Any:
        """A person's yes (a Decision); a no raises ApprovalRejected. Parks the job meanwhile, 600 s at most unless
        you or the policy say otherwise."""
        return self._durable("approval").waits.approval(question, who, timeout, on_timeout, name)

    def park_for(self, seconds: float) -> Any:
        """Go on after so long, without a slot meanwhile; the handler begins anew then, past its finished steps."""
        return self._durable("park_for").waits.park_for(seconds)

    def park_until(self, when: datetime) -> Any:
        """The same up to an instant; without a zone it is UTC."""
        return self._durable("park_until").waits.park_until(when)

    def spawn(
        self,
        workflow: Any,
        /,
        *args: Any,
        on_end: Literal["cancel", "leave"] = "cancel",
        name: str | None = None,
        **kwargs: Any,
    ) -> Any:
        """Start a job of this workflow as a child: once, however often the handler begins anew. Gives a ChildRef.

        It is cancelled with this job; `on_end="leave"`: but not when this job fails.
        """
        return self._durable("spawn").children.spawn(workflow, args, kwargs, on_end, name)

    def gather(self, *children: Any, timeout: float = UNSET, release_target: bool = False) -> Any:
        """The results of these children, in this order; ChildrenFailed if one did not complete. Parks the job until
        all have ended."""
        return self._durable("gather").children.gather(children, timeout, release_target)

    def spend(self, **amounts: float) -> Any:
        """Count what was used, as in `ctx.spend(tokens=120)`: gives what was Spent so far. Over the job's budget it
        raises BudgetExceeded, and the job fails."""
        return self._durable("spend").meter.spend(amounts)

    def partial(self, name: str, value: Any) -> Any:
        """Give a part of the result before the end: any JSON value, stored when this returns. The same name again
        replaces the value, also in later attempts."""
        return self._durable("partial").partials.partial(name, value)

    def publish(
        self,
        kind: str,
        data: Mapping[str, Any] | None = None,
        *,
        topic: str | None = None,
        ttl: float | None = None,
    ) -> Any:
        """Tell everybody who follows the feed (`app.events.follow()`); stored when this returns. `kind` is a word of
        yours, `data` an object of up to 16 KiB of JSON. It is kept for `ttl` seconds, or as long as the feed."""
        return self._durable("publish").publishing.publish(kind, data, topic, ttl)

    def _durable(self, verb: str) -> Flow:
        self._check_process(f"ctx.{verb}")
        if self._flow is None:
            if self._make_flow is None:
                raise NoAttempt("this Context belongs to no attempt: there is no database behind it")
            with _making:
                made = self._make_flow(self)
                # Only now: a finalizer or a signal's handler may have asked for it meanwhile, on this very thread.
                self._flow = self._flow or made
            if self.cancelled:
                # The request to stop may have looked for it just before.
                self._flow.calls.wake()
        return self._flow

    def _check_process(self, what: str = "a flow call") -> None:
        """In what a handler has forked nobody would answer, and locks are as they were at the fork: held for ever."""
        if self._is_copy():
            raise InvalidInput(
                f"{what} in another process than the handler's: only the handler's own process has a way to the "
                "database; give what the other one finds back to it, and call it there"
            )

    def _is_copy(self) -> bool:
        return self._pid != 0 and os.getpid() != self._pid

    def _ask(self, kind: str | None, reason: str) -> None:
        """For the executor alone: the attempt is to stop. The first request counts."""
        if not self.cancelled:
            self.kind, self.reason = kind, reason
            self._event().set()
            if self._flow is not None:
                self._flow.calls.wake()

    def _event(self) -> threading.Event:
        if self._is_copy():
            # Nobody asks a copy to stop, and a thread that is no more may have held the lock of the real one.
            return threading.Event()
        # Made on demand, since most attempts neither sleep nor are cancelled; two threads may want it at once.
        with _making:
            if self._asked is None:
                made = threading.Event()
                self._asked = self._asked or made
            return self._asked

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.workflow} job={self.job} attempt={self.attempt}>"


class Context(AttemptContext):
    """What a function sees: calls that wait block, and give the value itself."""

    __slots__ = ()

    if TYPE_CHECKING:

        def sleep(self, seconds: float) -> None: ...
        def step(
            self,
            name: str,
            function: Callable[..., R],
            /,
            *args: Any,
            timeout: float | None = None,
            retries: int = 0,
            **kwargs: Any,
        ) -> R: ...
        def approval(
            self,
            question: str,
            *,
            who: str | Iterable[str] | None = None,
            timeout: float = UNSET,
            on_timeout: Literal["fail", "reject", "approve"] = "fail",
            name: str | None = None,
        ) -> Decision: ...
        def park_for(self, seconds: float) -> None: ...
        def park_until(self, when: datetime) -> None: ...
        def spawn(
            self,
            workflow: Any,
            /,
            *args: Any,
            on_end: Literal["cancel", "leave"] = "cancel",
            name: str | None = None,
            **kwargs: Any,
        ) -> ChildRef: ...
        def gather(self, *children: Any, timeout: float = UNSET, release_target: bool = False) -> list[Any]: ...
        def spend(self, **amounts: float) -> Spent: ...
        def partial(self, name: str, value: Any) -> None: ...
        def publish(
            self,
            kind: str,
            data: Mapping[str, Any] | None = None,
            *,
            topic: str | None = None,
            ttl: float | None = None,
        ) -> None: ...


class AsyncContext(AttemptContext):
    """What a coroutine sees: calls that wait are awaited."""

    __slots__ = ()

    if TYPE_CHECKING:

        def sleep(self, seconds: float) -> Coroutine[Any, Any, None]: ...
        @overload
        def step(
            self,
            name: str,
            function: Callable[..., Coroutine[Any, Any, R]],
            /,
            *args: Any,
            timeout: float | None = None,
            retries: int = 0,
            **kwargs: Any,
        ) -> Coroutine[Any, Any, R]: ...
        @overload
        def step(
            self,
            name: str,
            function: Callable[..., R],
            /,
            *args: Any,
            timeout: float | None = None,
            retries: int = 0,
            **kwargs: Any,
        ) -> Coroutine[Any, Any, R]: ...
        def step(self, name: str, function: Any, /, *args: Any, **options: Any) -> Any: ...
        def wait_for(
            self,
            event: str,
            *,
            timeout: float = UNSET,
            topic: str | None = None,
            default: Any = UNSET,
            name: str | None = None,
        ) -> Coroutine[Any, Any, Any]: ...
        def approval(
            self,
            question: str,
            *,
            who: str | Iterable[str] | None = None,
            timeout: float = UNSET,
            on_timeout: Literal["fail", "reject", "approve"] = "fail",
            name: str | None = None,
        ) -> Coroutine[Any, Any, Decision]: ...
        def park_for(self, seconds: float) -> Coroutine[Any, Any, None]: ...
        def park_until(self, when: datetime) -> Coroutine[Any, Any, None]: ...
        def spawn(
            self,
            workflow: Any,
            /,
            *args: Any,
            on_end: Literal["cancel", "leave"] = "cancel",
            name: str | None = None,
            **kwargs: Any,
        ) -> Coroutine[Any, Any, ChildRef]: ...
        def gather(
            self, *children: Any, timeout: float = UNSET, release_target: bool = False
        ) -> Coroutine[Any, Any, list[Any]]: ...
        def spend(self, **amounts: float) -> Coroutine[Any, Any, Spent]: ...
        def partial(self, name: str, value: Any) -> Coroutine[Any, Any, None]: ...
        def publish(
            self,
            kind: str,
            data: Mapping[str, Any] | None = None,
            *,
            topic: str | None = None,
            ttl: float | None = None,
        ) -> Coroutine[Any, Any, None]: ...


class _Slept:
    """What a blocking sleep returns: awaiting it is allowed and does nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class RunningAttempt(Protocol):
    """What runs here, as far as this module and the capture of output need to know it."""

    @property
    def context(self) -> AttemptContext: ...
    @property
    def is_here(self) -> bool: ...
    def write(self, text: str, /) -> None: ...
    def add(self, framed: str, /) -> None: ...


#: A finalizer that comes in the middle may want what is being made: it must not wait for its own thread.
_making = threading.RLock()
running: ContextVar[RunningAttempt | None] = ContextVar("unstuck_attempt", default=None)


@overload
def current() -> Context: ...
@overload
def current(kind: type[AsyncContext]) -> AsyncContext: ...
def current(kind: type[AttemptContext] = Context) -> AttemptContext:
    """The context of the attempt that runs here; in coroutines `unstuck.current(unstuck.AsyncContext)` says by its
    type that calls are awaited."""
    attempt = running.get()
    if attempt is None:
        raise NoAttempt
    return cast("Context", attempt.context)
