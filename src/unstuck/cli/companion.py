"""A worker or a server that a command starts beside itself (demo, bench) and takes along when it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from unstuck import clock
from unstuck.model.errors import UnstuckError


class Companion:
    """A real `unstuck` command in a session of its own: a Ctrl-C at the terminal is ours to pass on.

    It watches its stdin: if we die without a word, the pipe closes and it drains.
    """

    def __init__(self, words: Sequence[str], database: str, log: Path, drain: float = 5.0) -> None:
        self._name = words[0]
        self._log = log
        self._drain = drain
        command = [sys.executable, "-m", "unstuck", *words, "--database", database, "--stop-with-stdin"]
        with log.open("ab") as sink:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                env=os.environ | {"UNSTUCK_DATABASE": database},
            )

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
        """Drain, then hand back, then KILL: each step is bounded, so that we always end."""
        for sign, patience in ((signal.SIGTERM, self._drain + 10), (signal.SIGTERM, 15.0), (signal.SIGKILL, 10.0)):
            if self.process.poll() is not None:
                break
            self.process.send_signal(sign)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                continue
        if self.process.stdin:
            self.process.stdin.close()
