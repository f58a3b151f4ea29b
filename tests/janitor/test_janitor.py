"""The janitor runs each duty on its interval and survives its errors."""

from __future__ import annotations

import itertools

import pytest

from unstuck.chance import SeededChance
from unstuck.clock import FakeClock
from unstuck.janitor.budget import Budget
from unstuck.janitor.janitor import Janitor
from unstuck.model.errors import SchemaMismatch, StoreUnavailable
from unstuck.model.times import Times


class Note:
    """A duty that notes when it ran, and fails while it is told to."""

    def __init__(self, name: str, every: float = 5.0) -> None:
        self.name = name
        self.every = every
        self.ran: list[float] = []
        self.error: Exception | None = None

    def tick(self, now: float, budget: Budget) -> int:
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


def test_duties_that_rest_alike_have_their_turns_in_one_round(clock: FakeClock) -> None:
    """An idle worker would wake up for each of them, and they would drift apart."""
    notes = [Note(f"note {n}") for n in range(5)]

    class Slow(Note):
        def tick(self, now: float, budget: Budget) -> int:
            clock.advance(0.01)
            return super().tick(now, budget)

    slow = Slow("slow")
    janitor = build(clock, Probe(), [notes[0]], [slow, *notes[1:]])
    rounds = 0
    until = clock.boot() + 100.0
    while clock.boot() < until:
        clock.advance(janitor.tick())
        rounds += 1
    assert rounds <= 100 / (0.9 * 5.0) + 2
    assert {len(note.ran) for note in [slow, *notes]} == {rounds}


class Idlers:
    """Who would find nothing, as the store says; it counts how often it is asked."""

    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)
        self.asked = 0
        self.error: Exception | None = None

    def __call__(self) -> frozenset[str]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.names


def build_with(clock: FakeClock, idlers: Idlers, *keeping: Note) -> Janitor:
    return Janitor(Probe(), Times(), clock, SeededChance(1), sweeps=[], keeping=keeping, idle_duties=idlers)


def test_duties_that_would_find_nothing_rest_after_one_question_for_all_of_them(clock: FakeClock) -> None:
    idle, other, busy = Note("inbox"), Note("bulks"), Note("timers")
    idlers = Idlers("inbox", "bulks")
    janitor = build_with(clock, idlers, idle, other, busy)
    run_for(janitor, clock, 60)

    assert (len(idle.ran), len(other.ran)) == (1, 1), "only the first turn, in which a duty learns where to begin"
    assert len(busy.ran) >= 12
    assert idlers.asked == len(busy.ran) - 1

    idlers.names = frozenset()
    before = clock.boot()
    run_for(janitor, clock, 11)
    assert idle.ran[1] - before <= 5.0


def test_a_duty_that_was_called_for_or_fails_has_its_turn_whoever_says_that_it_idles(clock: FakeClock) -> None:
    called, failing = Note("waits"), Note("bulks")
    failing.error = ValueError("a mistake of ours")
    janitor = build_with(clock, Idlers("waits", "bulks"), called, failing)
    run_for(janitor, clock, 4)
    janitor.call("waits", 0.5)
    run_for(janitor, clock, 4)
    assert len(called.ran) == 2
    assert len(failing.ran) == 2

    failing.error = None
    run_for(janitor, clock, 60)
    assert janitor.troubles() == {}


def test_where_the_question_itself_fails_every_duty_has_its_turn(clock: FakeClock) -> None:
    idlers, duty = Idlers("bulks"), Note("bulks")
    idlers.error = SchemaMismatch("no such table")
    run_for(build_with(clock, idlers, duty), clock, 60)
    assert len(duty.ran) >= 12


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
    probe = Probe()
    janitor = build(clock, probe, [sweep], [other])
    janitor.first_sweep()
    assert (len(sweep.ran), len(other.ran)) == (1, 0)
    probe.is_away, sweep.error = True, StoreUnavailable("away")
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


def test_the_first_sweep_goes_on_without_a_duty_that_is_in_trouble_of_its_own(clock: FakeClock) -> None:
    """The store answers: a worker that waited for that duty would never work."""
    bad, good = Note("zombies"), Note("overdue")
    bad.error = StoreUnavailable("one row is held")
    build(clock, Probe(), [bad, good], []).first_sweep()
    assert (len(bad.ran), len(good.ran)) == (1, 1)


# --- turns bounded by time ------------------------------------------------------------------------------------------


class Backlog(Note):
    """A duty with so much to do, a batch of 0.4 s after the other."""

    def __init__(self, name: str, clock: FakeClock, batches: int) -> None:
        super().__init__(name)
        self.clock = clock
        self.batches = batches

    def tick(self, now: float, budget: Budget) -> int:
        super().tick(now, budget)
        done = 0
        while self.batches:
            self.clock.advance(0.4)
            self.batches -= 1
            done += 1
            if budget.is_over():
                break
        return done


def test_a_duty_that_was_not_done_goes_on_at_once_but_behind_the_others(clock: FakeClock) -> None:
    timers, retention = Backlog("timers", clock, 100), Backlog("retention", clock, 100)
    run_for(build(clock, Probe(), [], [timers, retention]), clock, 90)

    assert (timers.batches, retention.batches) == (0, 0), "none waits for a sweep while there is more to do"
    turns = sorted([(at, "t") for at in timers.ran] + [(at, "r") for at in retention.ran])
    order = "".join(name for _, name in turns)[:40]
    assert order == "tr" * 20
    longest = max(b - a for (a, _), (b, _) in itertools.pairwise(turns[:40]))
    assert longest <= 1.0 + 0.4 + 0.02, "a turn is a second, and the batch that was under way"


def test_the_rescue_has_its_turn_in_time_whatever_the_others_have_to_do(clock: FakeClock) -> None:
    rescue = Note("zombies")
    busy = [Backlog(f"duty {number}", clock, 200) for number in range(9)]
    run_for(build(clock, Probe(), [rescue], list(busy)), clock, 120)

    assert max(b - a for a, b in itertools.pairwise(rescue.ran)) <= 5.0 + 1.4 + 0.02
    assert len({len(duty.ran) for duty in busy}) <= 2, "each has had as many turns as the others"


def test_a_rescue_with_much_to_do_does_not_keep_the_others_from_theirs(clock: FakeClock) -> None:
    rescue, timers = Backlog("zombies", clock, 1000), Note("timers")
    run_for(build(clock, Probe(), [rescue], [timers]), clock, 60)
    assert max(b - a for a, b in itertools.pairwise(timers.ran)) <= 5.0 + 3 * 1.4


def test_every_batch_is_a_sign_of_life_and_the_loop_hears_it(clock: FakeClock) -> None:
    signs = list[float]()
    build(clock, Probe(), [], [Backlog("timers", clock, 2)]).tick(lambda: signs.append(clock.boot()))
    assert signs == [1000.0, 1000.4, 1000.8], "before its turn, and after each batch"


# --- trouble --------------------------------------------------------------------------------------------------------


def test_a_duty_that_fails_is_known_with_its_error_until_it_works_again(clock: FakeClock) -> None:
    bad, good = Note("retention"), Note("timers")
    bad.error = SchemaMismatch("no such table")
    janitor = build(clock, Probe(), [], [bad, good])
    run_for(janitor, clock, 21)

    (trouble,) = janitor.troubles().values()
    assert janitor.troubles().keys() == {"retention"}
    assert (trouble.since, trouble.failures) == (1000.0, len(bad.ran))
    assert str(trouble.error) == "no such table"

    bad.error = None
    run_for(janitor, clock, 10)
    assert janitor.troubles() == {}


def test_a_store_that_hangs_costs_a_round_two_calls_and_not_two_for_every_duty(clock: FakeClock) -> None:
    """Or the watchdog would take the waiting for a loop that stands still."""

    class Hanging(Note):
        def tick(self, now: float, budget: Budget) -> int:
            clock.advance(3.0)
            return super().tick(now, budget)

    class HangingProbe(Probe):
        def __call__(self) -> None:
            clock.advance(3.0)
            super().__call__()

    probe, duties = HangingProbe(), [Hanging(f"duty {number}") for number in range(10)]
    probe.is_away = True
    for duty in duties:
        duty.error = StoreUnavailable("away")
    janitor = build(clock, probe, [*duties[:2]], [*duties[2:]])
    began = clock.boot()
    janitor.tick()
    assert clock.boot() - began <= 6.0
