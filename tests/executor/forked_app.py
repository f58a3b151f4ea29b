"""Handlers that fork while other threads of theirs are at work, and finalizers that speak where nobody expects it."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import unstuck
from tests.executor import apps
from tests.executor.apps import registry, workflow
from unstuck.executor import attempt as attempts
from unstuck.executor import context as contexts
from unstuck.executor import leftovers
from unstuck.executor.attempt import Attempt
from unstuck.executor.capture import Output
from unstuck.executor.context import Context, running
from unstuck.executor.flow import Flow
from unstuck.executor.started import StartedByJob

app = SimpleNamespace(_registry=registry)
assert apps.app._registry is registry
log = logging.getLogger("shop.till")
PATIENCE = 3.0


def end_of(child: int) -> str:
    """How it ended, or that it hung."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return f"exit {os.waitstatus_to_exitcode(status)}"
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hung"


@contextmanager
def all_locks_held(ctx: Context) -> Iterator[None]:
    """By another thread: as a fork may find them at the worst instant."""
    attempt = running.get()
    assert isinstance(attempt, Attempt)
    print("the parent")
    ctx.sleep(0.0)
    flow = ctx._durable("step")
    started = leftovers.started_by(attempt)
    assert attempt.output is not None
    assert ctx._asked is not None
    locks: list[Any] = [
        attempt.output._lock,
        attempts._making,
        contexts._making,
        leftovers._making,
        started._lock,
        flow._rules._lock,
        flow._journal._lock,
        flow.waits._lock,
        flow.children._lock,
        flow.calls._lock,
        ctx._asked._cond,  # type: ignore[attr-defined]
    ]
    begun, held, enough = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        # Its own start needs one of them.
        begun.wait()
        for lock in locks:
            lock.acquire()
        held.set()
        enough.wait(2 * PATIENCE)
        for lock in locks:
            lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    begun.set()
    held.wait()
    try:
        yield
    finally:
        enough.set()
        holder.join()


def forget_context() -> None:
    """As if there were no middleware, which has asked for it already."""
    attempt = running.get()
    assert isinstance(attempt, Attempt)
    attempt._context = None


def start_thread() -> None:
    thread = threading.Thread(target=print, args=("a thread of the child",))
    thread.start()
    thread.join()


DEEDS: dict[str, Callable[[Context], object]] = {
    "print": lambda ctx: print("from the child"),
    "print to stderr": lambda ctx: print("from the child", file=sys.stderr),
    "ctx.log": lambda ctx: ctx.log("from the child", n=1),
    "logging": lambda ctx: log.warning("from the child"),
    "ctx.progress": lambda ctx: ctx.progress(1),
    "ctx.sleep": lambda ctx: ctx.sleep(0.001),
    "ctx.check": lambda ctx: ctx.check(),
    "current": lambda ctx: unstuck.current().log("from the child"),
    "thread": lambda ctx: start_thread(),
    "print and flush": lambda ctx: print("from the child", flush=True),
}


@workflow()
def forks_at_the_worst_instant(ctx: Context, deed: str) -> str:
    with all_locks_held(ctx):
        child = os.fork()
        if child == 0:
            try:
                DEEDS[deed](ctx)
            except BaseException:
                os._exit(1)
            os._exit(0)
        return end_of(child)


@workflow()
def copy_ends_its_handler(ctx: Context, how: str) -> str:
    with all_locks_held(ctx):
        child = os.fork()
        if child != 0:
            return end_of(child)
        # Its holder of the locks is no thread of this process.
        threading.Thread.join = lambda *_: None  # type: ignore[method-assign]
    if how == "raises":
        raise ValueError("in the copy")
    return "in the copy"


@workflow()
def copy_asks_for_the_context_first() -> str:
    """Nobody has asked for it before the fork, and another thread is about to."""
    forget_context()
    held, enough = threading.Event(), threading.Event()

    def hold() -> None:
        with attempts._making:
            held.set()
            enough.wait(2 * PATIENCE)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    child = os.fork()
    if child == 0:
        try:
            unstuck.current().partial("a", 1)
        except unstuck.InvalidInput:
            os._exit(0)
        os._exit(1)
    try:
        return end_of(child)
    finally:
        enough.set()
        holder.join()


FLOW: dict[str, Callable[[Context], object]] = {
    "step": lambda ctx: ctx.step("a", int),
    "wait_for": lambda ctx: ctx.wait_for("e"),
    "approval": lambda ctx: ctx.approval("sure?"),
    "park_for": lambda ctx: ctx.park_for(1),
    "spawn": lambda ctx: ctx.spawn(None),
    "gather": lambda ctx: ctx.gather(),
    "spend": lambda ctx: ctx.spend(tokens=1),
    "partial": lambda ctx: ctx.partial("a", 1),
}


@workflow()
def child_asks(ctx: Context, verb: str, path: str) -> str:
    with all_locks_held(ctx):
        child = os.fork()
        if child == 0:
            try:
                FLOW[verb](ctx)
            except BaseException as error:
                Path(path).write_text(f"{type(error).__name__}: {error}")
            os._exit(0)
        return end_of(child)


@workflow()
def step_forks(ctx: Context, path: str) -> str:
    """Both go on with the step, and only one of them is the handler."""

    def fork() -> int:
        return os.fork()

    try:
        child = ctx.step("fork", fork)
    except BaseException as error:
        Path(path).write_text(f"{type(error).__name__}: {error}")
        os._exit(0)
    return end_of(child)


@workflow()
def talks_and_forks(ctx: Context, children: int) -> list[str]:
    """As it happens to people: nobody holds anything on purpose."""
    is_over = threading.Event()

    def talk() -> None:
        while not is_over.is_set():
            print("x" * 200)
            ctx.log("y")

    talkers = [threading.Thread(target=copy_context().run, args=(talk,)) for _ in range(6)]
    for talker in talkers:
        talker.start()
    ends = []
    for _ in range(children):
        child = os.fork()
        if child == 0:
            print("z")
            ctx.log("z")
            os._exit(0)
        ends.append(end_of(child))
        if ends[-1] == "hung":
            break
    is_over.set()
    for talker in talkers:
        talker.join()
    return sorted(set(ends))


@workflow()
def children_speak(ctx: Context, word: str) -> None:
    print("before")
    # A thread without the handler's contextvars: nobody's output, still in a buffer when the fork comes.
    alien = threading.Thread(target=sys.stdout.write, args=(f"pending {word}\n",))
    alien.start()
    alien.join()
    child = os.fork()
    if child == 0:
        print("forked", word)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(child, 0)
    process = multiprocessing.get_context("fork").Process(target=speak, args=(ctx, word))
    process.start()
    process.join()
    sys.stdout.flush()
    print("after")


def speak(ctx: Context, word: str) -> None:
    print("printed", word)
    print("complained", word, file=sys.stderr)
    ctx.log(f"logged {word}", level="warning", n=1)
    log.info("told %s", word)
    print("odd \ud800", word)


# --- finalizers and signals -------------------------------------------------------------------------------------


def interject(made: type, deed: Callable[[], object]) -> None:
    """Do this in the middle of making the first one, as a finalizer or a signal's handler may."""

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is made.__init__.__code__:  # type: ignore[misc]
            sys.setprofile(None)
            deed()

    sys.setprofile(look)


@workflow()
def speaks_amid_the_first_print() -> None:
    interject(Output, lambda: print("in between"))
    print("hello")


@workflow()
def speaks_amid_the_first_context() -> bool:
    met: list[Context] = []
    forget_context()
    interject(Context, lambda: met.append(unstuck.current()))
    return [unstuck.current()] == met


@workflow()
def asks_amid_the_first_flow(ctx: Context) -> bool:
    met: list[Flow] = []
    interject(Flow, lambda: met.append(ctx._durable("step")))
    return [ctx._durable("step")] == met


@workflow()
def sleeps_amid_the_first_sleep(ctx: Context) -> bool:
    met: list[threading.Event] = []
    interject(threading.Event, lambda: met.append(ctx._event()))
    return [ctx._event()] == met


@workflow()
def starts_a_thread_amid_the_first() -> bool:
    """A finalizer may do that, too."""
    attempt = running.get()
    assert isinstance(attempt, Attempt)
    interject(StartedByJob, start_thread)
    first = attempt.started
    start_thread()
    return first is None and attempt.started is not None and len(attempt.started._threads) == 2


class Dying:
    """Nobody but the collector finds it."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        print("a finalizer speaks")


@workflow()
def is_collected_amid(allocations: int) -> None:
    """So many objects after it was lost."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.disable()
    Dying()
    gc.set_threshold(gc.get_count()[0] + allocations, 10, 10)
    gc.enable()
    print("hello")
    gc.set_threshold(*thresholds)
    gc.collect()
