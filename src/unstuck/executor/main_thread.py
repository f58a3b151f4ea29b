"""The main thread of an executor: it runs the app's hooks, then the event loop with all coroutine handlers.

In an executor that is *alone* it runs one job after the other instead: a sync handler right here, a coroutine on the
loop until it has ended. Signals are delivered here, so an interrupt reaches exactly these handlers (`interrupt.py`);
and the handler of a signal that a job left behind may raise anywhere here, which is why so much below is survived.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import queue
import select
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt, End
from unstuck.executor.attempts import Attempts
from unstuck.executor.capture import route_logging
from unstuck.executor.describe import describe
from unstuck.executor.event_loop import cancel_leftovers, make_loop
from unstuck.executor.execution import Execution
from unstuck.executor.interrupt import Interrupter
from unstuck.executor.leftovers import watch_threads
from unstuck.executor.log_marks import mark_records
from unstuck.executor.marked_coroutine import MarkedCoroutine, end_if_copied
from unstuck.executor.messages import LeftBehindMessage
from unstuck.executor.outbox import Outbox
from unstuck.executor.rhythm import Rhythm
from unstuck.executor.run_handler import execute_async
from unstuck.executor.setup import ExecutorSetup
from unstuck.executor.shared_state import SharedState
from unstuck.model.workflow import Hook, Registry

R = TypeVar("R")
#: So often in a row the loop may fail without calling anything: one exception comes from a signal's handler.
STUMBLES = 3
#: So often what a signal's handler has broken off is done again.
TRIES = 2
#: As the supervisor's pause after a first interrupt (worker/ladder.py).
ASK_AGAIN = 2.0
#: How long what is left of a process without a loop is waited for, at a time.
WITHOUT_LOOP = 0.05


def whatever_rings(act: Callable[..., R], *args: Any) -> R:
    """On the main thread the handler of a signal that a job left behind may raise anywhere: then it is done again, so
    it must be something that can be done twice."""
    for _ in range(TRIES):
        try:
            return act(*args)
        except BaseException:
            pass
    return act(*args)


class MainThread:
    def __init__(
        self,
        setup: ExecutorSetup,
        outbox: Outbox,
        attempts: Attempts,
        execution: Execution,
        interrupter: Interrupter,
        registry: Registry,
    ) -> None:
        self._page = setup.page
        self._outbox = outbox
        self._attempts = attempts
        self._execution = execution
        self._interrupter = interrupter
        self._slots = setup.slots
        self._alone = setup.alone
        self._pid = os.getpid()
        self._registry = registry
        self.shared: SharedState
        self._on_loop: dict[int, Attempt] = {}
        self._backlog: deque[Attempt] = deque()
        self._solo: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._is_serving = False
        self._stumbles = 0
        self._is_stopping = False
        #: Handlers and hooks have ended: once all is told, the process may end.
        self.is_done = False
        # Not before the app was imported: it may have chosen another event loop policy.
        self.loop, self._hurry = make_loop(setup.page, Rhythm(setup.pulse, lambda: bool(attempts.here)), self._mend)

    def run_start_hooks(self) -> None:
        self._run_hooks(self._registry.on_start)

    def prepare(self) -> None:
        """After the app's hooks: every job is to find what all jobs share as it is now."""
        route_logging()
        mark_records()
        self.shared = SharedState()
        self._is_serving = True
        self._interrupter.mend()
        watch_threads()
        self._execution.start(self._registry, self.shared)

    def serve(self) -> None:
        """Until `stop`; never returns."""
        if self._alone:
            self._serve_alone()
        else:
            # A handler may stop the loop it is on; that must not stop everybody's.
            while not self._is_stopping:
                self._run_loop()
        try:
            self._run_hooks(self._registry.on_stop)
        except BaseException:
            traceback.print_exc()
        self.is_done = True
        self._outbox.ring()
        # The control thread sends what is left and ends the process: leaving main would join stuck threads.
        threading.Event().wait()

    # by the control thread

    def take(self, attempts: list[Attempt]) -> None:
        if self._alone:
            for attempt in attempts:
                self._solo.put(attempt)
        else:
            self.loop.call_soon_threadsafe(self._take_on_loop, attempts)

    def cancel(self, attempt: Attempt, *, is_first: bool) -> None:
        self.loop.call_soon_threadsafe(_cancel_task, attempt)
        if is_first:
            self.loop.call_soon_threadsafe(self._ask_again, attempt, attempt.run.grace / 2)

    def stop(self) -> None:
        """No attempt is left: run the last hooks."""
        if self._is_stopping:
            return
        self._is_stopping = True
        if self._alone:
            self._solo.put(None)
        else:
            self.loop.call_soon_threadsafe(self.loop.stop)

    # one job at a time

    def _serve_alone(self) -> None:
        is_open = True
        while is_open:
            try:
                is_open = self._serve_next()
            except BaseException:
                self._survive()
                # What was taken from the queue may be lost with the exception; twice in it does no harm.
                for attempt in tuple(self._attempts.unbegun.values()):
                    self._solo.put(attempt)
                if self._is_stopping:
                    self._solo.put(None)

    def _serve_next(self) -> bool:
        if (attempt := self._solo.get()) is None:
            return False
        self.shared.disarm()
        self._mend()
        if not attempt.is_async:
            self._page.put_on_loop(attempt.number)
            self._execution.run(attempt)
            self._page.put_on_loop(0)
        elif attempt.number in self._attempts.unbegun:
            self._start_on_loop(attempt)
            while attempt.number in self._attempts.here:
                self._run_loop()
        return True

    # the event loop

    def _run_loop(self) -> None:
        turns: list[None] = []
        try:
            self.loop.call_soon(turns.append, None)
            self.loop.run_forever()
        except BaseException as error:
            self._stumbles = 1 if turns else self._stumbles + 1
            self._survive(is_news=self._stumbles == 1)
            if self._stumbles >= STUMBLES:
                self._outlive_loop(error)
        end_if_copied(self._pid)

    def _outlive_loop(self, error: BaseException) -> None:
        """The loop fails before it can call anything: a job has broken it, by closing its selector for instance. No
        coroutine can go on here; functions may finish, the supervisor replaces the process, and it ends."""
        name, message, _ = describe(error)
        poison = f"its event loop cannot run any more: {name}: {message}"[:200]
        self._outbox.say(LeftBehindMessage("", [], poison=poison))
        while any(not attempt.is_async for attempt in self._attempts.here.copy().values()):
            select.select([], [], [], WITHOUT_LOOP)
        # What was said last goes out first.
        select.select([], [], [], WITHOUT_LOOP)
        os._exit(70)

    def _survive(self, is_news: bool = True) -> None:
        """What is being raised comes from the handler of a signal, which a job left behind: nothing of ours raises
        here. It ends a copy of us that a job forked, and one of us whose loop cannot run any more."""
        is_usable = not (self.loop.is_closed() or self.loop.is_running() or asyncio._get_running_loop())
        if os.getpid() != self._pid or not is_usable:
            raise
        if is_news:
            traceback.print_exc()

    def _mend(self) -> None:
        """With every beat of the loop. A coroutine on it may need the signals that it has set."""
        self._execution.leftovers.forget()
        self._interrupter.mend()
        self._begin_anew()
        if self._is_serving and not self._on_loop:
            self.shared.restore_signals()

    def _run_hooks(self, hooks: Iterable[Hook]) -> None:
        for hook in hooks:
            answer = hook()
            if inspect.isawaitable(answer):
                self.loop.run_until_complete(_await(answer))

    def _take_on_loop(self, attempts: list[Attempt]) -> None:
        self._hurry()
        self._backlog.extend(attempts)
        self._fill_loop()

    def _fill_loop(self) -> None:
        while self._backlog and len(self._on_loop) < self._slots:
            self._start_on_loop(self._backlog.popleft())

    def _start_on_loop(self, attempt: Attempt) -> None:
        self._on_loop[attempt.number] = attempt
        steps = MarkedCoroutine(self._run_on_loop(attempt), self._page, attempt.number, self._pid)
        variables = self._execution.variables_of(attempt)
        # Past the loop's task factory, which would have to find out whose it is.
        attempt.task = asyncio.Task(steps, loop=self.loop, name=attempt.run.workflow, context=variables)

    async def _run_on_loop(self, attempt: Attempt) -> None:
        try:
            end = None
            if self._attempts.take(attempt) and whatever_rings(self._execution.begin, attempt):
                end = await execute_async(attempt, self._registry)
            whatever_rings(self._end_on_loop, attempt, end)
        except BaseException:
            os._exit(70)

    def _end_on_loop(self, attempt: Attempt, end: End | None) -> None:
        if end is not None:
            cancel_leftovers(attempt)
            self._execution.disarm()
            self._execution.finish(attempt, end)
        self._on_loop.pop(attempt.number, None)
        self._fill_loop()
        if self._alone:
            # Behind the tasks that it left: they have just been cancelled, and are to hear of it.
            self.loop.call_soon(self.loop.stop)

    def _begin_anew(self) -> None:
        """A handler cancelled all tasks it could find, also those before their first step: these never left."""
        for attempt in tuple(self._on_loop.values()):
            if attempt.task is not None and attempt.task.done():
                del self._on_loop[attempt.number]
                if attempt.number in self._attempts.unbegun:
                    self._backlog.appendleft(attempt)
        self._fill_loop()

    def _ask_again(self, attempt: Attempt, after: float) -> None:
        """At half of the grace, and then ever more rarely, as with a job that blocks the loop. A handler that waits
        again has swallowed the first cancel; if it cleans up, it has had as long as an interrupt would leave it."""

        def ask(pause: float) -> None:
            if attempt.task is None or attempt.task.done() or boot() >= attempt.asked_at + attempt.run.grace:
                return
            _cancel_task(attempt)
            self.loop.call_later(pause, ask, 2 * pause)

        self.loop.call_later(after, ask, max(0.05, min(ASK_AGAIN, 0.3 * attempt.run.grace)))


def _cancel_task(attempt: Attempt) -> None:
    if attempt.task is not None and not attempt.task.done():
        reason = attempt.context.reason
        attempt.task.cancel(f"Execution cancelled: {reason}" if reason else "Execution cancelled")


async def _await(answer: Any) -> Any:
    return await answer
