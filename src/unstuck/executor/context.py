"""Context: what a handler sees of the attempt it runs in. Light to import: every app does."""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from typing import Any, Protocol

from unstuck.clock import boot
from unstuck.model.errors import Cancelled, UnstuckError
from unstuck.model.payload import encode

MAX_PROGRESS = 16 << 10
#: On an event loop that is not ours nobody can cancel the sleeping task for us, so it looks by itself.
_FOREIGN_SLICE = 0.1


class NoAttempt(UnstuckError, LookupError):
    """`unstuck.current()` outside of a handler."""

    def __init__(self) -> None:
        super().__init__(
            "no attempt runs here: unstuck.current() works inside a handler, and in threads it starts only if they "
            "were given its contextvars (asyncio.to_thread does, threading.Thread does not)"
        )


class Context:
    """One attempt, as its handler sees it."""

    __slots__ = (
        "_asked",
        "_lease_until",
        "_loop",
        "_say",
        "_write",
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
        write: Callable[[str], None] | None = None,
        lease_until: Callable[[], float] | None = None,
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
        self._write = write
        self._lease_until = lease_until

    @property
    def cancelled(self) -> bool:
        """Whether this attempt was asked to stop."""
        return self._asked is not None and self._asked.is_set()

    def check(self) -> None:
        """Raise Cancelled if this attempt was asked to stop; call it wherever stopping is safe."""
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

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait so long, or until asked to stop (then Cancelled is raised).

        Blocks in a sync handler; in async code write `await ctx.sleep(…)`.
        """
        if (loop := _running_loop()) is not None:
            return self._sleep_on(loop, seconds)
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
        text = encode(value, "progress", MAX_PROGRESS)
        if self._say:
            self._say(text)

    def log(self, message: str, **fields: Any) -> None:
        """One line for this attempt's output."""
        line = " ".join([str(message), *(f"{name}={value}" for name, value in fields.items())])
        if self._write:
            self._write(line + "\n")

    def key(self, name: str) -> str:
        """A key for an effect, the same in every attempt of this run: hand it to services that deduplicate."""
        return f"{self.job}:{self.run}:{name}"

    def _ask(self, kind: str | None, reason: str) -> None:
        """For the executor alone: the attempt is to stop. The first request counts."""
        if not self.cancelled:
            self.kind, self.reason = kind, reason
            self._event().set()

    def _event(self) -> threading.Event:
        # Made on demand, since most attempts neither sleep nor are cancelled; two threads may want it at once.
        with _birth:
            if self._asked is None:
                self._asked = threading.Event()
            return self._asked

    def __repr__(self) -> str:
        return f"<Context {self.workflow} job={self.job} attempt={self.attempt}>"


class _Slept:
    """What a blocking sleep returns: awaiting it is allowed and does nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield from ()


class Running(Protocol):
    """What runs here, as far as this module and the capture of output need to know it."""

    @property
    def context(self) -> Context: ...
    def write(self, text: str, /) -> None: ...


_birth = threading.Lock()
running: ContextVar[Running | None] = ContextVar("unstuck_attempt", default=None)


def current() -> Context:
    """The Context of the attempt that runs here."""
    attempt = running.get()
    if attempt is None:
        raise NoAttempt
    return attempt.context


def _running_loop() -> Any:
    # asyncio is heavy; who has not imported it has no loop.
    asyncio = sys.modules.get("asyncio")
    return asyncio._get_running_loop() if asyncio else None
