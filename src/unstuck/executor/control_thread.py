"""The control thread of an executor: all input and output with the supervisor, and the pulse in the shared page.

It never runs user code and collects no garbage of handlers (`collector_pause.py`), so neither a blocked loop nor a
huge result keeps it from reporting. Every round it hears the supervisor, beats, guards the lease, reinforces the crew
of worker threads and sends what the outbox holds; with every pulse it also reports progress and output, looks for
what ended attempts have left behind, and puts back the shared state that handlers have changed.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import threading
from contextlib import suppress
from typing import Any, NoReturn

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt
from unstuck.executor.attempts import Attempts
from unstuck.executor.collector_pause import CollectorPause
from unstuck.executor.crew import Crew
from unstuck.executor.descendants import Descendant, executor_of, kill_where
from unstuck.executor.execution import Execution
from unstuck.executor.interrupt import Interrupter
from unstuck.executor.live_stack import live_stack
from unstuck.executor.main_thread import MainThread
from unstuck.executor.messages import (
    INTERRUPT_SIGNAL,
    Answered,
    BadFrame,
    Begun,
    Cancel,
    DrainMessage,
    FlowCallMessage,
    FrameReader,
    KeepPart,
    LeftBehindMessage,
    Park,
    Publish,
    Question,
    Raise,
    RecallMessage,
    RecordStep,
    Return,
    Run,
    Say,
    Show,
    ShownMessage,
    SpawnMessage,
    pack_all,
    to_executor,
)
from unstuck.executor.outbox import Outbox
from unstuck.executor.rhythm import Rhythm
from unstuck.executor.setup import ExecutorSetup
from unstuck.model.workflow import Registry

#: How an executor ends that saw its worker's lease run out.
FENCED_STATUS = 68
#: How soon the crew may be reinforced while jobs wait.
REINFORCE_EVERY = 0.001
#: Messages that come within these seconds of one another are sent together: every frame wakes two processes.
GATHER = 0.001
#: So many at a time are a stream: a frame of them is worth a longer wait, which nobody notices. A handler that waits
#: for an answer ends it at once.
STREAM = 16
GATHER_STREAM = 0.004
#: So few descriptors left are none: a handler's next file or connection would fail.
FEW_DESCRIPTORS = 8
#: More would be taken from the kernel page by page, and given back, for every job.
_READ = 64 << 10
_MOST_SENT = 256 << 10


class ControlThread:
    def __init__(
        self,
        setup: ExecutorSetup,
        outbox: Outbox,
        attempts: Attempts,
        execution: Execution,
        interrupter: Interrupter,
        crew: Crew,
        main: MainThread,
        gc_pause: CollectorPause,
        registry: Registry,
    ) -> None:
        self._wire = setup.wire
        self._page = setup.page
        self._outbox = outbox
        self._attempts = attempts
        self._execution = execution
        self._interrupter = interrupter
        self._crew = crew
        self._main = main
        self._gc_pause = gc_pause
        self._tag = setup.tag
        self._registry = registry
        self._pulse = setup.pulse
        self._rhythm = Rhythm(setup.pulse, lambda: bool(attempts.here))
        self._alone = setup.alone
        self._pid = os.getpid()
        self._main_thread = threading.get_ident()
        self._inbox = FrameReader(to_executor)
        self._unsent = bytearray()
        self._next_pulse = 0.0
        self._spoke_at = 0.0
        self._gather_until = 0.0
        self._is_short = False
        self._is_draining = False

    def start(self) -> None:
        threading.Thread(target=self._serve, name="unstuck-control", daemon=True).start()

    def _serve(self) -> None:
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
        poller = select.poll()
        poller.register(fd, select.POLLIN)
        poller.register(self._outbox.wake_in, select.POLLIN)
        writing = False
        found: list[tuple[int, int]] = []
        while True:
            self._gc_pause.begin()
            self._receive(found, fd)
            self._outbox.wake_up()
            self._work(boot())
            if writing != bool(self._unsent):
                writing = not writing
                poller.modify(fd, select.POLLIN | select.POLLOUT if writing else select.POLLIN)
            nap = self._nap(boot())
            self._gc_pause.end()
            found = poller.poll(nap)

    def _receive(self, found: list[tuple[int, int]], wire: int) -> None:
        for ready, event in found:
            if event & (select.POLLNVAL | select.POLLERR):
                os._exit(70)
            if ready == wire and event & (select.POLLIN | select.POLLHUP):
                self._hear()
            elif ready == self._outbox.wake_in:
                os.read(self._outbox.wake_in, 4096)

    def _work(self, now: float) -> None:
        """One round."""
        self._page.beat(now)
        self._guard_lease(now)
        if self._attempts.here:
            self._next_pulse = min(self._next_pulse, now + self._pulse)
        if now >= self._next_pulse:
            self._next_pulse = now + self._rhythm.rest()
            self._look_around(now)
        if (ahead := self._next_pulse - self._pulse) > now:
            self._page.beat(ahead)
        if self._crew.is_behind:
            self._crew.reinforce()
        self._end_if_drained()
        self._flush()

    def _look_around(self, now: float) -> None:
        """With every pulse."""
        self._attempts.report_running(now)
        for left in self._execution.leftovers.look(now):
            self._outbox.put(left)
        self._count_descriptors()
        self._main.shared.reopen()
        if not self._attempts.here:
            self._main.shared.restore()

    def _count_descriptors(self) -> None:
        """The lowest free number tells how many are in use. Said once: the process is to be replaced."""
        if self._is_short:
            return
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            os.close(lowest := os.dup(self._outbox.wake_in))
        except OSError:
            lowest = limit
        if lowest + FEW_DESCRIPTORS >= limit:
            self._is_short = True
            self._outbox.put(LeftBehindMessage("", [], poison=f"no file descriptor is left in it (limit {limit})"))

    def _guard_lease(self, now: float) -> None:
        """As the zygote does, a pulse later: it is only missed when supervisor and zygote are both stopped.

        What was finished is said, then what handlers have started is killed while we still know of it, and the
        handlers end with the process. The page says why: a status alone any handler could fake.
        """
        until = self._page.lease_until
        if until and now >= until + self._pulse:
            self._page.fence(now)
            self._gather_until = 0.0
            self._flush()
            kill_where(self._is_descendant)
            _give_up(FENCED_STATUS)

    def _is_descendant(self, found: Descendant) -> bool:
        owner = executor_of(found.pid, self._tag.incarnation)
        return found.session == self._pid or owner == self._tag.executor

    def _nap(self, now: float) -> float:
        """Milliseconds to sleep."""
        left = self._gather_until - now
        if left <= 0.0:
            if not self._outbox.fall_asleep():
                return 0.0
        elif not self._outbox.gather():
            return 0.0
        if self._crew.is_behind:
            return 1000 * REINFORCE_EVERY
        if left > 0.0:
            return 1000 * max(GATHER, left)
        until_pulse = self._next_pulse - now
        until_fence = lease + self._pulse - now if (lease := self._page.lease_until) else until_pulse
        return 1000 * max(REINFORCE_EVERY, min(until_pulse, until_fence))

    # what the supervisor says

    def _hear(self) -> None:
        try:
            data = self._wire.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            # The supervisor is gone or has given us up; nobody would hear of what runs here.
            _give_up(69)
        try:
            messages = self._inbox.take(data)
        except BadFrame:
            os._exit(70)
        fresh: list[Attempt] = []
        for message in messages:
            match message:
                case Run():
                    fresh.append(self._accept(message))
                case Answered():
                    if (attempt := self._attempts.here.get(message.number)) is not None:
                        attempt.answered(message.serial, message.answer)
                case Cancel():
                    self._cancel(message)
                case RecallMessage():
                    self._attempts.give_back(message.numbers)
                case Show():
                    self._show(message.numbers)
                case DrainMessage():
                    self._is_draining = True
        if fresh:
            self._place(fresh)

    def _accept(self, run: Run) -> Attempt:
        handler = self._registry.handlers.get(run.workflow)
        attempt = Attempt(run, handler, self._main.loop, self._lease_until, self._attempts.post)
        self._attempts.accept(attempt)
        return attempt

    def _lease_until(self) -> float:
        return self._page.lease_until

    def _place(self, attempts: list[Attempt]) -> None:
        if self._alone:
            self._main.take(attempts)
            return
        if on_threads := [attempt for attempt in attempts if not attempt.is_async]:
            self._crew.feed(on_threads)
        if on_loop := [attempt for attempt in attempts if attempt.is_async]:
            self._main.take(on_loop)

    def _cancel(self, message: Cancel) -> None:
        if message.number in self._attempts.unbegun:
            self._attempts.give_back([message.number])
        if (attempt := self._attempts.here.get(message.number)) is None:
            return
        is_first = not attempt.asked_at
        attempt.asked_at = attempt.asked_at or boot()
        attempt.context._ask(message.kind, message.reason)
        if attempt.is_async:
            self._main.cancel(attempt, is_first=is_first)

    def _show(self, numbers: list[int]) -> None:
        for number in numbers:
            attempt = self._attempts.here.get(number)
            if attempt is not None and number not in self._attempts.unbegun:
                text = live_stack(attempt, is_on_main=self._page.loop_job == number)
                self._attempts.tell(number, ShownMessage(number, text))

    def _end_if_drained(self) -> None:
        if not self._is_draining or self._attempts.here:
            return
        if self._main.is_done and not self._outbox and not self._unsent:
            os._exit(0)
        self._main.stop()

    # what is said to the supervisor

    def _flush(self) -> None:
        now = boot()
        is_time = now >= self._gather_until or self._outbox.is_urgent
        if is_time and (messages := self._outbox.take_all()):
            # The first two messages go at once, so that a single job never waits for others.
            is_soon, self._spoke_at = now < self._spoke_at + GATHER, now
            if len(messages) >= STREAM:
                self._gather_until = now + GATHER_STREAM
            elif is_soon:
                self._gather_until = now + GATHER
            for frame in pack_all(messages, _weight):
                self._unsent += frame
        if self._unsent:
            self._send()

    def _send(self) -> None:
        try:
            sent = self._wire.send(memoryview(self._unsent)[:_MOST_SENT])
        except BlockingIOError:
            return
        except OSError:
            _give_up(69)
        del self._unsent[:sent]


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
        case Publish():
            return len(question.publication.data)
        case SpawnMessage():
            return len(question.job.payload)
        case _:
            return 16


def _give_up(status: int) -> NoReturn:
    """The supervisor is gone, or its lease. A zygote that somebody stopped is continued: it would never hear of its
    supervisor's death, and stay with all that it has adopted."""
    with suppress(OSError):
        os.kill(os.getppid(), signal.SIGCONT)
    os._exit(status)
