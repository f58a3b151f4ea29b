"""The executor's event loop: coroutine handlers on the main thread, each step marked in the shared page.

Every task that a handler starts belongs to its attempt, by the contextvars it inherits. So the page names the right
job when a sub-task blocks the loop, `sys.exit()` in a sub-task fails its own job instead of ending the process, and
what a handler leaves behind is cancelled when it ends: nothing of a settled attempt goes on working.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Generator
from typing import Any

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt, Exited
from unstuck.executor.context import running
from unstuck.executor.page import Page


class MarkedSteps(Coroutine[Any, Any, Any]):
    """A coroutine that names its job in the page while it is on the loop."""

    __slots__ = ("_coroutine", "_number", "_page", "_pid")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], page: Page, number: int, pid: int) -> None:
        self._coroutine = coroutine
        self._page = page
        self._number = number
        self._pid = pid

    def send(self, value: Any) -> Any:
        if os.getpid() != self._pid:
            # A handler forked, and this is the child with a copy of the loop: not one step of anybody's job here.
            os._exit(70)
        self._page.put_on_loop(self._number)
        try:
            return self._coroutine.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            raise Exited from error
        finally:
            self._page.put_on_loop(0)

    def throw(self, *error: Any) -> Any:
        self._page.put_on_loop(self._number)
        try:
            return self._coroutine.throw(*error)
        except (SystemExit, KeyboardInterrupt) as raised:
            raise Exited from raised
        finally:
            self._page.put_on_loop(0)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coroutine, name)


def make_loop(page: Page, pulse: float) -> asyncio.AbstractEventLoop:
    """A loop that knows whose task is whose, and beats."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    pid = os.getpid()

    def make_task(
        loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        context = options.get("context")
        owner = context.get(running) if context is not None else running.get()
        if not isinstance(owner, Attempt):
            return asyncio.Task(coroutine, loop=loop, **options)
        task = asyncio.Task(MarkedSteps(coroutine, page, owner.number, pid), loop=loop, **options)
        if owner.task is None:
            owner.task = task
        else:
            _adopt(owner, task)
        return task

    def beat() -> None:
        page.beat_loop(boot())
        loop.call_later(pulse, beat)

    loop.set_task_factory(make_task)  # type: ignore[arg-type]
    loop.call_soon(beat)
    return loop


def _adopt(owner: Attempt, task: asyncio.Task[Any]) -> None:
    if owner.tasks is None:
        owner.tasks = set()
    owner.tasks.add(task)
    task.add_done_callback(owner.tasks.discard)


def cancel_leftovers(attempt: Attempt) -> None:
    for task in tuple(attempt.tasks or ()):
        task.cancel()
