"""More handlers for the same app: they wait inside code which the interrupt spares, or are interrupted there."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import unstuck
from tests.executor.apps import app, registry, workflow
from tests.executor.hard_cases import HABITS, enter_condition, modules
from unstuck.executor.messages import INTERRUPT_SIGNAL
from unstuck.store.drivers.postgres_pool import Pool

__all__ = ["app", "registry"]

HELD_FOR = 12.0
ours, theirs = socket.socketpair()
ours.setblocking(False)
with open(f"{modules}/imports_slowly.py", "w") as module:
    module.write(f"import time\ntime.sleep({HELD_FOR})\n")


# that wait inside spared code


def hold(lock: Any, seconds: float = HELD_FOR) -> None:
    """A thread has it from now on."""
    taken = threading.Event()

    def keep() -> None:
        with lock:
            taken.set()
            time.sleep(seconds)

    threading.Thread(target=keep, daemon=True).start()
    taken.wait()


def enter_held_condition() -> None:
    held = threading.Condition()
    hold(held)
    with held:
        pass


def put_into_held_queue() -> None:
    held: queue.Queue[int] = queue.Queue()
    hold(held.mutex)
    held.put(1)


def enter_held_lock() -> None:
    held = threading.Lock()
    hold(held)
    with contextlib.ExitStack() as stack:
        stack.enter_context(held)


def log_into_full_pipe() -> None:
    reader, writer = os.pipe()
    handler = logging.StreamHandler(os.fdopen(writer, "w", buffering=1))
    log = logging.getLogger("tests.full_pipe")
    log.propagate = False
    log.addHandler(handler)
    try:
        while True:
            log.warning("x" * 4000)
    finally:
        log.removeHandler(handler)
        os.close(reader)


def import_what_another_imports() -> None:
    threading.Thread(target=importlib.import_module, args=("imports_slowly",), daemon=True).start()
    time.sleep(0.2)
    importlib.import_module("imports_slowly")


WAITS: dict[str, Callable[[], object]] = {
    "condition": enter_held_condition,
    "queue": put_into_held_queue,
    "exit stack": enter_held_lock,
    "logging": log_into_full_pipe,
    "import": import_what_another_imports,
}


@workflow()
def wait_inside(what: str) -> None:
    WAITS[what]()


@workflow()
async def wait_inside_async(what: str) -> None:
    WAITS[what]()


class Possession:
    """What a handler holds; that it is gone can be seen."""


possessions: weakref.WeakSet[Possession] = weakref.WeakSet()


@workflow()
async def wait_inside_with_possessions(seconds: float) -> None:
    mine = Possession()
    possessions.add(mine)
    held = threading.Condition()
    hold(held, seconds)
    with held:
        pass


@workflow()
def count_possessions() -> int:
    return len(possessions)


# that bend what all share


def turn_reader() -> None:
    loop = asyncio.get_running_loop()
    loop.add_reader(ours, print)
    loop.remove_reader(ours)


HABITS["reader"] = turn_reader


@workflow()
async def find_readers_lost() -> list[int]:
    """Descriptors that the kernel watches for the loop and the loop does not know of, and the other way round."""
    selector: Any = asyncio.get_running_loop()._selector  # type: ignore[attr-defined]
    with open(f"/proc/self/fdinfo/{selector.fileno()}") as file:  # noqa: ASYNC230
        watched = {int(line.split()[1]) for line in file if line.startswith("tfd")}
    return sorted(watched ^ set(selector.get_map()))


@workflow()
async def import_slowly() -> None:
    importlib.import_module("imports_slowly")


@workflow()
async def import_slowly_and_go_on() -> str:
    with contextlib.suppress(BaseException):
        importlib.import_module("imports_slowly")
    return "went on"


# that are looked at by a profiler or a debugger of their own


def count(*_: object) -> Any:
    sum(range(20))
    return count


WATCHERS: dict[str, Callable[[Any], None]] = {"profile": sys.setprofile, "trace": sys.settrace}


@workflow()
async def watch_condition(watcher: str) -> None:
    WATCHERS[watcher](count)
    try:
        while True:
            enter_condition()
    finally:
        WATCHERS[watcher](None)


# that use our own store


@workflow()
async def struck_within_the_store(url: str) -> None:
    """As if the signal came right after a connection was taken from those that are idle."""

    class Struck(list[Any]):
        def pop(self, *at: Any) -> Any:
            taken = super().pop(*at)
            signal.raise_signal(INTERRUPT_SIGNAL)
            return taken

    real = unstuck.App(database=url)
    real.stats.get()
    pools = find_pools()
    for pool in pools:
        pool._idle = Struck(pool._idle)
    struck.extend(pools)
    real.stats.get()
    while True:
        time.sleep(0.01)  # noqa: ASYNC251


#: Looked at afterwards: the exception comes out in the handler's own code, be it the line that would have looked.
struck: list[Pool] = []


def find_pools() -> list[Pool]:
    return [pool for pool in gc.get_objects() if isinstance(pool, Pool)]


@workflow()
def connections_out() -> list[int]:
    return [pool._open - len(pool._idle) for pool in struck]
