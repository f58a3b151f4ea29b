"""The app of test_innocents: jobs that take others down with them, and jobs that only want to be left alone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import unstuck
from tests.journeys.apps import mark

app = unstuck.App("journeys-never-open-this.db", version="v1")


@app.workflow
def noop() -> None: ...


@app.workflow(timeout=30)
def kills_the_zygote(path: str) -> None:
    mark(path, "killer")
    time.sleep(0.3)
    parent = os.getppid()
    if b"unstuck.executor.zygote" in Path(f"/proc/{parent}/cmdline").read_bytes():
        os.kill(parent, signal.SIGKILL)
    time.sleep(20)


@app.workflow
def naps(ctx: unstuck.Context, path: str, seconds: float) -> str:
    mark(path, "begun")
    ctx.sleep(seconds)
    return "rested"


@app.workflow
async def naps_async(path: str, seconds: float) -> str:
    mark(path, "begun")
    await asyncio.sleep(seconds)
    return "rested"


@app.workflow(isolation="process")
def naps_by_itself(ctx: unstuck.Context, path: str, seconds: float) -> str:
    mark(path, "begun")
    ctx.sleep(seconds)
    return "rested"


@app.workflow
def lives(path: str, seconds: float) -> None:
    """A body that shows at every moment that it runs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        mark(path, "alive")
        time.sleep(0.02)


@app.workflow
async def lives_async(path: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        mark(path, "alive")
        await asyncio.sleep(0.02)
