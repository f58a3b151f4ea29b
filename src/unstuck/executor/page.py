"""The shared page: pulses, who runs where, the lease deadline. Readable while the executor is frozen, or dead.

One memory file per executor, little-endian, fixed layout:

    offset  type    written by   what
         0  double  executor     pulse: BOOTTIME of the control thread's last round
         8  double  executor     loop pulse: BOOTTIME of the event loop's last round
        16  int64   executor     loop job: the number whose code is on the event loop right now, 0 for none
        24  double  supervisor   lease: BOOTTIME after which nothing may still run, 0 while there is none
        32  double  executor     fenced: BOOTTIME at which it ended itself because the lease was over, 0 if it did not
        64  cells   executor     24 bytes each: int64 number, double started_at, uint64 thread

The fleet deals out a cell with every attempt it feeds. The executor writes it before the handler's first line and
clears only `thread` at its end, so a number found in its cell means "has started" until the fleet deals the cell
out again: an attempt that crashed, or ended without being able to say so, never looks as if it had not begun.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
from dataclasses import dataclass

HEADER = 64
_CELL = struct.Struct("<qdQ")
_DOUBLE = struct.Struct("<d")
_NUMBER = struct.Struct("<q")
_THREAD = struct.Struct("<Q")
_THREAD_AT = 16


def memory_file(name: str, size: int = 0) -> int:
    """A file without a name on disk; where there is no memfd, an unlinked temporary one."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile(prefix=name) as file:
            fd = os.dup(file.fileno())
    if size:
        os.ftruncate(fd, size)
    return fd


def page_size(cells: int) -> int:
    return HEADER + cells * _CELL.size


@dataclass(frozen=True, slots=True)
class Cell:
    number: int
    started_at: float
    thread: int


class Page:
    """A mapping of the page; both sides use the same class."""

    def __init__(self, fd: int) -> None:
        """Maps the file; the descriptor may be closed afterwards."""
        size = os.fstat(fd).st_size
        self._map = mmap.mmap(fd, size)
        self.cells = (size - HEADER) // _CELL.size

    def close(self) -> None:
        self._map.close()

    def beat(self, now: float) -> None:
        _DOUBLE.pack_into(self._map, 0, now)

    def beat_loop(self, now: float) -> None:
        _DOUBLE.pack_into(self._map, 8, now)

    def put_on_loop(self, number: int) -> None:
        _NUMBER.pack_into(self._map, 16, number)

    def grant(self, until: float) -> None:
        _DOUBLE.pack_into(self._map, 24, until)

    def fence(self, now: float) -> None:
        _DOUBLE.pack_into(self._map, 32, now)

    def enter(self, place: int, number: int, started_at: float, thread: int) -> None:
        _CELL.pack_into(self._map, HEADER + place * _CELL.size, number, started_at, thread)

    def leave(self, place: int) -> None:
        _THREAD.pack_into(self._map, HEADER + place * _CELL.size + _THREAD_AT, 0)

    @property
    def pulse(self) -> float:
        return float(_DOUBLE.unpack_from(self._map, 0)[0])

    @property
    def loop_pulse(self) -> float:
        return float(_DOUBLE.unpack_from(self._map, 8)[0])

    @property
    def loop_job(self) -> int:
        return int(_NUMBER.unpack_from(self._map, 16)[0])

    @property
    def lease_until(self) -> float:
        return float(_DOUBLE.unpack_from(self._map, 24)[0])

    @property
    def fenced_at(self) -> float:
        return float(_DOUBLE.unpack_from(self._map, 32)[0])

    def cell(self, place: int) -> Cell:
        return Cell(*_CELL.unpack_from(self._map, HEADER + place * _CELL.size))
