"""What a benchmark job does, and how the driver sees it. Standard library only: every contender imports this.

The file `hits` in the run directory is shared memory with one counter per process, bumped by every no-op job.
One bump costs about 1.6 µs, and every contender pays it. The file `stamps` has eight bytes per stamped job: how
many nanoseconds passed between its submission and its first line.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from pathlib import Path

COUNTERS = 8192
_counters: memoryview | None = None
_bump = threading.Lock()


def run_directory() -> Path:
    return Path(os.environ["BENCH_RUN"])


def reset() -> None:
    global _counters
    _counters = None
    (run_directory() / "hits").write_bytes(bytes(8 * COUNTERS))
    forget_stamps()


def counters() -> memoryview:
    global _counters
    if _counters is None:
        with open(run_directory() / "hits", "r+b") as file:
            _counters = memoryview(mmap.mmap(file.fileno(), 8 * COUNTERS)).cast("Q")
    return _counters


def hit() -> None:
    """The body of a no-op job."""
    seen = counters()
    with _bump:
        seen[os.getpid() % COUNTERS] += 1


def hits() -> int:
    return sum(counters())


def now() -> int:
    """One clock for all processes."""
    return time.monotonic_ns()


def stamp(submitted_at: int) -> None:
    """The body of a stamped job."""
    line = struct.pack("<q", now() - submitted_at)
    with open(run_directory() / "stamps", "ab", buffering=0) as file:
        file.write(line)
    hit()


def forget_stamps() -> None:
    (run_directory() / "stamps").write_bytes(b"")


def stamps() -> list[float]:
    """Milliseconds, the shortest first."""
    return sorted(ns / 1e6 for (ns,) in struct.iter_unpack("<q", (run_directory() / "stamps").read_bytes()))
