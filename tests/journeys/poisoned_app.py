"""Jobs that end well and leave their process, its zygote or the host worse than they found it; and innocents."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from typing import Any

import unstuck

app = unstuck.App()
kept: list[Any] = []


@app.workflow(retries=0)
def deaf_children() -> list[int]:
    command = ["sh", "-c", "trap '' TERM; echo $$; exec sleep 300"]
    begun = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(20)]
    return [int(one.stdout.readline()) for one in begun if one.stdout]


@app.workflow(retries=0)
def port_daemon(port: int) -> list[int]:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            os.write(writer, b"%d" % os.getpid())
            time.sleep(300)
        os._exit(0)
    os.waitpid(child, 0)
    server.close()
    try:
        return [int(os.read(reader, 20))]
    finally:
        os.close(reader)
        os.close(writer)


@app.workflow(retries=0)
async def orphans() -> list[int]:
    process = await asyncio.create_subprocess_shell(
        "sleep 300 & echo $!; setsid sleep 300 & echo $!", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    return [int(await process.stdout.readline()) for _ in range(2)]


class Litter:
    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        name = threading.current_thread().name
        if name.startswith("unstuck-") and not name.startswith("unstuck-job"):
            time.sleep(60)


@app.workflow(retries=0)
def litters() -> list[int]:
    for _ in range(50):
        Litter()
    return []


@app.workflow(retries=0)
def uses_up_descriptors() -> list[int]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (120, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with contextlib.suppress(OSError):
        while True:
            kept.append(os.open(os.devnull, os.O_RDONLY))
    return []


@app.workflow(retries=0)
def stops_its_zygote() -> list[int]:
    os.kill(os.getppid(), signal.SIGSTOP)
    return []


@app.workflow(retries=0)
async def closes_the_selector() -> list[int]:
    asyncio.get_running_loop()._selector.close()  # type: ignore[attr-defined]
    return []


@app.workflow(retries=0)
def leaves_a_thread_that_kills() -> list[int]:
    def kill() -> None:
        time.sleep(2.0)  # it is told as left behind before
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=kill, name="killer", daemon=True).start()
    return []


@app.workflow(retries=0, max_lost=0)
def opens(seconds: float = 0.1) -> str:
    with open(os.devnull) as file:
        time.sleep(seconds)
        return file.read()


@app.workflow(retries=0, max_lost=0)
async def opens_async(seconds: float = 0.1) -> str:
    with open(os.devnull) as file:  # noqa: ASYNC230
        await asyncio.sleep(seconds)
        return file.read()
