"""Handlers that keep a shared process from everybody else in it, each by another means, and innocents."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import sys
import time

import unstuck

app = unstuck.App()


@app.workflow(retries=0)
def regex() -> None:
    """For minutes, without ever letting go of the interpreter."""
    re.match(r"(a+)+$", "a" * 60 + "b")


@app.workflow(retries=0)
def power() -> None:
    """One operation, and no line of Python until it is done."""
    pow(3, 10**8)


@app.workflow(retries=0)
def sleeps_with_it() -> None:
    """An extension that waits with the interpreter in its hand."""
    ctypes.PyDLL(None).usleep(600_000_000)


@app.workflow(retries=0)
def takes_no_turns() -> None:
    sys.setswitchinterval(1e5)
    while True:
        pass


@app.workflow(retries=0)
def stops_itself() -> None:
    """And ignores its request once it goes on."""
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)


@app.workflow(retries=0)
def stops_once() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


@app.workflow(retries=0)
def stops_again_and_again() -> None:
    while True:
        os.kill(os.getpid(), signal.SIGSTOP)


@app.workflow(retries=0)
def spins() -> None:
    while True:
        pass


@app.workflow(retries=0, timeout=60)
def innocent(ctx: unstuck.Context, seconds: float) -> str:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        ctx.sleep(min(left, 0.1))
    return "done"
