"""Handlers that take their whole process down, or bring it to a stop."""

from __future__ import annotations

import ctypes
import os
import signal
import time

from unstuck.examples.stuck.shelf import LONGEST, culprit, until


@culprit(name="stuck.os_exit")
def os_exit(status: int = 3) -> None:
    """Leaves by `os._exit`: no exception, no goodbye."""
    os._exit(status)


@culprit(name="stuck.segfault")
def segfault() -> None:
    """Reads where nothing is, as broken native code does; the crash names its thread."""
    ctypes.string_at(0)


@culprit(name="stuck.kills_itself")
def kills_itself() -> None:
    """KILL to its own process, as the kernel does to one that uses too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(LONGEST)


@culprit(name="stuck.stops_itself")
def stops_itself(seconds: float = LONGEST) -> None:
    """STOP to its own process, from which it cannot wake; a helper continues it in the end."""
    _continue_after(min(seconds, LONGEST))
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.1)


@culprit(name="stuck.daemon_then_dies")
def daemon_then_dies(seconds: float = LONGEST) -> None:
    """Starts a daemon in a session of its own, which keeps every descriptor, and dies."""
    start_daemon(seconds)
    os._exit(3)


@culprit(name="stuck.daemon_then_returns")
def daemon_then_returns(seconds: float = LONGEST) -> int:
    """Starts such a daemon and returns its pid: it is gone with the process, not with the job."""
    return start_daemon(seconds)


@culprit(name="stuck.exits_in_finally")
def exits_in_finally(seconds: float = LONGEST) -> None:
    """Obeys its cancel, and then its clean-up calls `os._exit`."""
    import unstuck

    try:
        unstuck.current().sleep(min(seconds, LONGEST))
    finally:
        os._exit(4)


@culprit(name="stuck.closes_descriptors")
def closes_descriptors(seconds: float = LONGEST) -> None:
    """Closes every descriptor of its process, ours too: it can report nothing any more."""
    os.closerange(3, 4096)
    time.sleep(min(seconds, LONGEST))


def start_daemon(seconds: float) -> int:
    """Double fork, own session, all descriptors kept; its pid."""
    said, says = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        daemon = os.fork()
        if daemon:
            os.write(says, str(daemon).encode())
            os._exit(0)
        _idle(seconds)
    os.close(says)
    pid = int(os.read(said, 32))
    os.close(said)
    os.waitpid(middle, 0)
    return pid


def _continue_after(seconds: float) -> None:
    stopped = os.getpid()
    if os.fork() == 0:
        end = until(seconds)
        while time.monotonic() < end and os.getppid() == stopped:
            time.sleep(0.05)
        os.kill(stopped, signal.SIGCONT)
        os._exit(0)


def _idle(seconds: float) -> None:
    end = until(seconds)
    while time.monotonic() < end:
        time.sleep(0.05)
    os._exit(0)
