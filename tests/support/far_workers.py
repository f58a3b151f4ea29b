"""Workers at a distance for journeys: a real `unstuck server` beside the database, and workers that know nothing but
its address and a key."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.eventually import eventually
from tests.support.warm import PATHS, Forked, warm_process
from tests.support.workers import COMPRESSED, ROOT, Worker, workers
from unstuck.model.times import Times
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.store.port import Store

#: What they are told instead of a database.
NOWHERE = "sqlite:////nowhere/at/all.db"
_ADDRESS = re.compile(r"unstuck server on (\S+)")


class FarServer:
    """`unstuck server` in a process of its own. `port`: the one that it had before, or any."""

    def __init__(self, url: str, log: Path, times: Times = COMPRESSED, port: int = 0) -> None:
        self._words = ["-m", "unstuck", "server", "--rate", "1000000", "--database", url]
        self._environment = os.environ | PATHS | environment_of(times)
        self.log = log
        self.port = port
        self.process: Forked | None = None
        self._read = 0

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """As a service manager does: again, if it ended because its database was away."""
        self.process = None
        self.port = int(eventually(self._told, timeout=60).rpartition(":")[2])

    def _told(self) -> str:
        if self.process is None or self.process.poll() is not None:
            with self.log.open("ab") as out:
                self._read = out.tell()
                words = [*self._words, "--port", str(self.port)]
                self.process = warm_process().start(words, ROOT, self._environment, out.fileno(), out.fileno())
        found = _ADDRESS.search(self.log.read_text()[self._read :])
        assert found, self.log.read_text()[self._read :]
        return found[1]

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """As a deploy does."""
        assert self._end(signal.SIGTERM) == 0

    def end(self) -> None:
        """Whatever became of it."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def _end(self, number: int) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def environment_of(times: Times) -> dict[str, str]:
    return {f"UNSTUCK_{name.upper()}": str(value) for name, value in asdict(times).items()}


@contextmanager
def far_server(url: str, folder: Path, times: Times = COMPRESSED) -> Iterator[FarServer]:
    server = FarServer(url, folder / "server.log", times)
    try:
        server.start()
        yield server
    finally:
        server.end()
        print(f"----- server\n{server.log.read_text()[-3000:]}")


def worker_key(db: Store) -> str:
    return keys.create(Caller(db, "ada"), "far host", role="worker").key


@contextmanager
def far_workers(url: str, db: Store, folder: Path, **variables: str) -> Iterator[Callable[..., Worker]]:
    """As `workers`; the server is there with the first of them, and keeps that one's times."""
    with ExitStack() as ends, workers(NOWHERE, folder, UNSTUCK_DATABASE="", **variables) as start:
        key = worker_key(db)
        server: FarServer | None = None

        def begin(name: str = "", *, times: Times = COMPRESSED, **more: Any) -> Worker:
            nonlocal server
            if server is None:
                server = ends.enter_context(far_server(url, folder, times))
            worker: Worker = start(name, server=server.url, key=key, times=times, **more)
            # Two processes start here where journeys count with one.
            eventually(lambda: worker.process.poll() is not None or worker.record(db) is not None, timeout=30)
            return worker

        yield begin
