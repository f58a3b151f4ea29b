"""What attempts leave behind: threads, tasks that swallow their cancel, work handed to `asyncio.to_thread`.

Nothing is counted while attempts run. Whoever starts a thread, or hands work to the loop's pool, does so as the
attempt that runs there (`running`), so the attempt itself keeps what it started; one that started nothing costs one
comparison when it ends, and a neighbour's threads are never taken for its own.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context as Variables
from types import BuiltinFunctionType, CoroutineType, FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

from unstuck.executor.attempt import Attempt
from unstuck.executor.context import running
from unstuck.executor.descendants import look_at
from unstuck.executor.marks import MarkedSteps
from unstuck.executor.messages import LeftBehindMessage
from unstuck.model.payload import clean_text

#: What has ended by then was only late: threads that are told to stop need a moment.
ALLOWED = 0.5
MAX_NAMES = 20
MAX_NAME = 120
P = ParamSpec("P")
T = TypeVar("T")


class Company:
    """What one attempt has started beside itself, and what its threads have started in turn."""

    __slots__ = (
        "_children",
        "_lock",
        "_threads",
        "_tidy_at",
        "errands",
        "has_children",
        "number",
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
        self.errands: dict[Future[Any], PoolWork] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        self._threads: list[threading.Thread] = []
        self._tidy_at = 64
        # A finalizer may start a thread while this one is being written down.
        self._lock = threading.RLock()

    def join(self, thread: threading.Thread) -> None:
        with self._lock:
            self._threads.append(thread)
            if len(self._threads) >= self._tidy_at:
                # A job that starts thread after thread for hours must not keep them all.
                self._threads = [known for known in self._threads if _is_alive(known)]
                self._tidy_at = 64 + 2 * len(self._threads)

    def bear(self, pid: int) -> None:
        if (found := look_at(pid)) is not None:
            with self._lock:
                self._children[pid] = found.start
                if len(self._children) % 64 == 0:
                    self._children = self.children()

    def children(self) -> dict[int, int]:
        """Those of them that are still there."""
        known = self._children.copy().items()
        return {pid: start for pid, start in known if (found := look_at(pid)) is not None and found.start == start}

    def errands_at_work(self) -> list[tuple[str, int]]:
        return [(errand.name(), errand.thread) for errand in tuple(self.errands.values()) if errand.thread]

    def still_here(self) -> list[str]:
        """Names of what has not ended."""
        names = [_thread_name(thread) for thread in tuple(self._threads) if _is_alive(thread)]
        names += [errand.name() for future, errand in tuple(self.errands.items()) if not future.done()]
        names += [_task_name(task) for task in tuple(self.tasks) if not task.done()]
        return [clean_text(name, MAX_NAME) for name in names[:MAX_NAMES]]


class PoolWork:
    """Work that was handed to the loop's pool."""

    __slots__ = ("_company", "_work", "thread")

    def __init__(self, work: Callable[..., Any], company: Company) -> None:
        self._work = work
        self._company = company
        self.thread = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.thread = threading.get_ident()
        here = vars(threading.current_thread())
        here[_COMPANY] = self._company
        try:
            return self._work(*args, **kwargs)
        finally:
            del here[_COMPANY]

    def name(self) -> str:
        return f"asyncio.to_thread({_function_name(self._work)})"


class ErrandPool(ThreadPoolExecutor):
    """The loop's own pool, which knows for whom it works. Its idle threads belong to nobody."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        attempt = running.get()
        if not isinstance(attempt, Attempt):
            return super().submit(fn, *args, **kwargs)
        company = company_of(attempt)
        errand = PoolWork(fn, company)
        # A thread that the pool starts meanwhile is its own and not the attempt's.
        before = running.set(None)
        try:
            future: Future[T] = super().submit(errand, *args, **kwargs)
        finally:
            running.reset(before)
        company.errands[future] = errand
        future.add_done_callback(lambda done: company.errands.pop(done, None))
        return future


class Leftovers:
    """Ended attempts whose company may not have; the control thread looks after a while, once."""

    def __init__(self) -> None:
        self._ended: deque[tuple[float, Company]] = deque()
        #: To be forgotten where a handler's code may run: the last reference to a thread or a task may be ours.
        self._past: deque[Company] = deque()

    def see_off(self, attempt: Attempt, now: float) -> None:
        """Its handler has ended; called only if it had company or tasks."""
        company = company_of(attempt)
        if attempt.tasks:
            company.tasks = attempt.tasks
        self._ended.append((now + ALLOWED, company))

    def look(self, now: float) -> Iterator[LeftBehindMessage]:
        while self._ended and self._ended[0][0] <= now:
            _, company = self._ended.popleft()
            self._past.append(company)
            if names := company.still_here():
                yield LeftBehindMessage(company.workflow, names)

    def forget(self) -> None:
        """On the main thread."""
        self._past.clear()


def company_of(attempt: Attempt) -> Company:
    if attempt.company is None:
        with _birth:
            if attempt.company is None:
                made = Company(attempt.run.workflow, attempt.number)
                # A finalizer may have started a thread meanwhile.
                attempt.company = attempt.company or made
    return attempt.company


_birth = threading.RLock()


def watch_threads() -> None:
    """From now on every thread that an attempt starts, or one of its threads, keeps it company.

    New threads have empty contextvars, and counting threads before and after would blame one job for its neighbour's:
    only their start can tell.
    """
    begin = threading.Thread.start
    pid = os.getpid()

    @functools.wraps(begin)
    def start(self: threading.Thread) -> None:
        if os.getpid() != pid:
            # What a handler has forked keeps nobody company, and must not wait for locks that were held at the fork.
            begin(self)
            return
        company = company_here()
        if company is None:
            begin(self)
            return
        # Before it begins: what it starts in turn is asked for at once.
        vars(self)[_COMPANY] = company
        begin(self)
        company.join(self)

    threading.Thread.start = start  # type: ignore[method-assign]


_COMPANY = "_unstuck_company"


def company_here() -> Company | None:
    """Of whoever runs on this thread."""
    attempt = running.get()
    if isinstance(attempt, Attempt):
        return company_of(attempt)
    company = vars(threading.current_thread()).get(_COMPANY)
    return company if isinstance(company, Company) else None


# Names, without asking anything that a handler could have written: the control thread must not run user code.


def _is_alive(thread: threading.Thread) -> bool:
    return threading.Thread.is_alive(thread)


def _thread_name(thread: threading.Thread) -> str:
    name = vars(thread).get("_name")
    return name if type(name) is str else "a thread"


def _task_name(task: asyncio.Task[Any]) -> str:
    coroutine = asyncio.Task.get_coro(task)
    inner = coroutine.coroutine if isinstance(coroutine, MarkedSteps) else coroutine
    what = inner.__qualname__ if isinstance(inner, CoroutineType) else "a coroutine"
    return f"{asyncio.Task.get_name(task)} ({what})"


def _function_name(work: object) -> str:
    if type(work) is functools.partial and work.args and type(getattr(work.func, "__self__", None)) is Variables:
        work = work.args[0]
    if isinstance(work, FunctionType | BuiltinFunctionType | MethodType):
        return str(work.__qualname__)
    return str(type.__dict__["__name__"].__get__(type(work)))
