"""The app behind `unstuck demo`: a small shop whose background jobs show one thing each.

Run it yourself:  unstuck worker unstuck.examples.demo:app
and ask for work: unstuck enqueue greet '"world"' --app unstuck.examples.demo:app --wait
"""

from __future__ import annotations

import asyncio
import inspect
import os
import signal

import unstuck
from unstuck.examples.stuck import coroutines, interpreter, threads

app = unstuck.App()


@app.workflow
def greet(name: str) -> str:
    """The simplest job: a plain function."""
    print(f"saying hello to {name}")
    return f"Hello, {name}!"


@app.workflow
async def check_stock(item: str, seconds: float = 0.5) -> dict[str, object]:
    """A coroutine: hundreds of these share one thread while they wait."""
    await asyncio.sleep(seconds)
    return {"item": item, "in_stock": len(item) * 7 % 40}


@app.workflow(retries=4, backoff_base=0.5)
def charge_card(ctx: unstuck.Context, order: int, bad_days: int = 1) -> str:
    """Fails now and then: tried again, a little later each time."""
    if ctx.attempt <= bad_days:
        raise ConnectionError(f"the bank did not answer (attempt {ctx.attempt})")
    return f"order {order} is paid"


@app.workflow(timeout=60)
def render_video(ctx: unstuck.Context, frames: int = 40) -> str:
    """Slow work that reports its progress and stops when it is asked to."""
    for frame in range(frames):
        ctx.check()  # raises once somebody cancelled the job
        ctx.progress({"done": frame + 1, "of": frames})
        ctx.sleep(0.1)
    return f"{frames} frames"


@app.workflow(isolation="process", timeout=30)
def count_primes(below: int) -> int:
    """CPU-bound: alone in a process of its own, so nobody waits for its GIL."""
    sieve = bytearray([1]) * below
    sieve[:2] = b"\0\0"
    for n in range(2, int(below**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, below, n)))
    return sum(sieve)


@app.workflow(isolation="process", max_lost=2)
def convert_image(ctx: unstuck.Context, name: str) -> str:
    """Takes its whole process down the first time, as bad native code does: the job runs again elsewhere."""
    if ctx.attempt == 1:
        print(f"converting {name} … and here the process dies")
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{name} converted at the second try"


@app.workflow(timeout=2, grace=2)
async def call_partner(seconds: float) -> str:
    """Has two seconds; when the partner is slower, the job ends as TIMEOUT."""
    await asyncio.sleep(seconds)
    return "the partner answered"


@app.workflow
def send_invoice(order: int) -> str:
    """Enqueued twice with one idempotency key: it runs once."""
    return f"invoice for order {order} sent"


@app.workflow(retries=0)
def import_feed(url: str) -> None:
    """Cannot succeed: failed for good, with its error kept for you to read."""
    raise unstuck.Fail(f"{url} is not a feed")


@app.workflow(target="{customer}", retries=0)
def deliver(customer: str, item: str, at_home: bool = True) -> str:
    """One at a time per customer, in order; one that failed blocks those behind it until somebody decides."""
    if not at_home:
        raise unstuck.Fail(f"{customer} is not at home")
    return f"{customer} has the {item}"


@app.workflow(concurrency=2)
def print_label(ctx: unstuck.Context, order: int) -> str:
    """The shop has two printers: never more than two at once, whichever worker runs them."""
    ctx.sleep(1.0)
    return f"label of order {order}"


@app.workflow(timeout=30, retries=2, backoff_base=0.5)
def release(ctx: unstuck.Context, version: str, flaky: bool = False) -> str:
    """Build → test → a person's yes → deploy; a no is rolled back. What is finished is never done twice, whatever
    happens in between, and while the job waits for the person it takes no slot."""
    image = ctx.step("build", build, ctx, version)
    ctx.step("test", run_tests, ctx, image, flaky and ctx.attempt == 1)
    try:
        yes = ctx.approval(f"deploy {image}?", timeout=60, on_timeout="reject")
    except unstuck.ApprovalRejected as no:
        ctx.step("roll back", roll_back, ctx, image)
        return f"{image} was taken back: {no.by} said no"
    ctx.step("deploy", deploy, ctx, image)
    return f"{image} is out: {yes.by} said yes"


def build(ctx: unstuck.Context, version: str) -> str:
    print(f"building {version}")
    ctx.sleep(1.0)
    return f"shop:{version}"


def run_tests(ctx: unstuck.Context, image: str, fails: bool) -> None:
    print(f"testing {image}")
    ctx.sleep(0.5)
    if fails:
        raise AssertionError("a test failed, as it does now and then")  # tried again, without another build


def deploy(ctx: unstuck.Context, image: str) -> None:
    print(f"deploying {image}")
    ctx.sleep(1.0)


def roll_back(ctx: unstuck.Context, image: str) -> None:
    print(f"taking {image} back from the staging shop")
    ctx.sleep(0.5)


@app.workflow
def remind(customer: str) -> str:
    """Enqueued with a delay: SCHEDULED until its time comes."""
    return f"reminded {customer}"


#: From the gallery of stuck jobs: each has two seconds, is asked to stop, and has two more to do so. The first three
#: never do, and whoever does so again is blacklisted; the last blocks the event loop and is interrupted there.
CULPRITS = tuple(
    app.workflow(name=culprit.name, timeout=2, grace=2, retries=0)(inspect.unwrap(culprit))
    for culprit in (
        threads.thread_sleep,
        interpreter.regex_in_thread,
        threads.swallows_cancel,
        coroutines.loop_sleep,
    )
)
