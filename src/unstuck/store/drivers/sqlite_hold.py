"""That this process uses a SQLite file, in a way that its neighbours in the process cannot undo.

Whoever closes the last connection folds the log in, without any lock, and takes it away; whoever opens the first
clears the log's index. They believe to be the last or the first if nobody holds a shared lock; and POSIX drops those
of a process as soon as any thread of it closes any descriptor of the same file: a backup that copies it, a library
that looks at its first bytes. What the process wrote from then on could be overwritten, or be in a log that nobody
read. So each store holds both locks a second time, by descriptors of its own: such a lock (of an open file
description) goes with that alone. Linux has them; elsewhere a log that was taken away is noticed at the next
transaction.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import threading

from unstuck.clock import boot
from unstuck.store.drivers.sqlite_session import FileId, descriptors_of, file_at, pause

#: Where SQLite locks a file that it uses, and the index of its log; and how much of it.
_PLACES = (("", 0x40000002, 510), ("-shm", 128, 1))

#: Descriptors that are not needed and cannot be closed: that would drop the locks of a stranger's connection.
_spare: dict[FileId, list[int]] = {}
_spares = threading.Lock()


class Hold:
    """Taken with the first connection, let go before the last is closed: then others may fold its log in."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._held = [_Held(f"{path}{end}", start, length) for end, start, length in _PLACES]

    def take(self, deadline: float) -> None:
        with self._lock:
            for held in self._held:
                held.take(deadline)

    def let_go(self) -> None:
        with self._lock:
            for held in self._held:
                held.let_go()

    def close(self) -> None:
        """Once our connections are closed: with the descriptors the locks of all others in this process would go."""
        with self._lock:
            for held in self._held:
                held.close()


class _Held:
    """One of the files, and the part of it that is locked."""

    def __init__(self, path: str, start: int, length: int) -> None:
        self._path = path
        self._range = (start, length)
        self._descriptor: int | None = None
        self._file: FileId | None = None
        self._is_locked = False

    def take(self, deadline: float) -> None:
        file = file_at(self._path)
        if not hasattr(fcntl, "F_OFD_SETLK") or file is None or (file == self._file and self._is_locked):
            return
        self.close()
        self._descriptor, self._file, self._is_locked = _opened(self._path, file), file, True
        while not _locked(self._descriptor, fcntl.F_RDLCK, *self._range) and boot() < deadline:
            pause(0.002)  # somebody is just closing what he believes to be the last connection

    def let_go(self) -> None:
        if self._descriptor is not None and self._is_locked:
            _locked(self._descriptor, fcntl.F_UNLCK, *self._range)
        self._is_locked = False

    def close(self) -> None:
        self.let_go()
        descriptor, file = self._descriptor, self._file
        self._descriptor = self._file = None
        if descriptor is None or file is None:
            return
        with _spares:
            _spare.setdefault(file, []).append(descriptor)
            _close_needless()


def _close_needless() -> None:
    """Of files that nobody else in this process has open any more."""
    for file, spare in list(_spare.items()):
        if not set(descriptors_of(file)).difference(spare):
            del _spare[file]
            for descriptor in spare:
                os.close(descriptor)


def _opened(path: str, file: FileId) -> int:
    with _spares:
        if spare := _spare.get(file):
            return spare.pop()
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _after_fork_in_child() -> None:
    """Another thread of the parent may have had it."""
    global _spares
    _spares = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _locked(descriptor: int, kind: int, start: int, length: int) -> bool:
    """False while somebody has it for himself. A filesystem that knows no such locks has none to wait for."""
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, start, length, 0))
    except OSError as error:
        return error.errno not in (errno.EAGAIN, errno.EACCES)
    return True
