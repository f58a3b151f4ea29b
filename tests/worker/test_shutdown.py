"""What signals mean."""

from __future__ import annotations

import signal
import sys
import threading

from unstuck.model.times import Times
from unstuck.worker.shutdown import Phase, Shutdown, signals_handled


def test_no_signal_no_shutdown() -> None:
    shutdown = Shutdown(Times())
    assert shutdown.phase(1e9) is Phase.WORKING


def test_the_first_signal_drains_until_the_limit_and_then_hands_back() -> None:
    shutdown = Shutdown(Times(drain=300))
    shutdown.ask(signal.SIGTERM)
    assert shutdown.phase(100.0) is Phase.DRAINING
    assert shutdown.phase(399.9) is Phase.DRAINING
    assert shutdown.phase(400.0) is Phase.HANDING_BACK
    assert shutdown.exit_code == 0


def test_the_second_signal_hands_back_at_once_and_shows_in_the_exit_code() -> None:
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        shutdown = Shutdown(Times())
        shutdown.ask(number)
        shutdown.ask(number)
        assert (shutdown.phase(0.0), shutdown.exit_code) == (Phase.HANDING_BACK, code)


def test_the_third_signal_leaves() -> None:
    shutdown = Shutdown(Times())
    for _ in range(3):
        shutdown.ask()
    assert shutdown.phase(0.0) is Phase.LEAVING


def test_a_real_signal_is_only_noted_and_the_old_handler_comes_back() -> None:
    shutdown, nudges = Shutdown(Times()), list[int]()
    before = signal.getsignal(signal.SIGTERM)
    with signals_handled(shutdown, lambda: nudges.append(1)):
        signal.raise_signal(signal.SIGTERM)
        assert shutdown.is_asked
        assert nudges == [1]
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_hang_up_drains_unless_the_worker_was_started_to_ignore_it() -> None:
    """`nohup unstuck worker` outlives the terminal it was started from."""
    before = signal.getsignal(signal.SIGHUP)
    for handler, is_asked in ((signal.SIG_DFL, True), (signal.SIG_IGN, False)):
        shutdown = Shutdown(Times())
        signal.signal(signal.SIGHUP, handler)
        try:
            with signals_handled(shutdown, lambda: None):
                signal.raise_signal(signal.SIGHUP)
            assert (shutdown.is_asked, signal.getsignal(signal.SIGHUP)) == (is_asked, handler)
        finally:
            signal.signal(signal.SIGHUP, before)


def test_the_handler_of_a_signal_takes_no_lock() -> None:
    """It runs between any two steps of the main thread, which may hold that very lock."""
    shutdown, files = Shutdown(Times()), set[str]()
    with signals_handled(shutdown, lambda: None):
        sys.setprofile(lambda frame, event, arg: files.add(frame.f_code.co_filename))
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            sys.setprofile(None)

    assert shutdown.is_asked
    assert threading.__file__ not in files
