"""Waiting for an end: often at first, then less; a store that is away is waited for, but not for ever."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from unstuck.clock import FakeClock
from unstuck.model.errors import StoreUnavailable
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.observe.wait import LATE, PATIENCE, SOON, await_end, wait_for_end

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_job(state: JobState) -> JobRecord:
    return JobRecord(1, "id", "default", "default", "pay", None, 0, state, 1, 0, "{}", Policy(), NOW, NOW, 1)


def answers(*given: JobState | Exception) -> tuple[Callable[[], JobRecord], Iterator[JobState | Exception]]:
    left = itertools.chain(given[:-1], itertools.repeat(given[-1]))

    def read() -> JobRecord:
        answer = next(left)
        if isinstance(answer, Exception):
            raise answer
        return a_job(answer)

    return read, left


class Looks(FakeClock):
    """Remembers how long each wait was."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def advance(self, seconds: float) -> None:
        self.pauses.append(seconds)
        super().advance(seconds)


def test_an_ended_job_is_not_waited_for() -> None:
    clock = Looks()

    record = wait_for_end(answers(JobState.TIMEOUT)[0], timeout=0, clock=clock)

    assert record is not None
    assert record.state is JobState.TIMEOUT
    assert clock.pauses == []


def test_pauses_grow_to_a_ceiling_and_never_pass_the_time_limit() -> None:
    clock = Looks()

    assert wait_for_end(answers(JobState.RUNNING)[0], timeout=10, clock=clock) is None

    assert clock.pauses[0] == SOON
    assert max(clock.pauses) == LATE
    assert clock.pauses[:-1] == sorted(clock.pauses[:-1])
    assert sum(clock.pauses) == pytest.approx(10)


def test_a_paused_job_has_not_ended() -> None:
    assert wait_for_end(answers(JobState.PAUSED)[0], timeout=1, clock=FakeClock()) is None


def test_a_store_that_comes_back_is_waited_for() -> None:
    away = StoreUnavailable("away")

    record = wait_for_end(answers(away, away, JobState.RUNNING, away, JobState.COMPLETED)[0], clock=FakeClock())

    assert record is not None
    assert record.state is JobState.COMPLETED


def test_a_store_that_stays_away_is_given_up_on() -> None:
    clock = FakeClock()
    began = clock.boot()

    with pytest.raises(StoreUnavailable):
        wait_for_end(answers(StoreUnavailable("away"))[0], clock=clock)

    assert PATIENCE < clock.boot() - began < PATIENCE + 2


def test_a_store_that_is_away_when_the_time_is_over_is_the_answer() -> None:
    with pytest.raises(StoreUnavailable):
        wait_for_end(answers(JobState.RUNNING, StoreUnavailable("away"))[0], timeout=5, clock=FakeClock())


def test_coroutines_wait_by_the_same_rules() -> None:
    read, _ = answers(StoreUnavailable("away"), JobState.RUNNING, JobState.FAILED)

    async def aread() -> JobRecord:
        return read()

    async def main() -> tuple[JobRecord | None, JobRecord | None]:
        ended = await await_end(aread, timeout=10)
        running, _ = answers(JobState.RUNNING)

        async def still() -> JobRecord:
            return running()

        return ended, await await_end(still, timeout=0.05)

    ended, still = asyncio.run(main())
    assert ended is not None
    assert ended.state is JobState.FAILED
    assert still is None
