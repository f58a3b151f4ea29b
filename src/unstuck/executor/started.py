"""What one job has started beside its handler: threads, tasks, work in the loop's pool, processes."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context as Variables
from types import BuiltinFunctionType, CoroutineType, FunctionType, MethodType
from typing import Any

from unstuck.executor.descendants import look_at
from unstuck.executor.marked_coroutine import MarkedCoroutine
from unstuck.model.payload import clean_text

MAX_NAMES = 20
MAX_NAME = 120
#: Where a thread keeps what the job that started it has started.
STARTED_BY = "_unstuck_started_by"


class StartedByJob:
    """What one attempt has started beside itself, and what its threads have started in turn."""

    __slots__ = (
        "_children",
        "_lock",
        "_threads",
        "_tidy_at",
        "has_children",
        "number",
        "pool_work",
        "tasks",
        "workflow",
    )

    def __init__(self, workflow: str, number: int) -> None:
        self.workflow = workflow
        self.number = number
        #: It has started processes, be they gone by now.
        self.has_children = False
        #: Those that are known by number, and when they began: a number may come again.
        self._children: dict[int, int] = {}
        self.pool_work: dict[Future[Any], PoolWork] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self._threads: list[threading.Thread] = []
        self._tidy_at = 64
        # A finalizer may start a thread while this one is being written down.
        self._lock = threading.RLock()

    def add_thread(self, thread: threading.Thread) -> None:
        with self._lock:
            self._threads.append(thread)
            if len(self._threads) >= self._tidy_at:
                # A job that starts thread after thread for hours must not keep them all.
                self._threads = [known for known in self._threads if _is_alive(known)]
                self._tidy_at = 64 + 2 * len(self._threads)

    def add_process(self, pid: int) -> None:
        if (found := look_at(pid)) is not None:
            with self._lock:
                self._children[pid] = found.start
                if len(self._children) % 64 == 0:
                    self._children = self.children()

    def children(self) -> dict[int, int]:
        """Those of them that are still there."""
        known = self._children.copy().items()
        return {pid: start for pid, start in known if (found := look_at(pid)) is not None and found.start == start}

    def pool_work_under_way(self) -> list[tuple[str, int]]:
        return [(work.name(), work.thread) for work in tuple(self.pool_work.values()) if work.thread]

    def still_here(self) -> list[str]:
        """Names of what has not ended."""
        names = [_thread_name(thread) for thread in tuple(self._threads) if _is_alive(thread)]
        names += [work.name() for future, work in tuple(self.pool_work.items()) if not future.done()]
        names += [_task_name(task) for task in tuple(self.tasks) if not task.done()]
        return [clean_text(name, MAX_NAME) for name in names[:MAX_NAMES]]


class PoolWork:
    """Work that was handed to the loop's pool."""

    __slots__ = ("_started", "_work", "thread")

    def __init__(self, work: Callable[..., Any], started: StartedByJob) -> None:
        self._work = work
        self._started = started
        self.thread = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.thread = threading.get_ident()
        here = vars(threading.current_thread())
        here[STARTED_BY] = self._started
        try:
            return self._work(*args, **kwargs)
        finally:
            del here[STARTED_BY]

    def name(self) -> str:
        return f"asyncio.to_thread({_function_name(self._work)})"


# Names, without asking anything that a handler could have written: the control thread must not run user code.


def _is_alive(thread: threading.Thread) -> bool:
    return threading.Thread.is_alive(thread)


def _thread_name(thread: threading.Thread) -> str:
    name = vars(thread).get("_name")
    return name if type(name) is str else "a thread"


def _task_name(task: asyncio.Task[Any]) -> str:
    coroutine = asyncio.Task.get_coro(task)
    inner = coroutine.coroutine if isinstance(coroutine, MarkedCoroutine) else coroutine
    what = inner.__qualname__ if isinstance(inner, CoroutineType) else "a coroutine"
    return f"{asyncio.Task.get_name(task)} ({what})"


def _function_name(work: object) -> str:
    if type(work) is functools.partial and work.args and type(getattr(work.func, "__self__", None)) is Variables:
        work = work.args[0]
    if isinstance(work, FunctionType | BuiltinFunctionType | MethodType):
        return str(work.__qualname__)
    return str(type.__dict__["__name__"].__get__(type(work)))
