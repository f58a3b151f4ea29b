"""Outlook: tells a caller that waits for a job what keeps it from running, once a person must do something."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from unstuck.clock import Clock, MachineClock
from unstuck.model.errors import StoreError, UnknownJob
from unstuck.model.lifecycle import JobState
from unstuck.model.why import Actor, Code
from unstuck.observe.wait import J

#: Most jobs have ended by then; in seconds.
FIRST_AFTER = 0.3
EVERY = 2.0


class ShutGate(Protocol):
    @property
    def code(self) -> Code: ...
    @property
    def actor(self) -> Actor: ...
    @property
    def remedy(self) -> str | None: ...


class Explanation(Protocol):
    """Why a job does not run: the model's own answer, or the view of it."""

    @property
    def job(self) -> str: ...
    @property
    def verdict(self) -> str: ...
    @property
    def reasons(self) -> Sequence[ShutGate]: ...


class Outlook:
    """Of one wait. Says a reason once, and another when it has changed."""

    def __init__(
        self, ask: Callable[[], Explanation], say: Callable[[str], object], clock: Clock | None = None
    ) -> None:
        self._ask = ask
        self._say = say
        self._clock = clock or MachineClock()
        self._next = self._clock.boot() + FIRST_AFTER
        self._said: object = None

    def of(self, record: J) -> J:
        """The same record; on the way its outlook is told, if it has become worth telling."""
        now = self._clock.boot()
        if now >= self._next and not record.state.is_final and record.state is not JobState.RUNNING:
            self._next = now + EVERY
            self._tell()
        return record

    def _tell(self) -> None:
        try:
            why = self._ask()
        except (StoreError, UnknownJob):
            return  # the wait itself will say so
        first = why.reasons[0] if why.reasons else None
        if first is None or first.actor in (Actor.NOBODY, Actor.ENGINE) or first.code == self._said:
            return
        self._said = first.code
        remedy = f"; type: {first.remedy}" if first.remedy and first.remedy not in why.verdict else ""
        self._say(f"job {why.job} waits: {why.verdict}{remedy}")
