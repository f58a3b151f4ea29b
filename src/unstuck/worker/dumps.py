"""The file that an executor's stacks are written to, and what it tells itself: where attempts were, how it crashed.

The executor tells it if it can (Shown). By force, a signal, only while a job in it holds the interpreter: as long
as threads run Python, walking their frames from a signal handler may crash the process, with everybody in it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

from unstuck.model.payload import clean_text
from unstuck.records import dataclass
from unstuck.worker import stacks

_MAX_REPORT = 64 << 10
_MAX_FILE = 1 << 20
#: What the interpreter writes a report about before it dies of it.
_CRASHES = {getattr(signal, f"SIG{name}", None) for name in ("SEGV", "ABRT", "BUS", "FPE", "ILL")}


@dataclass(slots=True)
class StackDump:
    """Of one attempt: where in the file to read on, which job was on the main thread then, what was shown since."""

    begin: int
    on_loop: int
    shown: str | None = None
    is_forced: bool = False


class Dumps:
    def __init__(self, file: int) -> None:
        self._file = file
        self._asked: dict[int, StackDump] = {}

    def ask(self, numbers: Iterable[int], on_loop: int) -> None:
        """What was written before is not theirs; nothing is cut off that a late signal may still write to."""
        size = os.fstat(self._file).st_size
        if size > _MAX_FILE:
            os.ftruncate(self._file, 0)
            # The executor's descriptor is a copy of ours: it writes where our common offset stands.
            size = os.lseek(self._file, 0, os.SEEK_SET)
        self._asked.update({number: StackDump(size, on_loop) for number in numbers})

    def show(self, number: int, text: str) -> None:
        """Not kept if it was not asked for, or if its attempt has just ended."""
        if (dump := self._asked.get(number)) is not None:
            dump.shown = clean_text(text, stacks.MAX_STACK)

    def force(self) -> bool:
        """Whether there is a reason to: a stack was not told, and not forced before."""
        untold = [dump for dump in self._asked.values() if dump.shown is None and not dump.is_forced]
        for dump in untold:
            dump.is_forced = True
        return bool(untold)

    def forget(self, number: int) -> None:
        self._asked.pop(number, None)

    def stack(self, number: int, thread: int, *, is_main: bool, on_loop: int) -> str | None:
        """By its thread; of a coroutine that was not on it only by what its process could tell."""
        dump = self._asked.get(number)
        if dump is None:
            return None
        if not dump.is_forced or (is_main and number not in (dump.on_loop, on_loop)):
            return dump.shown
        text = os.pread(self._file, _MAX_FILE, dump.begin).decode("utf-8", "replace")
        return stacks.stack_of(thread, text, "On the main thread" if is_main else "In its thread") or dump.shown

    def crash_report(self, status: int | None) -> str | None:
        """If it died of a crash: what else may be written there has nothing to do with its end."""
        if status is None or not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in _CRASHES:
            return None
        begin = max(0, os.fstat(self._file).st_size - 2 * _MAX_FILE)
        report = stacks.crash_report(os.pread(self._file, 2 * _MAX_FILE, begin).decode("utf-8", "replace"))
        return clean_text(report, _MAX_REPORT) if report else None

    def close(self) -> None:
        os.close(self._file)
