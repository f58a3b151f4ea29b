"""Coroutines that ignore their cancel, or block the event loop on which others wait."""

from __future__ import annotations

import asyncio
import signal
import time

from unstuck.examples.stuck.shelf import LONGEST, culprit, until


@culprit(name="stuck.coroutine_swallows_cancel")
async def coroutine_swallows_cancel(seconds: float = LONGEST) -> str:
    """Catches its CancelledError and awaits on; it blocks nobody."""
    end = until(seconds)
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue
    return "could not be stopped"


@culprit(name="stuck.loop_sleep")
async def loop_sleep(seconds: float = LONGEST) -> None:
    """`time.sleep` in a coroutine: no other coroutine of its process moves until an interrupt breaks it."""
    _block(seconds)


@culprit(name="stuck.loop_spin")
async def loop_spin(seconds: float = LONGEST) -> int:
    """A long computation in a coroutine that never awaits."""
    end, turns = until(seconds), 0
    while time.monotonic() < end:
        turns += 1
    return turns


@culprit(name="stuck.subtask_blocks_loop")
async def subtask_blocks_loop(seconds: float = LONGEST) -> None:
    """The handler itself awaits politely; a task that it started blocks the loop."""

    async def blocks() -> None:
        await asyncio.sleep(0)
        _block(seconds)

    await asyncio.create_task(blocks())


@culprit(name="stuck.loop_swallows_interrupt")
async def loop_swallows_interrupt(seconds: float = LONGEST) -> str:
    """Blocks the loop and catches every exception, so that no interrupt ends it either."""
    end = until(seconds)
    while time.monotonic() < end:
        try:
            _block(0.05)
        except BaseException:
            continue
    return "could not be stopped"


@culprit(name="stuck.deaf_to_signals")
async def deaf_to_signals(seconds: float = LONGEST) -> None:
    """Ignores every signal it may, those that interrupt and those that ask for stacks too, and blocks the loop."""
    before = {number: signal.getsignal(number) for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1)}
    for number in before:
        signal.signal(number, signal.SIG_IGN)
    try:
        _block(seconds)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)


def _block(seconds: float) -> None:
    """Where the loop stands still."""
    time.sleep(min(seconds, LONGEST))
