"""A batch with bad items is written but for those; a store that is away is nobody's fault."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from unstuck.model.errors import OutcomeUnknown, StoreBusy, StoreUnavailable
from unstuck.store.guard.bisection import bisect_batch


class Table:
    """Takes batches whole or not at all."""

    def __init__(self, bad: set[int], problem: Callable[[], Exception] = lambda: ValueError("it raises")) -> None:
        self.written: list[int] = []
        self.calls = 0
        self._bad = bad
        self._problem = problem

    def write(self, some: Sequence[int]) -> None:
        self.calls += 1
        if self._bad.intersection(some):
            raise self._problem()
        self.written += some


def test_a_batch_that_can_be_written_is_one_call() -> None:
    table = Table(set())

    assert bisect_batch(range(1000), table.write) == {}
    assert (table.calls, table.written) == (1, list(range(1000)))


def test_one_bad_item_of_a_thousand_is_found_and_the_others_are_written_in_their_order() -> None:
    table = Table({413})

    failed = bisect_batch(range(1000), table.write)

    assert [(item, str(error)) for item, error in failed.items()] == [(413, "it raises")]
    assert table.written == [item for item in range(1000) if item != 413]
    assert table.calls <= 21


@pytest.mark.parametrize("error", [StoreUnavailable("away"), OutcomeUnknown("cut")])
def test_a_store_that_is_away_is_not_asked_again_for_each_half(error: Exception) -> None:
    table = Table({1}, lambda: error)

    with pytest.raises(type(error)):
        bisect_batch(range(1000), table.write)
    assert table.calls == 1


def test_where_all_fail_it_stops_after_some() -> None:
    table = Table(set(range(1000)))

    failed = bisect_batch(range(1000), table.write, most=20)

    assert list(failed) == list(range(20))
    assert table.calls < 60


def test_when_its_time_is_up_before_it_found_one_it_says_why() -> None:
    table = Table(set(range(1000)), lambda: StoreBusy("held"))

    with pytest.raises(StoreBusy):
        bisect_batch(range(1000), table.write, within=0.0)
    assert table.calls == 1


def test_what_fails_slowly_is_found_after_few_failures_while_the_others_go_first() -> None:
    slow: list[int] = []
    waiting: list[int] = []

    def write(some: Sequence[int]) -> None:
        if 413 in some:
            slow.append(len(some))
            waiting.append(1000 - len(written))
            time.sleep(0.25)
            raise StoreBusy("it took too long")
        written.extend(some)

    written: list[int] = []
    assert list(bisect_batch(range(1000), write)) == [413]
    assert sorted(written) == [item for item in range(1000) if item != 413]
    assert len(slow) <= 5
    assert all(left <= piece for left, piece in zip(waiting[1:], slow, strict=False)), "who is not near it waits once"


def test_nothing_to_do_is_no_call() -> None:
    table = Table(set())

    assert bisect_batch([], table.write) == {}
    assert table.calls == 0
