"""Workers: who runs the jobs, as a program sees them, and what it may ask of them."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from unstuck.intake import workers
from unstuck.model.job import WorkerRecord
from unstuck.store.port import WorkerOrder

if TYPE_CHECKING:
    from unstuck.app import App


class Workers:
    """`app.workers`. An order is carried out by the worker it is given to; `answer` waits for what it says. A worker
    is named by its name, by NAME@HOST, or by its number. In coroutines: `await app.in_thread(…)`."""

    __slots__ = ("_app",)

    def __init__(self, app: App) -> None:
        self._app = app

    def list(self) -> builtins.list[WorkerRecord]:
        """Each as it reported itself, with its state as others see it: active, draining, lost, offline, gone."""
        return self._app.lookup().workers()

    def recycle(self, pid: int, worker: str | None = None, by: str | None = None) -> WorkerOrder:
        """Replace an executor process once its jobs have finished. UnknownProcess if no worker has it;
        AmbiguousWorker if two hosts do: then name the worker."""
        return workers.recycle(self._app.store, pid, by or self._app.name, worker)

    def drain(self, name: str | None = None, by: str | None = None) -> builtins.list[WorkerOrder]:
        """Let this worker, or all there are, finish what they have, take nothing new, and leave."""
        return workers.drain(self._app.store, name, by or self._app.name)

    def answer(self, order: WorkerOrder, timeout: float = 5.0) -> WorkerOrder:
        """The order with its worker's answer; NoAnswer when the time is over first."""
        return workers.answered(self._app.store, order, timeout)
