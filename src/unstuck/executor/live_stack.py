"""Where an attempt is, told by its own process: the frames of its thread, or its coroutine's chain of awaits.

Asked by the control thread, which must never run user code: only the interpreter's own objects are looked into.
The supervisor sees threads by itself, but a suspended coroutine is on no thread's stack.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any

from unstuck.executor.attempt import Attempt
from unstuck.executor.describe import MAX_FRAMES, MAX_STACK
from unstuck.executor.marked_coroutine import MarkedCoroutine
from unstuck.executor.run_handler import enter_handler, enter_handler_async
from unstuck.model.payload import clean_text

#: Longer chains of awaits are not followed to their end.
MAX_STEPS = 2000
MAX_TASKS = 20
_OUR_FOLDER = os.path.dirname(__file__) + os.sep
_DOORS = {
    enter_handler.__code__,
    enter_handler_async.__code__,
    MarkedCoroutine.send.__code__,
    MarkedCoroutine.throw.__code__,
}
_CHAINED = (CoroutineType, GeneratorType, AsyncGeneratorType, MarkedCoroutine, asyncio.Task)


def live_stack(attempt: Attempt, *, is_on_main: bool) -> str:
    """`is_on_main`: whether its code is on the main thread this instant."""
    threads = sys._current_frames()
    if attempt.is_async:
        parts = list(_coroutines(attempt, threads.get(attempt.thread) if is_on_main else None))
    else:
        parts = [_section("In its thread", _below_door(threads.get(attempt.thread), outermost=True))]
    if attempt.started is not None:
        for name, thread in attempt.started.pool_work_under_way():
            parts.append(_section(f"In the thread of {name}", _frames(threads.get(thread))))
    return clean_text("\n".join(parts), MAX_STACK)


def _coroutines(attempt: Attempt, on_main: FrameType | None) -> Iterator[str]:
    if on_main is not None:
        yield _section("On the event loop right now", _below_door(on_main, outermost=False))
    seen: set[int] = set()
    tasks = [attempt.task, *(attempt.tasks or ())]
    for task in tasks[:MAX_TASKS]:
        if task is not None and not task.done() and id(task) not in seen:
            frames = list(_suspended(task, seen))
            if frames:
                yield _section("In its coroutine" if task is attempt.task else f"In {task.get_name()}", frames)
    if len(tasks) > MAX_TASKS:
        yield f"… and {len(tasks) - MAX_TASKS} more tasks …"


def _suspended(task: asyncio.Task[Any], seen: set[int]) -> Iterable[FrameType]:
    """The frames from the task's own coroutine to where it waits, also through tasks that it waits for."""
    frames: deque[FrameType] = deque(maxlen=MAX_FRAMES)
    here: Any = task
    for _ in range(MAX_STEPS):
        frame, below = _step(here, seen)
        if frame is not None and (frames or not _is_ours(frame)):
            frames.append(frame)
        if below is None:
            break
        here = below
    return frames


def _step(here: Any, seen: set[int]) -> tuple[FrameType | None, Any]:
    """A link of the chain: its frame, and what it waits for."""
    if isinstance(here, CoroutineType):
        return here.cr_frame, here.cr_await
    if isinstance(here, GeneratorType):
        return here.gi_frame, here.gi_yieldfrom
    if isinstance(here, AsyncGeneratorType):
        return here.ag_frame, here.ag_await
    if isinstance(here, MarkedCoroutine):
        return None, here.coroutine
    if isinstance(here, asyncio.Task):
        if id(here) in seen:
            return None, None
        seen.add(id(here))
        return None, asyncio.Task.get_coro(here)
    # The interpreter's wrappers (of `async for`, of a future's await) do not say what they hold; the collector does.
    return None, next((held for held in gc.get_referents(here) if isinstance(held, _CHAINED)), None)


def _frames(innermost: FrameType | None) -> list[FrameType]:
    """Outermost first."""
    found: deque[FrameType] = deque()
    while innermost is not None:
        found.appendleft(innermost)
        innermost = innermost.f_back
    return list(found)


def _below_door(innermost: FrameType | None, *, outermost: bool) -> list[FrameType]:
    """Without the frames that led to the handler: people look for theirs."""
    frames = _frames(innermost)
    doors = [at for at, frame in enumerate(frames) if frame.f_code in _DOORS]
    return frames[(doors[0] if outermost else doors[-1]) + 1 :] if doors else frames


def _is_ours(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_OUR_FOLDER)


def _section(title: str, frames: Iterable[FrameType]) -> str:
    frames = list(frames)
    shown = [
        f'  File "{f.f_code.co_filename}", line {f.f_lineno}, in {f.f_code.co_name}' for f in frames[-MAX_FRAMES:]
    ]
    if len(frames) > MAX_FRAMES:
        shown.insert(0, f"  … {len(frames) - MAX_FRAMES} frames above …")
    return "\n".join([f"{title} (most recent call last):", *(shown or ["  nothing of it is there"])])
