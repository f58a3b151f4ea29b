"""The watchdog over calls: what it watches is cut at its deadline."""

from __future__ import annotations

import socket

import pytest

from tests.support.eventually import eventually
from tests.support.threads import no_more_threads
from unstuck.clock import boot
from unstuck.store.drivers.watchdog import CallWatchdog, Line


def test_calls_have_their_deadlines_once_there_is_a_thread_for_them() -> None:
    watchdog = CallWatchdog()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        early, late = Line(ours.fileno()), Line(ours.fileno())
        with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
            watchdog.watch(early, boot() + 60.0)
        watchdog.watch(late, boot() + 0.05)
        eventually(lambda: late.was_cut)
        watchdog.close()
        early.close()
        late.close()
