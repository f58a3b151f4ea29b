"""The shared page: pulses, which attempt runs where, the lease deadline. Readable while the executor is frozen.

One memory file per executor, fixed layout, in words of the machine:

    offset  type    written by   what
         0  double  executor     pulse: BOOTTIME of the control thread's last round
         8  double  executor     loop pulse: BOOTTIME of the event loop's last round
        16  int64   executor     loop job: the number whose code is on the main thread right now, 0 for none
        24  double  supervisor   lease: BOOTTIME after which nothing may still run, 0 while there is none
        32  double  executor     fenced: BOOTTIME at which it ended itself because the lease was over, 0 if it did not
        40  int64   supervisor   aim: the number that an interrupt is meant for, 0 for none
        48  int64   executor     main thread, as the interpreter names it (a cell with it runs on the main thread)
        56  int64   executor     control thread, as the kernel names it
       128  cells   both         48 bytes each: int64 number, double started_at, int64 thread (as the interpreter
                                 names it), int64 kernel thread; then, by the supervisor: int64 withdrawn number

The fleet deals out a cell with every attempt it feeds. The executor writes it before the handler's first line and
clears only `thread` at its end, so a number found in its cell means "has started" until the fleet deals the cell
out again: an attempt that crashed, or ended without being able to say so, never looks as if it had not begun.

An attempt can be taken back without the executor's help. The supervisor writes `withdrawn` and, a while later, looks
whether the number is in the cell; the executor writes the number and then looks at `withdrawn` before the handler's
first line. Whichever was first, one of the two sees the other: either it has begun, or it never will.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile

from unstuck.records import dataclass

HEADER = 128
_CELL_SIZE = 48
#: In words of eight bytes, as everything here is counted: a word is written and read as a whole, never by halves.
_FIRST_CELL, _CELL_WORDS = HEADER // 8, _CELL_SIZE // 8
_PULSE, _LOOP_PULSE, _LOOP_JOB, _LEASE, _FENCED, _AIM, _MAIN, _CONTROL = range(8)
_ADD_SEALS, _SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1033, 1, 2, 4
_NUMBER, _STARTED, _THREAD, _KERNEL_THREAD, _WITHDRAWN = range(5)


def memory_file(name: str, size: int = 0) -> int:
    """A file without a name on disk; where there is no memfd, an unlinked temporary one. A file with a size keeps
    it: a process that had mapped a page which a handler then shrinks would be ended by SIGBUS."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        with tempfile.TemporaryFile(prefix=name) as file:
            fd = os.dup(file.fileno())
    if size:
        os.ftruncate(fd, size)
        if hasattr(os, "memfd_create"):
            fcntl.fcntl(fd, _ADD_SEALS, _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW)
    return fd


def page_size(cells: int) -> int:
    return HEADER + cells * _CELL_SIZE


@dataclass(frozen=True, slots=True)
class Cell:
    number: int
    started_at: float
    thread: int
    kernel_thread: int = 0


class SharedPage:
    """A mapping of the page; both sides use the same class."""

    def __init__(self, fd: int) -> None:
        """Maps the file; the descriptor may be closed afterwards."""
        size = os.fstat(fd).st_size
        #: What this side wrote as loop job last: cheaper than reading it back.
        self.named = 0
        self._map: mmap.mmap | bytearray = mmap.mmap(fd, size)
        self._view()

    def _view(self) -> None:
        """Two ways to look at the same words: as instants and as numbers."""
        self._instants = memoryview(self._map).cast("d")
        self._numbers = memoryview(self._map).cast("q")

    def close(self) -> None:
        self._instants.release()
        self._numbers.release()
        if isinstance(self._map, mmap.mmap):
            self._map.close()

    def detach(self) -> None:
        """In what a handler forks: it sees the page as it was, and writes into it no more."""
        self._map = bytearray(self._map)
        self._view()

    def beat(self, now: float) -> None:
        self._instants[_PULSE] = now

    def beat_loop(self, now: float) -> None:
        self._instants[_LOOP_PULSE] = now

    def put_on_loop(self, number: int) -> None:
        self.named = number
        self._numbers[_LOOP_JOB] = number

    def grant(self, until: float) -> None:
        self._instants[_LEASE] = until

    def fence(self, now: float) -> None:
        self._instants[_FENCED] = now

    def aim(self, number: int) -> None:
        self._numbers[_AIM] = number

    def introduce(self, main: int, control: int) -> None:
        self._numbers[_MAIN] = main
        self._numbers[_CONTROL] = control

    def enter(self, place: int, number: int, started_at: float, thread: int, kernel_thread: int = 0) -> None:
        """The number last: a reader that finds it finds the rest too."""
        at = _FIRST_CELL + place * _CELL_WORDS
        self._instants[at + _STARTED] = started_at
        self._numbers[at + _THREAD] = thread
        self._numbers[at + _KERNEL_THREAD] = kernel_thread
        self._numbers[at + _NUMBER] = number

    def withdraw(self, place: int, number: int) -> None:
        self._numbers[_FIRST_CELL + place * _CELL_WORDS + _WITHDRAWN] = number

    def is_withdrawn(self, place: int, number: int) -> bool:
        return self._numbers[_FIRST_CELL + place * _CELL_WORDS + _WITHDRAWN] == number

    def leave(self, place: int) -> None:
        self._numbers[_FIRST_CELL + place * _CELL_WORDS + _THREAD] = 0

    @property
    def pulse(self) -> float:
        return self._instants[_PULSE]

    @property
    def loop_pulse(self) -> float:
        return self._instants[_LOOP_PULSE]

    @property
    def loop_job(self) -> int:
        return self._numbers[_LOOP_JOB]

    @property
    def lease_until(self) -> float:
        return self._instants[_LEASE]

    @property
    def fenced_at(self) -> float:
        return self._instants[_FENCED]

    @property
    def aimed_at(self) -> int:
        return self._numbers[_AIM]

    @property
    def main_thread(self) -> int:
        return self._numbers[_MAIN]

    @property
    def control_thread(self) -> int:
        return self._numbers[_CONTROL]

    def holds(self, place: int, number: int) -> bool:
        """Whether that attempt has entered its cell."""
        return self._numbers[_FIRST_CELL + place * _CELL_WORDS] == number

    def is_on(self, place: int, number: int, thread: int) -> bool:
        """Whether that attempt is in its cell, and on that thread."""
        at = _FIRST_CELL + place * _CELL_WORDS
        return self._numbers[at + _NUMBER] == number and self._numbers[at + _THREAD] == thread

    def kernel_thread(self, place: int) -> int:
        """Of every attempt that ends: without making a Cell for it."""
        return self._numbers[_FIRST_CELL + place * _CELL_WORDS + _KERNEL_THREAD]

    def cell(self, place: int) -> Cell:
        at = _FIRST_CELL + place * _CELL_WORDS
        numbers = self._numbers
        return Cell(
            numbers[at + _NUMBER], self._instants[at + _STARTED], numbers[at + _THREAD], numbers[at + _KERNEL_THREAD]
        )
