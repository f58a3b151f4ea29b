"""What a flow call gives where a loop runs: to be awaited. A wait that nobody awaits is none, and must not pass."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any


class Promise(Coroutine[Any, Any, Any]):
    """`begun` is called when the handler begins to await it, `forgotten` if it is collected before that, `dropped` if
    it is ended before that: a coroutine that has not begun has no `finally` yet."""

    __slots__ = ("_begun", "_coroutine", "_dropped", "_forgotten")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        *,
        begun: Callable[[], None],
        forgotten: Callable[[], None],
        dropped: Callable[[], None],
    ) -> None:
        self._coroutine = coroutine
        self._begun: Callable[[], None] | None = begun
        self._forgotten = forgotten
        self._dropped = dropped

    def _begin(self) -> None:
        if self._begun is not None:
            self._begun()
            self._begun = None

    def _drop(self) -> None:
        """As a task does whose first turn never came."""
        if self._begun is not None:
            self._begin()
            self._dropped()

    def send(self, value: Any) -> Any:
        self._begin()
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        self._drop()
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._drop()
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        self._begin()
        return self._coroutine.__await__()

    def __del__(self) -> None:
        if self._begun is not None:
            # Or the interpreter would warn of a coroutine whose name says nothing to the author of the handler.
            self._coroutine.close()
            # Not dropped too: an attempt that forgets one fails anyway, and the collector should do little.
            self._forgotten()
