"""The shared page names the job whose code is on the main thread this instant: this writes the name."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Generator
from typing import Any

from unstuck.executor.page import SharedPage

#: How a process ends that is an executor's copy and must not go on as one.
COPY_STATUS = 70


class SubtaskExited(BaseException):
    """SystemExit or KeyboardInterrupt of a sub-task: as itself it would end the event loop and everybody on it."""


class MarkedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine that names its job in the page while it is on the loop.

    What was named before is named again afterwards: a job alone on the main thread may run a loop of its own, and a
    task may be begun within the step of another.
    """

    __slots__ = ("_number", "_page", "_pid", "coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], page: SharedPage, number: int, pid: int) -> None:
        self.coroutine = coroutine
        self._page = page
        self._number = number
        self._pid = pid

    def send(self, value: Any) -> Any:
        if os.getpid() != self._pid:
            os._exit(COPY_STATUS)
        page = self._page
        before = page.named
        page.put_on_loop(self._number)
        try:
            return self.coroutine.send(value)
        except (SystemExit, KeyboardInterrupt) as error:
            raise SubtaskExited from error
        finally:
            page.put_on_loop(before)

    def throw(self, *error: Any) -> Any:
        end_if_copied(self._pid)
        page = self._page
        before = page.named
        page.put_on_loop(self._number)
        try:
            return self.coroutine.throw(*error)
        except (SystemExit, KeyboardInterrupt) as raised:
            raise SubtaskExited from raised
        finally:
            page.put_on_loop(before)

    def close(self) -> None:
        end_if_copied(self._pid)
        self.coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.coroutine, name)


def end_if_copied(pid: int) -> None:
    """A handler forked, and this is the child with a copy of the loop: no job may take a step here."""
    if os.getpid() != pid:
        os._exit(COPY_STATUS)
