"""Loops go on whatever their tick does; one that stands still ends the process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from tests.support.eventually import eventually
from unstuck.clock import FakeClock, MachineClock
from unstuck.model.errors import StoreUnavailable
from unstuck.worker.loops import STALLED, Loop, LoopWatchdog


def test_a_loop_survives_every_error_of_its_tick() -> None:
    ticks: list[int] = []

    def tick() -> float:
        ticks.append(1)
        if len(ticks) == 1:
            raise StoreUnavailable("away")
        if len(ticks) == 2:
            raise ValueError("a mistake of ours")
        return 0.001

    loop = Loop("test", tick, MachineClock(), silence=1.0)
    loop.start()
    eventually(lambda: len(ticks) > 5)
    loop.stop()
    assert loop.join(1.0)


def test_a_loop_that_keeps_failing_rests_longer_each_time_up_to_a_second() -> None:
    def tick() -> float:
        raise StoreUnavailable("away")

    loop = Loop("test", tick, FakeClock(), silence=1.0)
    rests = [loop.once() for _ in range(8)]
    assert rests == sorted(rests)
    assert rests[-1] == 1.0


def test_the_watchdog_names_the_loop_that_stands_still() -> None:
    clock, reasons = FakeClock(), list[str]()
    quick, slow = Loop("quick", lambda: 1.0, clock, 100.0), Loop("beat", lambda: 1.0, clock, 3.0)
    watchdog = LoopWatchdog([quick, slow], clock, end=reasons.append)
    for _ in range(5):
        clock.advance(1.0)
        quick.stamp()
        watchdog.tick()
    assert reasons
    assert "the beat loop has not ticked for" in reasons[0]


def test_a_process_that_was_itself_suspended_blames_no_loop() -> None:
    clock, reasons = FakeClock(), list[str]()
    watchdog = LoopWatchdog([loop := Loop("beat", lambda: 1.0, clock, 3.0)], clock, end=reasons.append)
    clock.advance(600.0)
    watchdog.tick()
    clock.advance(1.0)
    watchdog.tick()
    assert reasons == []
    assert loop.stamped_at == 1600.0


_HANGS = """
import threading
from unstuck.clock import MachineClock
from unstuck.worker.loops import Loop, LoopWatchdog
clock = MachineClock()
hang = Loop("claim", lambda: float(threading.Event().wait(60)), clock, silence=0.2)
watchdog = LoopWatchdog([hang], clock)
guard = Loop("watchdog", watchdog.tick, clock, silence=9e9)
hang.start(); guard.start()
threading.Event().wait(20)
"""


def test_a_worker_whose_loop_hangs_ends_itself_with_a_named_reason() -> None:
    ended = subprocess.run([sys.executable, "-c", _HANGS], capture_output=True, text=True, timeout=30)
    assert ended.returncode == STALLED
    assert "the claim loop has not ticked" in ended.stderr


_ENDS = "from unstuck.worker.loops import end_process; end_process('a test says so')"


def test_a_process_that_ends_itself_does_not_wait_for_the_reader_of_its_last_words() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 4096)
    os.set_blocking(writer, True)
    try:
        process = subprocess.Popen([sys.executable, "-c", _ENDS], stderr=writer)
        assert process.wait(20) == STALLED
    finally:
        process.kill()
        os.close(reader)
        os.close(writer)


def test_a_process_that_ends_itself_needs_no_reader_at_all() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen([sys.executable, "-c", _ENDS], stderr=writer)
    os.close(writer)
    assert process.wait(20) == STALLED


def test_the_watchdog_says_the_last_error_of_a_loop_that_only_fails() -> None:
    clock, reasons = FakeClock(), list[str]()

    def tick() -> float:
        raise ValueError("a mistake of ours")

    main = Loop("main", tick, clock, silence=3.0)
    watchdog = LoopWatchdog([main], clock, end=reasons.append)
    while not reasons:
        main.turn()
        watchdog.tick()
    assert "the main loop has not ticked" in reasons[0]
    assert "a mistake of ours" in reasons[0]


def test_a_turn_that_fails_rests_and_one_that_works_counts_as_a_sign_of_life() -> None:
    clock, answers = FakeClock(), iter([True, False])

    def tick() -> float:
        if next(answers):
            raise ValueError("once")
        return 0.0

    loop = Loop("main", tick, clock, silence=3.0)
    loop.turn()
    assert clock.boot() > 1000.0
    assert loop.stamped_at == 1000.0
    loop.turn()
    assert loop.stamped_at == clock.boot()


def test_a_failed_tick_is_a_sign_of_life_but_not_of_health() -> None:
    """A loop whose tick can never succeed looks alive to the watchdog: its trouble says that it is not well."""
    clock, fails = FakeClock(), [True]

    def tick() -> float:
        clock.advance(1.0)
        if fails[0]:
            raise ValueError("a mistake of ours")
        return 0.0

    loop = Loop("settle", tick, clock, silence=3.0)
    loop.once()
    loop.once()
    assert loop.trouble is not None
    assert (loop.trouble.since, loop.trouble.failures) == (1001.0, 2)
    assert str(loop.trouble.error) == "a mistake of ours"
    fails[0] = False
    loop.once()
    assert loop.trouble is None
