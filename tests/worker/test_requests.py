"""The worker's own requests: made durable a few at a time, and never left half asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unstuck.clock import FakeClock
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.times import Times
from unstuck.store.port import Asked, Verdict
from unstuck.worker.requests import Ask, Requests


class SlowStore:
    """Every ask takes its time; `trouble` is raised instead of an answer."""

    def __init__(self, clock: FakeClock, trouble: Exception | None = None) -> None:
        self.clock = clock
        self.trouble = trouble
        self.polls: list[float] = []

    def ask(self, ref: AttemptRef, kind: RequestKind, reason: str) -> Verdict:
        self.clock.advance(1.0)
        if self.trouble is not None:
            raise self.trouble
        return Verdict.DONE

    def asked(self, worker: int) -> list[Asked]:
        self.polls.append(self.clock.boot())
        return []


def requests_on(store: Any, clock: FakeClock, heard: Callable[[Asked], None]) -> Requests:
    return Requests(store, 1, Times(), clock, is_busy=lambda: True, heard=heard, revoked=lambda ref: None)


def test_many_asks_are_written_over_many_ticks_with_polls_in_between() -> None:
    """Each tick is a sign of life: a worker that drains hundreds of slots must not look as if it hung."""
    clock, heard = FakeClock(), list[Asked]()
    store = SlowStore(clock)
    requests = requests_on(store, clock, heard.append)
    for number in range(100):
        requests.ask(Ask(AttemptRef(number, 1, "c"), RequestKind.DRAIN, "bye"))

    longest, ticks = 0.0, 0
    while len(heard) < 100:
        before = clock.boot()
        requests.tick()
        longest, ticks = max(longest, clock.boot() - before), ticks + 1

    assert longest <= 10.0
    assert ticks >= 10
    assert len(store.polls) >= ticks - 1
    assert clock.boot() < 1000.0 + 100.0 + 2.0


def test_an_ask_that_fails_in_any_way_is_told_all_the_same() -> None:
    clock, heard = FakeClock(), list[Asked]()
    requests = requests_on(SlowStore(clock, ValueError("a mistake of ours")), clock, heard.append)
    requests.ask(Ask(AttemptRef(1, 1, "c"), RequestKind.TIMEOUT, "late"))

    requests.tick()

    assert heard == [Asked(AttemptRef(1, 1, "c"), RequestKind.TIMEOUT, "late")]
