"""An app with every kind of handler, well-behaved and not; imported by the zygotes of these tests."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import inspect
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from unstuck.executor.context import AsyncContext, Context, current
from unstuck.model.errors import Cancelled, Fail, InvalidResult, NotStorable, Retry
from unstuck.model.payload import encode
from unstuck.model.policy import Policy
from unstuck.model.workflow import Handler, Registry

registry = Registry(code_version="tests")
app = SimpleNamespace(_registry=registry)
log = logging.getLogger("tests")
variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="clean")
started_hooks: list[str] = []


class Raw(str):
    """A result that is sent as it is."""


class Undeclared(str):
    """A result of another type than its handler declares."""


def pack(value: Any) -> str:
    if isinstance(value, Undeclared):
        raise InvalidResult("wrong_type", "Expected `int`, got `str`")
    return str(value) if isinstance(value, Raw) else encode(value, "the result", 64 << 20)


def unpack(payload: str) -> tuple[list[Any], dict[str, Any]]:
    args, kwargs = json.loads(payload)
    return args, kwargs


def workflow(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        registry.add(
            Handler(
                name=function.__name__,
                call=function,
                is_async=inspect.iscoroutinefunction(function),
                takes_context=next(iter(inspect.signature(function).parameters), "") == "ctx",
                unpack=unpack,
                pack=pack,
                policy=Policy(**{k: v for k, v in options.items() if k != "retry_on"}),
                retry_on=options.get("retry_on"),
            )
        )
        return function

    return register


@workflow()
def add(a: int, b: int) -> int:
    return a + b


@workflow()
async def add_async(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@workflow()
def noop() -> None: ...


@workflow()
async def noop_async() -> None: ...


@workflow()
def who(ctx: Context) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "ppid": os.getppid(),
        "main": threading.current_thread() is threading.main_thread(),
        "job": ctx.job,
        "workflow": ctx.workflow,
        "attempt": ctx.attempt,
        "run": ctx.run,
        "tenant": ctx.tenant,
        "fence": ctx.fence,
        "key": ctx.key("mail"),
        "same": current() is ctx,
        "remaining": ctx.remaining(),
        "hooks": started_hooks,
        "stdin": sys.stdin.read() if sys.stdin else None,
        "session": os.getsid(0),
    }


@workflow()
async def who_async(ctx: AsyncContext) -> dict[str, Any]:
    inside = await asyncio.to_thread(lambda: current(AsyncContext) is ctx)
    return {"pid": os.getpid(), "main": threading.current_thread() is threading.main_thread(), "same": inside}


@workflow()
def boom() -> None:
    raise ValueError("no good")


@workflow()
async def boom_async() -> None:
    raise ValueError("no good")


@workflow()
def retry(after: float) -> None:
    raise Retry("later", after=after)


@workflow()
def fail() -> None:
    raise Fail("never again")


@workflow(retry_on=(OSError,))
def only_os_errors(kind: str) -> None:
    raise {"os": ConnectionError("line cut"), "value": ValueError("bad")}[kind]


class Hostile(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message for you")


@workflow()
def hostile() -> None:
    raise Hostile


@workflow()
def huge_message() -> None:
    raise ValueError("x\x00\ud800" * (2 << 20))


@workflow()
def deep(frames: int) -> None:
    sys.setrecursionlimit(frames * 2)

    def down(n: int) -> None:
        if n == 0:
            raise ValueError("the bottom")
        down(n - 1)

    down(frames)


@workflow()
def leave(code: int) -> None:
    sys.exit(code)


@workflow()
async def leave_in_subtask() -> str:
    async def sub() -> None:
        sys.exit(3)

    await asyncio.create_task(sub())
    return "not reached"


@workflow()
async def leave_in_forgotten_subtask() -> str:
    async def sub() -> None:
        sys.exit(3)

    task = asyncio.create_task(sub())
    await asyncio.sleep(0.05)
    return f"{task.done()}"


@workflow()
def interrupt() -> None:
    raise KeyboardInterrupt


@workflow()
def sleep(ctx: Context, seconds: float) -> str:
    ctx.sleep(seconds)
    return "slept"


@workflow()
async def sleep_async(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "slept"


@workflow()
async def ctx_sleep_async(ctx: AsyncContext, seconds: float) -> str:
    await ctx.sleep(seconds)
    return "slept"


@workflow()
def sleep_in_own_loop(ctx: Context, seconds: float) -> str:
    async def inner() -> None:
        await current(AsyncContext).sleep(seconds)

    asyncio.run(inner())
    return "slept"


@workflow()
def check_forever(ctx: Context) -> None:
    while True:
        ctx.check()
        time.sleep(0.01)


@workflow()
def returns_anyway(ctx: Context) -> str:
    while not ctx.cancelled:
        time.sleep(0.01)
    return f"{ctx.kind}: {ctx.reason}"


@workflow()
def block(seconds: float) -> str:
    time.sleep(seconds)
    return "woke"


@workflow()
async def block_loop(seconds: float) -> str:
    time.sleep(seconds)  # noqa: ASYNC251
    return "woke"


@workflow()
def block_until(path: str) -> str:
    """Until the file is there."""
    while not os.path.exists(path):
        time.sleep(0.01)
    return "woke"


@workflow()
async def block_loop_until(path: str) -> str:
    while not os.path.exists(path):
        time.sleep(0.01)  # noqa: ASYNC251
    return "woke"


@workflow()
def check_lease_forever(ctx: Context) -> None:
    while True:
        ctx.check_lease()
        time.sleep(0.01)


@workflow()
def talk(ctx: Context) -> str:
    print("printed")
    print("to stderr", file=sys.stderr)
    log.info("logged %s", "line")
    ctx.log("said", n=1)
    os.write(1, b"past the capture\n")
    ctx.progress({"done": 1})
    ctx.progress({"done": 2})
    return "talked"


@workflow()
async def talk_async(name: str) -> None:
    for n in range(3):
        print(f"{name} {n}")
        await asyncio.sleep(0.01)


@workflow()
def talk_then(seconds: float) -> str:
    print("first words")
    time.sleep(seconds)
    print("last words")
    return "done"


@workflow()
def talk_until(path: str) -> str:
    print("first words")
    block_until(path)
    print("last words")
    return "done"


@workflow()
def talk_briefly(ctx: Context, milliseconds: float) -> None:
    print("one")
    ctx.progress(1)
    time.sleep(milliseconds / 1000)
    print("two")
    ctx.progress(2)


@workflow()
def switch_threads_often() -> None:
    sys.setswitchinterval(1e-6)


@workflow()
async def stop_the_loop() -> str:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)
    return "still here"


@workflow()
def flood(megabytes: int) -> str:
    for n in range(megabytes * 1024):
        print(f"{n:<1022}")
    return "flooded"


@workflow()
def flood_descriptor(megabytes: int) -> str:
    for _ in range(megabytes * 16):
        os.write(1, b"y" * 65535 + b"\n")
    return "flooded"


@workflow()
def big(size: int) -> str:
    return "x" * size


@workflow(max_result=100)
def too_big() -> str:
    return "x" * 100


@workflow()
def wrong_type() -> Any:
    return Undeclared("three")


@workflow()
def not_json() -> Any:
    return socket.socket()


@workflow()
def set_variable(value: str) -> str:
    before = variable.get()
    variable.set(value)
    return before


@workflow()
async def set_variable_async(value: str) -> str:
    before = variable.get()
    variable.set(value)
    return before


@workflow()
def exit_hard(code: int) -> None:
    os._exit(code)


@workflow()
def kill_self(signum: int) -> None:
    os.kill(os.getpid(), signum)
    time.sleep(30)


@workflow()
def segfault() -> None:
    ctypes.string_at(0)


@workflow()
async def segfault_async() -> None:
    ctypes.string_at(0)


@workflow()
def close_everything() -> None:
    os.closerange(3, 4096)
    time.sleep(30)


@workflow()
def stray_thread(seconds: float) -> str:
    threading.Thread(target=time.sleep, args=(seconds,)).start()
    return "left a thread"


@workflow()
async def stray_task(path: str) -> str:
    async def write_later() -> None:
        await asyncio.sleep(0.3)
        os.mkdir(path)

    keep.append(asyncio.create_task(write_later()))
    return "left a task"


keep: list[Any] = []


@workflow()
def daemon() -> int:
    return for_good(lambda: subprocess.Popen(["sleep", "300"], start_new_session=True, stdin=subprocess.DEVNULL).pid)


def for_good(begin: Callable[[], int]) -> int:
    """As an on_start hook would: nobody's, so it stays as long as its process."""
    return contextvars.Context().run(begin)


@workflow()
def forked_daemon() -> int:
    return for_good(fork_a_daemon)


def fork_a_daemon() -> int:
    """A daemon of the old school: two forks, a session of its own, no exec."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writer, b"%d" % os.getpid())
            time.sleep(300)
        os._exit(0)
    os.wait()
    return int(os.read(reader, 20))


@workflow()
def child() -> int:
    return for_good(lambda: subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL).pid)


@workflow()
def bad_frame() -> None:
    """Finds our own socket and says what no executor says."""
    for fd in range(3, 64):
        try:
            with socket.socket(fileno=os.dup(fd)) as wire:
                wire.setblocking(True)
                wire.sendall(b"\xff\xff\xff\xff")
        except OSError:
            continue
    time.sleep(30)


@workflow()
def swallow(ctx: Context) -> str:
    try:
        ctx.sleep(30)
    except Cancelled:
        raise ValueError("while cleaning up") from None
    return ""


@workflow()
def ignore_termination() -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)
    return "still here"


@workflow()
def unreadable_result() -> str:
    raise NotStorable("something else", "raised by the handler itself")


@contextmanager
def around(ctx: Context) -> Iterator[None]:
    if ctx.tenant == "watched":
        print(f"before {ctx.workflow}")
    try:
        yield
    finally:
        if ctx.tenant == "watched":
            print(f"after {ctx.workflow}")


registry.middleware.append(around)


def on_start() -> None:
    started_hooks.append(f"sync in {os.getpid()}")


async def on_start_async() -> None:
    await asyncio.sleep(0)
    started_hooks.append(f"async in {os.getpid()}")


def on_stop() -> None:
    if path := os.environ.get("TEST_STOP_FILE"):
        with open(path, "a") as file:
            file.write("stopped\n")
    time.sleep(float(os.environ.get("TEST_STOP_SECONDS", "0")))


registry.on_start += [on_start, on_start_async]
registry.on_stop.append(on_stop)


class Unspeakable(Retry):
    """Its own attributes fail as well."""

    @property
    def after(self) -> float:
        raise ValueError("no time for you")

    @after.setter
    def after(self, value: object) -> None: ...


@workflow()
def unspeakable() -> None:
    raise Unspeakable


@workflow()
async def unspeakable_async() -> None:
    raise Unspeakable


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError("no name for you")


class NamelessError(Exception, metaclass=Nameless): ...


@workflow()
def nameless() -> None:
    raise NamelessError("no reason")


@workflow()
async def cancel_everybody() -> None:
    me = asyncio.current_task()
    for task in asyncio.all_tasks():
        if task is not me:
            task.cancel()


@workflow()
def hold_the_interpreter() -> bool:
    """From its first line and for minutes: nothing else of Python runs in the process."""
    return re.match(r"(a+)+$", "a" * 60 + "b") is not None


@workflow()
def nested(depth: int) -> Any:
    """Deeper than the supervisor can read."""
    return Raw("[" * depth + "]" * depth)


@workflow()
def stops_unasked() -> None:
    raise Cancelled("nobody asked")


@workflow()
async def stops_unasked_async() -> None:
    raise Cancelled("nobody asked")


@workflow()
def forks_and_returns(path: str) -> int:
    child = os.fork()
    if child == 0:
        return -1
    os.waitpid(child, 0)
    return child


@workflow()
async def forks_and_awaits(path: str) -> int:
    child = os.fork()
    await asyncio.sleep(0.05)
    if child == 0:
        Path(path).write_text("the copy went on")
        return -1
    os.waitpid(child, 0)  # noqa: ASYNC222
    return child


@workflow()
def terminates_a_program() -> int:
    program = subprocess.Popen(["sleep", "60"])
    program.terminate()
    try:
        return program.wait(5)
    finally:
        program.kill()


def note(path: str, word: str) -> None:
    with Path(path).open("a") as file:
        file.write(f"{word}\n")


@workflow()
async def notes_later(path: str) -> str:
    """Its effects come from callbacks: no step of a task is needed for them."""
    asyncio.get_running_loop().call_later(0.4, note, path, "called")
    await asyncio.sleep(0.8)
    return "noted"


@workflow()
async def forks_and_awaits_what_it_had(path: str) -> str:
    """Nothing asks for the running loop after the fork, so the child goes back into its copy of it."""
    loop = asyncio.get_running_loop()
    later = loop.create_future()
    loop.call_later(1.5, later.set_result, None)
    os.fork()
    await later
    return "waited"


@workflow()
async def forks_in_a_callback(path: str) -> str:
    asyncio.get_running_loop().call_soon(os.fork)
    await asyncio.sleep(1.5)
    return "waited"


@workflow()
async def forks_amid_callbacks(path: str) -> str:
    loop = asyncio.get_running_loop()
    loop.call_soon(os.fork)
    loop.call_soon(note, path, "called")
    await asyncio.sleep(0.5)
    return "waited"


@workflow()
async def forks_and_cancels_itself(path: str) -> str:
    later = asyncio.get_running_loop().create_future()
    task = asyncio.current_task()
    assert task is not None
    if os.fork() == 0:
        task.cancel()
        try:
            await later
        finally:
            note(path, "thrown")
    await asyncio.sleep(0.5)
    return "waited"


@workflow()
def child_crashes() -> str:
    """Its child dies of a native crash; the job itself is fine."""
    child = os.fork()
    if child == 0:
        ctypes.string_at(0)
        os._exit(1)
    os.waitpid(child, 0)
    return "fine"


@workflow()
async def child_crashes_async() -> str:
    return str(child_crashes())


@workflow()
def asks_itself(ctx: Context) -> None:
    ctx.ask("cancel", "by myself")  # type: ignore[attr-defined]
    raise Cancelled("by myself")


@workflow()
def hog(megabytes: int, seconds: float) -> int:
    kept = b"x" * (megabytes << 20)
    time.sleep(seconds)
    return len(kept)
