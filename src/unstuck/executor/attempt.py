"""One attempt: unpack its arguments, run its handler inside the middleware, and say in one message how it ended.

Nothing a handler raises leaves here, SystemExit and hostile exceptions included; what is kept of them is bounded.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import math
import os
import threading
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from unstuck.clock import boot
from unstuck.executor.caller import running_loop
from unstuck.executor.capture import Output, say_past
from unstuck.executor.context import Context
from unstuck.executor.flow import Flow
from unstuck.executor.flow.calls import FlowCalls
from unstuck.executor.messages import Park, Question, Raise, Reply, Return, Run, Stop
from unstuck.executor.named_steps import SubtaskExited
from unstuck.executor.started import StartedByJob
from unstuck.model.errors import (
    Cancelled,
    ChildrenFailed,
    ErrorType,
    Fail,
    InvalidInput,
    NotStorable,
    Retry,
    UnknownWorkflowName,
)
from unstuck.model.payload import clean_text
from unstuck.model.policy import LONGEST
from unstuck.model.waits import Wait
from unstuck.model.workflow import Handler, Registry

MAX_MESSAGE = 8 << 10
MAX_STACK = 32 << 10
MAX_FRAMES = 80
_CAUSES = 10
_OUR_FOLDER = os.path.dirname(__file__) + os.sep
#: What a retry would only meet again.
_IN_VAIN = (Fail, ChildrenFailed, InvalidInput)

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
        "started",
        "started_at",
        "streamed_at",
        "task",
        "tasks",
        "thread",
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
        self._context: Context | None = None

    @property
    def is_async(self) -> bool:
        return self.handler is not None and self.handler.is_async

    @property
    def is_here(self) -> bool:
        """Not in what its handler has forked: threads that are no more may hold every lock there."""
        return os.getpid() == self.pid

    @property
    def context(self) -> Context:
        if self._context is None:
            with _making:
                if self._context is None:
                    made = self._make_context()
                    # Only now: a finalizer or a signal's handler may have asked meanwhile, on this very thread.
                    self._context = self._context or made
        return self._context

    def _make_context(self) -> Context:
        run = self.run
        return Context(
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

    def _make_flow(self, context: Context) -> Flow:
        assert self.handler is not None
        calls = FlowCalls(functools.partial(self.post, self.number), self.loop)
        return Flow(
            context,
            calls,
            self.handler.pack,
            self.run.max_result,
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
    """In a forked child: who held it is not there to give it back."""
    global _making
    _making = threading.RLock()


os.register_at_fork(after_in_child=_renew_making)


def execute(attempt: Attempt, registry: Registry) -> End:
    """Run a sync handler, here and now."""
    try:
        handler, args, kwargs = _prepare(attempt, registry)
        if not registry.middleware:
            value = enter_handler(attempt, handler, args, kwargs)
        else:
            with ExitStack() as around:
                for middleware in registry.middleware:
                    around.enter_context(middleware(attempt.context))
                value = enter_handler(attempt, handler, args, kwargs)
        # It may have run a loop of its own.
        attempt.check_awaited()
    except BaseException as error:
        return _parked(attempt) or _failed(attempt, _blamed(attempt, error))
    return _parked(attempt) or _returned(attempt, handler, value)


async def execute_async(attempt: Attempt, registry: Registry) -> End:
    """Run a coroutine handler on the loop we are on."""
    try:
        handler, args, kwargs = _prepare(attempt, registry)
        if not registry.middleware:
            value = await enter_handler_async(attempt, handler, args, kwargs)
        else:
            with ExitStack() as around:
                for middleware in registry.middleware:
                    around.enter_context(middleware(attempt.context))
                value = await enter_handler_async(attempt, handler, args, kwargs)
        attempt.check_awaited()
        return _parked(attempt) or _returned(attempt, handler, value)
    except BaseException as error:
        return _parked(attempt) or _failed(attempt, _blamed(attempt, error))


# What is below these two on a stack is the handler's. An interrupt strikes only there, and never in a frame of ours:
# so not between a handler's end and the end of `is_inside`, nor while middleware or a result is being dealt with.


def enter_handler(attempt: Attempt, handler: Handler, args: list[Any], kwargs: dict[str, Any]) -> Any:
    attempt.is_inside = True
    try:
        return handler.call(*args, **kwargs)
    finally:
        attempt.is_inside = False


async def enter_handler_async(attempt: Attempt, handler: Handler, args: list[Any], kwargs: dict[str, Any]) -> Any:
    attempt.is_inside = True
    try:
        return await handler.call(*args, **kwargs)
    finally:
        attempt.is_inside = False


class _Unreadable(Exception):
    """The arguments could not be made from the payload."""


def _prepare(attempt: Attempt, registry: Registry) -> tuple[Handler, list[Any], dict[str, Any]]:
    handler = attempt.handler or registry.handler(attempt.run.workflow)
    try:
        args, kwargs = handler.unpack(attempt.run.payload)
    except Exception as error:
        raise _Unreadable from error
    if handler.takes_context:
        args = [attempt.context, *args]
    return handler, args, kwargs


def _parked(attempt: Attempt) -> Park | None:
    """Whatever the handler made of it: once it waits, it neither returns nor fails."""
    wait = attempt.parked
    return None if wait is None else Park(attempt.number, attempt.elapsed_ms(), wait, attempt.rest())


def _returned(attempt: Attempt, handler: Handler, value: Any) -> End:
    limit = attempt.run.max_result
    try:
        text = handler.pack(value)
        size = len(text) if text.isascii() else len(text.encode())
        if size > limit:
            raise NotStorable("the result", f"it is {size:,} bytes of JSON; the limit is {limit:,}")
    except BaseException as error:
        problem = str(error) if isinstance(error, NotStorable) else _last_line(error)
        return _refused(attempt, ErrorType.RESULT_NOT_STORABLE, problem)
    return Return(attempt.number, attempt.elapsed_ms(), text, attempt.rest())


def _blamed(attempt: Attempt, error: BaseException) -> BaseException:
    """Who forgot an await and uses what it would have given gets an error that does not say so, and would again."""
    if type(error) not in (TypeError, AttributeError) or "'Promise'" not in str(error):
        return error
    try:
        attempt.check_awaited()
    except InvalidInput as better:
        better.__cause__ = error
        return better
    return error


def _failed(attempt: Attempt, error: BaseException) -> End:
    try:
        return _explained(attempt, error)
    except BaseException as trouble:
        # Its own attributes fail, or there is no memory left for its story: what happened is said without it.
        return _undescribed(attempt, error, trouble)


def _undescribed(attempt: Attempt, error: BaseException, trouble: BaseException) -> Raise:
    message = f"its failure could not be described ({_class_name(trouble)})"
    try:
        output = attempt.rest()
    except BaseException:
        output = None
    return Raise(attempt.number, attempt.elapsed_ms(), _class_name(error), message, None, None, None, output)


def _class_name(error: BaseException) -> str:
    """As the interpreter keeps it, whatever its metaclass would say."""
    return clean_text(type.__dict__["__name__"].__get__(type(error)), 200)


def _explained(attempt: Attempt, error: BaseException) -> End:
    match error:
        # Only if somebody asked: raised of its own accord it is a failure like any other, or it would go back at no
        # cost, be due at once, and never end.
        case Cancelled() | BaseExceptionGroup() if _was_asked(attempt) and _is_stop(error):
            return _stopped(attempt, error)
        case asyncio.CancelledError() if attempt.context.cancelled:
            return _stopped(attempt, error)
        case UnknownWorkflowName() if attempt.handler is None:
            return _refused(attempt, ErrorType.UNKNOWN_WORKFLOW, str(error))
        case _Unreadable():
            problem = _last_line(error.__cause__ or error)
            return _refused(attempt, ErrorType.INVALID_JOB, f"its arguments could not be read: {problem}")
    if isinstance(error, SubtaskExited) and error.__cause__ is not None:
        error = error.__cause__
    retry, after = _own_word(attempt, error)
    name, message, stack = describe(error)
    rest = attempt.rest()
    return Raise(attempt.number, attempt.elapsed_ms(), name, message, stack, retry, after, rest, _is_starved(error))


def _is_starved(error: BaseException | None) -> bool:
    """Also if it was raised on the way to another one."""
    for _ in range(_CAUSES):
        if error is None:
            return False
        if isinstance(error, OSError) and error.errno == errno.EMFILE:
            return True
        error = error.__cause__ or error.__context__
    return False


def _was_asked(attempt: Attempt) -> bool:
    return attempt.context.cancelled or attempt.context.has_lost_lease or attempt.is_interrupted


def _is_stop(error: BaseException) -> bool:
    """Also when it came out of a task group, with the cancellations it caused there."""
    if isinstance(error, BaseExceptionGroup):
        return error.split((Cancelled, asyncio.CancelledError))[1] is None
    return isinstance(error, Cancelled)


def _stopped(attempt: Attempt, error: BaseException) -> Stop:
    context = attempt.context
    message = context.reason or _last_line(error)
    asked = context.kind if context.cancelled else None
    return Stop(attempt.number, attempt.elapsed_ms(), asked, clean_text(message, MAX_MESSAGE), attempt.rest())


def _refused(attempt: Attempt, kind: ErrorType, problem: str) -> Raise:
    message = clean_text(problem, MAX_MESSAGE)
    return Raise(attempt.number, attempt.elapsed_ms(), kind.value, message, None, False, None, attempt.rest())


def _own_word(attempt: Attempt, error: BaseException) -> tuple[bool | None, float | None]:
    """What the handler itself says about a retry; None leaves it to the policy."""
    if isinstance(error, Retry):
        return True, _seconds(error.after)
    # The same children would be gathered again, and the same call be refused again; also in a task group.
    if isinstance(error, _IN_VAIN) or (isinstance(error, BaseExceptionGroup) and error.subgroup(_IN_VAIN)):
        return False, None
    retry_on = attempt.handler.retry_on if attempt.handler else None
    return (None if retry_on is None else isinstance(error, retry_on)), None


def _seconds(after: object) -> float | None:
    if isinstance(after, int | float) and math.isfinite(after):
        return min(max(0.0, float(after)), LONGEST)
    return None


def describe(error: BaseException) -> tuple[str, str, str | None]:
    """Class name, message and stack, bounded, whatever the exception's own methods do."""
    name = _class_name(error)
    try:
        message = str(error)
    except BaseException:
        message = f"<{name}: its own message could not be made>"
    return name, clean_text(message, MAX_MESSAGE), _stack(error)


def _stack(error: BaseException) -> str | None:
    try:
        shown = _within_handler(error.__traceback__)
        lines = traceback.format_exception(type(error), error, shown, limit=-MAX_FRAMES)
        return clean_text("".join(lines), MAX_STACK)
    except BaseException:
        return None


def _within_handler(trace: TracebackType | None) -> TracebackType | None:
    """Without our own frames at the top: people look for theirs."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_OUR_FOLDER):
        inner = inner.tb_next
    return inner or trace


def _last_line(error: BaseException) -> str:
    name, message, _ = describe(error)
    return f"{name}: {message}" if message else name
