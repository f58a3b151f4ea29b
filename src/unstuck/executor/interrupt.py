"""The soft interrupt: an exception raised in the handler that is on the main thread, wherever it hangs.

The supervisor writes the number of an attempt into the page and sends a signal; sleeps, reads, lock waits and even a
regex give way to it, without the help of any other thread. The interpreter runs our answer on the main thread, so
between its look at the page and its raise nothing there can change: it interrupts that attempt, or nothing.

Spared is code that others depend on, if it is the innermost on the stack: an exception between taking a lock and
guarding it would leave the lock taken, for everybody. That is asyncio and logging; the half of the import system that
holds the locks of modules; threading, queue and selectors, except where they wait, for a wait must stay breakable;
contextlib, which enters and leaves on behalf of others; weakref, whose sets are guarded by hand. What they call in
turn is not spared, as the code of a module that is being imported: they clean up after it as after Ctrl-C. A
profiler's or debugger's function is spared with all it calls. So is our own code, except where it calls the handler:
this answer itself is code that runs in the middle of anything. And so is our store, for as long as the deadline of
its call allows.

Spared code may wait as well, for a lock that another holds or for room in a pipe. A handler that every answer finds
at the same instruction of the same call for a quarter of a second waits there, and is interrupted; not in our own
code and our store, nor in what they call (as a `__str__` that hangs in `ctx.log`), nor in a frame that a debugger
looks at: they have the verdict ahead. What it waited for may come at that very instant; then a lock stays taken, as
after Ctrl-C.

An interrupted import may have left a module half made, and some cannot be loaded a second time: the process is to be
replaced, and that is said before the attempt can end.

A signal that finds spared code, and an exception that the interpreter swallows (in a finalizer), are owed: a thread
that sleeps otherwise signals again and again, until one interrupts the handler, for two seconds at most. The next
signal of the supervisor begins anew.
"""

from __future__ import annotations

import _weakrefset
import asyncio
import contextlib
import faulthandler
import logging
import os
import queue
import selectors
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType, MethodType
from typing import Any

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt
from unstuck.executor.flow.step_function import enter_step, enter_step_async
from unstuck.executor.marked_coroutine import MarkedCoroutine
from unstuck.executor.messages import INTERRUPT_SIGNAL, STACK_SIGNAL, LeftBehindMessage
from unstuck.executor.page import SharedPage
from unstuck.executor.run_handler import enter_handler, enter_handler_async
from unstuck.model.errors import Cancelled

INTERRUPTED = "interrupted: it held the main thread of its process"
#: How often and how long a signal that is owed is repeated; a signal so long after that is the supervisor's again.
REPEAT_EVERY = 0.00005
REPEAT_FOR = 2.0
REST = 0.05
#: A handler found at the same instruction of the same call for so long waits there, if no two answers are further
#: apart than this: meanwhile it may have got what it waited for, and not the interpreter.
WAITS_AFTER = 0.25
UNBROKEN = 0.05
_OURS, _ASYNCIO, _LOGGING = (
    os.path.dirname(path) + os.sep for path in (__file__, asyncio.__file__, logging.__file__)
)
#: Its calls have deadlines of their own, and its connections are shared by all in the process.
_STORE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "store", "")
_SPARED_FILES = frozenset(
    module.__file__ for module in (threading, queue, contextlib, selectors, weakref, _weakrefset)
)
#: Its other half, `_bootstrap_external`, finds and reads files and holds no lock, and most of an import is there.
_IMPORT_LOCKS = "<frozen importlib._bootstrap>"
_IMPORT = (_IMPORT_LOCKS, "<frozen importlib._bootstrap_external>")
_WAITS = frozenset(("wait", "wait_for", "join", "_wait_for_tstate_lock", "select"))
#: The frames of ours whose callee is the handler's.
_DOORS = frozenset(door.__code__ for door in (enter_handler, enter_handler_async, enter_step, enter_step_async))
_DOORS |= frozenset(door.__code__ for door in (MarkedCoroutine.send, MarkedCoroutine.throw, MarkedCoroutine.close))


class Interrupter:
    """Hears the two signals of the supervisor. Made and mended on the main thread."""

    def __init__(
        self, page: SharedPage, attempts: Mapping[int, Attempt], stack: int, say: Callable[[LeftBehindMessage], None]
    ) -> None:
        self._pid = os.getpid()
        self._page = page
        self._attempts = attempts
        self._stack = stack
        self._say = say
        self._main_thread = threading.get_ident()
        #: Whose time runs, until when, and whether an interrupt is owed. Written by the main thread alone.
        self._number = 0
        self._until = 0.0
        self._is_owed = False
        #: Of the spared frame that the last answer found.
        self._seen: SeenFrame | None = None
        #: A signal may find us at the answer to the one before it, which decides for both.
        self._is_answering = False
        self._repeats: queue.SimpleQueue[tuple[int, float]] = queue.SimpleQueue()
        #: Weak: its traceback holds all that the handler held.
        self._raised: Callable[[], Cancelled | None] = _nothing
        self._unraisable: Callable[[Any], Any] = sys.unraisablehook
        self.mend()

    def start(self) -> None:
        """Called on a thread that blocks our signals: the thread that repeats them inherits that."""
        # Once, and after the app was imported: a hook that calls the one before it must not meet itself.
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._hear_unraisable
        threading.Thread(target=self._repeat, name="unstuck-interrupt", daemon=True).start()

    def mend(self) -> None:
        """A handler may have taken our signals for itself, or blocked them; those after it are to have them again."""
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (INTERRUPT_SIGNAL, STACK_SIGNAL))
        if signal.getsignal(INTERRUPT_SIGNAL) != self._interrupt:
            signal.signal(INTERRUPT_SIGNAL, self._interrupt)
        # What the module `signal` believes; faulthandler sets its own handler past it. And what comes back if
        # a handler unregisters that: the default action would end the process.
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
        if frame is None or (_is_spared(frame) and not self._is_waiting_at(frame)):
            self._owe(number)
            return
        attempt = self._attempts[number]
        if module := _module_being_imported(frame):
            self._say(LeftBehindMessage(attempt.run.workflow, [], module))
        attempt.is_interrupted = True
        self._is_owed = False
        error = Cancelled(attempt.asked_because or INTERRUPTED)
        self._raised = weakref.ref(error)
        try:
            raise error
        finally:
            # Or it would be part of a circle: error, traceback, this frame, error.
            del error

    def _is_waiting_at(self, frame: FrameType) -> bool:
        """An unbroken row of answers has found it there, so it does not run. Never in what we have called."""
        seen = None if _is_called_by_us(frame) else _seen_frame(frame)
        if seen is None:
            return False
        now = boot()
        if seen is not self._seen or seen.instruction != frame.f_lasti or now > seen.seen_at + UNBROKEN:
            self._seen, seen.instruction, seen.since = seen, frame.f_lasti, now
        seen.seen_at = now
        return now >= seen.since + WAITS_AFTER

    def _is_on_main(self, number: int) -> bool:
        """It is meant, its code is on the main thread, and its handler is being called."""
        if not number or number != self._page.aimed_at or number != self._page.loop_job:
            return False
        attempt = self._attempts.get(number)
        return attempt is not None and attempt.is_inside

    def _hear_unraisable(self, trouble: Any) -> None:
        """It was raised in a finalizer, where no exception gets any further: nothing was interrupted by it."""
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
            self._repeats.put((number, self._until))

    # the thread that repeats

    def _repeat(self) -> None:
        pause = threading.Event()
        while True:
            number, until = self._repeats.get()
            usual = sys.getswitchinterval()
            # Or every single repetition would wait 5 ms for the interpreter, which that attempt holds.
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


class SeenFrame:
    """Left on a frame to know it again.

    A frame cannot be referred to weakly, and held it would keep whatever its callers hold. So it wears the seen where
    a debugger would put its own function, and the seen goes with it.
    """

    __slots__ = ("instruction", "seen_at", "since")

    def __init__(self) -> None:
        self.instruction = -1
        self.since = self.seen_at = 0.0

    def __call__(self, *_: object) -> None:
        """A debugger that comes later calls it."""


def _seen_frame(frame: FrameType) -> SeenFrame | None:
    if frame.f_trace is None:
        frame.f_trace = SeenFrame()
    return frame.f_trace if isinstance(frame.f_trace, SeenFrame) else None


def _is_watching(frame: FrameType | None) -> bool:
    """It is the function of a profiler or debugger, or was called by it.

    What is raised there comes out of the code that it looks at, and at points where no signal would have been heard:
    so also between the last line of a `with` and the release of its lock.
    """
    watchers = (sys.getprofile(), sys.gettrace())
    if watchers == (None, None):
        return False
    functions = [watcher.__func__ if isinstance(watcher, MethodType) else watcher for watcher in watchers]
    codes = [function.__code__ for function in functions if isinstance(function, FunctionType)]
    while frame is not None and frame.f_code not in codes:
        frame = frame.f_back
    return frame is not None


def _module_being_imported(frame: FrameType | None) -> str:
    """The module that the handler asked for, or nothing."""
    module = ""
    while frame is not None and not frame.f_code.co_filename.startswith(_OURS):
        if frame.f_code.co_filename in _IMPORT:
            name = frame.f_locals.get("name")
            module = name if type(name) is str else module or "a module"
        frame = frame.f_back
    return module


def _is_spared(frame: FrameType) -> bool:
    file, name = frame.f_code.co_filename, frame.f_code.co_name
    if file in _SPARED_FILES:
        is_spared = name not in _WAITS
    else:
        is_spared = file == _IMPORT_LOCKS or file.startswith((_OURS, _STORE, _ASYNCIO, _LOGGING))
    return is_spared or _is_called_by_us(frame) or _is_watching(frame)


def _is_called_by_us(frame: FrameType | None) -> bool:
    """Whether we called it, and not for the handler. At the root of every stack we call the loop."""
    while frame is not None and not frame.f_code.co_filename.startswith((_OURS, _STORE, _ASYNCIO)):
        frame = frame.f_back
    if frame is None or frame.f_code in _DOORS:
        return False
    return frame.f_code.co_filename.startswith((_OURS, _STORE))
