"""More handlers for the same app: those that hang, leave things behind and bend what all share."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import importlib
import io
import logging
import multiprocessing
import os
import queue
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from tests.executor import apps
from tests.executor.apps import app, registry, workflow
from unstuck.clock import boot
from unstuck.executor import interrupt
from unstuck.executor.context import Context
from unstuck.executor.messages import INTERRUPT_SIGNAL, STACK_SIGNAL

__all__ = ["app", "registry"]

log = logging.getLogger("tests.hard")
kept: list[Any] = []


def spin() -> None:
    while True:
        pass


def receive() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.recv(1)


def wait_for_lock() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def match_for_ever() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


HANGS: dict[str, Callable[[], object]] = {
    "sleep": lambda: time.sleep(60),
    "spin": spin,
    "recv": receive,
    "lock": wait_for_lock,
    "event": lambda: threading.Event().wait(60),
    "program": lambda: subprocess.run(["sleep", "60"], check=False),
    "regex": match_for_ever,
}


@workflow()
def hang(kind: str) -> None:
    HANGS[kind]()


@workflow()
async def hang_async(kind: str) -> None:
    HANGS[kind]()


@workflow()
async def hang_in_subtask(kind: str) -> None:
    async def sub() -> None:
        HANGS[kind]()

    await asyncio.create_task(sub())


@workflow()
async def hang_in_group(kind: str) -> None:
    async def sub() -> None:
        HANGS[kind]()

    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(60))
        group.create_task(sub())


@workflow()
def hang_after_a_loop() -> None:
    """Runs the executor's own loop by hand, then hangs: still the same job is on the main thread."""
    asyncio.get_event_loop().run_until_complete(asyncio.sleep(0.01))
    time.sleep(60)


@workflow()
async def catch_everything(times: int) -> str:
    for _ in range(times):
        with contextlib.suppress(BaseException):
            time.sleep(60)  # noqa: ASYNC251
    return "caught"


@workflow()
async def clean_up_slowly() -> str:
    try:
        time.sleep(60)  # noqa: ASYNC251
    finally:
        log.info("cleaned up")
    return "not reached"


@workflow()
async def short_steps(n: int) -> int:
    total = 0
    for k in range(5):
        total += sum(range(200))
        print(k)
        await asyncio.sleep(0)
    return n


@workflow()
async def busy_for_ever() -> None:
    """Never blocks, never rests: wherever it is interrupted, the loop it shares must stay whole."""
    lock = asyncio.Lock()
    while True:
        async with lock:
            log.debug("nobody reads this")
            for _ in range(2000):
                pass
        await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))


# that are hardly ever in code of their own

condition = threading.Condition()
lines: queue.Queue[int] = queue.Queue()
modules = tempfile.mkdtemp()
with open(f"{modules}/imported_again.py", "w") as module:
    module.write("x = 1\n")
sys.path.append(modules)


def enter_condition() -> None:
    with condition:
        pass


def pass_through_queue() -> None:
    lines.put(1)
    lines.get()


def import_again() -> None:
    sys.modules.pop("imported_again", None)
    importlib.import_module("imported_again")


class Finalized:
    def __del__(self) -> None:
        for _ in range(200):
            pass


def close_slowly() -> Iterator[int]:
    try:
        yield 1
    finally:
        for _ in range(200):
            pass


def finalize() -> None:
    steps = close_slowly()
    next(steps)
    del steps
    Finalized()


def make_tasks() -> None:
    loop = asyncio.get_running_loop()
    loop.create_future().set_result(1)
    loop.create_task(asyncio.sleep(0)).cancel()


HABITS: dict[str, Callable[[], object]] = {
    "condition": enter_condition,
    "queue": pass_through_queue,
    "import": import_again,
    "logging": lambda: log.warning("a line"),
    "print": lambda: print("a line"),
    "tasks": make_tasks,
    "finalizers": finalize,
}


@workflow()
async def repeat_for_ever(habit: str) -> None:
    act = HABITS[habit]
    while True:
        act()


@workflow()
async def queue_with_doubled_signals() -> None:
    """As if a second signal came whenever the answer to the first one asks for the time."""
    setattr(interrupt, "boot", boot_with_a_signal)  # noqa: B010 - not exported
    try:
        while True:
            pass_through_queue()
    finally:
        setattr(interrupt, "boot", boot)  # noqa: B010 - not exported


def boot_with_a_signal() -> float:
    if threading.current_thread() is threading.main_thread():
        signal.raise_signal(INTERRUPT_SIGNAL)
    return boot()


@workflow()
async def wait_in_queue() -> None:
    lines.get()


@workflow()
def find_locks_held() -> list[str]:
    """On a thread of the crew, which took none of them; and an import waits for what an import left."""
    locks: dict[str, Any] = {"condition": condition, "queue": lines.mutex}
    held = [name for name, lock in locks.items() if not lock.acquire(timeout=1.0)]
    for name, lock in locks.items():
        if name not in held:
            lock.release()
    importer = threading.Thread(target=import_again, daemon=True)
    importer.start()
    importer.join(1.0)
    return [*held, "import"] if importer.is_alive() else held


@workflow()
async def clean_up_for(seconds: float) -> str:
    """Is interrupted while it logs; its way out takes a while, and nothing may disturb that."""
    try:
        while True:
            log.warning("a line")
    finally:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            pass
        print("cleaned up")


@workflow()
def switch_interval() -> float:
    return sys.getswitchinterval()


def nap() -> None:
    time.sleep(0.5)


@workflow()
async def child_is_struck() -> int | None:
    child = multiprocessing.get_context("fork").Process(target=nap)
    child.start()
    time.sleep(0.1)  # noqa: ASYNC251
    assert child.pid is not None
    os.kill(child.pid, INTERRUPT_SIGNAL)
    child.join()
    return child.exitcode


@workflow()
async def take_signals(how: str, until: str) -> str:
    """Takes ours for itself in this way, then hangs until a file is there."""
    match how:
        case "default":
            signal.signal(INTERRUPT_SIGNAL, signal.SIG_DFL)
            signal.signal(STACK_SIGNAL, signal.SIG_DFL)
        case "own":
            for signum in (INTERRUPT_SIGNAL, STACK_SIGNAL, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1):
                signal.signal(signum, lambda *_: None)
        case "blocked":
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        case "unregistered":
            faulthandler.disable()
            faulthandler.unregister(STACK_SIGNAL)
            faulthandler.cancel_dump_traceback_later()
    while not os.path.exists(until):
        time.sleep(0.05)  # noqa: ASYNC251
    return "undisturbed"


# that begin or do not


@workflow()
def make_folder(path: str) -> None:
    os.mkdir(path)


@workflow()
async def make_folder_async(path: str) -> None:
    os.mkdir(path)


# where they are


async def fifth() -> None:
    await asyncio.sleep(60)


async def fourth() -> AsyncIterator[int]:
    await fifth()
    yield 1


async def third() -> None:
    async for _ in fourth():
        pass


@workflow()
async def waits_deep_inside() -> None:
    await asyncio.create_task(third(), name="the third")


@workflow()
async def swallows_cancels() -> None:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await fifth()


@workflow()
async def awaits_for_ever() -> None:
    async def down(n: int) -> None:
        await (asyncio.sleep(60) if n == 0 else down(n - 1))

    await down(500)


def sleep_inside_a_thread() -> None:
    time.sleep(60)


@workflow()
async def waits_for_a_thread() -> None:
    await asyncio.to_thread(sleep_inside_a_thread)


# what they leave behind


@workflow()
def leaves_a_thread(name: str, seconds: float) -> None:
    threading.Thread(target=time.sleep, args=(seconds,), name=name, daemon=True).start()


@workflow()
async def leaves_a_thread_async(name: str, seconds: float) -> None:
    threading.Thread(target=time.sleep, args=(seconds,), name=name, daemon=True).start()


@workflow()
def leaves_a_grandchild(name: str) -> None:
    def begin() -> None:
        threading.Thread(target=time.sleep, args=(60,), name=name, daemon=True).start()

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()


@workflow()
def keeps_threads_while_it_runs(seconds: float) -> None:
    threads = [threading.Thread(target=time.sleep, args=(seconds,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@workflow()
async def leaves_a_deaf_task() -> None:
    async def deaf() -> None:
        until = time.monotonic() + 2.0
        while time.monotonic() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.5)

    kept.append(asyncio.create_task(deaf(), name="deaf"))
    await asyncio.sleep(0.01)


@workflow()
async def leaves_pool_work(seconds: float) -> None:
    asyncio.get_running_loop().run_in_executor(None, time.sleep, seconds)


@workflow()
async def runs_pool_work() -> None:
    await asyncio.to_thread(time.sleep, 0.01)


# what all share


@workflow()
def exit_in_finally() -> None:
    try:
        raise ValueError("before")
    finally:
        os._exit(7)


@workflow()
def close_descriptors() -> None:
    os.closerange(3, 256)


@workflow()
async def close_descriptors_async() -> None:
    os.closerange(3, 256)
    await asyncio.sleep(60)


@workflow()
def reuse_descriptors() -> None:
    """Closes ours, and has files of its own in their places."""
    os.closerange(3, 64)
    kept.extend(tempfile.TemporaryFile() for _ in range(40))  # noqa: SIM115
    time.sleep(60)


@workflow()
def bend(what: str) -> None:
    match what:
        case "stdout":
            sys.stdout = io.StringIO()
        case "no stdout":
            sys.stdout = None
        case "closed stdout":
            sys.stdout.close()
            sys.stdout = io.StringIO()
            sys.stdout.close()
        case "gc":
            gc.disable()
        case "folder":
            folder = tempfile.mkdtemp()
            os.chdir(folder)
            os.rmdir(folder)
        case "recursion":
            sys.setrecursionlimit(60)
        case "switches":
            sys.setswitchinterval(0.05)
        case "no switches":
            sys.setswitchinterval(1e5)


@workflow()
def surroundings() -> dict[str, Any]:
    print("heard")
    return {
        "gc": gc.isenabled(),
        "folder": os.getcwd(),
        "recursion": sys.getrecursionlimit(),
        "switches": sys.getswitchinterval(),
    }


@workflow()
def prints_for(seconds: float) -> str:
    """Gives the others a moment, then prints."""
    time.sleep(seconds)
    print("heard")
    return "printed"


@workflow()
def overflow(limit: int) -> None:
    sys.setrecursionlimit(limit)

    def down() -> None:
        down()

    down()


@workflow()
def endless_threads(ctx: Context) -> str:
    """Not daemons: the interpreter would wait for them at its end."""
    for _ in range(3):
        threading.Thread(target=threading.Event().wait).start()
    return "left"


@workflow()
def daemon_with_our_descriptors() -> int:
    return apps.for_good(fork_with_our_descriptors)


def fork_with_our_descriptors() -> int:
    """Two forks, a session of its own, and all that the executor has open stays open in it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(writer, b"%d" % os.getpid())
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            time.sleep(300)
        os._exit(0)
    os.wait()
    return int(os.read(reader, 20))


@workflow()
async def leaves_a_task_that_is_reborn() -> None:
    """It answers its cancel by starting another."""

    async def forever() -> None:
        await asyncio.sleep(60)

    async def phoenix() -> None:
        try:
            await forever()
        finally:
            kept.append(asyncio.create_task(forever(), name="reborn"))

    kept.append(asyncio.create_task(phoenix()))
    await asyncio.sleep(0)


@workflow()
async def sets_a_task_factory() -> None:
    asyncio.get_running_loop().set_task_factory(None)


class Litter:
    """Nobody but the collector finds it; its end blocks whoever is not there for handlers."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        name = threading.current_thread().name
        if name.startswith("unstuck-") and not name.startswith("unstuck-job"):
            time.sleep(30)


@workflow()
def litters() -> None:
    """And leaves it to the next few objects that anybody makes."""
    gc.collect()
    kept.extend([] for _ in range(max(0, max(700, gc.get_threshold()[0]) - gc.get_count()[0] - 30)))
    for _ in range(3):
        Litter()


@workflow()
def shrinks_pages() -> int:
    """Every memory file that it can reach; how many gave way."""
    shrunk = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if "memfd:unstuck" in os.readlink(f"/proc/self/fd/{name}") and os.fstat(int(name)).st_size:
                os.ftruncate(int(name), 0)
                shrunk += 1
    return shrunk


@workflow()
def uses_up_descriptors(limit: int) -> int:
    """And keeps them."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError):
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))
    return len(kept)


@workflow()
def opens_a_file() -> str:
    with open(os.devnull) as file:
        return file.read()


@workflow()
async def closes_the_selector() -> None:
    asyncio.get_running_loop()._selector.close()  # type: ignore[attr-defined]


@workflow()
async def swallows_once(path: str) -> str:
    """Suspended, and deaf to the first who asks."""
    for _ in range(2):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            with open(path, "a") as file:  # noqa: ASYNC230
                file.write("asked\n")
    return "obeyed the second"


@workflow()
def stops_its_zygote() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
