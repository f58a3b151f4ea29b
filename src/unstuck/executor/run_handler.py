"""Runs the handler of an attempt inside the middleware, and says in one message how it ended.

Nothing a handler raises leaves here, SystemExit and hostile exceptions included.
"""

from __future__ import annotations

import asyncio
import errno
import math
from contextlib import ExitStack
from typing import Any

from unstuck.executor.attempt import Attempt, End
from unstuck.executor.describe import MAX_MESSAGE, class_name, describe, last_line
from unstuck.executor.marked_coroutine import SubtaskExited
from unstuck.executor.messages import Park, Raise, Return, Stop
from unstuck.executor.tracing import begin_attempt, end_attempt
from unstuck.model.errors import (
    Cancelled,
    ChildrenFailed,
    ErrorType,
    Fail,
    InvalidInput,
    InvalidResult,
    NotStorable,
    Retry,
    UnknownWorkflowName,
)
from unstuck.model.payload import clean_text
from unstuck.model.policy import LONGEST
from unstuck.model.workflow import Handler, Registry

_CAUSES = 10
#: What a retry would only meet again.
_IN_VAIN = (Fail, ChildrenFailed, InvalidInput)


def execute(attempt: Attempt, registry: Registry) -> End:
    """Run a sync handler, here and now."""
    try:
        begin_attempt(attempt)
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
        return end_attempt(attempt, _parked(attempt) or _failed(attempt, _blamed(attempt, error)))
    return end_attempt(attempt, _parked(attempt) or _returned(attempt, handler, value))


async def execute_async(attempt: Attempt, registry: Registry) -> End:
    """Run a coroutine handler on the loop we are on."""
    try:
        begin_attempt(attempt)
        handler, args, kwargs = _prepare(attempt, registry)
        if not registry.middleware:
            value = await enter_handler_async(attempt, handler, args, kwargs)
        else:
            with ExitStack() as around:
                for middleware in registry.middleware:
                    around.enter_context(middleware(attempt.context))
                value = await enter_handler_async(attempt, handler, args, kwargs)
        attempt.check_awaited()
        return end_attempt(attempt, _parked(attempt) or _returned(attempt, handler, value))
    except BaseException as error:
        return end_attempt(attempt, _parked(attempt) or _failed(attempt, _blamed(attempt, error)))


# What is below these two on a stack is the handler's. An interrupt is raised only there, never in a frame of
# ours: so not between a handler's end and the end of `is_inside`, nor while middleware or a result is handled.


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
        text = (handler.pack_result or handler.pack)(value)
        size = len(text) if text.isascii() else len(text.encode())
        if size > limit:
            raise NotStorable("the result", f"it is {size:,} bytes of JSON; the limit is {limit:,}")
    except InvalidResult as error:
        return _refused(attempt, ErrorType.INVALID_RESULT, str(error))
    except BaseException as error:
        problem = str(error) if isinstance(error, NotStorable) else last_line(error)
        return _refused(attempt, ErrorType.RESULT_NOT_STORABLE, problem)
    return Return(attempt.number, attempt.elapsed_ms(), text, attempt.rest())


def _blamed(attempt: Attempt, error: BaseException) -> BaseException:
    """A handler that forgot an await, and uses the promise as its value, gets an error that does not say so. This one
    does."""
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
    message = f"its failure could not be described ({class_name(trouble)})"
    try:
        output = attempt.rest()
    except BaseException:
        output = None
    return Raise(attempt.number, attempt.elapsed_ms(), class_name(error), message, None, None, None, output)


def _explained(attempt: Attempt, error: BaseException) -> End:
    match error:
        # Only if a stop was requested: raised of its own accord it is a failure like any other, or it would go back
        # at no cost, be due at once, and never end.
        case Cancelled() | BaseExceptionGroup() if _was_asked(attempt) and _is_stop(error):
            return _stopped(attempt, error)
        case asyncio.CancelledError() if attempt.context.cancelled:
            return _stopped(attempt, error)
        case UnknownWorkflowName() if attempt.handler is None:
            return _refused(attempt, ErrorType.UNKNOWN_WORKFLOW, str(error))
        case _Unreadable():
            problem = last_line(error.__cause__ or error)
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
    message = context.reason or last_line(error)
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
