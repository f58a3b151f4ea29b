"""The soft interrupt: an exception raised in the handler that is on the main thread, wherever it hangs.

The supervisor writes whom it means into the page and sends a signal; sleeps, reads, lock waits and even a regex give
way to it, without the help of any other thread. The interpreter runs our answer on the main thread, so between its
look at the page and its raise nothing there can change: it hits the one that was meant, or nobody.

Spared is code that others depend on, if it is the innermost on the stack: an exception between taking a lock and
guarding it would leave the lock taken, for everybody. That is asyncio and logging; the half of the import system that
holds the locks of modules; threading and queue, except where they wait, for a wait must stay breakable; contextlib,
which enters and leaves on behalf of others; weakref, whose sets are guarded by hand. What they call in turn is not
spared, as the code of a module that is being imported: they clean up after it as after Ctrl-C. Our own code is spared
with all it calls, except where it calls the handler: this answer itself is code that runs in the middle of anything.

A signal that finds spared code, and an exception that the interpreter swallows (in a finalizer), are owed: a thread
that sleeps otherwise signals again and again, until one strikes, for a second at most. The supervisor's next signal
begins a new second.
"""

from __future__ import annotations

import _weakrefset
import asyncio
import contextlib
import faulthandler
import logging
import os
import queue
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt, enter_handler, enter_handler_async
from unstuck.executor.marks import MarkedSteps
from unstuck.executor.messages import INTERRUPT_SIGNAL, STACK_SIGNAL
from unstuck.executor.page import Page
from unstuck.executor.stepping import enter_step, enter_step_async
from unstuck.model.errors import Cancelled

INTERRUPTED = "interrupted: it held the main thread of its process"
#: How often and how long a signal that is owed is repeated; a signal so long after that is the supervisor's again.
REPEAT_EVERY = 0.00005
REPEAT_FOR = 1.0
REST = 0.05
_OURS, _ASYNCIO, _LOGGING = (
    os.path.dirname(path) + os.sep for path in (__file__, asyncio.__file__, logging.__file__)
)
_SPARED_FILES = frozenset(module.__file__ for module in (threading, queue, contextlib, weakref, _weakrefset))
#: Its other half, `_bootstrap_external`, finds and reads files and holds no lock, and most of an import is there.
_IMPORT_LOCKS = "<frozen importlib._bootstrap>"
_WAITS = frozenset(("wait", "wait_for", "join", "_wait_for_tstate_lock"))
#: The frames of ours whose callee is the handler's.
_DOORS = frozenset(door.__code__ for door in (enter_handler, enter_handler_async, enter_step, enter_step_async))
_DOORS |= frozenset(door.__code__ for door in (MarkedSteps.send, MarkedSteps.throw, MarkedSteps.close))


class Interrupter:
    """Hears the two signals of the supervisor. Made and mended on the main thread."""

    def __init__(self, page: Page, attempts: Mapping[int, Attempt], stack: int) -> None:
        self._pid = os.getpid()
        self._page = page
        self._attempts = attempts
        self._stack = stack
        self._main_thread = threading.get_ident()
        #: Whose second runs, until when, and whether a strike is owed. Written by the main thread alone.
        self._number = 0
        self._until = 0.0
        self._is_owed = False
        #: A signal may find us at the answer to the one before it, which decides for both.
        self._is_answering = False
        self._orders: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()
        #: Weak: its traceback holds all that the handler held.
        self._raised: Callable[[], Cancelled | None] = _nothing
        self._unraisable: Callable[[Any], Any] = sys.unraisablehook
        self.mend()

    def start(self) -> None:
        """By a thread that blocks our signals: the one that repeats them inherits that."""
        # Once, and after the app was imported: a hook that calls the one before it must not meet itself.
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._hear_unraisable
        threading.Thread(target=self._repeat, name="unstuck-interrupt", daemon=True).start()

    def mend(self) -> None:
        """A handler may have taken our signals for itself, or blocked them; those after it are to have them again."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (INTERRUPT_SIGNAL, STACK_SIGNAL))
        if signal.getsignal(INTERRUPT_SIGNAL) != self._interrupt:
            signal.signal(INTERRUPT_SIGNAL, self._interrupt)
        # What the module `signal` believes; faulthandler sets its own handler past it. And what comes back if
        # somebody unregisters that: the default action would end the process.
        if signal.getsignal(STACK_SIGNAL) is not signal.SIG_IGN:
            faulthandler.unregister(STACK_SIGNAL)
            signal.signal(STACK_SIGNAL, signal.SIG_IGN)
        # Without the descriptor, which a handler may have closed, this process has no stacks any more.
        with contextlib.suppress(OSError, ValueError):
            faulthandler.register(STACK_SIGNAL, file=self._stack, all_threads=True, chain=False)
            if not faulthandler.is_enabled():
                faulthandler.enable(file=self._stack, all_threads=True)

    def _interrupt(self, signum: int, frame: FrameType | None) -> None:
        # The page is shared with what handlers fork, too: only the executor itself answers.
        if self._is_answering or os.getpid() != self._pid:
            return
        self._is_answering = True
        try:
            self._answer(frame)
        finally:
            self._is_answering = False

    def _answer(self, frame: FrameType | None) -> None:
        number = self._page.aimed_at
        if not self._is_on_main(number):
            return
        if _is_spared(frame):
            self._owe(number)
            return
        attempt = self._attempts[number]
        attempt.is_interrupted = True
        self._is_owed = False
        error = Cancelled(attempt.asked_because or INTERRUPTED)
        self._raised = weakref.ref(error)
        try:
            raise error
        finally:
            # Or it would be part of a circle: error, traceback, this frame, error.
            del error

    def _is_on_main(self, number: int) -> bool:
        """It is meant, its code is on the main thread, and its handler is being called."""
        if not number or number != self._page.aimed_at or number != self._page.loop_job:
            return False
        attempt = self._attempts.get(number)
        return attempt is not None and attempt.is_inside

    def _hear_unraisable(self, trouble: Any) -> None:
        """A finalizer was struck, where no exception gets any further: nothing was interrupted by it."""
        if trouble.exc_value is None or trouble.exc_value is not self._raised():
            self._unraisable(trouble)
        elif self._is_on_main(number := self._page.aimed_at):
            self._owe(number)

    def _owe(self, number: int) -> None:
        now = boot()
        if number != self._number or now >= self._until + REST:
            self._number, self._until, self._is_owed = number, now + REPEAT_FOR, False
        if now < self._until and not self._is_owed:
            self._is_owed = True
            # The one kind of queue that may be used in the middle of anything.
            self._orders.put((number, self._until))

    # the thread that repeats

    def _repeat(self) -> None:
        pause = threading.Event()
        while True:
            number, until = self._orders.get()
            usual = sys.getswitchinterval()
            # Or every single repetition would wait 5 ms for the interpreter, whose holder is the one that is meant.
            sys.setswitchinterval(REPEAT_EVERY)
            while self._is_wanted(number) and boot() < until:
                # Unheard, the signal would end the process: a handler may have taken it.
                if self._is_on_main(number) and signal.getsignal(INTERRUPT_SIGNAL) == self._interrupt:
                    signal.pthread_kill(self._main_thread, INTERRUPT_SIGNAL)
                pause.wait(REPEAT_EVERY)
            sys.setswitchinterval(usual)

    def _is_wanted(self, number: int) -> bool:
        """Also between two of its steps, when nobody is signalled: its next one may be as deaf."""
        is_owed = self._is_owed and number == self._number
        return is_owed and number == self._page.aimed_at and number in self._attempts


def _nothing() -> None:
    return None


def _is_spared(frame: FrameType | None) -> bool:
    if frame is None:
        return True
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    if file in _SPARED_FILES:
        is_spared = name not in _WAITS
    else:
        is_spared = file == _IMPORT_LOCKS or file.startswith((_OURS, _ASYNCIO, _LOGGING))
    return is_spared or _is_called_by_us(frame)


def _is_called_by_us(frame: FrameType | None) -> bool:
    """Whether we called it, and not for the handler. At the root of every stack we call the loop."""
    while frame is not None and not frame.f_code.co_filename.startswith((_OURS, _ASYNCIO)):
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(_OURS) and frame.f_code not in _DOORS
