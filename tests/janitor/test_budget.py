"""A duty has so much time a turn, gives a sign of life between its batches, and takes as much as is quick enough."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import pytest

from unstuck.clock import FakeClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.pages import Pages
from unstuck.model.batch import Batch
from unstuck.store.port import Waiting, WaitingRoutes


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


class Poisoned(Backlog):
    """The item at this place can never be done, and nothing of the batch that it is in."""

    def __init__(self, clock: FakeClock, items: int, each: float, place: int) -> None:
        super().__init__(clock, items, each)
        self.place = place
        self.tried: list[int] = []

    def work(self, most: int) -> int:
        self.tried.append(most)
        if most >= self.place:
            self.clock.advance(self.each)
            raise ValueError("one of them")
        self.place -= most
        return super().work(most)


def test_a_batch_that_fails_is_tried_with_fewer_in_the_same_turn_and_those_before_the_bad_one_are_done(
    clock: FakeClock,
) -> None:
    backlog, batch = Poisoned(clock, 1000, each=0.0, place=40), Batch(100)
    with pytest.raises(ValueError, match="one of them"):
        list(Budget(clock, 1.0).batches(batch, backlog.work, int))
    assert backlog.items == 1000 - 39
    assert backlog.tried[:3] == [100, 25, 50]
    assert (backlog.tried[-1], batch.size) == (1, 1)


def test_a_failure_that_took_the_whole_budget_is_left_to_the_next_turn(clock: FakeClock) -> None:
    backlog, batch = Poisoned(clock, 1000, each=3.0, place=1), Batch(100)
    with pytest.raises(ValueError, match="one of them"):
        Budget(clock, 1.0).call(batch, backlog.work)
    assert (backlog.tried, batch.size) == ([100], 25)


# --- the walk over the routes on which jobs wait --------------------------------------------------------------------


class Routes:
    """So many of them; a page costs so much time."""

    def __init__(self, clock: FakeClock, count: int, page: float) -> None:
        self.clock = clock
        self.count = count
        self.page = page

    def waits(self, after: int, limit: int) -> WaitingRoutes:
        self.clock.advance(self.page)
        numbers = range(after + 1, min(after + limit, self.count) + 1)
        at = datetime(2026, 1, 1, tzinfo=UTC)
        rows = [Waiting(number, f"job {number}", "default", "default", "w", at, False) for number in numbers]
        return WaitingRoutes(rows, numbers[-1] if numbers[-1] < self.count else 0)


def walk(pages: Pages, budget: Budget, most: int = 10**9) -> list[int]:
    return [first.route for first in itertools.islice(pages.turn(budget), most)]


def test_a_walk_goes_on_in_the_next_turn_and_passes_by_nobody(clock: FakeClock) -> None:
    pages = Pages(Routes(clock, 20_000, page=0.4))  # type: ignore[arg-type]
    walked, turns = list[int](), 0
    while not walked or walked[-1] != 20_000:
        began = clock.boot()
        walked += walk(pages, Budget(clock, 1.0))
        turns += 1
        assert clock.boot() - began <= 1.4
    assert walked == list(range(1, 20_001))
    assert turns > 5


def test_who_stops_in_the_middle_of_a_page_goes_on_behind_the_route_he_had_last(clock: FakeClock) -> None:
    pages = Pages(Routes(clock, 3000, page=0.0))  # type: ignore[arg-type]
    walked = [route for _ in range(6) for route in walk(pages, Budget(clock, 1.0), 500)]
    assert walked == list(range(1, 3001))
