"""What a handler prints and logs goes to its own attempt: capped, the middle cut out.

Only `sys.stdout` and `sys.stderr` are replaced, by streams that look at the running attempt for every write and let
everything else through. They are in place before the app is imported, so that logging handlers made there hold
them too. Output at the level of file descriptors goes to a pipe that the supervisor drains.
"""

from __future__ import annotations

import io
import logging
import sys
import threading
from collections import deque
from typing import TextIO

from unstuck.executor.context import running
from unstuck.model.payload import clean_text

CAP = 64 << 10
_HALF = CAP // 2


class Output:
    """One attempt's text: the first half of the cap is streamed as it comes, of the rest the end is kept."""

    __slots__ = ("_cut", "_head", "_head_size", "_lock", "_tail", "_tail_size")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._head: list[str] = []
        self._head_size = 0
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._cut = 0

    def write(self, text: str) -> None:
        with self._lock:
            room = _HALF - self._head_size
            if room > 0:
                begin, text = text[:room], text[room:]
                self._head.append(begin)
                self._head_size += len(begin)
            if text:
                self._keep_end(text)

    def _keep_end(self, text: str) -> None:
        if len(text) > _HALF:
            self._cut += len(text) - _HALF
            text = text[-_HALF:]
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) >= _HALF:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._cut += gone

    def stream(self) -> str:
        """What of the first half has not been taken yet."""
        with self._lock:
            text = "".join(self._head)
            self._head.clear()
        return clean_text(text, CAP)

    def rest(self) -> str | None:
        """All that was never streamed, once the attempt has ended."""
        with self._lock:
            end = "".join(self._tail)
            cut = self._cut + max(0, len(end) - _HALF)
            marker = f"\n… {cut:,} characters cut …\n" if cut else ""
            text = "".join(self._head) + marker + end[-_HALF:]
            self._head.clear()
            self._tail.clear()
        return clean_text(text, 2 * CAP) or None


class RoutedStream(io.TextIOBase):
    """Writes to the running attempt if there is one, else to the stream that was here before."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    def write(self, text: str) -> int:
        target = running.get()
        if target is None:
            return self._original.write(text)
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        target.write(text)
        return len(text)

    def flush(self) -> None:
        if not self._original.closed:
            self._original.flush()

    def close(self) -> None:
        """A handler that closes its standard output must not close everybody's."""

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._original.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._original.errors

    @property
    def buffer(self) -> object:
        return self._original.buffer


class LogLines(logging.Handler):
    """For apps that configure no logging: their records still reach the attempt."""

    def emit(self, record: logging.LogRecord) -> None:
        target = running.get()
        if target is not None:
            try:
                target.write(self.format(record) + "\n")
            except Exception:
                self.handleError(record)


def route_streams() -> None:
    """Replace the two standard streams, once per process tree."""
    if not isinstance(sys.stdout, RoutedStream):
        sys.stdout = RoutedStream(sys.stdout)
    if not isinstance(sys.stderr, RoutedStream):
        sys.stderr = RoutedStream(sys.stderr)


def route_logging() -> None:
    """Hear the root logger where nobody does; an app's own configuration stays as it is."""
    root = logging.getLogger()
    if root.handlers:
        return
    lines = LogLines()
    lines.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    root.addHandler(lines)
    if root.level in (logging.NOTSET, logging.WARNING):
        root.setLevel(logging.INFO)
