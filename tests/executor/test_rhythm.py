"""How often an executor shows that it lives."""

from __future__ import annotations

from unstuck.executor.event_loop import make_loop
from unstuck.executor.page import HEADER, SharedPage, memory_file
from unstuck.executor.rhythm import CALM_AFTER, CALM_PULSES, Rhythm

PULSE = 0.1


def test_who_has_had_nothing_to_do_for_a_while_beats_more_rarely() -> None:
    is_busy = True
    rhythm = Rhythm(PULSE, lambda: is_busy)
    assert [rhythm.rest() for _ in range(100)] == [PULSE] * 100
    is_busy = False
    assert [rhythm.rest() for _ in range(CALM_AFTER)] == [PULSE] * CALM_AFTER
    assert rhythm.rest() == rhythm.rest() == CALM_PULSES * PULSE
    is_busy = True
    assert rhythm.rest() == PULSE


def test_a_loop_that_is_calm_writes_its_pulse_ahead_and_is_awake_before_a_coroutine_begins() -> None:
    """Nobody who reads the page sees a pulse missing; and none counts for a coroutine that was written before it."""
    page = SharedPage(memory_file("unstuck-test", HEADER))
    beats: list[float] = []
    rhythm = Rhythm(0.001, lambda: False)

    def mend() -> None:
        beats.append(page.loop_pulse)
        if len(beats) > CALM_AFTER + 1:
            loop.stop()

    loop, hurry = make_loop(page, rhythm, mend)
    rhythm.pulse = 60.0  # from now on it would rest for minutes, once it is calm
    rhythm._calm = CALM_AFTER
    loop.call_soon(loop.stop)
    loop.run_forever()
    ahead = page.loop_pulse
    assert len(beats) == 1
    hurry()
    assert len(beats) == 2
    rhythm._is_busy = lambda: True
    hurry()
    assert len(beats) == 3
    assert page.loop_pulse < ahead
    hurry()
    assert len(beats) == 3  # it does not rest for longer than a pulse
    loop.close()
    page.close()
