"""A worker or a server that a command starts beside itself (demo, dev, bench) and takes along when it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGINT, SIGKILL, SIGTERM, Signals
from types import TracebackType
from typing import Any

from unstuck import clock
from unstuck.model.errors import UnstuckError

#: Seconds for what should be over at once.
_AT_ONCE = 8.0


def start(words: Sequence[str], environ: Mapping[str, str], **how: Any) -> subprocess.Popen[bytes]:
    """A real `unstuck` command in a session of its own: a Ctrl-C at the terminal is ours to pass on.

    It watches its stdin: if we die without a word, the pipe closes and it drains.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "unstuck", *words, "--stop-with-stdin"],
        stdin=subprocess.PIPE,
        start_new_session=True,
        env=environ,
        **how,
    )


def on(database: str) -> dict[str, str]:
    """Our environment with this database: its password is not for the list of processes."""
    return {**os.environ, "UNSTUCK_DATABASE": database}


def tell(process: subprocess.Popen[bytes], facts: Mapping[str, Any]) -> None:
    """What it shall know that is not for a command line: the first line on its stdin, see `heard`."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # it has ended already: who waits for it will see that
        process.stdin.write(json.dumps(facts).encode() + b"\n")
        process.stdin.flush()


def heard() -> Any:
    """In the process that was started so: what it was told; None: whoever started it has nothing to say any more."""
    line = b""
    while not line.endswith(b"\n"):
        if not (piece := os.read(0, 1)):  # not a byte more: what follows is its end
            return None
        line += piece
    return json.loads(line)


class Leaving:
    """A process on its way out, asked more firmly each time it does not go: drain, hand back, leave, KILL. Each step
    is bounded, so that it always ends."""

    def __init__(self, process: subprocess.Popen[bytes], drain: float, now: float, *, grace: float = 15.0) -> None:
        self._process = process
        self._steps: list[tuple[Signals, float]] = [
            (SIGTERM, drain),
            (SIGTERM, grace),
            (SIGTERM, _AT_ONCE),
            (SIGKILL, 10.0),
        ]
        self._until = now
        self.has_ended(now)

    def has_ended(self, now: float) -> bool:
        """Also sends what is due."""
        if self._process.poll() is not None:
            if self._process.stdin:
                with suppress(BrokenPipeError):  # it was told something that it never read
                    self._process.stdin.close()
            return True
        if now >= self._until and self._steps:
            sign, patience = self._steps.pop(0)
            self._process.send_signal(sign)
            self._until = now + patience
        return False

    def hurry(self, now: float) -> None:
        """Nobody wants to wait any more: it gives everything back at once. Not the same signal twice, which would
        count once."""
        if len(self._steps) > 1 and self._process.poll() is None:
            self._process.send_signal(SIGINT)
            self._process.send_signal(SIGTERM)
            self._steps, self._until = self._steps[-1:], now + _AT_ONCE

    def wait(self) -> None:
        while not self.has_ended(clock.boot()):
            threading.Event().wait(0.02)


class Companion:
    """One that writes into a file."""

    def __init__(self, words: Sequence[str], database: str, log: Path, drain: float = 5.0) -> None:
        self._name = words[0]
        self._log = log
        self._drain = drain
        with log.open("ab") as sink:
            self.process = start(words, on(database), stdout=sink, stderr=sink)

    @classmethod
    def worker(cls, app: str, database: str, log: Path, options: Sequence[str] = (), drain: float = 5.0) -> Companion:
        words = ["worker", app, "--log-format", "json", "--drain", f"{drain:g}", *options]
        return cls(words, database, log, drain)

    @classmethod
    def server(cls, database: str, log: Path) -> Companion:
        """On any port that is free; `address` says which."""
        log.unlink(missing_ok=True)
        return cls(["server", "--port", "0"], database, log)

    def address(self, within: float) -> str | None:
        """Where a server says that it is; None: it has not said so."""
        until = clock.boot() + within
        while clock.boot() < until and self.process.poll() is None:
            if found := re.search(r"http://\S+", self.last_words()):
                return found[0]
            threading.Event().wait(0.05)
        return None

    def __enter__(self) -> Companion:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def check(self) -> None:
        """Raise if it ended by itself."""
        code = self.process.poll()
        if code is not None:
            raise UnstuckError(
                f"the {self._name} ended with code {code}; its last words ({self._log}):\n{self.last_words()}"
            )

    def last_words(self, lines: int = 15) -> str:
        text = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(text[-lines:])

    def stop(self) -> None:
        Leaving(self.process, self._drain + 10, clock.boot()).wait()
