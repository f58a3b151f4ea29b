"""One executor: control thread, event loop, worker threads.

The main thread runs the event loop with coroutine handlers; a crew of threads runs sync handlers; the control thread
does all input and output, beats in the shared page and never runs user code, so neither a blocked loop nor a huge
result keeps it from reporting. An executor that is *alone* runs its jobs one at a time on the main thread itself.
An attempt is taken from `_waiting` by whoever begins it, gives it back or cancels it first: dict.pop decides races.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import queue
import resource
import select
import signal
import socket
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt, End, describe, execute, execute_async
from unstuck.executor.capture import route_logging
from unstuck.executor.children import Children
from unstuck.executor.collecting import Calm
from unstuck.executor.context import running
from unstuck.executor.crew import Crew
from unstuck.executor.descendants import Descendant, executor_of, kill_where
from unstuck.executor.event_loop import cancel_leftovers, make_loop
from unstuck.executor.interrupt import Interrupter
from unstuck.executor.leftovers import Leftovers, watch_threads
from unstuck.executor.live_stack import whereabouts
from unstuck.executor.marking import Mark
from unstuck.executor.marks import MarkedSteps, end_if_copied
from unstuck.executor.messages import (
    INTERRUPT_SIGNAL,
    Answered,
    BadFrame,
    Begun,
    Cancel,
    DrainMessage,
    Failed,
    FlowCallMessage,
    FrameReader,
    GivenBack,
    KeepPart,
    LeftBehindMessage,
    Park,
    Question,
    Raise,
    Ready,
    RecallMessage,
    RecordStep,
    Return,
    Run,
    Say,
    Show,
    ShownMessage,
    SpawnMessage,
    pack,
    pack_all,
    to_executor,
)
from unstuck.executor.page import SharedPage
from unstuck.executor.surroundings import Surroundings
from unstuck.model.workflow import Hook, Registry

#: How an executor ends that saw its worker's lease run out.
FENCED_STATUS = 68
R = TypeVar("R")
#: How soon the crew may be reinforced while jobs wait.
REINFORCE_EVERY = 0.001
#: While more is said than once in so long, it is said together: every word wakes two processes.
GATHER = 0.001
#: So often in a row the loop may fail without calling anybody: one exception comes from a signal's handler.
STUMBLES = 3
#: So often what a signal's handler has broken off is done again.
TRIES = 2
#: As the supervisor's pause after a first interrupt (worker/ladder.py).
ASK_AGAIN = 2.0
#: So few descriptors left are none: a handler's next file or connection would fail.
FEW_DESCRIPTORS = 8
#: How long what is left of a process without a loop is waited for, at a time.
WITHOUT_LOOP = 0.05
#: Output is streamed at most so often per attempt.
STREAM_EVERY = 1.0
_READ = 256 << 10


def whatever_rings(act: Callable[..., R], *args: Any) -> R:
    """On the main thread the handler of a signal that a job left behind may raise anywhere: then it is done again, so
    it must be something that can be done twice."""
    for _ in range(TRIES):
        try:
            return act(*args)
        except BaseException:
            pass
    return act(*args)


class Executor:
    def __init__(
        self, wire: socket.socket, page: SharedPage, stack: int, slots: int, pulse: float, alone: bool, mark: Mark
    ) -> None:
        self._pid = os.getpid()
        self._mark = mark
        self._wire = wire
        self._page = page
        self._slots = slots
        self._pulse = pulse
        self._alone = alone
        self._registry = Registry()
        self._attempts: dict[int, Attempt] = {}
        self._waiting: dict[int, Attempt] = {}
        #: Held to report on an attempt that runs and to report its end: nothing is ever said of it after that.
        self._books = threading.Lock()
        self._crew = Crew(slots, self._run_on_thread)
        self._main_thread = threading.get_ident()
        self._interrupter = Interrupter(page, self._attempts, stack, self._say)
        self._leftovers = Leftovers()
        #: Over whatever a thread of ours does that others depend on.
        self._calm = Calm()
        self._children = Children(mark, self._calm, self._tell_end, self._say)
        self._surroundings: Surroundings
        self._loop: asyncio.AbstractEventLoop
        self._on_loop: dict[int, Attempt] = {}
        self._loop_backlog: deque[Attempt] = deque()
        self._solo: queue.SimpleQueue[Attempt | None] = queue.SimpleQueue()
        self._context = contextvars.copy_context()
        #: Beginnings that were not told yet, with their instants.
        self._begun: dict[int, float] = {}
        self._outbox: deque[Any] = deque()
        self._spoke_at = 0.0
        self._is_in_flow = False
        self._unsent = bytearray()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        self._asleep = False
        self._is_serving = False
        self._stumbles = 0
        self._is_short = False
        self._draining = False
        self._stopping = False
        self._stopped = False

    # the main thread

    def fail(self, error: str) -> None:
        """Say why this executor cannot begin, and end."""
        self._wire.settimeout(5.0)
        try:
            self._wire.sendall(pack([Failed(error)]))
        finally:
            os._exit(1)

    def serve(self, registry: Registry) -> None:
        """Run until drained; never returns."""
        self._registry = registry
        # Not before the app was imported: it may have chosen another event loop policy.
        self._loop = make_loop(self._page, self._pulse, self._mend)
        try:
            self._run_hooks(registry.on_start)
        except BaseException as error:
            _, _, stack = describe(error)
            self.fail(f"an on_start hook failed:\n{stack}")
        route_logging()
        self._context = contextvars.copy_context()
        self._surroundings = Surroundings()
        self._is_serving = True
        self._interrupter.mend()
        watch_threads()
        self._children.start()
        self._outbox.append(Ready())
        threading.Thread(target=self._control, name="unstuck-control", daemon=True).start()
        if self._alone:
            self._serve_alone()
        else:
            # A handler may stop the loop it is on; that must not stop everybody's.
            while not self._stopping:
                self._run_loop()
        self._stop()

    def _serve_alone(self) -> None:
        is_open = True
        while is_open:
            try:
                is_open = self._serve_next()
            except BaseException:
                self._survive()
                # What was taken from the queue may be lost with the exception; twice in it does no harm.
                for attempt in tuple(self._waiting.values()):
                    self._solo.put(attempt)
                if self._stopping:
                    self._solo.put(None)

    def _serve_next(self) -> bool:
        if (attempt := self._solo.get()) is None:
            return False
        self._surroundings.disarm()
        self._mend()
        if not attempt.is_async:
            self._page.put_on_loop(attempt.number)
            self._run_on_thread(attempt)
            self._page.put_on_loop(0)
        elif attempt.number in self._waiting:
            self._start_on_loop(attempt)
            while attempt.number in self._attempts:
                self._run_loop()
        return True

    def _run_loop(self) -> None:
        turns: list[None] = []
        try:
            self._loop.call_soon(turns.append, None)
            self._loop.run_forever()
        except BaseException as error:
            self._stumbles = 1 if turns else self._stumbles + 1
            self._survive(is_news=self._stumbles == 1)
            if self._stumbles >= STUMBLES:
                self._outlive_loop(error)
        end_if_copied(self._pid)

    def _outlive_loop(self, error: BaseException) -> None:
        """It fails before it comes to call anybody: a job has broken it, by closing its selector for instance. No
        coroutine can go on here; functions may finish, the supervisor replaces the process, and it ends."""
        name, message, _ = describe(error)
        self._say(LeftBehindMessage("", [], poison=f"its event loop cannot run any more: {name}: {message}"[:200]))
        while any(not attempt.is_async for attempt in self._attempts.copy().values()):
            select.select([], [], [], WITHOUT_LOOP)
        # What was said last goes out first.
        select.select([], [], [], WITHOUT_LOOP)
        os._exit(70)

    def _survive(self, is_news: bool = True) -> None:
        """What is being raised comes from the handler of a signal, which a job left behind: nothing of ours raises
        here. It ends a copy of us that a job forked, and one of us whose loop cannot run any more."""
        is_usable = not (self._loop.is_closed() or self._loop.is_running() or asyncio._get_running_loop())
        if os.getpid() != self._pid or not is_usable:
            raise
        if is_news:
            traceback.print_exc()

    def _mend(self) -> None:
        """With every beat, on the main thread. A coroutine on it may need the signals that it has set."""
        self._leftovers.forget()
        self._interrupter.mend()
        self._begin_anew()
        if self._is_serving and not self._on_loop:
            self._surroundings.restore_signals()

    def _run_hooks(self, hooks: Iterable[Hook]) -> None:
        for hook in hooks:
            answer = hook()
            if inspect.isawaitable(answer):
                self._loop.run_until_complete(_await(answer))

    def _stop(self) -> None:
        try:
            self._run_hooks(self._registry.on_stop)
        except BaseException:
            traceback.print_exc()
        self._stopped = True
        self._ring()
        # The control thread sends what is left and ends the process: leaving main would join stuck threads.
        threading.Event().wait()

    # where handlers run

    def _context_of(self, attempt: Attempt) -> contextvars.Context:
        """Fresh variables for every attempt: nothing of one job is seen by the next."""
        context = self._context.copy()
        context.run(running.set, attempt)
        return context

    def _run_on_thread(self, attempt: Attempt) -> None:
        if self._waiting.pop(attempt.number, None) is None:
            return
        try:
            if self._started(attempt):
                end = self._context_of(attempt).run(execute, attempt, self._registry)
                self._disarm()
                self._finished(attempt, end)
        except BaseException:
            # Nothing a handler does leads here. A process that cannot report must end: its death reports for it.
            os._exit(70)

    def _start_on_loop(self, attempt: Attempt) -> None:
        self._on_loop[attempt.number] = attempt
        steps = MarkedSteps(self._run_on_loop(attempt), self._page, attempt.number, self._pid)
        context = self._context_of(attempt)
        # Past the loop's task factory, which would have to find out whose it is.
        attempt.task = asyncio.Task(steps, loop=self._loop, name=attempt.run.workflow, context=context)

    async def _run_on_loop(self, attempt: Attempt) -> None:
        try:
            end = None
            if self._waiting.pop(attempt.number, None) is not None and whatever_rings(self._started, attempt):
                end = await execute_async(attempt, self._registry)
            whatever_rings(self._end_on_loop, attempt, end)
        except BaseException:
            os._exit(70)

    def _end_on_loop(self, attempt: Attempt, end: End | None) -> None:
        if end is not None:
            cancel_leftovers(attempt)
            self._disarm()
            self._finished(attempt, end)
        self._left_loop(attempt)

    def _disarm(self) -> None:
        """At once, where there is no telling whose alarm it is but for the one that has just ended."""
        if self._alone:
            self._surroundings.disarm()

    def _left_loop(self, attempt: Attempt) -> None:
        self._on_loop.pop(attempt.number, None)
        self._fill_loop()
        if self._alone:
            # Behind the tasks that it left: they have just been cancelled, and are to hear of it.
            self._loop.call_soon(self._loop.stop)

    def _begin_anew(self) -> None:
        """A handler cancelled all tasks it could find, also those before their first step: these never left."""
        for attempt in tuple(self._on_loop.values()):
            if attempt.task is not None and attempt.task.done():
                del self._on_loop[attempt.number]
                if attempt.number in self._waiting:
                    self._loop_backlog.appendleft(attempt)
        self._fill_loop()

    def _fill_loop(self) -> None:
        while self._loop_backlog and len(self._on_loop) < self._slots:
            self._start_on_loop(self._loop_backlog.popleft())

    def _started(self, attempt: Attempt) -> bool:
        """Whether it may: the cell is written first, then looked whether it was withdrawn (see page.py)."""
        now = boot()
        attempt.started_at = now
        attempt.thread = threading.get_ident()
        # Of the main thread it is the pid; a Thread knows its own, which spares the question to the kernel.
        kernel = self._pid if attempt.thread == self._main_thread else threading.current_thread().native_id or 0
        self._page.enter(attempt.place, attempt.number, now, attempt.thread, kernel)
        if self._page.is_withdrawn(attempt.place, attempt.number):
            self._page.enter(attempt.place, 0, 0.0, 0)
            self._attempts.pop(attempt.number, None)
            attempt.let_go()
            self._say(GivenBack([attempt.number]))
            return False
        # No ring: the supervisor sees it in the page, too, and of a short job its end says it all.
        self._begun[attempt.number] = now
        return True

    def _finished(self, attempt: Attempt, end: End) -> None:
        end_if_copied(self._pid)
        self._page.leave(attempt.place)
        if attempt.company is not None or attempt.tasks:
            self._leftovers.see_off(attempt, boot())
        if attempt.company is not None and attempt.company.has_children:
            self._children.see_off(attempt, end)
        else:
            self._tell_end(attempt, end)

    def _tell_end(self, attempt: Attempt, end: End) -> None:
        """Nothing of it runs any more, so whoever comes after it has what it had for itself."""
        with self._books:
            if attempt.number in self._attempts:
                if attempt.progress is not None:
                    self._outbox.append(Say(attempt.number, "progress", attempt.progress))
                self._begun.pop(attempt.number, None)
                self._outbox.append(end)
                del self._attempts[attempt.number]
        is_awaited = self._alone and attempt.is_async and threading.get_ident() != self._main_thread
        attempt.let_go()
        if is_awaited:
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._asleep:
            self._ring()

    def _post(self, number: int, serial: int, question: Question) -> bool:
        """Of an attempt that has ended nothing is asked any more, also not by a thread that it left behind."""
        with self._books:
            if number not in self._attempts:
                return False
            self._outbox.append(FlowCallMessage(number, serial, question))
        if self._asleep:
            self._ring()
        return True

    def _say(self, message: Any) -> None:
        self._outbox.append(message)
        if self._asleep:
            self._ring()

    def _ring(self) -> None:
        self._asleep = False
        try:
            os.write(self._wake_out, b"!")
        except BlockingIOError:
            pass

    # the control thread

    def _control(self) -> None:
        try:
            self._converse()
        except BaseException:
            # Without this thread nobody could report or stop a job: the process must not outlive it.
            os._exit(70)

    def _converse(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, INTERRUPT_SIGNAL})
        self._interrupter.start()
        self._page.introduce(self._main_thread, threading.get_native_id())
        self._wire.setblocking(False)
        fd = self._wire.fileno()
        inbox = FrameReader(to_executor)
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        poller.register(self._wake_in, select.POLLIN)
        next_pulse = 0.0
        writing = False
        found: list[tuple[int, int]] = []
        while True:
            self._calm.begin()
            for ready, event in found:
                if event & (select.POLLNVAL | select.POLLERR):
                    os._exit(70)
                if ready == fd and event & (select.POLLIN | select.POLLHUP):
                    self._hear(inbox)
                elif ready == self._wake_in:
                    os.read(self._wake_in, 4096)
            self._asleep = False
            now = boot()
            self._page.beat(now)
            self._guard_lease(now)
            if now >= next_pulse:
                next_pulse = now + self._pulse
                self._report_running(now)
                self._outbox.extend(self._leftovers.look(now))
                self._feel_descriptors()
                self._surroundings.reopen()
                if not self._attempts:
                    self._surroundings.restore()
            if self._crew.is_behind:
                self._crew.reinforce()
            self._end_if_drained()
            self._flush()
            if writing != bool(self._unsent):
                writing = not writing
                poller.modify(fd, select.POLLIN | select.POLLOUT if writing else select.POLLIN)
            nap = self._nap(next_pulse - boot())
            self._calm.end()
            found = poller.poll(nap)

    def _feel_descriptors(self) -> None:
        """The lowest free number tells how many are in use. Said once: the process is to be replaced."""
        if self._is_short:
            return
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            os.close(lowest := os.dup(self._wake_in))
        except OSError:
            lowest = limit
        if lowest + FEW_DESCRIPTORS >= limit:
            self._is_short = True
            self._outbox.append(LeftBehindMessage("", [], poison=f"no file descriptor is left in it (limit {limit})"))

    def _guard_lease(self, now: float) -> None:
        """As the zygote does, a pulse later: it is only missed when supervisor and zygote are both stopped.

        What was finished is said, then what handlers have started is killed while somebody still knows of it, and the
        bodies end with the process. The page says why: a status alone any handler could fake.
        """
        until = self._page.lease_until
        if until and now >= until + self._pulse:
            self._page.fence(now)
            self._flush()
            kill_where(self._is_descendant)
            os._exit(FENCED_STATUS)

    def _is_descendant(self, found: Descendant) -> bool:
        owner = executor_of(found.pid, self._mark.incarnation)
        return found.session == self._pid or owner == self._mark.executor

    def _nap(self, until_pulse: float) -> float:
        """Milliseconds to sleep. Says so first, then looks again: a message is either seen here or rings."""
        if self._is_in_flow:
            return 1000 * GATHER
        self._asleep = True
        if self._outbox:
            self._asleep = False
            return 0.0
        return 1000 * (REINFORCE_EVERY if self._crew.is_behind else max(REINFORCE_EVERY, until_pulse))

    def _hear(self, inbox: FrameReader) -> None:
        try:
            data = self._wire.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            # The supervisor is gone or has given us up; nobody would hear of what runs here.
            os._exit(69)
        try:
            messages = inbox.take(data)
        except BadFrame:
            os._exit(70)
        fresh: list[Attempt] = []
        for message in messages:
            match message:
                case Run():
                    fresh.append(self._accept(message))
                case Answered():
                    if (attempt := self._attempts.get(message.number)) is not None:
                        attempt.answered(message.serial, message.answer)
                case Cancel():
                    self._cancel(message)
                case RecallMessage():
                    self._give_back(message.numbers)
                case Show():
                    self._show(message.numbers)
                case DrainMessage():
                    self._draining = True
        if fresh:
            self._place(fresh)

    def _accept(self, run: Run) -> Attempt:
        handler = self._registry.handlers.get(run.workflow)
        attempt = Attempt(run, handler, self._loop, self._lease_until, self._post)
        self._attempts[run.number] = attempt
        self._waiting[run.number] = attempt
        return attempt

    def _lease_until(self) -> float:
        return self._page.lease_until

    def _place(self, attempts: list[Attempt]) -> None:
        if self._alone:
            for attempt in attempts:
                self._solo.put(attempt)
            return
        on_loop = [attempt for attempt in attempts if attempt.is_async]
        on_threads = [attempt for attempt in attempts if not attempt.is_async]
        if on_threads:
            self._crew.feed(on_threads)
        if on_loop:
            self._loop.call_soon_threadsafe(self._take_on_loop, on_loop)

    def _take_on_loop(self, attempts: list[Attempt]) -> None:
        self._loop_backlog.extend(attempts)
        self._fill_loop()

    def _cancel(self, message: Cancel) -> None:
        if message.number in self._waiting:
            self._give_back([message.number])
        if (attempt := self._attempts.get(message.number)) is None:
            return
        is_first = not attempt.asked_at
        attempt.asked_at = attempt.asked_at or boot()
        attempt.context._ask(message.kind, message.reason)
        if attempt.is_async:
            self._loop.call_soon_threadsafe(_cancel_task, attempt)
            if is_first:
                self._loop.call_soon_threadsafe(self._ask_again, attempt, attempt.run.grace / 2)

    def _ask_again(self, attempt: Attempt, wait: float) -> None:
        """On the loop. As with what blocks it: at half of the grace, and then ever more rarely. Whoever waits has
        swallowed the first; whoever cleans up has had as long as an interrupt would leave it."""

        def ask(pause: float) -> None:
            if attempt.task is None or attempt.task.done() or boot() >= attempt.asked_at + attempt.run.grace:
                return
            _cancel_task(attempt)
            self._loop.call_later(pause, ask, 2 * pause)

        self._loop.call_later(wait, ask, max(0.05, min(ASK_AGAIN, 0.3 * attempt.run.grace)))

    def _give_back(self, numbers: list[int]) -> None:
        back = [number for number in numbers if self._waiting.pop(number, None) is not None]
        for number in back:
            self._attempts.pop(number, None)
        self._outbox.append(GivenBack(back))

    def _show(self, numbers: list[int]) -> None:
        for number in numbers:
            attempt = self._attempts.get(number)
            if attempt is not None and number not in self._waiting:
                text = whereabouts(attempt, is_on_main=self._page.loop_job == number)
                with self._books:
                    if number in self._attempts:
                        self._outbox.append(ShownMessage(number, text))

    def _report_running(self, now: float) -> None:
        # A copy is made in one piece; over an iterator a finalizer could let another thread in.
        for attempt in self._attempts.copy().values():
            if attempt.progress is not None or attempt.output is not None:
                with self._books:
                    if attempt.number in self._attempts:
                        self._report(attempt, now)

    def _report(self, attempt: Attempt, now: float) -> None:
        if attempt.progress is not None:
            text, attempt.progress = attempt.progress, None
            self._outbox.append(Say(attempt.number, "progress", text))
        if attempt.output is not None and now >= attempt.streamed_at + STREAM_EVERY:
            attempt.streamed_at = now
            if text := attempt.output.stream():
                self._outbox.append(Say(attempt.number, "output", text))

    def _end_if_drained(self) -> None:
        if not self._draining or self._attempts:
            return
        if not self._stopping:
            self._stopping = True
            if self._alone:
                self._solo.put(None)
            else:
                self._loop.call_soon_threadsafe(self._loop.stop)
        elif self._stopped and not self._outbox and not self._unsent:
            os._exit(0)

    def _flush(self) -> None:
        self._is_in_flow = False
        if news := self._news():
            now = boot()
            # The first two words go at once, so that a single job never waits for others.
            self._is_in_flow, self._spoke_at = now < self._spoke_at + GATHER, now
            for frame in pack_all(news, _weight):
                self._unsent += frame
        if self._unsent:
            self._send()

    def _news(self) -> list[Any]:
        """Beginnings come first and are looked for last: so none is told after a word of its attempt."""
        outbox, said = self._outbox, []
        while outbox:
            said.append(outbox.popleft())
        # The end of one of them may take it back meanwhile.
        untold = [(number, self._begun.pop(number, None)) for number in self._begun.copy()]
        return [Begun(number, at) for number, at in untold if at is not None] + said

    def _send(self) -> None:
        try:
            sent = self._wire.send(memoryview(self._unsent)[:_READ])
        except BlockingIOError:
            return
        except OSError:
            os._exit(69)
        del self._unsent[:sent]


def _cancel_task(attempt: Attempt) -> None:
    if attempt.task is not None and not attempt.task.done():
        reason = attempt.context.reason
        attempt.task.cancel(f"Execution cancelled: {reason}" if reason else "Execution cancelled")


async def _await(answer: Any) -> Any:
    return await answer


def _weight(message: Any) -> int:
    match message:
        case Return():
            return len(message.result) + len(message.output or "")
        case Begun():
            return 16
        case Raise():
            return len(message.stack or "") + len(message.output or "")
        case Say():
            return len(message.text)
        case FlowCallMessage():
            return _question_weight(message.question)
        case Park():
            return len(message.wait.default or "") + len(message.output or "")
        case ShownMessage():
            return len(message.stack)
        case _:
            return 16


def _question_weight(question: Question) -> int:
    match question:
        case RecordStep():
            return len(question.result)
        case KeepPart():
            return len(question.value)
        case SpawnMessage():
            return len(question.job.payload)
        case _:
            return 16
