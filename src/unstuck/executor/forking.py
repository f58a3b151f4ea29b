"""May this process fork? Only if no other thread could hold a lock that the child would wait for, for ever.

A thread is harmless if it is not Python's and belongs to an idle OpenBLAS pool: that library takes its pool down
before a fork and builds it up again on the next call. So an app that imports numpy still forks.
"""

from __future__ import annotations

import ctypes
import os
import select
import sys
from collections.abc import Iterable

_THREADS_OF = (
    "openblas_get_num_threads",
    "openblas_get_num_threads64_",
    "scipy_openblas_get_num_threads",
    "scipy_openblas_get_num_threads64_",
)
#: Long enough for a busy thread to show work.
_LOOK_FOR = 0.02
#: OpenBLAS's threads spin for a while after a calculation before they sleep.
_LOOKS = 50


def danger() -> str | None:
    """Why forking here is not safe; None if it is."""
    if sys.platform != "linux":
        return f"forking is not safe on {sys.platform}"
    python_threads = len(sys._current_frames())
    if python_threads > 1:
        return f"the app's import left {python_threads - 1} Python threads running"
    others = _other_threads()
    if not others:
        return None
    pool = sum(map(_pool_of, _openblas_files()))
    if len(others) > pool:
        return f"the app's import left {len(others)} native threads running, {pool} of them OpenBLAS's"
    return None if _come_to_rest(others) else "the app's import left a native thread that is busy"


def _come_to_rest(threads: list[int]) -> bool:
    before = _work_of(threads)
    for _ in range(_LOOKS):
        select.select([], [], [], _LOOK_FOR)
        if (after := _work_of(threads)) == before:
            return True
        before = after
    return False


def _other_threads() -> list[int]:
    return [int(tid) for tid in os.listdir("/proc/self/task") if int(tid) != os.getpid()]


def _work_of(threads: Iterable[int]) -> list[list[str]]:
    """State and context switches: equal twice means asleep in between."""
    telling = ("State", "voluntary", "nonvoluntary")
    statuses = ((_read(f"/proc/self/task/{tid}/status") or "").splitlines() for tid in threads)
    return [[line for line in status if line.startswith(telling)] for status in statuses]


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def _openblas_files() -> set[str]:
    maps = _read("/proc/self/maps") or ""
    paths = (line.split(maxsplit=5)[5] for line in maps.splitlines() if len(line.split(maxsplit=5)) == 6)
    return {path for path in paths if "openblas" in os.path.basename(path).lower()}


def _pool_of(library: str) -> int:
    """How many threads this OpenBLAS keeps beside its caller."""
    try:
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return 0
    for name in _THREADS_OF:
        if (ask := getattr(loaded, name, None)) is not None:
            return max(0, int(ask()) - 1)
    return 0
