"""What every flow call obeys: where it may be made, when it must stop, and that its result is awaited."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, Protocol, TypeVar

from unstuck.executor.caller import running_loop
from unstuck.executor.flow.parking import Parking
from unstuck.executor.flow.promise import Promise
from unstuck.executor.flow.step_function import inside
from unstuck.model.errors import Cancelled, InvalidInput, Unwind

T = TypeVar("T")


class HandlerContext(Protocol):
    """What the flow needs of its attempt's Context."""

    run: int
    tenant: str
    has_lost_lease: bool

    def check(self) -> None: ...
    def sleep(self, seconds: float) -> Awaitable[None]: ...
    def _check_process(self) -> None: ...


class FlowRules:
    def __init__(
        self,
        context: HandlerContext,
        parking: Parking,
        *,
        is_home: Callable[[], bool],
        is_beside: Callable[[], bool],
    ) -> None:
        self._context = context
        self._parking = parking
        self._is_home = is_home
        self._is_beside = is_beside
        # Reentrant: the collector may drop a promise here.
        self._lock = threading.RLock()
        #: Calls that were made and are not awaited yet; and the verb of a call that can never be awaited any more.
        self._unawaited: Counter[str] = Counter()
        self._forgotten: str | None = None

    def begin(self, verb: str) -> None:
        """A step's function has no journal of its own: what it asked for would be counted in one run of the handler
        and not in the next, when the step is only remembered."""
        self.go_on()
        if (step := inside.get()) is not None:
            raise InvalidInput(f"ctx.{verb} inside of step {step!r}: not inside a step, only in the handler itself")

    def begin_wait(self, verb: str) -> None:
        self.begin(verb)
        if not self._is_home():
            raise InvalidInput(
                f"ctx.{verb} in a thread beside the handler, which could not be unwound from there: "
                "wait in the handler's own thread"
            )

    def keep_order(self, verb: str, instead: str) -> None:
        """These are known by their order alone, which between tasks is chance: the yes to one question would answer
        another. An event has its name."""
        if self._is_beside():
            raise InvalidInput(
                f"ctx.{verb} in a task beside the handler's own: which of them comes first is chance, and so would "
                f"be which answer belongs to which in a later attempt; {instead}"
            )

    def go_on(self) -> None:
        """Raises if the attempt has parked, was asked to stop, or forgot to await a call."""
        self._context._check_process()
        if self._parking.parked is not None:
            raise Unwind
        if self._forgotten is not None:
            raise not_awaited(self._forgotten)
        self._context.check()

    def stop(self) -> NoReturn:
        """No answer will come: the attempt was asked to stop, or it has ended and this is a thread it left behind."""
        self.go_on()
        raise Cancelled("its attempt has ended")

    async def let_park(self) -> None:
        """Nothing new begins while the attempt wants to park. Every call has to await the outcome, not only the wait
        itself: raised sooner, Unwind could cancel a step under way, as out of a task group."""
        if not await self._parking.settled():
            self.stop()
        self.go_on()

    def run(self, verb: str, coroutine: Coroutine[Any, Any, Any], undo: Callable[[], None] = lambda: None) -> Any:
        """`undo`: what is to be taken back if the call is ended before it has begun."""
        if running_loop() is None:
            return run_here(coroutine)
        with self._lock:
            self._unawaited[verb] += 1
        return Promise(
            coroutine,
            begun=functools.partial(self._begun, verb),
            forgotten=functools.partial(setattr, self, "_forgotten", verb),
            dropped=undo,
        )

    def _begun(self, verb: str) -> None:
        with self._lock:
            self._unawaited[verb] -= 1

    def check_awaited(self) -> None:
        with self._lock:
            left = next((verb for verb, count in self._unawaited.items() if count > 0), None)
        if left is not None:
            raise not_awaited(left)


def not_awaited(verb: str) -> InvalidInput:
    return InvalidInput(f"ctx.{verb} was not awaited: in a coroutine write `await ctx.{verb}(…)`")


def run_here(coroutine: Coroutine[Any, Any, T]) -> T:
    """To its end, on this thread: without a loop nothing in it suspends."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    coroutine.close()
    raise AssertionError("a flow call suspended without a loop")
