"""Handlers that hold the interpreter, block the loop, sleep or compute: what the kernel's facts are read off."""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import os
import re
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from tests.executor import apps
from tests.executor.apps import registry, workflow
from unstuck.executor.messages import INTERRUPT_SIGNAL, STACK_SIGNAL

app = SimpleNamespace(_registry=registry)
assert apps.app._registry is registry


def catastrophe() -> bool:
    """For minutes, without ever letting go of the interpreter."""
    return re.match(r"(a+)+$", "a" * 60 + "b") is not None


@workflow()
def regex(path: str) -> bool:
    """Not before all others have begun."""
    wait_for(path)
    return catastrophe()


@workflow()
def spins_without_a_break(path: str) -> None:
    """Whoever waits for the interpreter asks for it once a day."""
    wait_for(path)
    sys.setswitchinterval(1e5)
    while True:
        pass


@workflow()
async def spins_on_the_loop(path: str) -> None:
    wait_for(path)
    sys.setswitchinterval(1e5)
    while True:
        pass


@workflow()
async def regex_async(path: str) -> bool:
    wait_for(path)
    return catastrophe()


@workflow()
async def naps_on_the_loop() -> None:
    """Its code is nearly always on the loop, and does without the interpreter for a moment at a time."""
    while True:
        time.sleep(0.005)  # noqa: ASYNC251
        await asyncio.sleep(0)


@workflow()
def native_call(path: str, seconds: float) -> None:
    """Sleeps in C, with the interpreter in its hand."""
    wait_for(path)
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


@workflow()
def compute(seconds: float) -> int:
    until, n = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        n += 1
    return n


@workflow()
def mark(path: str, seconds: float) -> None:
    """Leaves a line, so that nobody can run it in secret."""
    with Path(path).open("a") as file:
        file.write("ran\n")
    time.sleep(seconds)


@workflow()
async def deep_in_a_coroutine(seconds: float) -> None:
    async def the_innermost() -> None:
        await asyncio.sleep(seconds)

    await the_innermost()


def wait_for(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.01)


@workflow()
def aborts_without_a_report() -> None:
    faulthandler.disable()
    os.abort()


@workflow()
async def forgets_our_signals(seconds: float) -> None:
    for signum in (STACK_SIGNAL, INTERRUPT_SIGNAL):
        faulthandler.unregister(signum)
        signal.signal(signum, signal.SIG_DFL)
    time.sleep(seconds)  # noqa: ASYNC251


@workflow()
def churn(seconds: float) -> None:
    """Frames come and go all the time."""

    def down(n: int) -> int:
        return down(n - 1) if n else 0

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        down(50)
