"""What all handlers of a process share and any may bend: streams, folder, collector, recursion limit, turns, alarms.

It is put back while no handler runs, so that a job is not hurt by what an earlier one changed. While handlers run we
cannot tell whose change it is, and its job may need it. Only two changes are put back then: a closed stream, and
turns so long that a job which computes looks as if it kept the interpreter for itself.
"""

from __future__ import annotations

import contextlib
import gc
import io
import os
import signal
import sys

from unstuck.executor.messages import INTERRUPT_SIGNAL, STACK_SIGNAL

_TIMERS = {
    signal.SIGALRM: signal.ITIMER_REAL,
    signal.SIGVTALRM: signal.ITIMER_VIRTUAL,
    signal.SIGPROF: signal.ITIMER_PROF,
}
#: Seconds; a pulse must get through between two turns.
LONGEST_TURN = 0.1


class SharedState:
    """As they are now; `restore` brings them back. It runs no user code."""

    def __init__(self) -> None:
        self._streams = sys.stdout, sys.stderr
        self._is_collecting = gc.isenabled()
        self._depth = sys.getrecursionlimit()
        self._turn = sys.getswitchinterval()
        self._folder = _folder()
        self._timers = [timer for timer in _TIMERS.values() if not signal.getitimer(timer)[0]]
        #: Of the other two the interrupter takes care.
        signals = signal.valid_signals() - {INTERRUPT_SIGNAL, STACK_SIGNAL}
        found = {signum: signal.getsignal(signum) for signum in signals}
        # None: it was not set by Python, and is not to be set by us.
        self._answers = {signum: answer for signum, answer in found.items() if answer is not None}

    def reopen(self) -> None:
        if _is_closed(sys.stdout):
            sys.stdout = self._streams[0]
        if _is_closed(sys.stderr):
            sys.stderr = self._streams[1]
        if sys.getswitchinterval() > max(self._turn, LONGEST_TURN):
            sys.setswitchinterval(self._turn)

    def disarm(self) -> None:
        """The alarm of a job that has ended would interrupt another job."""
        for timer in self._timers:
            if signal.getitimer(timer)[0]:
                signal.setitimer(timer, 0.0)

    def restore_signals(self) -> None:
        """On the main thread, while no handler is on it: nobody else can have set these. The alarm goes first, or it
        would find the default answer, which is to end the process."""
        for signum, answer in self._answers.items():
            if signal.getsignal(signum) is not answer:
                if (timer := _TIMERS.get(signum)) in self._timers:
                    signal.setitimer(timer, 0.0)
                signal.signal(signum, answer)

    def restore(self) -> None:
        self.disarm()
        sys.stdout, sys.stderr = self._streams
        if self._is_collecting != gc.isenabled():
            (gc.enable if self._is_collecting else gc.disable)()
        if sys.getrecursionlimit() != self._depth:
            sys.setrecursionlimit(self._depth)
        if sys.getswitchinterval() > self._turn:  # the interrupter shortens it for a while
            sys.setswitchinterval(self._turn)
        if self._folder and self._folder != _folder():
            # Our folder may be gone itself.
            with contextlib.suppress(OSError):
                os.chdir(self._folder)


def _is_closed(stream: object) -> bool:
    return type(stream) in (io.TextIOWrapper, io.StringIO) and stream.closed  # type: ignore[attr-defined]


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
