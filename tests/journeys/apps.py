"""The app that journeys run: one workflow per kind of good and bad behaviour.

Marks go to a file that the engine cannot edit: `begun` and `ended` lines with pid and time, one per body.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import time
from pathlib import Path

import unstuck

app = unstuck.App("journeys-never-open-this.db", version="v1")


def mark(path: str, word: str) -> None:
    line = f"{word} {os.getpid()} {time.clock_gettime(time.CLOCK_BOOTTIME):.6f}\n"
    with Path(path).open("a") as file:
        file.write(line)


@app.workflow
def add(a: int, b: int) -> int:
    return a + b


@app.workflow
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0.01)
    return a + b


@app.workflow(isolation="process")
def add_alone(a: int, b: int) -> int:
    return a + b + 0 * os.getpid()


@app.workflow
def noop() -> None: ...


@app.workflow(backoff_base=0.2, backoff_factor=2.0, retries=3)
def always_fails(path: str) -> None:
    mark(path, "begun")
    raise ValueError("this never works")


@app.workflow
def nap(ctx: unstuck.Context, path: str, seconds: float, resumed: float | None = None) -> str:
    """Sleeps and can be cancelled; `resumed`: for so long in a later run."""
    mark(path, "begun")
    ctx.sleep(seconds if resumed is None or ctx.run == 1 else resumed)
    mark(path, "ended")
    return "rested"


@app.workflow
async def nap_async(ctx: unstuck.AsyncContext, path: str, seconds: float) -> str:
    mark(path, "begun")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError as told:
        mark(path, str(told).replace(" ", "-"))
        raise
    mark(path, "ended")
    return "rested"


@app.workflow(grace=0.5)
def deaf(path: str, seconds: float) -> str:
    """Sleeps and hears nothing."""
    mark(path, "begun")
    time.sleep(seconds)
    mark(path, "ended")
    return "rested"


@app.workflow(max_lost=1, suspect_runs=2)
def dies(path: str, how: str) -> None:
    mark(path, "begun")
    match how:
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(0)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


@app.workflow
def says(ctx: unstuck.Context) -> str:
    print("hello from the handler")
    ctx.progress({"done": 1})
    return "said"


@app.workflow
def says_and_stays(path: str) -> None:
    """Prints, logs, and then only a KILL ends it."""
    print("printed before the end")
    logging.getLogger("shop").warning("logged before the end")
    mark(path, "begun")
    time.sleep(60)


@app.workflow
def blink(ctx: unstuck.Context, path: str, seconds: float) -> None:
    """Quick as a rule, so that workers fetch it ahead."""
    mark(path, "begun")
    ctx.sleep(seconds)
    mark(path, "ended")


@app.workflow
def carry(path: str, load: str) -> int:
    """Whose arguments are large."""
    mark(path, "begun")
    return len(load)


_KEPT: list[bytes] = []


@app.workflow
def leak(path: str, mebibytes: int) -> None:
    mark(path, "begun")
    _KEPT.append(b"x" * (mebibytes << 20))
    time.sleep(0.3)
