"""Calls into C that keep the interpreter's lock: not one line of Python runs in their process meanwhile."""

from __future__ import annotations

import ctypes
import re

from unstuck.examples.stuck.shelf import LONGEST, culprit

#: Each further letter doubles the time: 28 are about half a minute.
LETTERS = 28


@culprit(name="stuck.regex_in_thread")
def regex_in_thread(letters: int = LETTERS) -> bool:
    """A pattern that tries every way to split a word, in a thread; the others in its process stand still."""
    return _catastrophe(letters)


@culprit(name="stuck.regex_in_coroutine")
async def regex_in_coroutine(letters: int = LETTERS) -> bool:
    """The same on the main thread, where an interrupt ends it: the regex engine listens to signals there."""
    return _catastrophe(letters)


@culprit(name="stuck.holds_gil")
def holds_gil(seconds: float = LONGEST) -> None:
    """An extension that waits without letting go of the interpreter, and listens to no signal."""
    hold_interpreter(seconds)


def hold_interpreter(seconds: float) -> None:
    python = ctypes.PyDLL(None)
    python.PyThread_allocate_lock.restype = ctypes.c_void_p
    lock = ctypes.c_void_p(python.PyThread_allocate_lock())
    python.PyThread_acquire_lock(lock, 1)
    python.PyThread_acquire_lock_timed(lock, ctypes.c_longlong(int(min(seconds, LONGEST) * 1e6)), 0)
    python.PyThread_release_lock(lock)
    python.PyThread_free_lock(lock)


def _catastrophe(letters: int) -> bool:
    return re.match(r"(a+)+$", "a" * min(letters, LETTERS) + "b") is not None
