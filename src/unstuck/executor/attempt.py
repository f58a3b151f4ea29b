"""One attempt, as its executor keeps it: what it was given, its Context, its output, where it runs."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Callable
from typing import Any

from unstuck.clock import boot
from unstuck.executor.caller import running_loop
from unstuck.executor.capture import Output, say_past
from unstuck.executor.context import AsyncContext, AttemptContext, Context
from unstuck.executor.flow import Flow
from unstuck.executor.flow.calls import FlowCalls
from unstuck.executor.messages import Park, Question, Raise, Reply, Return, Run, Stop
from unstuck.executor.started import StartedByJob
from unstuck.model.waits import Wait
from unstuck.model.workflow import Handler
from unstuck.tracing import OpenSpan

End = Return | Raise | Stop | Park
#: Hands a flow call of an attempt to the control thread, by the attempt's number and its own serial.
Post = Callable[[int, int, Question], bool]


class Attempt:
    """What the executor keeps of one attempt while it is here.

    Context and output are made when first asked for: most attempts of short jobs need neither.
    """

    __slots__ = (
        "_context",
        "asked_at",
        "handler",
        "is_inside",
        "is_interrupted",
        "lease_until",
        "loop",
        "number",
        "output",
        "pid",
        "place",
        "post",
        "progress",
        "run",
        "span",
        "started",
        "started_at",
        "streamed_at",
        "task",
        "tasks",
        "thread",
        "unsaid_span",
    )

    def __init__(
        self, run: Run, handler: Handler | None, loop: Any, lease_until: Callable[[], float], post: Post
    ) -> None:
        self.run = run
        self.number = run.number
        self.place = run.place
        self.handler = handler
        self.loop = loop
        self.lease_until = lease_until
        self.post = post
        self.pid = os.getpid()
        self.started_at = 0.0
        self.asked_at = 0.0
        self.thread = 0
        #: Its handler is being called: only then may it be interrupted, and whether it was.
        self.is_inside = False
        self.is_interrupted = False
        self.streamed_at = 0.0
        self.output: Output | None = None
        self.progress: str | None = None
        self.task: asyncio.Task[Any] | None = None
        self.tasks: set[asyncio.Task[Any]] | None = None
        self.started: StartedByJob | None = None
        #: The span that it is traced by, and the name of it that its supervisor does not know yet.
        self.span: OpenSpan | None = None
        self.unsaid_span: str | None = None
        self._context: AttemptContext | None = None

    @property
    def is_async(self) -> bool:
        return self.handler is not None and self.handler.is_async

    @property
    def is_here(self) -> bool:
        """False in a process that the handler forked: locks there may be of threads that the fork did not copy."""
        return os.getpid() == self.pid

    @property
    def context(self) -> AttemptContext:
        if self._context is None:
            with _making:
                if self._context is None:
                    made = self._make_context()
                    # Only now: a finalizer or a signal's handler may have asked meanwhile, on this very thread.
                    self._context = self._context or made
        return self._context

    def _make_context(self) -> AttemptContext:
        run, kind = self.run, AsyncContext if self.is_async else Context
        return kind(
            job=run.job,
            workflow=run.workflow,
            attempt=run.attempt,
            run=run.run,
            tenant=run.tenant,
            queue=run.queue,
            token=run.token,
            claim=run.claim,
            deadline=None if run.timeout is None else self.started_at + run.timeout,
            loop=self.loop,
            say=self.tell,
            add=self.add,
            lease_until=self.lease_until,
            make_flow=self._make_flow,
            pid=self.pid,
        )

    def _make_flow(self, context: AttemptContext) -> Flow:
        assert self.handler is not None
        calls = FlowCalls(functools.partial(self.post, self.number), self.loop)
        return Flow(
            context,
            calls,
            self.handler.pack,
            self.run.max_result,
            is_first=self.run.token == 1,
            is_home=self._is_home,
            is_beside=self._is_beside,
            abandon=self._abandon,
        )

    def _is_home(self) -> bool:
        return threading.get_ident() == self.thread

    def _abandon(self) -> None:
        """It parks. If that is said in a task beside its handler's, the handler would not hear of it."""
        if self.task is not None and self._is_beside():
            self.task.cancel()

    def _is_beside(self) -> bool:
        return self.task is not None and running_loop() is self.loop and asyncio.current_task() is not self.task

    @property
    def parked(self) -> Wait | None:
        flow = self._context._flow if self._context is not None else None
        return flow.parked if flow is not None else None

    def check_awaited(self) -> None:
        flow = self._context._flow if self._context is not None else None
        if flow is not None and flow.parked is None and self.is_here:
            flow.check_awaited()

    def answered(self, serial: int, answer: Reply) -> None:
        """By the control thread."""
        if self._context is not None and (flow := self._context._flow) is not None:
            flow.calls.answered(serial, answer)

    @property
    def asked_because(self) -> str:
        """Why it is to stop, as far as is known; asked by a signal handler, so nothing is made for it."""
        return self._context.reason if self._context is not None else ""

    def tell(self, progress: str) -> None:
        self.progress = progress

    def write(self, text: str) -> None:
        (self.output or self._make_output()).write(text)

    def add(self, framed: str) -> None:
        if self.is_here:
            (self.output or self._make_output()).add(framed)
        else:
            say_past(framed)

    def _make_output(self) -> Output:
        with _making:
            if self.output is None:
                made = Output(self._is_asked)
                # As with the context: what was printed meanwhile is in the other.
                self.output = self.output or made
            return self.output

    def _is_asked(self) -> bool:
        return self._context is not None and self._context.cancelled

    def let_go(self) -> None:
        """Break the circles it is part of: at thousands of jobs a second the collector would have to find them."""
        if self._context is not None and self._context._flow is not None:
            self._context._flow.calls.close()
        self._context = None
        self.task = None
        if self.output is not None:
            self.output.let_go()

    def elapsed_ms(self) -> int:
        return max(0, int((boot() - self.started_at) * 1000))

    def rest(self) -> str | None:
        return self.output.rest() if self.output and self.is_here else None


#: The control thread's cancel and the handler's own thread may want the context at once; and a finalizer that comes
#: in the middle must not wait for its own thread.
_making = threading.RLock()


def _renew_making() -> None:
    """In a forked child: the thread that held it is not there to give it back."""
    global _making
    _making = threading.RLock()


os.register_at_fork(after_in_child=_renew_making)
