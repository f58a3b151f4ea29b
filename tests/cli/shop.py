"""A small app for tests of the command line."""

from __future__ import annotations

from pathlib import Path

import unstuck

app = unstuck.App()


@app.workflow
def add(a: int, b: int = 1) -> int:
    """Adds two numbers."""
    print(f"adding {a} and {b}")
    return a + b


@app.workflow(retries=0)
def refuse(why: str) -> None:
    raise ValueError(why)


@app.workflow(timeout=60)
def last(ctx: unstuck.Context, seconds: float) -> str:
    print("it has begun", flush=True)
    ctx.sleep(seconds)
    return "done"


@app.workflow(timeout=60)
def last_until(ctx: unstuck.Context, path: str) -> str:
    """Ends when this file is there."""
    while not Path(path).exists():
        ctx.sleep(0.05)
    return "done"
