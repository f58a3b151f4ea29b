"""Side tasks: what a loop does beside its own work. What fails there is said and shown, and stops nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from unstuck.clock import Clock
from unstuck.model.errors import StoreBusy
from unstuck.model.trouble import Trouble
from unstuck.telemetry import emit

T = TypeVar("T")

_FIRST_REST = 0.5
#: A side task that fails slowly would take all the time there is, if it were tried again at once.
_LONGEST_REST = 5.0


class SideTasks:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: dict[str, Trouble] = {}
        self._rests: dict[str, float] = {}
        self._due: dict[str, float] = {}

    @property
    def troubles(self) -> dict[str, Trouble]:
        """Of each task that does not work now. For any thread."""
        return dict(self._troubles)

    def do(self, name: str, task: Callable[[], T], *, sparing: type[Exception] = Exception) -> T | None:
        """Its answer; None if it failed, now or so lately that it still rests."""
        now = self._clock.boot()
        if now < self._due.get(name, now):
            return None
        try:
            answer = task()
        except sparing as error:
            trouble = self._troubles[name] = Trouble.after(self._troubles.get(name), error, now)
            if trouble.is_worth_saying:
                said, times = str(error) or repr(error), trouble.failures
                emit("side_task_failed", level=logging.WARNING, task=name, error=said, times=times)
            self._rests[name] = min(_LONGEST_REST, 2 * self._rests.get(name, _FIRST_REST / 2))
            self._due[name] = self._clock.boot() + self._rests[name]
            return None
        kept: dict[str, Any]
        for kept in (self._troubles, self._rests, self._due):
            kept.pop(name, None)
        return answer

    def tell(self, name: str, problem: str | None) -> None:
        """Of something that does not fail and yet does not work; None: it does again."""
        if problem is None:
            self._troubles.pop(name, None)
            return
        before = self._troubles.get(name)
        if before is None:
            emit("side_task_failed", level=logging.WARNING, task=name, error=problem)
        self._troubles[name] = Trouble.after(before, StoreBusy(problem), self._clock.boot())

    def forgive(self) -> None:
        """Whatever failed was not the task's own fault: try again at once."""
        self._rests = dict.fromkeys(self._rests, _FIRST_REST / 2)
        self._due = dict.fromkeys(self._due, self._clock.boot())
