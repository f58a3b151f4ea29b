"""An app whose executors do more than run handlers: middleware around every attempt, and handlers that enqueue.

It names no database: the worker's own is meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import unstuck

app = unstuck.App()


@app.middleware
def outer(ctx: unstuck.Context) -> Iterator[None]:
    print(f"outer in {ctx.attempt}")
    try:
        yield
    finally:
        print("outer out")


@app.middleware
def inner(ctx: unstuck.Context) -> Iterator[None]:
    print(f"inner in, job {unstuck.current().job == ctx.job}")
    yield
    print("inner out")


@app.workflow
def plain() -> int:
    print("body")
    return os.getpid()


@app.workflow
async def coroutine() -> int:
    print("body")
    return os.getpid()


@app.workflow(isolation="process")
def solitary() -> int:
    print("body")
    return os.getpid()


@app.workflow(retries=1, backoff_base=0.1)
def fails() -> None:
    print("body")
    raise ValueError("as always")


@app.workflow
def child(number: int) -> int:
    return number * number


@app.workflow
def parent(count: int) -> list[str]:
    return [job.id for job in child.enqueue_many([(number,) for number in range(count)])]


@app.workflow
async def parent_async(count: int) -> list[str]:
    return [(await child.aenqueue(number)).id for number in range(count)]


@app.workflow(isolation="process")
def parent_alone(count: int) -> list[str]:
    return [child.enqueue(number).id for number in range(count)]
