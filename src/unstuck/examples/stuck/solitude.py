"""Culprits with `isolation="process"`: alone in their own process, which is killed, not drained."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import FrameType

from unstuck.examples.stuck.shelf import LONGEST, culprit, until


@culprit(name="stuck.alone_sleep", isolation="process")
def alone_sleep(seconds: float = LONGEST) -> None:
    """A plain sleep; here an interrupt ends it at half its grace."""
    time.sleep(min(seconds, LONGEST))


@culprit(name="stuck.alone_swallows_interrupt", isolation="process")
def alone_swallows_interrupt(note: str = "", seconds: float = LONGEST) -> str:
    """Catches everything; TERM reaches its own handler, which writes a note, and KILL ends it."""

    def told_to_end(signum: int, frame: FrameType | None) -> None:
        if note:
            Path(note).write_text(f"{os.getpid()} was told to end\n")

    signal.signal(signal.SIGTERM, told_to_end)
    end = until(seconds)
    while time.monotonic() < end:
        try:
            time.sleep(0.05)
        except BaseException:
            continue
    return "could not be stopped"
