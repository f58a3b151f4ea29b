"""The janitor: runs each duty on its interval and survives its errors. It alone loops and catches.

There is no leader: every duty is safe to run anywhere at once, because each move is one guarded statement. After a
store outage the sweeps that take jobs from others wait one beat and one store call, so that workers which were cut
off too can renew and settle what they had finished.

A turn is bounded by time. A duty that was not done by then has its next turn at once, but behind the others. After
each turn of another duty the sweeps have theirs, if they are due: no backlog keeps the rescue of lost jobs waiting
for more than a turn. Duties of one round that rest alike end their rest together: an idle worker wakes up once for
all of them, and one question tells which of them would find nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from unstuck.chance import Chance
from unstuck.clock import Clock
from unstuck.janitor.budget import Budget, nobody_asks
from unstuck.model.errors import StoreError
from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.records import dataclass
from unstuck.telemetry import emit

_LONGEST_REST = 60.0
#: A duty that is called again and again is not done more often than this.
_CALLED_EVERY = 0.1
#: How long an answer to who would find nothing is believed.
_IDLE_FOR = 1.0
#: In a sweep's time five turns fit: the rescue, which is due once in a sweep, is late by a fifth of it at most.
_TURNS = 5


def nobody_idles() -> frozenset[str]:
    return frozenset()


class Duty(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def every(self) -> float:
        """How long to rest until its next turn; asked after each."""
        ...

    def tick(self, now: float, budget: Budget) -> int:
        """One turn; how many it moved. `now` is BOOTTIME. At least a batch, and more only while the budget lasts."""
        ...


@dataclass(slots=True)
class DutyTurn:
    """When a duty is due next, and how it fails."""

    duty: Duty
    due_at: float
    trouble: Trouble | None = None
    taken_at: float = float("-inf")
    #: When a caller asked for it to be due; infinite again once the turn is taken.
    called_at: float = float("inf")

    @property
    def next_at(self) -> float:
        return min(self.due_at, max(self.called_at, self.taken_at + _CALLED_EVERY))


class Janitor:
    """`sweeps` take jobs from owners that look lost, `keeping` is all the rest; `probe` asks a harmless question,
    `idle_duties` which of the rest would find nothing."""

    def __init__(
        self,
        probe: Callable[[], object],
        times: Times,
        clock: Clock,
        chance: Chance,
        *,
        sweeps: Sequence[Duty],
        keeping: Sequence[Duty],
        idle_duties: Callable[[], frozenset[str]] = nobody_idles,
    ) -> None:
        self._probe = probe
        self._idle_duties = idle_duties
        self._idle: frozenset[str] = frozenset()
        self._asked_at = float("-inf")
        self._times = times
        self._clock = clock
        self._chance = chance
        now = clock.boot()
        self._sweeps = [DutyTurn(duty, now) for duty in sweeps]
        self._keeping = [DutyTurn(duty, now) for duty in keeping]
        self._turns = [*self._sweeps, *self._keeping]
        self._is_cut_off = False
        #: When this round began, and how much earlier than asked its duties have their next turn.
        self._began = now
        self._fraction = chance.fraction()
        # The first sweep runs on the claimer's thread: it must not pass by what the janitor's own thread is just
        # recovering, or a claim would come before it.
        self._at_work = threading.Lock()
        self._calling = threading.Lock()

    def call(self, duty: str, seconds: float) -> bool:
        """That duty, which looks once in a sweep anyway, has its turn within these seconds. From any
        thread; the answer is whether a rest under way may be too long now."""
        if seconds >= self._times.sweep:
            return False
        at = self._clock.boot() + max(0.0, seconds)
        turn = next(turn for turn in self._turns if turn.duty.name == duty)
        with self._calling:
            is_first = at < turn.called_at
            turn.called_at = min(at, turn.called_at)
        return is_first

    def troubles(self) -> dict[str, Trouble]:
        """The duties that fail at present; from any thread."""
        return {turn.duty.name: trouble for turn in self._turns if (trouble := turn.trouble) is not None}

    def first_sweep(self, alive: Callable[[], None] = nobody_asks) -> None:
        """Recover what is lost before the first claim, for as long as a sweep's time; the janitor's own thread goes
        on with it. A store that is away is the caller's to wait for; a duty in trouble of its own must not keep a
        worker from working."""
        with self._at_work:
            for turn in self._sweeps:
                try:
                    turn.duty.tick(self._clock.boot(), Budget(self._clock, self._times.sweep, alive))
                except Exception as error:
                    if isinstance(error, StoreError) and self._is_away():
                        raise
                    logging.getLogger("unstuck").exception("the duty %s failed", turn.duty.name)

    def tick(self, alive: Callable[[], None] = nobody_asks) -> float:
        """Every duty that is due takes its turn; the answer is how long until the next is. `alive` is called between
        batches."""
        if self._is_cut_off:
            self._try_again()
        self._began, self._fraction = self._clock.boot(), self._chance.fraction()
        self._sweep(alive)
        for turn in self._keeping:
            if not self._is_cut_off and not self._rest_if_idle(turn) and self._take_if_due(turn, alive):
                self._sweep(alive)
        return max(0.01, min(turn.next_at for turn in self._turns) - self._clock.boot())

    def _sweep(self, alive: Callable[[], None]) -> None:
        for turn in self._sweeps:
            if not self._is_cut_off:
                self._take_if_due(turn, alive)

    def _rest_if_idle(self, turn: DutyTurn) -> bool:
        """Whether it is due and would find nothing. Not of one that was called for, that fails, or that has not had
        a turn yet, in which it learns where to begin."""
        now = self._clock.boot()
        has_begun = turn.taken_at > float("-inf") and turn.trouble is None and turn.called_at > now
        if turn.due_at > now or not has_begun or turn.duty.name not in self._who_idles(now):
            return False
        turn.due_at = self._after_rest(turn.duty.every)
        return True

    def _who_idles(self, now: float) -> frozenset[str]:
        """The question reads the tables of many: where one of them is in trouble, each duty finds out for itself."""
        if now - self._asked_at >= _IDLE_FOR:
            try:
                self._idle = self._idle_duties()
            except Exception:
                self._idle = frozenset()
            self._asked_at = now
        return self._idle

    def _take_if_due(self, turn: DutyTurn, alive: Callable[[], None]) -> bool:
        is_due = turn.next_at <= self._clock.boot()
        if is_due:
            alive()
            with self._at_work:
                self._take(turn, Budget(self._clock, self._times.sweep / _TURNS, alive))
        return is_due

    def _try_again(self) -> None:
        """A harmless question finds out whether the store is back: a sweep must not be the first to ask."""
        self._probe()
        self._is_cut_off = False
        calm_until = self._clock.boot() + self._times.beat + self._times.store_call
        emit("store_is_back", sweeps_wait=self._times.beat + self._times.store_call)
        for turn in self._sweeps:
            turn.due_at = max(turn.due_at, calm_until)

    def _take(self, turn: DutyTurn, budget: Budget) -> None:
        turn.taken_at = self._clock.boot()
        with self._calling:
            # Before the duty looks: a call from now on may be too late for this turn.
            turn.called_at = float("inf")
        try:
            moved = turn.duty.tick(self._clock.boot(), budget)
        except Exception as error:
            self._failed(turn, error)
            return
        turn.trouble = None
        turn.due_at = self._clock.boot() if budget.was_over else self._after_rest(turn.duty.every)
        if moved:
            emit("duty_done", duty=turn.duty.name, moved=moved)

    def _failed(self, turn: DutyTurn, error: Exception) -> None:
        turn.trouble = Trouble.after(turn.trouble, error, self._clock.boot())
        failures = turn.trouble.failures
        rest = min(_LONGEST_REST, turn.duty.every * 2.0 ** min(failures - 1, 10))
        turn.due_at = self._after_rest(rest)
        if isinstance(error, StoreError):
            self._is_cut_off = self._is_away()
            turn.due_at = self._after_rest(turn.duty.every)
        else:
            logging.getLogger("unstuck").exception("the duty %s failed", turn.duty.name)
        emit("duty_failed", level=logging.WARNING, duty=turn.duty.name, error=str(error), failures=failures)

    def _is_away(self) -> bool:
        """Whether the store itself is gone. If it answers, only this duty is in trouble, and the sweeps go on: a
        retention that is too slow on every worker must not end recovery everywhere."""
        try:
            self._probe()
        except StoreError:
            return True
        return False

    def _after_rest(self, seconds: float) -> float:
        """Never later than asked: the bounds count on it; a little earlier, so that workers do not march in step.
        Counted from the begin of the round, unless it has been a long one."""
        now = self._clock.boot()
        since = self._began if now - self._began < 0.1 * seconds else now
        return since + seconds * (0.9 + 0.1 * self._fraction)
