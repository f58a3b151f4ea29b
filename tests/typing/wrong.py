"""Calls that must not pass: `# error` where both type checkers object, `# error: NAME` where only that one can."""

from __future__ import annotations

from typing import Any

import unstuck
from unstuck import App, AsyncClient, AsyncContext, Client, Context

app = App()


@app.workflow
def plain(x: int, y: str = "a") -> int:
    return x


@app.workflow
def with_context(ctx: Context, x: int, *, y: str = "a") -> str:
    return y


@app.workflow(timeout=60)
async def coroutine(x: int) -> str:
    return ""


@app.workflow
async def coroutine_with_context(ctx: AsyncContext, x: int) -> str:
    return ""


@app.workflow
def first_is_object(x: object, n: int) -> int:
    return n


@app.workflow
def first_is_any(x: Any, n: int) -> int:
    return n


@app.workflow
def first_is_star(*args: object) -> int:
    return 1


@app.workflow
def first_is_star_of_any(*args: Any, n: int = 1) -> int:
    return n


@app.workflow
async def coroutine_first_is_object(x: object, n: int) -> int:
    return n


@app.workflow
def only_named(*, x: object) -> int:
    return 1


@app.workflow
def nothing() -> None: ...


@app.workflow
def only_context(ctx: Context) -> int:
    return 1


def count(word: str) -> int:
    return len(word)


@app.workflow
def blocks(ctx: Context) -> str:
    return ctx.step("count", count, "a")  # error


@app.workflow
async def forgets_to_await(ctx: AsyncContext) -> int:
    ctx.sleep(1)  # error
    ctx.park_for(60)  # error
    ctx.partial("a", 1)  # error
    ctx.publish("begun", topic="t")  # error
    ctx.step("count", count, "a")  # error
    if ctx.approval("Deploy?").by:  # error
        return ctx.step("count", count, "a") + 1  # error
    return ctx.step("count", count, "a")  # error


@app.workflow
async def awaits_what_blocks(ctx: AsyncContext) -> int:
    return await unstuck.current().step("count", count, "a")  # error


async def asynchronous() -> None:
    await with_context.aenqueue("text")  # error
    await coroutine.aenqueue()  # error
    length: int = await coroutine.enqueue(1).aresult()  # error


def main() -> None:
    plain.enqueue("text")  # error
    plain.enqueue()  # error
    plain.enqueue(1, 2)  # error
    plain.enqueue(1, z=2)  # error
    plain.using(priority="high")  # error
    plain.using(colour="red")  # error
    plain.using(priority=1).enqueue("text")  # error
    text: str = plain.enqueue(1).result()  # error
    with_context.enqueue("text")  # error
    with_context.enqueue()  # error
    with_context.enqueue(1, y=2)  # error
    coroutine.enqueue("text")  # error
    coroutine_with_context.enqueue("text")  # error
    first_is_object.enqueue(1)  # error
    first_is_object.enqueue(1, "text")  # error
    first_is_any.enqueue(1, "text")  # error: pyright
    first_is_star.enqueue(k=1)  # error
    first_is_star_of_any.enqueue(n="text")  # error
    coroutine_first_is_object.enqueue("text")  # error
    only_named.enqueue()  # error
    nothing.enqueue(1)  # error
    only_context.enqueue(1)  # error
    app.workflow(timeout="soon")  # error
    app.workflow(colour="red")  # error
    app.job(1)  # error
    app.workflow(target=1)  # error
    app.workflow(concurrency="four")  # error
    app.workflow(limit_key="a", key_rate=5)  # error
    app.workflow(on_failure="ignore")  # error
    app.workflow(after=plain.enqueue(1))  # error
    plain.using(hold="yes")  # error
    plain.using(after=1)  # error
    plain.using(after_failure="ignore")  # error
    plain.using(limit_key=1)  # error
    plain.using(concurrency=4)  # error
    client = Client("https://jobs.example.org", key="usk_a_b")
    client.jobs.list(limit="many")  # error
    client.jobs.list(colour="red")  # error
    client.workflow  # error
    AsyncClient("https://jobs.example.org").jobs.alist()  # error
    Client()  # error
