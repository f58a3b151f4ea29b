"""Workers of this very host that were seen to be gone -> their lease ends now, their jobs run again.

Only a worker with the same boot id and pid namespace can be judged: there a pid and its start time name one process.
Gone means: the supervisor is, everything it said to have started is, and nothing that carries its tag is left. An
executor that outlives its supervisor for a moment only delays the verdict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

from unstuck import machine
from unstuck.janitor.budget import Budget
from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreLocked, StoreUnavailable
from unstuck.model.job import WorkerRecord
from unstuck.model.times import Times
from unstuck.store.port import Store
from unstuck.telemetry import emit

_LOOK_AGAIN = 0.5


class NeighboursDuty:
    name = "neighbours"

    def __init__(
        self, store: Store, times: Times, me: WorkerRecord, *, recover: Callable[[float, Budget], int]
    ) -> None:
        self._store = store
        self._times = times
        self._me = me
        self._recover = recover
        self._is_dying = False
        self._supervisors: set[int] = set()

    @property
    def every(self) -> float:
        """Soon again while a dead supervisor's executors still fade away."""
        return min(_LOOK_AGAIN, self._times.sweep) if self._is_dying else self._times.sweep

    def tick(self, now: float, budget: Budget) -> int:
        self._is_dying = False
        if not self._me.boot_id or not self._me.pid_namespace:
            return 0
        expired = 0
        found = list(self._candidates())
        # One that lives and is registered is nobody's remains, whether or not its environment can be read.
        self._supervisors = {w.pid for w in found if not machine.is_gone(w.pid, w.pid_start)}
        for worker in found:
            expired += self._is_gone(worker) and self._expire(worker)
            if budget.is_over():
                break
        if expired:
            self._recover(now, budget)
        return expired

    def _candidates(self) -> Iterator[WorkerRecord]:
        for worker in self._store.live_workers((self._me.boot_id, self._me.pid_namespace)):
            if worker.incarnation != self._me.incarnation:
                yield worker

    def _is_gone(self, worker: WorkerRecord) -> bool:
        if not machine.is_gone(worker.pid, worker.pid_start):
            # The same process may live on under a new incarnation: then this one has left no processes.
            return False
        remains = [pid for pid, start in named_pids(worker.info.get("pids")) if not machine.is_gone(pid, start)]
        if remains or any(machine.tagged(worker.incarnation, self._supervisors)):
            self._is_dying = True
            return False
        return True

    def _expire(self, worker: WorkerRecord) -> bool:
        """A worker whose row is locked, or cannot be written, keeps the jobs of no other worker waiting."""
        reason = f"process {worker.pid} of worker {worker.name} is gone from {worker.host}"
        try:
            expired = self._store.expire_worker(worker.number, worker.lease_until, reason)
        except (StoreUnavailable, StoreLocked, OutcomeUnknown, SchemaMismatch):
            raise
        except Exception as error:
            emit("neighbour_not_expired", level=logging.WARNING, worker=worker.name, error=str(error))
            return False
        if expired:
            emit("neighbour_gone", level=logging.WARNING, worker=worker.name, pid=worker.pid)
        return expired


def named_pids(value: Any) -> Iterator[tuple[int, int]]:
    """Every (pid, start) in what a worker said about its processes, however it is nested."""
    match value:
        case {"pid": int(pid), "start": int(start)}:
            yield pid, start
        case dict():
            for part in value.values():
                yield from named_pids(part)
        case list() | tuple():
            for part in value:
                yield from named_pids(part)
