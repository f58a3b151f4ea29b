"""The app of the flow journeys: pipelines with steps, approvals, events, children and budgets."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import unstuck
from tests.journeys.apps import mark

app = unstuck.App("journeys-never-open-this.db", version="v1", name="flow")


def work(path: str, word: str) -> str:
    mark(path, word)
    return f"{word} by {os.getpid()}"


@app.workflow(max_lost=100, suspect_runs=1000)
def release(ctx: unstuck.Context, path: str) -> list[str | None]:
    built = ctx.step("build", work, path, "build")
    mark(path, "asking")
    decision = ctx.approval("Deploy?", timeout=60)
    return [built, decision.by, ctx.step("deploy", work, path, "deploy")]


@app.workflow(max_lost=100, suspect_runs=1000)
async def release_async(ctx: unstuck.AsyncContext, path: str) -> list[str | None]:
    built = await ctx.step("build", work, path, "build")
    mark(path, "asking")
    decision = await ctx.approval("Deploy?", timeout=60)
    return [built, decision.by, await ctx.step("deploy", work, path, "deploy")]


@app.workflow(max_lost=100, suspect_runs=1000)
def pages(ctx: unstuck.Context, path: str, count: int) -> int:
    """Gives page after page; its first attempt stays in the middle until somebody ends it, the second parks once."""
    for number in range(1, count + 1):
        ctx.partial(f"page {number}", {"number": number})
        ctx.partial("finished", number)
        if number == 2 and not Path(path).exists():
            mark(path, "halfway")
            ctx.sleep(60)
    ctx.park_for(0.1)
    ctx.partial("last", "the end")
    return count


@app.workflow(max_lost=100, suspect_runs=1000)
async def pages_async(ctx: unstuck.AsyncContext, path: str, count: int) -> int:
    for number in range(1, count + 1):
        await asyncio.gather(ctx.partial(f"page {number}", {"number": number}), ctx.partial("finished", number))
        if number == 2 and not Path(path).exists():
            mark(path, "halfway")
            await ctx.sleep(60)
    await ctx.park_for(0.1)
    await ctx.partial("last", "the end")
    return count


@app.workflow(max_lost=1000, suspect_runs=1000, timeout=300)
def many_steps(ctx: unstuck.Context, path: str, count: int, kills: int) -> list[int]:
    """One process after the other is killed under it, until there were so many kills."""
    return [ctx.step(f"s{number}", _numbered, path, number, kills) for number in range(count)]


def _numbered(path: str, number: int, kills: int) -> int:
    """Leaves a line each time it is called; whoever begins a kill leaves one in another file."""
    with Path(path).open("a") as file:
        file.write(f"{number}\n")
    counted = Path(path).with_name("kills")
    if random.random() < 0.35 and (not counted.exists() or counted.stat().st_size < kills):
        with counted.open("a") as file:
            file.write("!")
        # Anywhere from within this step to a few steps on.
        threading.Timer(random.random() * 0.03, os.kill, (os.getpid(), signal.SIGKILL)).start()
    time.sleep(random.random() * 0.005)
    return number


@app.workflow
def waits(ctx: unstuck.Context, event: str, options: dict[str, Any]) -> Any:
    return ctx.wait_for(event, **options)


@app.workflow
def waits_in_its_second_run(ctx: unstuck.Context, timeout: float) -> Any:
    if ctx.run == 1:
        raise unstuck.Fail("not in the first run")
    return ctx.wait_for("go", timeout=timeout)


@app.workflow
def asks(ctx: unstuck.Context, timeout: float) -> str:
    return str(ctx.approval("May I?", timeout=timeout).by)


@app.workflow
def step_then_nap(ctx: unstuck.Context, path: str) -> str:
    text: str = ctx.step("first", work, path, "first")
    mark(path, "napping")
    ctx.sleep(0.2 if len(Path(path).read_text().splitlines()) > 2 else 60)
    return text


@app.workflow(retries=0)
def keeps_many_types(ctx: unstuck.Context) -> str:
    ctx.partial("so far", {"done": 1})
    return f"{ctx.step('nothing', time.sleep, 0)} {ctx.step('number', int, '3')} {ctx.step('list', list, 'ab')}"


@app.workflow
def step_while_asked(ctx: unstuck.Context, path: str) -> str:
    """Deaf to its request while the step is at work; what it gave is kept all the same."""

    def slow() -> str:
        mark(path, "slow")
        _until_told(path)
        time.sleep(0.5)
        return "slow"

    return str(ctx.step("slow", slow))


@app.workflow(grace=5.0)
def parks_when_told(ctx: unstuck.Context, path: str) -> None:
    """Obeys no request; parks, once a file says so."""
    mark(path, "begun")
    _until_told(path)
    try:
        ctx.approval("May I?")
    except unstuck.Cancelled:
        mark(path, "cancelled")
        raise


@app.workflow(grace=5.0)
def parks_unasked(ctx: unstuck.Context, path: str) -> None:
    """Is in the middle of its unwinding when somebody cancels it."""
    try:
        ctx.park_for(60)
    finally:
        mark(path, "unwinding")
        _until_told(path)
        time.sleep(0.5)


def _until_told(path: str) -> None:
    while not Path(path + ".go").exists():
        time.sleep(0.02)


@app.workflow(budget={"tokens": 1000})
def spends(ctx: unstuck.Context, path: str) -> str:
    for _ in range(10):
        try:
            ctx.spend(tokens=300)
        except unstuck.BudgetExceeded:
            mark(path, "exceeded")
            return "as if nothing had happened"
    return "done"


@app.workflow(max_lost=100, suspect_runs=1000)
def leaf(ctx: unstuck.Context, path: str) -> None:
    for _ in range(5):
        ctx.spend(tokens=10)
        mark(path, "spent")
        ctx.sleep(0.2)


@app.workflow(max_lost=100, suspect_runs=1000)
def branch(ctx: unstuck.Context, path: str, leaves: int) -> int:
    ctx.spend(tokens=1)
    return _well(ctx, [ctx.spawn(leaf, path) for _ in range(leaves)])


@app.workflow(max_lost=100, suspect_runs=1000, budget_scope="tree")
def tree(ctx: unstuck.Context, path: str, branches: int, leaves: int) -> int:
    return _well(ctx, [ctx.spawn(branch, path, leaves) for _ in range(branches)])


def _well(ctx: unstuck.Context, children: list[unstuck.ChildRef]) -> int:
    """How many of them completed."""
    try:
        return len(ctx.gather(*children, timeout=60))
    except unstuck.ChildrenFailed as error:
        return len(children) - len(error.failed)


@app.workflow
def child(n: int) -> int:
    if n < 0:
        raise unstuck.Fail("negative")
    return 10 * n


@app.workflow
def parent(ctx: unstuck.Context, numbers: list[int]) -> Any:
    refs = [ctx.spawn(child, n) for n in numbers]
    try:
        return ctx.gather(*refs, timeout=30)
    except unstuck.ChildrenFailed as error:
        return [[end.state, end.error_message] for end in error.failed]


@app.workflow
async def parent_async(ctx: unstuck.AsyncContext, numbers: list[int]) -> Any:
    refs = await asyncio.gather(*(ctx.spawn(child, n) for n in numbers))
    return await ctx.gather(*refs, timeout=30)


@app.workflow
def gathers_when_told(ctx: unstuck.Context, path: str) -> None:
    """What it hears stands in the marks: nobody takes its result any more."""
    ref = ctx.spawn(child, 1)
    mark(path, "spawned")
    while not os.path.exists(f"{path}.told"):
        time.sleep(0.02)
    try:
        ctx.gather(ref)
    except BaseException as heard:
        mark(path, f"{type(heard).__name__}:{ctx.has_lost_lease}")
        raise
    mark(path, "gathered")


@app.workflow(retries=0, max_lost=0)
def everything(ctx: unstuck.Context, number: int) -> Any:
    """All that a handler can ask for."""
    print("hello from", number)
    ctx.progress({"done": 1})
    ctx.step("one", str, number)
    ctx.spend(tokens=1)
    ctx.partial("half", number)
    ctx.publish("halfway", {"number": number})
    return ctx.gather(ctx.spawn(child, number), timeout=60)


@app.workflow(timeout=1.0)
def over_its_time(ctx: unstuck.Context) -> None:
    ctx.sleep(60)


@app.workflow
def sleeper(path: str) -> None:
    mark(path, "sleeper")
    unstuck.current().sleep(60)


@app.workflow
def parent_of_sleepers(ctx: unstuck.Context, path: str) -> None:
    ctx.gather(*[ctx.spawn(sleeper, path) for _ in range(3)])


@app.workflow
def park_a_moment(ctx: unstuck.Context, path: str) -> str:
    mark(path, "begun")
    ctx.park_for(0.5)
    return "rested"


@app.workflow
def parks_for(ctx: unstuck.Context, path: str, seconds: float) -> str:
    mark(path, "begun")
    ctx.park_for(seconds)
    return "rested"


@app.workflow
def parks_often(ctx: unstuck.Context, times: int) -> int:
    for n in range(times):
        ctx.park_for(0.02 + 0.03 * (n % 3))
    return times


@app.workflow
def rests_and_asks(ctx: unstuck.Context, path: str) -> str:
    """Three short waits: two for a time, one for an event that does not come."""
    mark(path, "begun")
    ctx.park_for(1)
    ctx.park_for(0.3)
    return str(ctx.wait_for("never", timeout=0.5, default="silence"))


@app.workflow
def add(a: int, b: int) -> int:
    return a + b


@app.workflow
def gives_too_much(ctx: unstuck.Context) -> None:
    ctx.partial("all of it", "x" * (64 << 10))
