"""What executors write past our capture (file descriptors, their programs): passed on to our own standard error.

Always drained, so that nobody blocks on a full pipe; bounded, so that a flood costs little; and never waited for:
what our standard error cannot take right now is dropped and counted.
"""

from __future__ import annotations

import os
import select

#: Bytes per second that one source may say.
ALLOWANCE = 64 << 10
_READ = 256 << 10
_READS = 16
_ATOM = 4096


class OutputPipe:
    """One source: the read end of its pipe, under a name that goes before each line."""

    def __init__(self, fd: int, name: str, to: int = 2) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self._prefix = f"[{name}] ".encode()
        self._to = to
        self._line = b""
        self._window = 0.0
        self._said = 0
        self._dropped = 0

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

    def _write(self, line: bytes) -> None:
        text = self._prefix + line
        for begin in range(0, len(text), _ATOM):
            # Ready for writing means that at least so much can be written without waiting.
            if not select.select([], [self._to], [], 0)[1]:
                self._dropped += len(text) - begin
                return
            try:
                os.write(self._to, text[begin : begin + _ATOM])
            except OSError:
                return
