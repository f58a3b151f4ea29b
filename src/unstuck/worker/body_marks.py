"""Body marks: a stuck attempt's process may still run it, so its job is marked until that process is gone."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from unstuck.clock import Clock
from unstuck.store.port import WorkerPort
from unstuck.telemetry import emit
from unstuck.worker.write_retries import STORE_AWAY, pause_after


class BodyMarkLifter:
    """A body mark is written by its verdict: it must not be lifted before that. `unwritten` tells the jobs whose
    reports are not written yet."""

    def __init__(self, store: WorkerPort, worker: int, clock: Clock, unwritten: Callable[[], set[int]]) -> None:
        self._store = store
        self._worker = worker
        self._clock = clock
        self._unwritten = unwritten
        self._lock = threading.Lock()
        self._gone: list[int] = []
        #: What could not be lifted: when to try again, and how often that was in vain. Of the settler's thread.
        self._retries: dict[int, tuple[float, int]] = {}

    def add(self, job: int) -> None:
        """Its process is gone. By the main thread."""
        with self._lock:
            self._gone.append(job)

    def due(self) -> list[float]:
        return [self._retries.get(job, (0.0, 0))[0] for job in self._ripe()]

    def lift(self) -> None:
        """A mark that cannot be lifted now does not keep others from being lifted."""
        now = self._clock.boot()
        for job in self._ripe():
            due_at, tries = self._retries.get(job, (0.0, 0))
            if due_at > now:
                continue
            try:
                self._store.lift_body_mark(self._worker, job)
            except STORE_AWAY:
                raise
            except Exception as error:
                self._retries[job] = self._clock.boot() + pause_after(tries), tries + 1
                emit("body_mark_not_lifted", level=logging.WARNING, job=job, error=str(error))
                continue
            self._retries.pop(job, None)
            with self._lock:
                self._gone.remove(job)

    def _ripe(self) -> list[int]:
        with self._lock:
            gone = list(self._gone)
        unwritten = self._unwritten() if gone else set()
        return [job for job in gone if job not in unwritten]
