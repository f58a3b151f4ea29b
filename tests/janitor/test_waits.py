"""Waits end when they say: the duty rests until the first of them, comes when it is called, and never spins."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tests.conftest import StoreClock
from tests.janitor.test_janitor import Note, Probe, build, run_for
from tests.store.test_pending import state
from tests.store.test_waits import PAID, parked
from tests.support.budgets import endless
from tests.support.builders import a_worker
from unstuck.chance import SeededChance
from unstuck.clock import FakeClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.janitor import Janitor
from unstuck.janitor.waits import WaitsDuty
from unstuck.model.batch import Batch
from unstuck.model.errors import StoreUnavailable
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times
from unstuck.store.port import Enough
from unstuck.store.sql_store import SqlStore

SWEEP = Times().sweep


@pytest.fixture
def boot() -> FakeClock:
    return FakeClock()


# --- how long it rests --------------------------------------------------------------------------------------------


def test_it_rests_until_the_first_wait_ends_and_never_longer_than_a_sweep(store: SqlStore, clock: StoreClock) -> None:
    worker, duty = a_worker(store, lease=1e6), WaitsDuty(store, Times())
    duty.tick(0.0, endless())
    assert duty.every == SWEEP
    late = parked(store, worker, replace(PAID, timeout=300.0))
    duty.tick(0.0, endless())
    assert duty.every == SWEEP
    soon = parked(store, worker, replace(PAID, timeout=2.0))
    duty.tick(0.0, endless())
    assert 0 < duty.every <= 2
    clock.advance(seconds=2)
    assert duty.tick(0.0, endless()) == 1
    assert (state(store, soon.id), state(store, late.id), duty.every) == (JobState.FAILED, JobState.WAITING, SWEEP)


def test_one_turn_ends_all_that_are_due_also_more_than_a_batch(store: SqlStore, clock: StoreClock) -> None:
    worker, duty = a_worker(store, lease=1e6), WaitsDuty(store, Times())
    duty._batch = Batch(4)
    for _ in range(11):
        parked(store, worker, PAID)
    clock.advance(hours=1)
    assert duty.tick(0.0, endless()) == 11
    assert duty.every == SWEEP


class Held:
    """A store whose first wait ends in `ahead` seconds, for ever: its clock stands still, or somebody holds it."""

    def __init__(self, ahead: float, moves: int = 0) -> None:
        self.ahead = ahead
        self.moves = moves
        self.batches: list[int] = []
        self.is_slow = False

    def next_wait(self) -> float | None:
        return self.ahead

    def expire_waits(self, batch: int, *, enough: Enough) -> int:
        self.batches.append(batch)
        if self.is_slow:
            raise StoreUnavailable("too slow")
        return self.moves


def alone(held: Held, boot: FakeClock) -> Janitor:
    duty = WaitsDuty(held, Times())  # type: ignore[arg-type]
    return Janitor(Probe(), Times(), boot, SeededChance(1), sweeps=[], keeping=[duty])


def test_a_wait_that_stays_overdue_is_looked_at_ever_less_often(boot: FakeClock) -> None:
    held = Held(0)
    run_for(alone(held, boot), boot, 60)
    assert 60 / SWEEP <= len(held.batches) <= 2 * 60 / SWEEP


def test_more_than_every_turn_can_end_are_gone_on_with_but_not_without_a_rest(boot: FakeClock) -> None:
    held = Held(0, moves=WaitsDuty.most)
    run_for(alone(held, boot), boot, 10)
    assert 10 / 0.1 <= len(held.batches) <= 10 / 0.075 + 1


def test_a_clock_that_stands_still_just_before_the_end_makes_nobody_spin(boot: FakeClock) -> None:
    held, ticks = Held(1e-6), 0
    janitor = alone(held, boot)
    until = boot.boot() + 10
    while boot.boot() < until:
        boot.advance(janitor.tick())
        ticks += 1
    assert ticks <= 10 / 0.075 + 1
    assert held.batches == []


def test_what_is_too_slow_in_one_call_is_tried_with_less(boot: FakeClock) -> None:
    held = Held(0, moves=1)
    held.is_slow = True
    janitor = alone(held, boot)
    run_for(janitor, boot, 60)
    assert held.batches[:6] == [500, 125, 31, 7, 1, 1]
    held.is_slow = False
    run_for(janitor, boot, 60)
    assert held.batches[-1] == WaitsDuty.most


# --- calls --------------------------------------------------------------------------------------------------------


def test_a_called_duty_has_its_turn_then_and_the_others_theirs(boot: FakeClock) -> None:
    waits, other = Note("waits"), Note("timers")
    janitor = build(boot, Probe(), [], [waits, other])
    janitor.tick()
    at = boot.boot() + 1.0
    assert janitor.call("waits", 1.0)
    assert not janitor.call("waits", 2.0), "who was called for sooner need not be told"
    boot.advance(janitor.tick())
    janitor.tick()
    assert waits.ran[1:] == [pytest.approx(at)]
    assert len(other.ran) == 1


def test_a_call_for_later_than_a_sweep_is_left_to_the_sweep(boot: FakeClock) -> None:
    janitor = build(boot, Probe(), [], [Note("waits")])
    assert not janitor.call("waits", SWEEP)


def test_a_call_that_comes_while_the_duty_is_at_it_is_not_lost(boot: FakeClock) -> None:
    """Its look may have been before: what is called for then needs another."""

    class Called(Note):
        def tick(self, now: float, budget: Budget) -> int:
            if len(self.ran) == 0:
                assert janitor.call("waits", 0.5)
            return super().tick(now, budget)

    waits = Called("waits")
    janitor = build(boot, Probe(), [], [waits])
    boot.advance(janitor.tick())
    janitor.tick()
    assert len(waits.ran) == 2
    assert waits.ran[1] - waits.ran[0] == pytest.approx(0.5)


def test_calls_without_end_do_not_make_a_duty_spin(boot: FakeClock) -> None:
    waits = Note("waits")
    janitor = build(boot, Probe(), [], [waits])
    for _ in range(1000):
        janitor.call("waits", 0.0)
        janitor.tick()
        boot.advance(0.01)
    assert len(waits.ran) <= 101
    assert min(later - sooner for sooner, later in itertools.pairwise(waits.ran)) >= 0.1 - 1e-9
