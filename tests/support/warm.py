"""Processes that need not import everything first: a clean one has, and forks one for each command and each worker.

Starting Python and importing the command line or a worker takes longer than what most of them do, and tests run
thousands. Each still is a process of its own, with its own directory, environment and streams, and ends as Python
ends but for the last thing Python does: taking every module apart takes fifty times as long as most commands. What a
worker starts itself, its zygote and executors, starts as always.
Where the start or the end matters (the price of help, guides, signals) tests start `python -m unstuck`.
"""

from __future__ import annotations

import array
import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from runpy import run_module
from traceback import print_exc
from typing import Any, NoReturn

import unstuck
from unstuck.store.drivers.statements import Statements

_ROOT = Path(__file__).parents[2]
#: Where every process of a test finds us and the tests.
PATHS = {"PYTHONPATH": f"{_ROOT / 'src'}:{_ROOT}"}
#: Python has looked at these when it started.
_READ_AT_START = ("PYTHON", "LC_", "LANG")
_WORD = 16
#: What commands and workers import of others; ours are all imported.
_LIBRARIES = ("asyncio", "hashlib", "msgspec", "psycopg_pool", "rich.live", "rich.table", "sqlite3", "tomllib")


@cache
def warm_process() -> WarmProcess:
    return WarmProcess(os.environ | PATHS)


class Forked:
    """What a subprocess.Popen is for those who start a process, watch it and end it."""

    def __init__(self, words: Sequence[str], pid: int, status: int) -> None:
        self.args = list(words)
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            ended = select.poll()  # select() refuses descriptors above 1023
            ended.register(self._status, select.POLLIN)
            if not ended.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = int(os.read(self._status, _WORD))
            os.close(self._status)
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class WarmProcess:
    """Keeps the clean process; one for each process that runs tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._lock = threading.Lock()
        self._wire, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm", str(theirs.fileno())],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )

    def can_run(self, environment: Mapping[str, str]) -> bool:
        return _read_at_start(environment) == _read_at_start(self._environment)

    def start(
        self, words: Sequence[str], directory: Path, environment: Mapping[str, str], out: int, err: int
    ) -> Forked:
        """As `python <words>` does; words are -m module … or -c code …"""
        order = json.dumps([list(words), str(directory), dict(environment)]).encode()
        status, theirs = os.pipe()
        try:
            with tempfile.TemporaryFile() as text, self._lock:
                text.write(order)
                text.flush()
                handed = array.array("i", [text.fileno(), out, err, theirs])
                self._wire.sendmsg([b"start"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, handed)])
                return Forked(words, int(self._wire.recv(_WORD)), status)
        finally:
            os.close(theirs)

    def run(
        self, words: Sequence[str], directory: Path, environment: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = self.start(words, directory, environment, out.fileno(), err.fileno())
            try:
                code = process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
                raise
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
def _serve(wire: socket.socket) -> list[str]:
    """Returns in each process that it forks, with the words of what that one is to be."""
    alive: dict[int, tuple[int, int]] = {}
    events = select.poll()
    events.register(wire, select.POLLIN)
    while True:
        for ready, _ in events.poll():
            if ready != wire.fileno():
                events.unregister(ready)
                _report(ready, *alive.pop(ready))
                continue
            handed = _order(wire)
            pid = os.fork()
            if pid == 0:
                for descriptor in (wire.detach(), handed[-1], *alive, *(status for _, status in alive.values())):
                    os.close(descriptor)
                return _become(*handed[:-1])
            for descriptor in handed[:-1]:
                os.close(descriptor)
            end = os.pidfd_open(pid)
            alive[end] = pid, handed[-1]
            events.register(end, select.POLLIN)
            wire.send(str(pid).encode())


def _order(wire: socket.socket) -> array.array[int]:
    room = array.array("i", [0, 0, 0, 0])
    data, control, _, _ = wire.recvmsg(_WORD, socket.CMSG_SPACE(len(room) * room.itemsize))
    if not data:
        os._exit(0)
    handed = array.array("i")
    for _, _, rights in control:
        handed.frombytes(rights)
    return handed


def _report(end: int, pid: int, status: int) -> None:
    _, code = os.waitpid(pid, 0)
    try:
        os.write(status, str(os.waitstatus_to_exitcode(code)).encode())
    except BrokenPipeError:
        pass  # nobody waits for it any more
    for descriptor in (end, status):
        os.close(descriptor)


def _become(text: int, out: int, err: int) -> list[str]:
    with open(text, "rb") as file:
        file.seek(0)
        words, directory, environment = json.load(file)
    for target, descriptor in ((1, out), (2, err)):
        os.dup2(descriptor, target)
    for descriptor in {out, err}:
        os.close(descriptor)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = directory
    return list(words)


def _live(words: list[str]) -> int:
    """Its exit code."""
    match words:
        case ["-m", "unstuck", *rest]:
            sys.argv = ["unstuck", *rest]
            return import_module("unstuck.cli.main").main()  # type: ignore[no-any-return]
        case ["-m", module, *rest]:
            sys.argv = [module, *rest]
            run_module(module, run_name="__main__", alter_sys=True)
            return 0
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
            return 0
    raise AssertionError(words)


def _end(words: list[str]) -> NoReturn:
    """Threads first, then what was left for the exit, then the streams: the order of Python's own end."""
    try:
        code = _live(words)
    except SystemExit as exit:
        code = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
    except BaseException:
        print_exc()
        code = 1
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
    for dialect in ("sqlite", "postgres"):
        statements = Statements(dialect)
        for name in statements.names():
            statements[name]  # read, expanded and remembered: half of what most commands would do
    gc.collect()
    gc.freeze()  # no collection in any of them looks at all this


if __name__ == "__main__":
    _import_all()
    _end(_serve(socket.socket(fileno=int(sys.argv[1]))))
