"""Workers: who runs the jobs, as a program sees them, and what it may ask of them."""

from __future__ import annotations

import builtins

from unstuck.app.engine import Engine
from unstuck.intake import workers
from unstuck.model.job import WorkerRecord
from unstuck.store.port import WorkerOrder


class Workers:
    """`app.workers`. An order is carried out by the worker it is given to; `answer` waits for what it says. A worker
    is named by its name, by NAME@HOST, or by its number. In coroutines: `await app.in_thread(…)`."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(self) -> builtins.list[WorkerRecord]:
        """Each as it reported itself, with its state as others see it: active, draining, lost, offline, gone."""
        return self._engine.lookup().workers()

    def recycle(self, pid: int, worker: str | None = None, by: str | None = None) -> WorkerOrder:
        """Replace an executor process once its jobs have finished. UnknownProcess if no worker has it;
        AmbiguousWorker if two hosts do: then name the worker."""
        return workers.recycle(self._engine.store, pid, by or self._engine.name, worker)

    def drain(self, name: str | None = None, by: str | None = None) -> builtins.list[WorkerOrder]:
        """Let this worker, or all there are, finish what they have, take nothing new, and leave."""
        return workers.drain(self._engine.store, name, by or self._engine.name)

    def answer(self, order: WorkerOrder, timeout: float = 5.0) -> WorkerOrder:
        """The order with its worker's answer; NoAnswer when the time is over first."""
        return workers.answered(self._engine.store, order, timeout)
