"""An app of handlers that use steps, waits, children and budgets, well and badly."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from tests.executor.apps import pack, unpack
from unstuck.executor.context import Context, current
from unstuck.model.errors import (
    ApprovalRejected,
    BudgetExceeded,
    ChildrenFailed,
    InvalidInput,
    StepTimeout,
    TargetDeadlock,
)
from unstuck.model.job import NewJob
from unstuck.model.policy import Policy
from unstuck.model.waits import ChildRef, Decision
from unstuck.model.workflow import Handler, Registry

registry = Registry(code_version="tests")
app = SimpleNamespace(registry=registry)


def workflow(function: Callable[..., Any]) -> Callable[..., Any]:
    registry.add(
        Handler(
            name=function.__name__,
            call=function,
            is_async=inspect.iscoroutinefunction(function),
            takes_context=next(iter(inspect.signature(function).parameters), "") == "ctx",
            unpack=unpack,
            pack=pack,
        )
    )
    return function


class Drafting:
    """What an app's Workflow is to the executor."""

    name = "child_work"

    def draft(self, args: Any, kwargs: Any, tenant: str) -> NewJob:
        return NewJob("drafted", tenant, "default", self.name, "[]", Policy())


def add(a: int, b: int) -> int:
    return a + b


async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@workflow
def two_steps(ctx: Context) -> Any:
    first = ctx.step("add", add, 1, 2)
    second = ctx.step("add", add, first, 10)
    return [first, second, repr(ctx.step("pair", lambda: (1, 2)))]


@workflow
async def two_steps_async(ctx: Context) -> Any:
    first = await ctx.step("add", add_later, 1, 2)
    second = await ctx.step("add", add, first, 10)
    return [first, second, repr(await ctx.step("pair", lambda: (1, 2)))]


@workflow
def step_by_current() -> Any:
    return current().step("add", add, 2, 2)


@workflow
async def many_steps_at_once(ctx: Context, count: int) -> Any:
    return await asyncio.gather(*(ctx.step("add", add_later, n, 0) for n in range(count)))


@workflow
def step_in_threads(ctx: Context) -> Any:
    with ThreadPoolExecutor(4) as pool:
        return sorted(pool.map(lambda n: ctx.step(f"n{n}", add, n, 0), range(8)))


@workflow
def wait_in_thread(ctx: Context) -> str:
    with ThreadPoolExecutor(1) as pool:
        return str(pool.submit(ctx.approval, "Push?").exception())


@workflow
def unstorable(ctx: Context) -> Any:
    return ctx.step("odd", object)


@workflow
def too_large(ctx: Context) -> Any:
    return ctx.step("big", lambda: "x" * 3000)


@workflow
def retried_step(ctx: Context) -> Any:
    tries: list[int] = []

    def flaky() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return len(tries)

    return ctx.step("flaky", flaky, retries=2)


@workflow
def slow_step(ctx: Context, seconds: float) -> str:
    try:
        ctx.step("slow", time.sleep, seconds, timeout=0.1)
    except StepTimeout as error:
        return str(error)
    return "done"


@workflow
async def slow_step_async(ctx: Context, seconds: float) -> str:
    try:
        await ctx.step("slow", asyncio.sleep, seconds, timeout=0.1)
    except StepTimeout as error:
        return str(error)
    return "done"


@workflow
def timed_step(ctx: Context) -> Any:
    def inner() -> list[Any]:
        return [current().job, threading.current_thread().name]

    return ctx.step("timed", inner, timeout=5)


@workflow
def raising_timed_step(ctx: Context) -> Any:
    def inner() -> None:
        raise KeyError("its own")

    return ctx.step("timed", inner, timeout=5)


@workflow
def coroutine_in_sync(ctx: Context) -> Any:
    return ctx.step("later", add_later, 1, 2)


def _refusals(ctx: Context) -> list[str]:
    said = []
    calls: list[Callable[[], Any]] = [
        lambda: ctx.step("inner", add, 1, 1),
        lambda: ctx.wait_for("e"),
        lambda: ctx.approval("Push?"),
        lambda: ctx.park_for(1),
        lambda: ctx.spawn(Drafting()),
        lambda: ctx.gather("c"),
    ]
    for call in calls:
        try:
            call()
            said.append("went through")
        except InvalidInput as error:
            said.append(str(error))
    return said


@workflow
def inside_a_step(ctx: Context) -> Any:
    return ctx.step("outer", _refusals, ctx)


@workflow
async def inside_a_step_async(ctx: Context) -> Any:
    return await ctx.step("outer", _refusals, ctx)


@workflow
def wait_for_event(ctx: Context, options: dict[str, Any]) -> Any:
    return ctx.wait_for("go", **options)


@workflow
def bad_waits(ctx: Context) -> Any:
    said = []
    for timeout in (None, 0, -1, float("nan"), 1e12, True, "5"):
        try:
            ctx.wait_for("go", timeout=timeout)  # type: ignore[arg-type]
        except InvalidInput as error:
            said.append(str(error))
    return said


@workflow
def approvals_in_a_loop(ctx: Context) -> Any:
    return [ctx.approval(f"Round {n}?").by for n in range(2)]


@workflow
async def approval_async(ctx: Context) -> Any:
    decision: Decision = await ctx.approval("Push?", who=["ann", "bob"], on_timeout="reject", timeout=60)
    return [decision.by, decision.comment]


@workflow
def rejected(ctx: Context) -> Any:
    try:
        ctx.approval("Push?")
    except ApprovalRejected as error:
        return [error.question, error.by, error.comment]


@workflow
def bare_except(ctx: Context) -> Any:
    said = []
    for call in (lambda: ctx.approval("Push?"), ctx.check, lambda: ctx.sleep(0), lambda: ctx.step("a", add, 1, 1)):
        try:
            call()
            said.append("went through")
        except:  # noqa: E722
            said.append("raised")
    ctx.log(",".join(said))
    return "a result that nobody wants"


@workflow
def parks_and_raises(ctx: Context) -> Any:
    try:
        ctx.park_for(5)
    except BaseException:
        raise ValueError("not what counts") from None


@workflow
async def wait_in_task_group(ctx: Context) -> Any:
    async def nap() -> None:
        await asyncio.sleep(30)

    async with asyncio.TaskGroup() as group:
        group.create_task(nap())
        answer = group.create_task(ctx.wait_for("go"))
    return answer.result()


@workflow
async def wait_in_forgotten_task(ctx: Context) -> Any:
    task = asyncio.create_task(ctx.wait_for("go"))
    await asyncio.sleep(30)
    return task


@workflow
def same_name_twice(ctx: Context) -> Any:
    return [ctx.wait_for("go", name="w"), ctx.wait_for("go", name="w")]


@workflow
def parent(ctx: Context) -> Any:
    refs: list[ChildRef] = [ctx.spawn(Drafting(), n) for n in range(2)]
    try:
        return ctx.gather(*refs)
    except ChildrenFailed as error:
        return [[end.id, end.state] for end in error.failed]


@workflow
def gathers_twice(ctx: Context) -> Any:
    child = ctx.spawn(Drafting())
    ctx.gather(child)
    return ctx.gather(child)


@workflow
def spends(ctx: Context) -> Any:
    try:
        return [ctx.spend(tokens=60).used, ctx.spend(tokens=60).used]
    except BudgetExceeded as error:
        return str(error)


@workflow
def leaves_a_thread_that_steps(ctx: Context) -> str:
    def late() -> None:
        time.sleep(0.3)
        ctx.step("late", add, 1, 1)

    threading.Thread(target=late, daemon=True).start()
    return "done"


@workflow
def deaf_step(ctx: Context) -> Any:
    return ctx.step("deaf", _spin)


def _spin() -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        pass


@workflow
def own_loop(ctx: Context, waits: bool) -> Any:
    """A sync handler with an event loop of its own."""

    async def main() -> Any:
        value = await ctx.step("add", add_later, 1, 2)
        return [value, (await ctx.approval("Push?")).by] if waits else value

    return asyncio.run(main())


@workflow
def one_step_more(ctx: Context) -> Any:
    return ctx.step("more", add, 1, 1)


@workflow
def uses_no_flow(ctx: Context) -> Any:
    ctx.check()
    return 1


@workflow
def gathers_as_it_is_told(ctx: Context) -> Any:
    """Refused once, it asks for the same children in the way that was proposed; then for others."""
    first, second = ctx.spawn(Drafting()), ctx.spawn(Drafting())
    try:
        results = ctx.gather(first)
    except TargetDeadlock:
        results = ctx.gather(first, release_target=True)
    return [results, ctx.gather(second)]


@workflow
def gathers_fewer_at_a_time(ctx: Context) -> Any:
    children = [ctx.spawn(Drafting()) for _ in range(2)]
    try:
        return ctx.gather(*children)
    except InvalidInput:
        return [ctx.gather(child) for child in children]


@workflow
def parks_until(ctx: Context, when: str) -> Any:
    ctx.park_until(datetime.fromisoformat(when))


@workflow
def speaks_after_a_park(ctx: Context) -> Any:
    try:
        ctx.park_for(5)
    finally:
        ctx.log(f"left={ctx.remaining()} key={ctx.key('k') != ''}")


# awaited or not, side by side, and again after a failure


@workflow
async def forget_an_approval(ctx: Context, how: str) -> str:
    if how == "dropped":
        ctx.approval("Deploy?")
    else:
        kept = ctx.approval("Deploy?")
        assert kept
    if how != "kept alone":
        await ctx.step("deploy", add, 1, 2)
    return "deployed"


@workflow
async def fetch_side_by_side(ctx: Context, how: str) -> list[int]:
    async def fetch(n: int) -> int:
        await asyncio.sleep(0.01)
        return n

    async def in_a_task(n: int) -> int:
        value: int = await ctx.step("fetch", fetch, n)
        return value

    if how == "tasks":
        return list(await asyncio.gather(*(in_a_task(n) for n in range(3))))
    return list(await asyncio.gather(*(ctx.step("fetch", fetch, n) for n in range(3))))


@workflow
def pay_twice_at_most(ctx: Context) -> str:
    def refused() -> None:
        raise ValueError("no money")

    try:
        ctx.step("pay", refused)
    except ValueError:
        ctx.step("pay", add, 1, 2)
    return "paid"
