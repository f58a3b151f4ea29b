"""What a handler prints and logs goes to its own attempt: capped, the middle cut out.

Only `sys.stdout` and `sys.stderr` are replaced, by streams that look at the running attempt for every write and let
everything else through. They are in place before the app is imported, so that logging handlers made there hold
them too. Output at the level of file descriptors goes to a pipe that the supervisor drains, into the worker's log.

So does what a process says that a handler has forked: the attempt's output is its parent's, behind a lock that some
thread may have held at the fork. It gets streams of its own, with locks and buffers of their own.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

from unstuck.clock import wall
from unstuck.executor.context import running
from unstuck.model.logs import (
    MAX_RECORD,
    RECORD_FIELDS,
    RS,
    SEVERITIES,
    LogRecord,
    as_text,
    frame,
    level_named,
    printed,
    severity,
)
from unstuck.model.payload import clean_text

#: In characters, all together: the store keeps no more.
CAP = 64 << 10
_HALF = CAP // 2
#: Room for the note about what was cut.
_NOTE = 64
#: A record with its frame, on a line of its own: the end must have room for one.
_LARGEST = MAX_RECORD + 3
#: After a cut the end begins with a whole line, if one begins so soon.
_NEAR = 4 << 10


class Output:
    """One attempt's text: about the first half of the cap is streamed as it comes, of the rest the end is kept.

    Once the attempt is asked to stop it may not live to say its end: what there is of it is streamed then, and a part
    of the room left serves as a beginning again. Records are never cut, nor do they begin in the middle of a line.
    """

    __slots__ = ("_cut", "_head", "_is_asked", "_lock", "_mid_line", "_most", "_room", "_tail", "_tail_size")

    def __init__(self, is_asked: Callable[[], bool] | None = None) -> None:
        #: Until it was, once.
        self._is_asked = is_asked
        # A signal's handler or a finalizer that prints may come in the middle of a print of the same thread.
        self._lock = threading.RLock()
        self._head: list[str] = []
        #: What may still be streamed; and how much of the end is kept once that is used up.
        self._room = _HALF
        self._most = CAP - _NOTE - _HALF
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._cut = 0
        self._mid_line = False

    def write(self, text: str) -> None:
        """What was printed."""
        # As text and nothing else: methods of its own must not run under the lock.
        text = printed(str.__str__(text))
        if not text:
            return
        with self._lock:
            self._mid_line = not text.endswith("\n")
            if self._room > 0:
                begin, text = text[: self._room], text[self._room :]
                self._head.append(begin)
                self._room -= len(begin)
            if text:
                self._keep_end(text)

    def add(self, framed: str) -> None:
        """A record, as `frame` gives it: whole to the beginning or whole to the end."""
        with self._lock:
            if self._mid_line:
                framed = "\n" + framed
                self._mid_line = False
            if len(framed) <= self._room:
                self._head.append(framed)
                self._room -= len(framed)
                return
            # Nothing may follow in the beginning that came after it. The end may be the longer for that.
            self._most += self._room
            self._room = 0
            self._keep_end(framed)

    def _keep_end(self, text: str) -> None:
        """Always one character more than will be kept, if there is one: it tells whether a line begins there."""
        if len(text) > self._most + 1:
            self._cut += len(text) - self._most - 1
            text = text[-self._most - 1 :]
        self._tail.append(text)
        self._tail_size += len(text)
        while self._tail_size - len(self._tail[0]) > self._most:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._cut += gone

    def stream(self) -> str:
        """What of the beginning has not been taken yet."""
        with self._lock:
            if self._tail and self._is_asked is not None and self._is_asked():
                self._is_asked = None
                self._begin_anew()
            text = "".join(self._head)
            self._head.clear()
        return clean_text(text, CAP)

    def _begin_anew(self) -> None:
        end = self._take_end(self._most // 3)
        self._head.append(end)
        left = self._most - len(end) - _NOTE
        self._most = max(left // 2, _LARGEST)
        self._room = left - self._most

    def rest(self) -> str | None:
        """All that was never streamed, once the attempt has ended."""
        with self._lock:
            text = "".join(self._head) + self._take_end(self._most)
            self._head.clear()
        return clean_text(text, 2 * CAP) or None

    def let_go(self) -> None:
        """Of its attempt. Threads that were left behind may go on to print; that is dropped."""
        with self._lock:
            self._is_asked = None

    def _take_end(self, most: int) -> str:
        end = "".join(self._tail)
        begin = _beginning(end, len(end) - most)
        cut = self._cut + begin
        self._tail.clear()
        self._tail_size = self._cut = 0
        return (f"\n… {cut:,} characters cut …\n" if cut else "") + end[begin:]


def _beginning(text: str, least: int) -> int:
    """Where to begin, past so many characters: with a line or a record if one begins soon, never inside a record."""
    if least <= 0:
        return 0
    record, line = text.find(RS, least), text.find("\n", least - 1) + 1
    begin = min((at for at in (record, line) if at > 0), default=len(text))
    is_inside_record = text.rfind(RS, 0, least) > text.rfind("\n", 0, least)
    return begin if is_inside_record or begin - least <= _NEAR else least


class RoutedStream(io.TextIOBase):
    """Writes to the running attempt if there is one, else to the stream that was here before."""

    def __init__(self, original: TextIO) -> None:
        self._original = original
        #: Kept open in a child, and never written to: what is in its buffer is the parent's to say.
        self._inherited: TextIO | None = None
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Line by line, since few children end in a way that empties buffers. No text is too strange for it."""
        with contextlib.suppress(OSError, ValueError):
            fd = self._original.fileno()
            fresh = os.fdopen(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
            self._inherited = self._inherited or self._original
            self._original = fresh

    def write(self, text: str) -> int:
        target = running.get()
        if target is None or not target.is_here:
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


class LogRecords(logging.Handler):
    """For apps that configure no logging: their records still reach the attempt, as records."""

    def emit(self, record: logging.LogRecord) -> None:
        target = running.get()
        if target is not None:
            try:
                target.add(frame(self._translated(record)))
            except Exception:
                self.handleError(record)

    def _translated(self, record: logging.LogRecord) -> LogRecord:
        extra = {name: value for name, value in vars(record).items() if name not in _NO_EXTRA}
        level = level_named(record.levelname)
        if level not in SEVERITIES and severity(level) != record.levelno:
            level = f"{level} {record.levelno}"  # a level of the app's own: how important it is, only it knows
        # Formatted by the plain formatter of the library: the message, its exception and its stack.
        return LogRecord(wall(), level, self.format(record), extra, record.name)


#: What every record has, what formatters leave in it, and what the place where it is kept says already.
_NO_EXTRA = {*vars(logging.makeLogRecord({})), *RECORD_FIELDS, "message", "asctime", "taskName"}


def say_past(framed: str) -> None:
    """A record of a process that cannot reach its attempt's output. Never raises, whatever became of the stream."""
    with contextlib.suppress(OSError, ValueError):
        print(as_text(framed), end="", file=sys.stderr)


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
    root.addHandler(LogRecords())
    if root.level in (logging.NOTSET, logging.WARNING):
        root.setLevel(logging.INFO)
