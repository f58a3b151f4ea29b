"""Signals that the supervisor sends to an executor: they need no help of its threads."""

from __future__ import annotations

import contextlib
import os
import signal

from unstuck.executor.descendants import processes
from unstuck.worker.member import Member
from unstuck.worker.threads import catches

_PAST = (ProcessLookupError, PermissionError)


def kill(member: Member) -> None:
    """KILL works on stopped and frozen processes too; the zygote sweeps what is left when it reaps."""
    if not member.pid:
        return
    with contextlib.suppress(*_PAST):
        _deliver(member, signal.SIGKILL)
        # Before it is reaped its number cannot name another group.
        os.killpg(member.pid, signal.SIGKILL)


def send(member: Member, signum: int) -> None:
    """One of our own signals, unless it would kill: a handler may have taken away what hears it."""
    if _is_listening(member) and catches(member.pid, signum):
        with contextlib.suppress(*_PAST):
            _deliver(member, signum)


def resume(member: Member) -> None:
    if member.pid:
        with contextlib.suppress(*_PAST):
            _deliver(member, signal.SIGCONT)


def terminate(member: Member) -> None:
    """TERM to it and to all of its session."""
    if not _is_listening(member):
        return
    for found in processes():
        if found.session == member.pid:
            with contextlib.suppress(*_PAST):
                os.kill(found.pid, signal.SIGTERM)


def _is_listening(member: Member) -> bool:
    """It has set up its signals: before that, one of ours would kill it."""
    return bool(member.pid and member.page.pulse)


def _deliver(member: Member, signum: int) -> None:
    """By pidfd where there is one: its number may soon name another process."""
    if member.pidfd >= 0:
        signal.pidfd_send_signal(member.pidfd, signum)
    else:
        os.kill(member.pid, signum)
