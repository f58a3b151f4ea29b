"""LogWriter: writes a worker's log from a thread of its own, so that logging can never hold up or end a worker."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

from unstuck.cli.job_lines import json_line
from unstuck.clock import wall

KEPT = 10_000
#: Seconds that a thread waits for its line to be out, so that the last words of a dying process are not lost; it does
#: not wait again while the reader is behind.
PATIENCE = 0.05
#: Seconds that lines of the routine may wait for others: every write wakes this thread in the middle of a job's way.
GATHER = 0.1
_PAUSE = 0.1


class LogWriter:
    """Lines in order, none of them twice. A reader that does not read costs lines, and is told how many;
    `as_json`: by an object like all others."""

    def __init__(self, stream: TextIO, *, as_json: bool = False) -> None:
        # Not through the stream: a thread that holds its buffer's lock for ever would keep Python from ending.
        self._descriptor = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self._as_json = as_json
        self._lines: deque[str | Callable[[], str]] = deque()
        self._is_hurried = False
        self._dropped = 0
        self._is_behind = False
        self._changed = threading.Condition()
        threading.Thread(target=self._write, name="log-writer", daemon=True).start()

    def say(self, line: str) -> None:
        with self._changed:
            self._is_hurried = True
            if self._add(line) and not self._is_behind:
                self._is_behind = not self._written(PATIENCE)

    def mention(self, line: Callable[[], str]) -> None:
        """Without the wait, and put into words by the writing thread: a line of the daily routine is nobody's last
        word."""
        with self._changed:
            self._add(line)

    def _add(self, line: str | Callable[[], str]) -> bool:
        if len(self._lines) >= KEPT:
            self._dropped += 1
            return False
        self._lines.append(line)
        if self._is_hurried or len(self._lines) == 1:
            self._changed.notify_all()
        return True

    def finish(self, patience: float = 2.0) -> None:
        """Before the process ends: what can still be written is."""
        with self._changed:
            self._is_hurried = True
            self._changed.notify_all()
            self._written(patience)

    def _written(self, patience: float) -> bool:
        return self._changed.wait_for(lambda: not self._lines, patience)

    def _write(self) -> None:
        while True:
            with self._changed:
                if not self._lines:
                    self._changed.wait_for(lambda: self._lines)
                    self._changed.wait_for(lambda: self._is_hurried, GATHER)
                line, dropped = self._lines[0], self._dropped
            self._put(line if isinstance(line, str) else self._worded(line))
            if dropped:
                self._put(self._own(f"{dropped} lines of this log were dropped, because nobody read it"))
            with self._changed:
                self._lines.popleft()
                self._dropped -= dropped
                self._is_behind = self._is_behind and bool(self._lines)
                if not self._lines:
                    self._is_hurried = False
                    self._changed.notify_all()

    def _put(self, line: str) -> None:
        left = memoryview(f"{line}\n".encode(self._encoding, "replace"))
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:  # another process that shares the terminal has made it so
                threading.Event().wait(_PAUSE)
            except OSError:  # no reader any more, or a full disk: this line is lost, the next may not be
                return

    def _worded(self, line: Callable[[], str]) -> str:
        """Whatever is wrong with it: without this thread there would be no log any more."""
        try:
            return line()
        except Exception as error:
            return self._own(f"a line of this log could not be put into words: {error!r}")

    def _own(self, message: str) -> str:
        return (
            json_line(wall(), "log", {"level": "warning", "message": message})
            if self._as_json
            else f"unstuck: {message}"
        )
