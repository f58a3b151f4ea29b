"""Processes that need not import everything first: a clean one has, and forks one for each command.

Starting Python and importing the command line takes longer than what most commands do, and tests run thousands of
them. Each still is a process of its own, with its own directory, environment and streams, and ends as Python ends but
for the last thing Python does: taking every module apart takes fifty times as long as most commands.
Where the start or the end matters (the price of help, guides, workers, signals) tests start `python -m unstuck`.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NoReturn

import unstuck

#: Python has looked at these when it started.
_READ_AT_START = ("PYTHON", "LC_", "LANG")
_WORD = 16
#: What commands import of others; ours are all imported.
_LIBRARIES = ("asyncio", "hashlib", "msgspec", "psycopg_pool", "rich.live", "rich.table", "sqlite3", "tomllib")


class Hearth:
    """Keeps the clean process; one for each process that runs tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._wire, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.cli.warm", str(theirs.fileno())],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def can_run(self, environment: Mapping[str, str]) -> bool:
        return _read_at_start(environment) == _read_at_start(self._environment)

    def run(
        self, words: Sequence[str], directory: Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        order = json.dumps([list(words), str(directory), dict(environment)]).encode()
        with tempfile.TemporaryFile() as text, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            text.write(order)
            text.flush()
            streams = array.array("i", [text.fileno(), out.fileno(), err.fileno()])
            self._wire.sendmsg([b"run"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
            pid = int(self._wire.recv(_WORD))
            self._wire.settimeout(timeout)
            try:
                code = int(self._wire.recv(_WORD))
            except TimeoutError:
                os.kill(pid, signal.SIGKILL)
                self._wire.settimeout(10)
                self._wire.recv(_WORD)
                raise subprocess.TimeoutExpired(list(words), timeout) from None
            finally:
                self._wire.settimeout(None)
            return subprocess.CompletedProcess(list(words), code, _text(out), _text(err))

    def close(self) -> None:
        self._wire.close()
        self._process.wait(10)


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode().replace("\r\n", "\n")
    return text


# --- in the clean process -------------------------------------------------------------------------------------------
def _serve(wire: socket.socket) -> None:
    """Returns in each process that it forks, which then is that command."""
    while True:
        streams = array.array("i", [0, 0, 0])
        data, control, _, _ = wire.recvmsg(_WORD, socket.CMSG_SPACE(len(streams) * streams.itemsize))
        if not data:
            os._exit(0)
        streams = array.array("i")
        for _, _, rights in control:
            streams.frombytes(rights)
        pid = os.fork()
        if pid == 0:
            wire.close()
            _become(*streams)
            return
        for descriptor in streams:
            os.close(descriptor)
        wire.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        wire.send(str(os.waitstatus_to_exitcode(status)).encode())


def _become(text: int, out: int, err: int) -> None:
    with open(text, "rb") as file:
        file.seek(0)
        words, directory, environment = json.load(file)
    for target, descriptor in ((1, out), (2, err)):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = directory
    sys.argv = ["unstuck", *words]


def _end(code: int) -> NoReturn:
    """Threads first, then what was left for the exit, then the streams: the order of Python's own end."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def _import_all() -> None:
    for name in _LIBRARIES:
        import_module(name)
    for module in walk_packages(unstuck.__path__, "unstuck."):
        if not module.name.startswith(("unstuck.__main__", "unstuck.examples")):
            import_module(module.name)


if __name__ == "__main__":
    _import_all()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from unstuck.cli.main import main

    _end(main())
