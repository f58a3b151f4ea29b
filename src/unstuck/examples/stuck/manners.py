"""Handlers that do what no guest should, and whose neighbours must not notice."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import sys

from unstuck.examples.stuck.shelf import culprit


class Oddity(BaseException):
    """An exception that `except Exception` does not catch."""


@culprit(name="stuck.floods_stdout", timeout=30)
def floods_stdout(mebibytes: int = 20) -> int:
    """Writes megabytes to standard output, half as text and half past Python: the beginning and the end are kept."""
    line = "all work and no play makes a dull job\n"
    for _ in range((mebibytes << 19) // len(line)):
        sys.stdout.write(line)
    chunk = line.encode() * (65536 // len(line))
    for _ in range((mebibytes << 19) // len(chunk)):
        os.write(1, chunk)
    return mebibytes


@culprit(name="stuck.installs_signal_handlers")
def installs_signal_handlers() -> None:
    """Wants TERM for itself; Python refuses that anywhere but on the main thread."""
    signal.signal(signal.SIGTERM, lambda *_: None)


@culprit(name="stuck.installs_signal_handlers_on_loop")
async def installs_signal_handlers_on_loop() -> str:
    """The same in a coroutine, which is on the main thread: it gets TERM, and nobody else loses anything."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    await asyncio.sleep(0.1)
    signal.signal(signal.SIGTERM, before)
    return "had its own handlers"


@culprit(name="stuck.sys_exit")
def sys_exit() -> None:
    """`sys.exit()` ends the job, not the process."""
    sys.exit("that is enough")


@culprit(name="stuck.keyboard_interrupt")
def keyboard_interrupt() -> None:
    """Raises KeyboardInterrupt."""
    raise KeyboardInterrupt("as if somebody had pressed ^C")


@culprit(name="stuck.base_exception")
def base_exception() -> None:
    """Raises what `except Exception` misses."""
    raise Oddity("not an Exception at all")


@culprit(name="stuck.sys_exit_in_subtask")
async def sys_exit_in_subtask() -> None:
    """`sys.exit()` in a task that it started, which would end a plain event loop."""

    async def leaves() -> None:
        await asyncio.sleep(0)
        sys.exit("that is enough")

    await asyncio.create_task(leaves())


@culprit(name="stuck.replaces_stdout")
def replaces_stdout() -> str:
    """Puts a stream of its own in place of `sys.stdout`, and closes it."""
    sys.stdout = io.StringIO()
    print("said to nobody")
    sys.stdout.close()
    return "has replaced the standard output"
