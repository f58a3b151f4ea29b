"""Handlers that end while something they started does not."""

from __future__ import annotations

import asyncio
import threading
import time

from unstuck.examples.stuck.shelf import LONGEST, culprit, until

#: What memory_hog took, and its process keeps.
_TAKEN: list[bytes] = []


@culprit(name="stuck.leaks_thread", timeout=30)
def leaks_thread(seconds: float = LONGEST) -> str:
    """Returns while a thread that it started works on: the result counts, the process is recycled."""
    threading.Thread(target=time.sleep, args=(min(seconds, LONGEST),), name="leaked-by-example", daemon=True).start()
    return "left a thread behind"


@culprit(name="stuck.leaks_task", timeout=30)
async def leaks_task(seconds: float = LONGEST) -> str:
    """Returns while a task that it started waits on: the result counts, the task is cancelled."""
    task = asyncio.create_task(asyncio.sleep(min(seconds, LONGEST)), name="leaked-by-example")
    await asyncio.sleep(0)
    return "finished" if task.done() else "left a task behind"


@culprit(name="stuck.leaks_stubborn_task", timeout=30)
async def leaks_stubborn_task(seconds: float = LONGEST) -> str:
    """The task that it leaves behind swallows its cancel: only the end of the process ends it."""
    task = asyncio.create_task(_stubborn(seconds), name="leaked-by-example")
    await asyncio.sleep(0)
    return "finished" if task.done() else "left a task behind"


@culprit(name="stuck.to_thread_outlives")
async def to_thread_outlives(seconds: float = LONGEST) -> None:
    """`asyncio.to_thread` obeys the cancel at once, while its thread works on unseen."""
    await asyncio.to_thread(time.sleep, min(seconds, LONGEST))


@culprit(name="stuck.memory_hog", timeout=60)
def memory_hog(mebibytes: int = 2048, seconds: float = 5.0) -> int:
    """Takes more and more memory, and keeps it for a while."""
    for taken in range(0, min(mebibytes, 4096), 16):
        _TAKEN.append(bytes([taken % 251 + 1]) * (16 << 20))
        time.sleep(0.02)
    time.sleep(min(seconds, LONGEST))
    _TAKEN.clear()
    return mebibytes


async def _stubborn(seconds: float) -> None:
    end = until(seconds)
    while time.monotonic() < end:
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            continue
