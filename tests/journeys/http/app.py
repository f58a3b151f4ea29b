"""The app of the journeys over HTTP: what naps, breaks, asks, waits, and what does not hear."""

from __future__ import annotations

import os
import time
from pathlib import Path

import unstuck

app = unstuck.App("journeys-never-open-this.db", version="v1", name="over-http")


@app.workflow
def greet(name: str = "you") -> str:
    return f"hello {name}"


@app.workflow
def nap(ctx: unstuck.Context, seconds: float) -> str:
    """Sleeps and can be cancelled."""
    ctx.sleep(seconds)
    return "rested"


@app.workflow
def where(ctx: unstuck.Context, seconds: float) -> int:
    """In which process."""
    ctx.sleep(seconds)
    return os.getpid()


@app.workflow(retries=0)
def breaks(ctx: unstuck.Context) -> int:
    """Fails in its first run, works in any later one."""
    if ctx.run == 1:
        raise RuntimeError("the disk is full")
    return ctx.run


@app.workflow
def asks(ctx: unstuck.Context) -> str | None:
    return ctx.approval("Go on?", timeout=60).by


@app.workflow(retries=0, budget={"tokens": 10}, budget_scope="tree")
def spends(ctx: unstuck.Context, amount: float, children: int = 0) -> float:
    """So much, or as much in each of its children."""
    if children:
        ctx.gather(*[ctx.spawn(spends, amount) for _ in range(children)], timeout=60)
    else:
        ctx.spend(tokens=amount)
    return amount


def _deaf(path: str) -> str:
    until = time.monotonic() + 20
    while not Path(path).exists() and time.monotonic() < until:
        time.sleep(0.05)
    return "done"


#: They ignore their cancel until the file that they are given is there; each test has its own.
DEAF = {
    name: app.workflow(name=name, timeout=0.3, grace=0.2, retries=0)(_deaf)
    for name in ("deploy", "sync", "render", "index", "export")
}


@app.workflow(retries=0)
def begets(ctx: unstuck.Context, workflow: str, path: str) -> object:
    """Its child is one of the deaf."""
    return ctx.gather(ctx.spawn(DEAF[workflow], path), timeout=60)
