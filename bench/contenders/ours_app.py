"""The app that our workers import: no-ops of two signatures in both colours, three of a place, two of steps."""

from __future__ import annotations

import time

import unstuck
from bench import probe
from bench.enqueue import Order

app = unstuck.App()


@app.workflow
def no_op(name: str, number: int) -> None:
    probe.hit()


@app.workflow
async def no_op_async(name: str, number: int) -> None:
    probe.hit()


@app.workflow
def no_op_rich(order: Order, *, urgent: bool = False, note: str = "", attempts: int = 3) -> None:
    probe.hit()


@app.workflow
async def no_op_rich_async(order: Order, *, urgent: bool = False, note: str = "", attempts: int = 3) -> None:
    probe.hit()


@app.workflow
def stamped(submitted_at: int) -> None:
    probe.stamp(submitted_at)


@app.workflow
async def stamped_async(submitted_at: int) -> None:
    probe.stamp(submitted_at)


@app.workflow
def no_op_for(place: int) -> None:
    probe.hit()


@app.workflow(target="{place}")
def no_op_on(place: int) -> None:
    """The same, one at a time per place."""
    probe.hit()


@app.workflow(limit_key="place:{place}")
def no_op_keyed(place: int) -> None:
    """The same, counted per place by whatever limits somebody has set."""
    probe.hit()


@app.workflow
def many_steps(ctx: unstuck.Context, count: int) -> float:
    """Seconds that so many steps took."""
    began = time.monotonic()
    for number in range(count):
        ctx.step("count", int, number)
    return time.monotonic() - began


@app.workflow
async def many_steps_async(ctx: unstuck.AsyncContext, count: int) -> float:
    began = time.monotonic()
    for number in range(count):
        await ctx.step("count", int, number)
    return time.monotonic() - began
