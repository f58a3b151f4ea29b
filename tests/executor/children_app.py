"""Handlers that start processes, in every way there is, and leave them running."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.executor import apps
from tests.executor.apps import registry, workflow
from unstuck.executor.context import AsyncContext, Context
from unstuck.model.errors import Cancelled

app = SimpleNamespace(_registry=registry)
assert apps.app._registry is registry
SLEEP = ["sleep", "300"]
#: Says its pid when it is deaf.
DEAF = ["sh", "-c", "trap '' TERM; echo $$; exec sleep 300"]


def program(**options: Any) -> list[int]:
    return [subprocess.Popen(SLEEP, stdin=subprocess.DEVNULL, **options).pid]


def shell(command: str, path: str, **options: Any) -> list[int]:
    """A command that leaves a process in the background and writes down its pid."""
    subprocess.run(f"{command} & echo $! > {path}", shell=True, check=True, **options)
    return [int(Path(path).read_text())]


def forked() -> list[int]:
    if (pid := os.fork()) == 0:
        time.sleep(300)
        os._exit(0)
    return [pid]


def by_system(path: str) -> list[int]:
    os.system(f"sleep 300 & echo $! > {path}")
    return [int(Path(path).read_text())]


def deaf_ones() -> list[int]:
    begun = [subprocess.Popen(DEAF, stdout=subprocess.PIPE, text=True) for _ in range(20)]
    return [int(one.stdout.readline()) for one in begun if one.stdout]


def spawned() -> list[int]:
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(300,))
    process.start()
    return [process.pid or 0]


WAYS: dict[str, Callable[[str], list[int]]] = {
    "program": lambda _: program(),
    "session": lambda _: program(start_new_session=True),
    "no environment": lambda _: program(env={}, start_new_session=True),
    "orphan": lambda path: shell("sleep 300", path),
    "daemon": lambda path: shell("exec setsid sleep 300", path),
    "os.system": by_system,
    "posix_spawn": lambda _: [os.posix_spawn("/bin/sleep", SLEEP, os.environ)],
    "fork": lambda _: forked(),
    "forked daemon": lambda _: [apps.fork_a_daemon()],
    "twenty deaf": lambda _: deaf_ones(),
    "multiprocessing": lambda _: spawned(),
}


@workflow()
def leaves(how: str, path: str) -> list[int]:
    return WAYS[how](path)


@workflow()
async def leaves_async(how: str, path: str) -> list[int]:
    return WAYS[how](path)


@workflow()
async def leaves_an_async_one() -> list[int]:
    return [(await asyncio.create_subprocess_exec(*SLEEP)).pid]


@workflow()
def keeps(ctx: Context, how: str, path: str, until: str) -> list[int]:
    """Its processes are its own for as long as it runs; says whether they were all there."""
    pids = WAYS[how](path)
    ctx.progress(pids)
    while not os.path.exists(until):
        ctx.sleep(0.02)
    return [pid for pid in pids if _is_alive(pid)]


@workflow()
async def keeps_async(ctx: AsyncContext, how: str, path: str, until: str) -> list[int]:
    pids = WAYS[how](path)
    ctx.progress(pids)
    while not os.path.exists(until):
        await ctx.sleep(0.02)
    return [pid for pid in pids if _is_alive(pid)]


@workflow()
def stops_late(ctx: Context, after: float) -> None:
    """Obeys at the very end of its grace, with children that do not."""
    ctx.progress(deaf_ones()[:1])
    try:
        ctx.sleep(300)
    except Cancelled:
        time.sleep(after)
        raise


@workflow()
def serves_a_port(port: int) -> int:
    """By a daemon that survives TERM; the listener is its own."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    if (child := os.fork()) == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            time.sleep(300)
        os._exit(0)
    os.waitpid(child, 0)
    server.close()
    return port


@workflow()
def cleared_daemon(path: str) -> int:
    """Nothing says whose it is."""
    return apps.for_good(lambda: shell("exec env -i setsid sleep 300", path)[0])


def _is_alive(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"
    return False
