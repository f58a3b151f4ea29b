"""The tag of an executor and its attempt in its own environment, as others see it (/proc/PID/environ).

A process that is forked keeps what its parent was started with, whatever `os.environ` says later. So the entry is as
long from the start as it will ever be, and is written over in place.
"""

from __future__ import annotations

import ctypes
import os

from unstuck.executor.process import EXECUTOR_TAG


def tag_value(incarnation: str, executor: int, number: int = 0) -> str:
    """Always as long as another of the same incarnation."""
    return f"{incarnation}/{executor:010}/{number:019}"


class TagPlace:
    """Where the entry's value lies; to be found before the app can set it anew. 0 if there is none."""

    def __init__(self) -> None:
        getenv = ctypes.CDLL(None).getenv
        getenv.restype, getenv.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        address = getenv(EXECUTOR_TAG.encode()) or 0
        self._address = address if _is_within_environment(address) else 0

    def write(self, value: bytes) -> None:
        name = f"{EXECUTOR_TAG}=".encode()
        if not self._address or ctypes.string_at(self._address - len(name), len(name)) != name:
            return  # a library uses it for the process's title
        if len(ctypes.string_at(self._address)) == len(value):
            ctypes.memmove(self._address, value, len(value))


class ProcessTag:
    def __init__(self, place: TagPlace, incarnation: str, executor: int) -> None:
        self._place = place
        self.incarnation = incarnation
        self.executor = executor
        self.write(0)

    def value(self, number: int) -> str:
        return tag_value(self.incarnation, self.executor, number)

    def write(self, number: int) -> None:
        """This process belongs to that attempt."""
        self.lend(number)
        os.environ[EXECUTOR_TAG] = self.value(number)

    def lend(self, number: int) -> None:
        """To what is forked now; what is started as a program has its environment from elsewhere."""
        self._place.write(self.value(number).encode())


def _is_within_environment(address: int) -> bool:
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return int(fields[47]) <= address < int(fields[48])
