"""The begin and the end of an attempt, on the thread that runs its handler: a worker thread or the main thread."""

from __future__ import annotations

import contextvars
import os
import threading

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt, End
from unstuck.executor.attempts import Attempts
from unstuck.executor.children import Children
from unstuck.executor.collector_pause import CollectorPause
from unstuck.executor.context import running
from unstuck.executor.leftovers import Leftovers
from unstuck.executor.marked_coroutine import end_if_copied
from unstuck.executor.outbox import Outbox
from unstuck.executor.run_handler import execute
from unstuck.executor.setup import ExecutorSetup
from unstuck.executor.shared_state import SharedState
from unstuck.model.workflow import Registry


class Execution:
    """Made on the main thread."""

    def __init__(self, setup: ExecutorSetup, outbox: Outbox, attempts: Attempts, gc_pause: CollectorPause) -> None:
        self.leftovers = Leftovers()
        self._page = setup.page
        self._outbox = outbox
        self._attempts = attempts
        self._alone = setup.alone
        self._children = Children(setup.tag, gc_pause, self._tell_end, outbox.say)
        self._pid = os.getpid()
        self._main_thread = threading.get_ident()
        self._registry = Registry()
        self._shared: SharedState
        self._variables = contextvars.copy_context()

    def start(self, registry: Registry, shared: SharedState) -> None:
        """After the app's own hooks: what handlers change is put back to how it is now."""
        self._registry = registry
        self._shared = shared
        self._variables = contextvars.copy_context()
        self._children.start()

    def variables_of(self, attempt: Attempt) -> contextvars.Context:
        """Fresh variables for every attempt: nothing of one job is seen by the next."""
        variables = self._variables.copy()
        variables.run(running.set, attempt)
        return variables

    def run(self, attempt: Attempt) -> None:
        """A whole sync attempt, on this thread."""
        if not self._attempts.take(attempt):
            return
        try:
            if self.begin(attempt):
                end = self.variables_of(attempt).run(execute, attempt, self._registry)
                self.disarm()
                self.finish(attempt, end)
        except BaseException:
            # Nothing a handler does leads here. A process that cannot report must end: its death reports for it.
            os._exit(70)

    def begin(self, attempt: Attempt) -> bool:
        """Whether it may: the cell is written first, then looked whether it was withdrawn (see page.py)."""
        now = boot()
        attempt.started_at = now
        attempt.thread = threading.get_ident()
        # Of the main thread it is the pid; a Thread knows its own, which spares the question to the kernel.
        kernel = self._pid if attempt.thread == self._main_thread else threading.current_thread().native_id or 0
        self._page.enter(attempt.place, attempt.number, now, attempt.thread, kernel)
        if self._page.is_withdrawn(attempt.place, attempt.number):
            self._page.enter(attempt.place, 0, 0.0, 0)
            self._attempts.give_up(attempt)
            return False
        self._outbox.note_begin(attempt.number, now)
        return True

    def finish(self, attempt: Attempt, end: End) -> None:
        end_if_copied(self._pid)
        self._page.leave(attempt.place)
        if attempt.started is not None or attempt.tasks:
            self.leftovers.look_later(attempt, boot())
        if attempt.started is not None and attempt.started.has_children:
            self._children.end_all_of(attempt, end)
        else:
            self._tell_end(attempt, end)

    def disarm(self) -> None:
        """At once, where an alarm can only be of the job that has just ended."""
        if self._alone:
            self._shared.disarm()

    def _tell_end(self, attempt: Attempt, end: End) -> None:
        """Report the end. An executor for one job at a time stops its loop: the main thread takes the next job."""
        self._attempts.tell_end(attempt, end)
        is_awaited = self._alone and attempt.is_async and threading.get_ident() != self._main_thread
        attempt.let_go()
        if is_awaited:
            attempt.loop.call_soon_threadsafe(attempt.loop.stop)
        self._outbox.ring_if_asleep()
