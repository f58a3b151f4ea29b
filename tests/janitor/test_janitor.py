"""The janitor runs each duty on its interval and survives its errors."""

from __future__ import annotations

import itertools

import pytest

from unstuck.chance import SeededChance
from unstuck.clock import FakeClock
from unstuck.janitor.janitor import Janitor
from unstuck.model.errors import StoreUnavailable
from unstuck.model.times import Times


class Note:
    """A duty that notes when it ran, and fails while it is told to."""

    def __init__(self, name: str, every: float = 5.0) -> None:
        self.name = name
        self.every = every
        self.ran: list[float] = []
        self.error: Exception | None = None

    def tick(self, now: float) -> int:
        self.ran.append(now)
        if self.error is not None:
            raise self.error
        return 0


class Probe:
    def __init__(self) -> None:
        self.is_away = False

    def __call__(self) -> None:
        if self.is_away:
            raise StoreUnavailable("away")


def run_for(janitor: Janitor, clock: FakeClock, seconds: float) -> None:
    until = clock.boot() + seconds
    while clock.boot() < until:
        try:
            clock.advance(janitor.tick())
        except StoreUnavailable:
            clock.advance(1.0)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def build(clock: FakeClock, probe: Probe, sweeps: list[Note], keeping: list[Note]) -> Janitor:
    return Janitor(probe, Times(), clock, SeededChance(1), sweeps=sweeps, keeping=keeping)


def test_every_duty_runs_on_its_own_interval_and_never_later(clock: FakeClock) -> None:
    often, seldom = Note("often", 5.0), Note("seldom", 60.0)
    run_for(build(clock, Probe(), [often], [seldom]), clock, 120)

    gaps = [later - sooner for sooner, later in zip(often.ran, often.ran[1:], strict=False)]
    assert len(often.ran) >= 24
    assert max(gaps) <= 5.0 + 1e-6
    assert 2 <= len(seldom.ran) <= 4


def test_one_duty_that_always_fails_stops_no_other_and_is_tried_ever_less_often(clock: FakeClock) -> None:
    bad, good = Note("bad"), Note("good")
    bad.error = ValueError("a mistake of ours")
    run_for(build(clock, Probe(), [bad, good], []), clock, 300)

    assert len(good.ran) >= 60
    assert 3 <= len(bad.ran) < len(good.ran) / 3
    assert bad.ran[-1] - bad.ran[-2] <= 60.0


def test_after_a_store_outage_sweeps_wait_one_beat_and_one_call_so_that_results_land_first(clock: FakeClock) -> None:
    probe, sweep, other = Probe(), Note("zombies"), Note("timers")
    janitor = build(clock, probe, [sweep], [other])
    probe.is_away, sweep.error, other.error = True, StoreUnavailable("away"), StoreUnavailable("away")
    run_for(janitor, clock, 30)
    swept = len(sweep.ran)

    probe.is_away, sweep.error, other.error = False, None, None
    back_at = clock.boot()
    run_for(janitor, clock, 30)

    assert swept <= 1
    assert sweep.ran[swept] >= back_at + Times().beat + Times().store_call
    assert other.ran[-1] > back_at


def test_the_first_sweep_runs_the_sweeps_alone_and_tells_its_errors(clock: FakeClock) -> None:
    """A11"""
    sweep, other = Note("zombies"), Note("retention")
    janitor = build(clock, Probe(), [sweep], [other])
    janitor.first_sweep()
    assert (len(sweep.ran), len(other.ran)) == (1, 0)
    sweep.error = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        janitor.first_sweep()


@pytest.mark.parametrize("every", [1.0, 5.0])
def test_a_duty_that_the_store_always_refuses_does_not_keep_the_sweeps_from_their_turn(
    clock: FakeClock, every: float
) -> None:
    """The store answers everybody else: a retention that is too slow must not end the recovery of lost jobs."""
    sweep, slow = Note("zombies"), Note("retention", every)
    slow.error = StoreUnavailable("too slow")
    run_for(build(clock, Probe(), [sweep], [slow]), clock, 600)

    assert max(b - a for a, b in itertools.pairwise(sweep.ran)) <= 5.0 + 1e-6
    assert len(slow.ran) > 60
