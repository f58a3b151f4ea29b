"""What executors write past our capture (file descriptors, their programs): passed on to our own standard error.

Always drained, so that nobody blocks on a full pipe; bounded, so that a flood costs little; and never waited for:
what our standard error cannot take right now is dropped and counted.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator

from unstuck.clock import boot, wall
from unstuck.model.log_lines import object_line

#: Bytes per second that one source may say.
ALLOWANCE = 64 << 10
_READ = 256 << 10
_READS = 16
_ATOM = 4096


class OutputPipe:
    """One source: the read end of its pipe, under a name that goes before each line. `as_json`: each is an object;
    `begin`: what was read of it before."""

    def __init__(self, fd: int, name: str, to: int = 2, *, as_json: bool = False, begin: bytes = b"") -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._name = name
        self._prefix = f"[{name}] ".encode()
        self._as_json = as_json
        self._to = to
        self._line = b""
        self._window = 0.0
        self._said = 0
        self._dropped = 0
        if begin:
            self._take(begin, boot())

    def drain(self, now: float) -> bool:
        """Read what is there; False once nobody holds the other end."""
        for _ in range(_READS):
            try:
                data = os.read(self.fd, _READ)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._take(data, now)
        return True

    def close(self) -> None:
        if self._line:
            self._write(self._line + b"\n")
        os.close(self.fd)

    def _take(self, data: bytes, now: float) -> None:
        if now - self._window >= 1.0:
            self._window, self._said = now, 0
        left = max(0, ALLOWANCE - self._said)
        kept = data[:left]
        self._said += len(kept)
        if kept and self._dropped:
            self._write(b"... %d bytes dropped ...\n" % self._dropped)
            self._dropped = 0
        self._dropped += len(data) - len(kept)
        *lines, self._line = (self._line + kept).split(b"\n")
        for line in lines:
            self._write(line + b"\n")
        if len(self._line) > _ATOM:
            self._write(self._line + b"\n")
            self._line = b""

    def _object(self, line: bytes) -> Iterator[bytes]:
        """Each small enough to be written in one piece, between the lines of others."""
        text = line.decode(errors="replace")
        at = wall().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = object_line({"at": at, "event": "output", "process": self._name, "text": text}).encode() + b"\n"
        if len(told) <= _ATOM or len(text) < 2:
            yield told
        else:
            half = len(line) // 2
            yield from self._object(line[:half])
            yield from self._object(line[half:])

    def _write(self, line: bytes) -> None:
        for text in self._object(line.rstrip(b"\n")) if self._as_json else (self._prefix + line,):
            self._put(text)

    def _put(self, text: bytes) -> None:
        for begin in range(0, len(text), _ATOM):
            # Ready for writing means that at least so much can be written without waiting.
            if not select.select([], [self._to], [], 0)[1]:
                self._dropped += len(text) - begin
                return
            try:
                os.write(self._to, text[begin : begin + _ATOM])
            except OSError:
                return
