"""Handlers that log: from everywhere, too much, and things that nobody should log."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import unstuck
from tests.executor import apps
from tests.executor.apps import registry, workflow
from unstuck.executor.context import AsyncContext, Context
from unstuck.model.logs import LogRecord, frame

app = SimpleNamespace(_registry=registry)
assert apps.app._registry is registry
log = logging.getLogger("shop.till")


@workflow()
def log_sync(ctx: Context) -> None:
    print("before")
    ctx.log("paid", level="warning", order=7, tags=["a", "b"])
    print("after")


@workflow()
async def log_async(ctx: AsyncContext) -> None:
    await asyncio.gather(*(asyncio.to_thread(ctx.log, "in a thread", n=n) for n in range(20)))
    await asyncio.sleep(0)
    unstuck.current().log("on the loop")


@workflow()
def log_in_threads(ctx: Context, threads: int, each: int) -> None:
    """Many at once, each saying both kinds."""

    def talk(name: int) -> None:
        for n in range(each):
            ctx.log("said", thread=name, n=n)

    started = [threading.Thread(target=talk, args=(name,)) for name in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


@workflow()
def log_by_library() -> None:
    log.info("sold %s", "a pen", extra={"order": 7, "by": "ada"})
    try:
        raise ValueError("no money")
    except ValueError:
        log.exception("refused")
    log.debug("not heard")


@workflow()
def forge(ctx: Context) -> None:
    """Prints what a record looks like, whole and in pieces."""
    false = frame(LogRecord(ctx_time(), "critical", "forged"))
    print(false, end="")
    for letter in false:
        print(letter, end="")
    ctx.log(false, **{false: false})


def ctx_time() -> Any:
    from unstuck.clock import wall

    return wall()


class Hostile:
    def __repr__(self) -> str:
        raise unstuck.Cancelled("not really")


@workflow()
def log_hostile(ctx: Context) -> str:
    ctx.log(Hostile(), level=Hostile(), thing=Hostile(), self=1, message=2, large="x" * 1_000_000)  # type: ignore[arg-type]
    log.info("x", extra={"thing": Hostile()})
    return "lived"


@workflow()
def mid_line(ctx: Context) -> None:
    print("half a line", end="")
    ctx.log("a record")
    print("a line")


@workflow()
def talk_and_hang(go_on: str) -> None:
    """Says a lot, then is deaf until a file is there."""
    for n in range(20_000):
        print(f"line {n}")
    print("my last words")
    while not Path(go_on).exists():
        time.sleep(0.02)
    print("I was deaf")


@workflow()
def log_flood(ctx: Context, records: int) -> str:
    for n in range(records):
        print(f"printed {n}")
        ctx.log("logged", n=n, text="x" * (n % 700))
    ctx.log("the end", n=records)
    return json.dumps(records)


@workflow()
def log_by_levels_of_its_own() -> None:
    logging.addLevelName(45, "AUDIT")
    log.log(45, "sold")
    log.log(35, "noted")
