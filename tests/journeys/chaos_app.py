"""What the chaos runs: short jobs of every kind, good and bad, each of which must come to an end."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import unstuck

app = unstuck.App("chaos-never-opens-this.db", version="v1")


@app.workflow(max_lost=1000, suspect_runs=1000)
def quick(n: int) -> int:
    return n


@app.workflow(max_lost=1000, suspect_runs=1000)
async def quick_async(n: int) -> int:
    await asyncio.sleep(0.05)
    return n


@app.workflow(max_lost=1000, suspect_runs=1000)
def nap(ctx: unstuck.Context, n: int) -> int:
    ctx.sleep(0.1 * (n % 20))
    return n


@app.workflow(max_lost=1000, suspect_runs=1000, retries=3, backoff_base=0.1)
def often_fails(ctx: unstuck.Context, n: int) -> int:
    if (n + ctx.attempt) % 3:
        raise ValueError("not this time")
    return n


@app.workflow(max_lost=1000, suspect_runs=1000)
def in_steps(ctx: unstuck.Context, n: int) -> int:
    return sum(ctx.step(f"s{number}", int, number) for number in range(n % 5))


@app.workflow(max_lost=1000, suspect_runs=1000)
def waits(ctx: unstuck.Context, n: int) -> str:
    return str(ctx.wait_for("go", timeout=2.0 + n % 5, default="nobody came"))


@app.workflow(max_lost=1000, suspect_runs=1000, timeout=0.5, grace=0.3, retries=0)
def deaf(n: int) -> int:
    time.sleep(30)
    return n


@app.workflow(max_lost=1, suspect_runs=2)
def dies(n: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return n
