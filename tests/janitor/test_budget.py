"""A duty has so much time a turn, gives a sign of life between its batches, and takes as much as is quick enough."""

from __future__ import annotations

import pytest

from unstuck.clock import FakeClock
from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Backlog:
    """So many to do, each of which costs so much time."""

    def __init__(self, clock: FakeClock, items: int, each: float) -> None:
        self.clock = clock
        self.items = items
        self.each = each
        self.batches: list[int] = []

    def work(self, most: int) -> int:
        done = min(most, self.items)
        self.items -= done
        self.clock.advance(done * self.each)
        self.batches.append(done)
        return done


def test_asking_whether_it_is_over_is_a_sign_of_life(clock: FakeClock) -> None:
    signs = list[float]()
    budget = Budget(clock, 1.0, lambda: signs.append(clock.boot()))
    assert not budget.is_over()
    clock.advance(0.6)
    assert not budget.is_over()
    assert not budget.was_over
    clock.advance(0.6)
    assert budget.is_over()
    assert budget.was_over
    assert signs == [1000.0, 1000.6, 1001.2]


def test_batches_go_on_until_one_is_not_full(clock: FakeClock) -> None:
    backlog, budget = Backlog(clock, 25, each=0.0), Budget(clock, 1.0)
    assert list(budget.batches(Batch(10), backlog.work, int)) == [10, 10, 5]
    assert not budget.was_over


def test_batches_end_with_the_budget_and_one_batch_at_most_behind_it(clock: FakeClock) -> None:
    backlog = Backlog(clock, 100_000, each=0.001)
    batch = Batch(1000)
    for _ in range(50):
        began, budget = clock.boot(), Budget(clock, 1.0)
        sum(budget.batches(batch, backlog.work, int))
        assert budget.was_over
        assert clock.boot() - began <= 1.0 + backlog.batches[-1] * backlog.each
        if backlog.items == 0:
            break
    assert max(backlog.batches[3:]) <= 250, "a batch is to be over in a quarter of the budget"
    assert backlog.items <= 50_000


def test_even_without_time_one_batch_is_done(clock: FakeClock) -> None:
    """Or what takes long before the first batch would keep it from ever coming."""
    backlog, budget = Backlog(clock, 25, each=0.0), Budget(clock, 1.0)
    clock.advance(5.0)
    assert list(budget.batches(Batch(10), backlog.work, int)) == [10]


def test_the_longest_time_between_two_signs_of_life_decides_about_the_batch_not_the_whole_call(
    clock: FakeClock,
) -> None:
    batch, budget = Batch(100), Budget(clock, 1.0)

    def rounds(most: int) -> int:
        for _ in range(8):
            clock.advance(0.1)
            budget.is_over()
        return most

    budget.call(batch, rounds)
    assert batch.size == 100


def test_a_batch_that_fails_is_smaller_next_time(clock: FakeClock) -> None:
    batch, budget = Batch(100), Budget(clock, 1.0)

    def fails(most: int) -> int:
        raise ValueError("one of them")

    with pytest.raises(ValueError, match="one of them"):
        budget.call(batch, fails)
    assert batch.size == 25
