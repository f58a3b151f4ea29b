"""Calls the function of a step: here, on a thread of its own if it may take only so long, or on the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from unstuck.executor.caller import running_loop
from unstuck.executor.flow.calls import FlowCalls, PendingAnswer
from unstuck.model.errors import InvalidInput, StepTimeout

#: The name of the step whose function runs here.
inside: ContextVar[str | None] = ContextVar("unstuck_step", default=None)

Call = Callable[[], Any]


async def call_step(calls: FlowCalls, name: str, call: Call, timeout: float | None, *, is_async: bool) -> Any:
    """Gives what it returned, or None of `calls` if a stop came before a thread of its own had ended."""
    if running_loop() is not None:
        return await _on_loop(name, call, timeout, is_async=is_async)
    if is_async:
        raise _not_here(name)
    value = enter_step(name, call) if timeout is None else await _on_thread(calls, name, call, timeout)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise _not_here(name)
    return value


def is_coroutine(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


# These two are doors: what is below them on a stack is the handler's again, and may be interrupted.


def enter_step(name: str, call: Call) -> Any:
    before = inside.set(name)
    try:
        return call()
    finally:
        inside.reset(before)


async def enter_step_async(name: str, call: Call, is_async: bool) -> Any:
    before = inside.set(name)
    try:
        value = call() if is_async else await asyncio.to_thread(call)
        return await value if inspect.isawaitable(value) else value
    finally:
        inside.reset(before)


async def _on_loop(name: str, call: Call, timeout: float | None, *, is_async: bool) -> Any:
    try:
        async with asyncio.timeout(timeout) as limit:
            return await enter_step_async(name, call, is_async)
    except TimeoutError:
        # Or it is one of its own.
        if not limit.expired():
            raise
        raise _took_too_long(name, timeout or 0.0) from None


async def _on_thread(calls: FlowCalls, name: str, call: Call, timeout: float) -> Any:
    """Its thread is left behind when the time is over; the process is recycled for that."""
    ended = PendingAnswer()

    def body() -> None:
        try:
            ended.put((enter_step(name, call), None))
        except BaseException as error:
            ended.put((None, error))

    variables = contextvars.copy_context()
    threading.Thread(target=variables.run, args=(body,), name=f"step {name}", daemon=True).start()
    try:
        answer = await calls.wait(ended, timeout)
    except TimeoutError:
        raise _took_too_long(name, timeout) from None
    if answer is None:
        raise StepStopped
    value, error = answer
    if error is not None:
        raise error
    return value


class StepStopped(BaseException):
    """A stop was asked for while a step's thread was at work; never leaves the flow."""


def _took_too_long(name: str, limit: float) -> StepTimeout:
    return StepTimeout(f"step {name!r} took longer than {limit:g} seconds")


def _not_here(name: str) -> InvalidInput:
    return InvalidInput(f"step {name!r}: its function is a coroutine, and this handler is not: make it `async def`")
