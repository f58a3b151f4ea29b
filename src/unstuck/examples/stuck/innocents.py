"""Those who are only nearby: they tell where and when they ran."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TypedDict

import unstuck
from unstuck.examples.stuck.shelf import LONGEST, app


class Whereabouts(TypedDict):
    pid: int
    attempt: int
    began: float
    ended: float


@app.workflow(name="innocent.sync", timeout=60, retries=0)
def innocent_sync(ctx: unstuck.Context, seconds: float = 2.0, until: str = "") -> Whereabouts:
    """A function that works in small steps and stops when it is asked to, or when the file `until` is there."""
    began = _begin(ctx)
    end = time.monotonic() + min(seconds, LONGEST)
    while (left := _left(end, until)) > 0:
        ctx.sleep(min(left, 0.1))
    return {"pid": os.getpid(), "attempt": ctx.attempt, "began": began, "ended": time.time()}


@app.workflow(name="innocent.async", timeout=60, retries=0)
async def innocent_async(ctx: unstuck.AsyncContext, seconds: float = 2.0, until: str = "") -> Whereabouts:
    """A coroutine that waits in small steps, at most until the file `until` is there."""
    began = _begin(ctx)
    end = time.monotonic() + min(seconds, LONGEST)
    while (left := _left(end, until)) > 0:
        await asyncio.sleep(min(left, 0.1))
    return {"pid": os.getpid(), "attempt": ctx.attempt, "began": began, "ended": time.time()}


def _begin(ctx: unstuck.Context | unstuck.AsyncContext) -> float:
    ctx.progress({"pid": os.getpid(), "attempt": ctx.attempt})
    return time.time()


def _left(end: float, until: str) -> float:
    return 0.0 if until and os.path.exists(until) else end - time.monotonic()
