"""The executor's event loop: coroutine handlers on the main thread, each step marked in the shared page.

Every task that a handler starts belongs to its attempt, by the contextvars it inherits. So the page names the right
job when a sub-task blocks the loop, `sys.exit()` in a sub-task fails its own job instead of ending the process, and
what a handler leaves behind is cancelled when it ends: nothing of a settled attempt goes on working.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from unstuck.clock import boot
from unstuck.executor.attempt import Attempt
from unstuck.executor.context import running
from unstuck.executor.leftovers import JobThreadPool
from unstuck.executor.marked_coroutine import MarkedCoroutine, end_if_copied
from unstuck.executor.page import SharedPage
from unstuck.executor.rhythm import Rhythm


def make_loop(
    page: SharedPage, rhythm: Rhythm, mend: Callable[[], None]
) -> tuple[asyncio.AbstractEventLoop, Callable[[], None]]:
    """A loop that knows whose task is whose, and beats; `mend` is called with every beat. And how to wake it from the
    longer rest of who is calm, on its own thread, before a coroutine begins there."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    pid = os.getpid()
    next_beat: asyncio.TimerHandle | None = None

    def make_task(
        loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        context = options.get("context")
        owner = context.get(running) if context is not None else running.get()
        if not isinstance(owner, Attempt):
            return asyncio.Task(coroutine, loop=loop, **options)
        task = asyncio.Task(MarkedCoroutine(coroutine, page, owner.number, pid), loop=loop, **options)
        _adopt(owner, task)
        return task

    def beat() -> None:
        nonlocal next_beat
        end_if_copied(pid)
        rest = rhythm.pulse
        try:
            rest = rhythm.rest()
            page.beat_loop(boot() + rest - rhythm.pulse)
            # A job may have set one of its own, which would know nobody's tasks, and stay when the job has ended.
            loop.set_task_factory(make_task)  # type: ignore[arg-type]
            mend()
        finally:
            # Also if a signal's handler that a job left behind raises right here: a loop must not fall silent by it.
            next_beat = loop.call_later(rest, beat)

    def hurry() -> None:
        if next_beat is not None and next_beat.when() > loop.time() + rhythm.pulse:
            next_beat.cancel()
            beat()

    loop.set_default_executor(JobThreadPool(thread_name_prefix="unstuck-to-thread"))
    loop.set_task_factory(make_task)  # type: ignore[arg-type]
    loop.call_soon(beat)
    stop_copies(loop)
    return loop, hurry


def stop_copies(loop: asyncio.AbstractEventLoop) -> None:
    """The child of a fork on the loop's own thread may go on with its handler, but its copy of the loop is over.

    What is ready in this very round would still be called, so it is cancelled too; other kinds of loop than
    asyncio's own have no such list, and end with the round or with the next step that is taken.
    """
    thread = threading.get_ident()

    def stop() -> None:
        if threading.get_ident() == thread:
            for handle in (*getattr(loop, "_ready", ()), *getattr(loop, "_scheduled", ())):
                handle.cancel()
            loop.stop()

    os.register_at_fork(after_in_child=stop)


def _adopt(owner: Attempt, task: asyncio.Task[Any]) -> None:
    if owner.tasks is None:
        owner.tasks = set()
    owner.tasks.add(task)
    task.add_done_callback(owner.tasks.discard)


def cancel_leftovers(attempt: Attempt) -> None:
    for task in tuple(attempt.tasks or ()):
        task.cancel()
