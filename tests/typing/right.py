"""Calls that must pass both type checkers, with the types they lead to."""

from __future__ import annotations

import asyncio
from typing import Any, assert_type

import unstuck
from unstuck import App, AsyncClient, AsyncContext, ChildRef, Client, Context, Job, JobList, JobView, NewJobView, Spent

app = App()


@app.workflow
def plain(x: int, y: str = "a") -> int:
    return x


@app.workflow
def with_context(ctx: Context, x: int, *, y: str = "a") -> str:
    return y


@app.workflow(timeout=60, retries=5, queue="io", retry_on=(OSError, TimeoutError))
async def coroutine(x: int) -> list[int]:
    return [x]


@app.workflow(timeout="unlimited")
async def coroutine_with_context(ctx: unstuck.AsyncContext, x: int) -> bytes:
    return b""


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
def first_is_not_annotated(x, n: int) -> int:  # type: ignore[no-untyped-def]
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


@app.workflow(target="{repo}", limit_key="forge:{host}", concurrency=4, rate="100/m", key_rate="5/s", on_failure="continue")
def deploy(ctx: Context, repo: str, host: str = "a") -> str:
    return repo


@app.middleware
def timed(ctx: Context) -> Any:
    yield


def count(word: str) -> int:
    return len(word)


async def count_later(word: str) -> int:
    return len(word)


@app.workflow
def calls_block(ctx: Context) -> int:
    assert_type(ctx.step("count", count, "a", timeout=5, retries=1), int)
    assert_type(ctx.sleep(1), None)
    assert_type(ctx.approval("Deploy?").by, str | None)
    assert_type(ctx.spawn(plain, 1), ChildRef)
    assert_type(ctx.gather(ctx.spawn(plain, 1)), list[Any])
    assert_type(ctx.spend(tokens=5), Spent)
    assert_type(ctx.publish("begun", {"n": 1}, topic="t", ttl=60), None)
    assert_type(ctx.wait_for("paid"), Any)
    assert_type(unstuck.current(), Context)
    return ctx.step("again", count, word="b") + 1


@app.workflow
async def calls_are_awaited(ctx: AsyncContext) -> int:
    assert_type(await ctx.step("count", count, "a", timeout=5, retries=1), int)
    assert_type(await ctx.step("later", count_later, "a"), int)
    assert_type(await ctx.sleep(1), None)
    assert_type((await ctx.approval("Deploy?")).by, str | None)
    assert_type(await ctx.spawn(plain, 1), ChildRef)
    assert_type(await ctx.gather(await ctx.spawn(plain, 1)), list[Any])
    assert_type(await ctx.spend(tokens=5), Spent)
    assert_type(await ctx.wait_for("paid"), Any)
    assert_type(await unstuck.current(unstuck.AsyncContext).step("inner", count, "a"), int)
    first, second = await asyncio.gather(ctx.step("one", count, "a"), ctx.step("two", count_later, "b"))
    return first + second


async def asynchronous() -> None:
    job = await with_context.aenqueue(1, y="b")
    assert_type(job, Job[str])
    assert_type(await job.aresult(timeout=1), str)
    await coroutine.using(priority=3).aenqueue(1)


def main() -> None:
    assert_type(plain.enqueue(1), Job[int])
    assert_type(plain.enqueue(x=1, y="b").result(), int)
    assert_type(with_context.enqueue(1), Job[str])
    assert_type(with_context.using(priority=5, key="k", retries=0).enqueue(1, y="b").result(timeout=5), str)
    assert_type(coroutine.enqueue(1).result(), list[int])
    assert_type(coroutine_with_context.enqueue(1).result(), bytes)
    assert_type(coroutine_first_is_object.enqueue("a", 1).result(), int)
    assert_type(plain.enqueue_many([(1, "a"), {"x": 2}]), list[Job[int]])
    assert_type(nothing.enqueue(), Job[None])
    first_is_object.enqueue("anything", 2)
    first_is_object.enqueue(x=1, n=2)
    first_is_any.enqueue(1, 2)
    first_is_any.enqueue(x=1, n=2)
    first_is_star.enqueue()
    first_is_star.enqueue(1, "b")
    first_is_star_of_any.enqueue()
    first_is_star_of_any.enqueue(1, 2, n=3)
    first_is_not_annotated.enqueue(1, 2)
    first_is_not_annotated.enqueue(x=1, n=2)
    only_named.enqueue(x=3)
    only_context.enqueue()
    first = plain.using(hold=True, target="line 1", limit_key=None, on_failure="block").enqueue(1)
    last = deploy.using(after=[first, "an id"], after_failure="run", target=None).enqueue("acme/site")
    assert_type(deploy.using(after=last).enqueue("acme/site"), Job[str])
    first.release(force=True)
    last.skip(by="me")
    plain(1)


async def over_http() -> None:
    far = App("https://jobs.example.org", key="usk_a_b")
    assert_type(far.jobs.list(), JobList)
    with Client("https://jobs.example.org", "usk_a_b", tenant="acme", timeout=5) as client:
        assert_type(client.jobs.list(state="FAILED", limit=5), JobList)
        assert_type(client.jobs.list()[0], JobView)
        assert_type(await client.jobs.alist(), JobList)
        assert_type(client.job("an id"), Job[Any])
    async with AsyncClient("https://jobs.example.org") as aclient:
        assert_type(await aclient.jobs.list(), JobList)
        assert_type(await aclient.jobs.enqueue("greet", kwargs={"name": "Ada"}), NewJobView)
        async for event in aclient.events.follow(kinds="failed"):
            assert_type(event.job, str | None)
