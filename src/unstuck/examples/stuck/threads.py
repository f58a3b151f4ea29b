"""Plain functions that keep their thread: no request reaches them, nobody else is harmed."""

from __future__ import annotations

import socket
import time

import unstuck
from unstuck.examples.stuck.shelf import LONGEST, culprit, until


@culprit(name="stuck.thread_spin")
def thread_spin(seconds: float = LONGEST) -> int:
    """`while True: pass` in a thread; it shares the interpreter, but never looks up."""
    end, turns = until(seconds), 0
    while time.monotonic() < end:
        turns += 1
    return turns


@culprit(name="stuck.thread_sleep")
def thread_sleep(seconds: float = LONGEST) -> None:
    """`time.sleep(1000)`: a plain sleep that nothing can wake."""
    time.sleep(min(seconds, LONGEST))


@culprit(name="stuck.blocking_recv")
def blocking_recv(seconds: float = LONGEST) -> str:
    """Reads from a socket whose other end says nothing, as a driver without a timeout does."""
    mine, theirs = socket.socketpair()
    with mine, theirs:
        mine.settimeout(min(seconds, LONGEST))
        try:
            return mine.recv(1).decode()
        except TimeoutError:
            return "nobody spoke"


@culprit(name="stuck.swallows_cancel")
def swallows_cancel(ctx: unstuck.Context, seconds: float = LONGEST) -> str:
    """Hears that it should stop, and carries on: `except Exception: continue` around everything."""
    end = until(seconds)
    while time.monotonic() < end:
        try:
            ctx.sleep(0.02)
        except BaseException:
            time.sleep(0.02)
    return "could not be stopped"
