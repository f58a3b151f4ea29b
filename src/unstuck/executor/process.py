"""What our processes ask of the kernel: to die with the parent, to adopt orphans, clean signals and streams."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from types import FrameType

EXECUTOR_TAG = "UNSTUCK_EXECUTOR"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def die_with_parent(parent: int, signum: int = signal.SIGKILL) -> None:
    """Have the kernel send this signal when the parent ends, and end now if it already has."""
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Descendants whose parents end become our children, whatever session they moved to."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def reset_signals() -> None:
    """Forget what the importing process (or the app's import) had set."""
    signal.set_wakeup_fd(-1)
    for signum in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN if signum == signal.SIGPIPE else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _leave_stopping_to_the_supervisor()


def _leave_stopping_to_the_supervisor() -> None:
    """A service manager sends TERM (or INT, or HUP) to everybody; jobs go on until the supervisor says otherwise.

    A handler and not SIG_IGN, so that programs started by jobs can still be terminated; processes that jobs fork
    (multiprocessing) inherit the handler and get the default action from it.
    """
    executor = os.getpid()

    def ignore(signum: int, frame: FrameType | None) -> None:
        if os.getpid() != executor:
            signal.signal(signum, signal.SIG_DFL)
            os.kill(os.getpid(), signum)

    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, ignore)


def join_streams(output: int) -> None:
    """Standard input from nowhere, standard output and error into the supervisor's pipe."""
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    for fd in {nowhere, output} - {0, 1, 2}:
        os.close(fd)


def lead_session() -> None:
    with contextlib.suppress(PermissionError):
        os.setsid()
