"""The fake twin of the fleet: executors that do what a test says, when it says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from unstuck.executor.messages import Reply
from unstuck.model.job import AttemptRef, ClaimedJob
from unstuck.model.lifecycle import RequestKind
from unstuck.worker.processes import ExecutorReady, ExecutorView, FleetEvent, FlowCall


class FakeFleet:
    """Orders are kept in `orders`, what executors hold in `fed`; a test says what is heard next."""

    def __init__(self) -> None:
        self.orders: list[tuple[Any, ...]] = []
        self.fed: dict[int, list[ClaimedJob]] = {}
        self.stacks: dict[AttemptRef, str] = {}
        self.granted: float | None = None
        self._events: list[FleetEvent] = []
        self._views: dict[int, ExecutorView] = {}
        self._lock = threading.Lock()
        self._nudged = threading.Event()

    # --- what a test says ---------------------------------------------------------------------------------------
    def say(self, *events: FleetEvent) -> None:
        with self._lock:
            self._events += events
        self._nudged.set()

    def look(self, executor: int, **facts: Any) -> None:
        self._views[executor] = replace(self._views[executor], **facts)

    def forget(self, executor: int) -> None:
        self._views.pop(executor, None)
        self.fed.pop(executor, None)

    def told(self, verb: str) -> list[tuple[Any, ...]]:
        return [order[1:] for order in self.orders if order[0] == verb]

    # --- the port -----------------------------------------------------------------------------------------------
    def start(self) -> None:
        self.orders.append(("start",))

    def spawn(self, executor: int, *, alone: bool = False, slots: int | None = None) -> None:
        self.orders.append(("spawn", executor, alone))
        self.fed[executor] = []
        self._views[executor] = ExecutorView(executor, 1000 + executor, "active", 0.0, 0.0, 0, 0, (), ())
        self.say(ExecutorReady(executor, 1000 + executor))

    def feed(self, executor: int, jobs: Sequence[ClaimedJob]) -> None:
        self.orders.append(("feed", executor, tuple(job.ref for job in jobs)))
        self.fed[executor] += jobs

    def cancel(self, executor: int, ref: AttemptRef, kind: RequestKind | None, reason: str) -> None:
        self.orders.append(("cancel", executor, ref, kind))

    def answer(self, call: FlowCall, answer: Reply) -> bool:
        self.orders.append(("answer", call, answer))
        return True

    def recall(self, executor: int, refs: Sequence[AttemptRef]) -> None:
        self.orders.append(("recall", executor, tuple(refs)))

    def interrupt(self, executor: int, ref: AttemptRef) -> None:
        self.orders.append(("interrupt", executor, ref))

    def dump(self, executor: int, refs: Sequence[AttemptRef]) -> None:
        self.orders.append(("dump", executor, tuple(refs)))

    def stack(self, executor: int, ref: AttemptRef) -> str | None:
        return self.stacks.get(ref)

    def resume(self, executor: int) -> None:
        self.orders.append(("resume", executor))

    def terminate(self, executor: int) -> None:
        self.orders.append(("terminate", executor))

    def drain(self, executor: int, reason: str) -> None:
        self.orders.append(("drain", executor))

    def kill(self, executor: int, reason: str) -> None:
        self.orders.append(("kill", executor, reason))

    def lease(self, until: float) -> None:
        self.granted = until

    def hear(self, timeout: float) -> list[FleetEvent]:
        if not self._events:
            self._nudged.wait(min(timeout, 0.05))
        self._nudged.clear()
        with self._lock:
            events, self._events = self._events, []
        return events

    def nudge(self) -> None:
        self._nudged.set()

    def views(self) -> list[ExecutorView]:
        return list(self._views.values())

    def pids(self) -> dict[str, Any]:
        return {}

    def close(self, stamp: Callable[[], None] = lambda: None) -> None:
        self.orders.append(("close",))
