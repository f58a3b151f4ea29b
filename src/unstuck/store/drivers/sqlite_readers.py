"""The connections of a SQLite file that only read: opened when they are needed, kept for the next reader."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from unstuck.clock import boot
from unstuck.store.drivers.sqlite_session import (
    FileConnection,
    FileId,
    LogLost,
    file_at,
    index_at,
    is_spoiling,
    pause,
)


class ReadersClosed(Exception):
    """These readers were closed, for good or for a fork; nothing was read."""


class Readers:
    """Connections for reading, one per read under way; the last used is used again first."""

    def __init__(self, open_connection: Callable[[float], FileConnection], path: Path) -> None:
        self._open = open_connection
        self._path = str(path)
        self._free: list[tuple[FileConnection, FileId | None]] = []
        self._lock = threading.Lock()
        self.in_use = 0
        self.is_open = True

    @contextmanager
    def borrow(self, deadline: float) -> Iterator[sqlite3.Connection]:
        connection, file = self._take(deadline)
        is_spoilt = False
        try:
            yield connection
        except sqlite3.Error as error:
            is_spoilt = is_spoiling(error)
            raise
        finally:
            self._give_back(connection, file, is_spoilt)

    def close(self, within: float) -> bool:
        """False if a read is still under way after this time."""
        until = boot() + within
        with self._lock:
            self.is_open = False
        while True:
            with self._lock:
                for connection, _ in self._free:
                    connection.close()
                self._free.clear()
                if not self.in_use:
                    return True
            if boot() >= until:
                return False
            pause(0.005)

    def _take(self, deadline: float) -> tuple[FileConnection, FileId | None]:
        file, index = file_at(self._path), index_at(self._path)
        with self._lock:
            if not self.is_open:
                raise ReadersClosed
            while self._free:
                connection, opened = self._free.pop()
                if opened == file:
                    if connection.index != index:
                        self._free.append((connection, opened))
                        raise LogLost(self._path)
                    self.in_use += 1
                    return connection, opened
                connection.close()
            self.in_use += 1
        try:
            return self._new(deadline)
        except BaseException:
            with self._lock:
                self.in_use -= 1
            raise

    def _new(self, deadline: float) -> tuple[FileConnection, FileId | None]:
        file = file_at(self._path)
        connection = self._open(deadline)
        connection.execute("PRAGMA query_only = ON")
        return connection, file or file_at(self._path)

    def _give_back(self, connection: FileConnection, file: FileId | None, is_spoilt: bool) -> None:
        with self._lock:
            self.in_use -= 1
            if self.is_open and not is_spoilt and not connection.in_transaction:
                self._free.append((connection, file))
            else:
                connection.close()
