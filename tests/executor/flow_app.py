"""An app of handlers that use steps, waits, children and budgets, well and badly."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.executor.apps import pack, unpack
from unstuck.executor.context import AsyncContext, Context, current
from unstuck.model.errors import (
    ApprovalRejected,
    BudgetExceeded,
    ChildrenFailed,
    InvalidInput,
    InvalidResult,
    StepTimeout,
    TargetDeadlock,
)
from unstuck.model.job import NewJob
from unstuck.model.policy import Policy
from unstuck.model.waits import ChildRef, Decision
from unstuck.model.workflow import Handler, Registry

registry = Registry(code_version="tests")
app = SimpleNamespace(_registry=registry)


def workflow(function: Callable[..., Any]) -> Callable[..., Any]:
    registry.add(
        Handler(
            name=function.__name__,
            call=function,
            is_async=inspect.iscoroutinefunction(function),
            takes_context=next(iter(inspect.signature(function).parameters), "") == "ctx",
            unpack=unpack,
            pack=pack,
            pack_result=_checked if inspect.signature(function).return_annotation == "bool" else None,
        )
    )
    return function


def _checked(value: Any) -> str:
    if type(value) is not bool:
        raise InvalidResult("flow", f"Expected `bool`, got {value!r}")
    return pack(value)


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
async def two_steps_async(ctx: AsyncContext) -> Any:
    first = await ctx.step("add", add_later, 1, 2)
    second = await ctx.step("add", add, first, 10)
    return [first, second, repr(await ctx.step("pair", lambda: (1, 2)))]


@workflow
def step_by_current() -> Any:
    return current().step("add", add, 2, 2)


@workflow
async def many_steps_at_once(ctx: AsyncContext, count: int) -> Any:
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
def slow_step(ctx: Context, seconds: float, limit: float = 0.1) -> str:
    try:
        ctx.step("slow", time.sleep, seconds, timeout=limit)
    except StepTimeout as error:
        return str(error)
    return "done"


@workflow
async def slow_step_async(ctx: AsyncContext, seconds: float, limit: float = 0.1) -> str:
    try:
        await ctx.step("slow", asyncio.sleep, seconds, timeout=limit)
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
async def inside_a_step_async(ctx: AsyncContext) -> Any:
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
async def approval_async(ctx: AsyncContext) -> Any:
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
def loop_of_its_own_forgets(ctx: Context) -> str:
    async def inner() -> None:
        ctx.approval("deploy?")

    asyncio.run(inner())
    return "deployed without approval"


@workflow
async def uses_what_it_did_not_await(ctx: AsyncContext, how: str) -> Any:
    value: Any = ctx.step("count", int, "1")
    return value + 1 if how == "operator" else value.real


@workflow
async def gathers_what_it_did_not_await(ctx: AsyncContext) -> Any:
    child = ctx.spawn(Drafting())
    return await ctx.gather(child)


@workflow
async def forgets_to_await_its_sleep(ctx: AsyncContext) -> str:
    ctx.sleep(30)  # type: ignore[unused-coroutine]
    return "awake"


@workflow
async def misuse_in_task_group(ctx: AsyncContext) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(30))
        group.create_task(ctx.step("not\nprintable", int))


@workflow
async def wait_in_task_group(ctx: AsyncContext) -> Any:
    async def nap() -> None:
        await asyncio.sleep(30)

    async with asyncio.TaskGroup() as group:
        group.create_task(nap())
        answer = group.create_task(ctx.wait_for("go"))
    return answer.result()


@workflow
async def waits_side_by_side(ctx: AsyncContext, verb: str, names: list[str | None], turned: bool) -> Any:
    """Two branches, of which either may come first to where they wait."""

    async def branch(place: int, question: str) -> Any:
        if turned and place == 0:
            await asyncio.sleep(0.05)
        match verb:
            case "approval":
                return question, (await ctx.approval(question, name=names[place])).by
            case "wait_for":
                return question, await ctx.wait_for("go" if names[place] else question, name=names[place])
            case "gather":
                return question, await ctx.gather(f"child-{place}")
            case _:
                await ctx.park_for(10 + place)
                return question, None

    return await asyncio.gather(branch(0, "staging?"), branch(1, "production?"))


@workflow
async def parks_side_by_side_in_its_own_task(ctx: AsyncContext) -> Any:
    return await asyncio.gather(ctx.park_for(1), ctx.park_for(2), ctx.approval("staging?"))


@workflow
async def wait_in_forgotten_task(ctx: AsyncContext) -> Any:
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
        inner = current(AsyncContext)
        value = await inner.step("add", add_later, 1, 2)
        return [value, (await inner.approval("Push?")).by] if waits else value

    return asyncio.run(main())


@workflow
def one_step_more(ctx: Context) -> Any:
    return ctx.step("more", add, 1, 1)


@workflow
def parks_for_ever(ctx: Context) -> Any:
    while True:
        ctx.park_for(60)


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
async def forget_an_approval(ctx: AsyncContext, how: str) -> str:
    if how == "dropped":
        ctx.approval("Deploy?")  # type: ignore[unused-coroutine]
    else:
        kept = ctx.approval("Deploy?")
        assert kept
    if how != "kept alone":
        await ctx.step("deploy", add, 1, 2)
    return "deployed"


@workflow
async def fetch_side_by_side(ctx: AsyncContext, how: str) -> list[int]:
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


@workflow
def declares_its_result(ctx: Context) -> bool:
    """What its steps and parts give is of other types."""
    ctx.partial("part", {"words": 1000})
    return ctx.step("add", add, 1, 2) == 3


# partial results


@workflow
def gives_parts(ctx: Context) -> str:
    value = [1]
    assert ctx.partial("a", value) is None  # type: ignore[func-returns-value]
    value.append(2)
    ctx.partial("b", {"pages": (1, 2)})
    ctx.partial("a", value)
    return "whole"


@workflow
async def gives_parts_async(ctx: AsyncContext) -> str:
    value = [1]
    promise = ctx.partial("a", value)
    value.append(2)
    assert await promise is None  # type: ignore[func-returns-value]
    await ctx.partial("b", {"pages": (1, 2)})
    await ctx.partial("a", value)
    return "whole"


@workflow
def publishes(ctx: Context) -> str:
    data = {"n": 1}
    assert ctx.publish("begun", data, topic="project:7", ttl=60) is None  # type: ignore[func-returns-value]
    data["n"] = 2
    ctx.publish("begun", data)
    return ctx.step("outer", lambda: ctx.publish("inner") or "told")  # type: ignore[func-returns-value]


@workflow
async def publishes_async(ctx: AsyncContext) -> str:
    data = {"n": 1}
    promise = ctx.publish("begun", data, topic="project:7", ttl=60)
    data["n"] = 2
    await promise
    await ctx.publish("begun", data)

    async def inner() -> str:
        await ctx.publish("inner")
        return "told"

    return await ctx.step("outer", inner)


@workflow
def publishes_badly(ctx: Context, how: str) -> None:
    data: Any = {"list": [1], "nan": {"a": float("nan")}, "large": {"a": "x" * (16 << 10)}}.get(how, {})
    kind = {"ours": "completed", "lines": "a\nb"}.get(how, "ok")
    ctx.publish(kind, data)


@workflow
async def forgets_to_await_what_it_publishes(ctx: AsyncContext) -> None:
    ctx.publish("begun")  # type: ignore[unused-coroutine]


@workflow
def gives_parts_in_threads(ctx: Context) -> str:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: ctx.partial(f"p{n}", n), range(8)))
    return "whole"


@workflow
async def gives_parts_beside_the_loop(ctx: AsyncContext) -> str:
    await asyncio.to_thread(lambda: current().partial("p0", 0))
    await asyncio.gather(*(ctx.partial(f"p{n}", n) for n in range(1, 40)))
    return "whole"


@workflow
def gives_a_part_in_a_step(ctx: Context) -> Any:
    return ctx.step("outer", lambda: ctx.partial("inner", 1), timeout=10)


@workflow
def gives_a_bad_part(ctx: Context, how: str) -> str:
    value: Any = {"unstorable": object(), "too large": "x" * (64 << 10), "not a number": float("nan")}.get(how, 1)
    name: Any = {"no name": "", "not text": 7}.get(how, "p")
    ctx.partial(name, value)
    return "given"


@workflow
async def forgets_to_await_a_part(ctx: AsyncContext) -> str:
    ctx.partial("a", 1)  # type: ignore[unused-coroutine]
    return "done"


@workflow
def gives_a_part_after_a_park(ctx: Context) -> Any:
    try:
        ctx.park_for(5)
    finally:
        ctx.partial("late", 1)


# --- steps beside waits -------------------------------------------------------------------------------------------


def slowly(path: str, seconds: float = 0.6) -> str:
    note(path, "begin")
    time.sleep(seconds)
    note(path, "end")
    return "slow"


async def slowly_async(path: str, seconds: float = 0.6) -> str:
    note(path, "begin")
    await asyncio.sleep(seconds)
    note(path, "end")
    return "slow"


def note(path: str, word: str) -> None:
    with open(path, "a") as file:
        file.write(word + "\n")


async def until_noted(path: str, word: str) -> None:
    while not (os.path.exists(path) and word in Path(path).read_text()):
        await asyncio.sleep(0.01)


@workflow
async def steps_beside_a_wait(ctx: AsyncContext, path: str) -> Any:
    return await asyncio.gather(ctx.step("slow", slowly_async, path), ctx.wait_for("go"))


@workflow
async def steps_in_a_thread_beside_a_wait(ctx: AsyncContext, path: str) -> Any:
    return await asyncio.gather(ctx.step("slow", slowly, path), ctx.wait_for("go"))


@workflow
async def steps_in_a_group_with_waits(ctx: AsyncContext, path: str) -> Any:
    """What is asked for once it is to park would cancel the step, if it were refused at once."""

    async def another() -> None:
        await until_noted(path, "begin")
        await asyncio.sleep(0.1)
        await ctx.step("another", note, path, "another")

    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.step("slow", slowly_async, path))
        group.create_task(ctx.wait_for("go"))
        group.create_task(ctx.wait_for("stop"))
        group.create_task(another())


@workflow
def parks_beside_a_step_of_a_pool(ctx: Context, path: str, seconds: float = 0.6) -> Any:
    pool = ThreadPoolExecutor(1)
    got = pool.submit(ctx.step, "slow", slowly, path, seconds)
    while not os.path.exists(path):
        time.sleep(0.01)
    ctx.park_for(5)
    return got.result()


@workflow
def runs_a_loop_with_a_step_beside_a_wait(ctx: Context, path: str, seconds: float = 0.6) -> Any:
    async def inner() -> Any:
        return await asyncio.gather(ctx.step("slow", slowly_async, path, seconds), ctx.wait_for("go"))

    return asyncio.run(inner())


@workflow
async def parks_beside_a_long_step(ctx: AsyncContext, path: str, seconds: float) -> Any:
    await asyncio.gather(ctx.step("slow", slowly_async, path, seconds), ctx.wait_for("go"))


@workflow
async def spends_in_a_step_beside_a_wait(ctx: AsyncContext) -> Any:
    async def spends() -> str:
        await asyncio.sleep(0.2)
        await ctx.partial("half", 1)
        await ctx.spend(tokens=1)
        ctx.check()
        return "spent"

    return await asyncio.gather(ctx.step("spends", spends), ctx.wait_for("go"))


@workflow
async def cuts_off_its_wait(ctx: AsyncContext, path: str) -> Any:
    step = asyncio.create_task(ctx.step("slow", slowly_async, path, 2.0))
    await until_noted(path, "begin")
    try:
        async with asyncio.timeout(0.1):
            await ctx.wait_for("go")
    except TimeoutError:
        await ctx.step("else", note, path, "else")
    await step
    await ctx.wait_for("go")


@workflow
async def cuts_off_its_wait_and_its_step(ctx: AsyncContext, path: str) -> str:
    try:
        async with asyncio.timeout(0.2):
            await asyncio.gather(ctx.step("slow", slowly_async, path), ctx.wait_for("go"))
    except TimeoutError:
        return "cut off"
    return "not cut off"


@workflow
async def steps_beside_a_wait_in_a_task(ctx: AsyncContext, path: str, seconds: float) -> None:
    task = asyncio.create_task(ctx.wait_for("go"))
    await ctx.step("slow", slowly_async, path, seconds)
    await task


@workflow
async def fails_in_a_step_beside_a_wait(ctx: AsyncContext) -> Any:
    async def fails() -> None:
        await asyncio.sleep(0.2)
        raise ValueError("no")

    await asyncio.gather(ctx.step("fails", fails), ctx.wait_for("go"))


# --- cut off and called again -------------------------------------------------------------------------------------


@workflow
async def repeats_a_step_that_was_cut_off(ctx: AsyncContext, path: str) -> Any:
    calls: list[int] = []

    def call() -> int:
        calls.append(1)
        note(path, "called")
        return len(calls)

    for _ in range(2):
        task = asyncio.create_task(ctx.step("a", call))
        await until_noted(path, "asked")
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
    note(path, "again")
    return [await ctx.step("a", call), await ctx.step("a", call)]


@workflow
async def repeats_a_spawn_that_was_cut_off(ctx: AsyncContext, path: str) -> Any:
    task = asyncio.create_task(ctx.spawn(Drafting(), 1))
    await until_noted(path, "asked")
    task.cancel()
    await asyncio.wait([task])
    note(path, "again")
    return [(await ctx.spawn(Drafting(), 2)).id, (await ctx.spawn(Drafting(), 3)).id]


@workflow
async def cancels_before_the_first_turn(ctx: AsyncContext, what: str) -> Any:
    def begin() -> Any:
        match what:
            case "step":
                return ctx.step("a", lambda: 1)
            case "spawn":
                return ctx.spawn(Drafting())
            case "gather":
                return ctx.gather("child-1")
            case _:
                return ctx.wait_for("go")

    async def one(count: int) -> None:
        tasks = [asyncio.create_task(begin()) for _ in range(count)]
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    if what in ("step", "spawn"):
        await asyncio.create_task(one(2))
    elif what == "wait_for":
        await one(2)
    else:
        await one(1)
    begin().close()
    got = await begin()
    return getattr(got, "id", got)
