"""The claimer against the end of its worker."""

from __future__ import annotations

from typing import Any

from unstuck.chance import SystemChance
from unstuck.clock import FakeClock
from unstuck.model.job import WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.times import Times
from unstuck.store.port import Front, Route
from unstuck.worker.claim import Claimer, Served
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.shares import Room


class ClosingStore:
    """Has work; while the claimer looks for it, its worker begins to drain."""

    def __init__(self) -> None:
        self.claimer: Claimer | None = None
        self.claims = 0

    def register_workflows(self, workflows: Any) -> None: ...
    def release_due(self) -> int:
        return 0

    def routes(self, after: int = 0) -> list[Route]:
        return [Route(1, "default", "default", "w")]

    def fronts(self, after: int, limit: int) -> list[Front]:
        if self.claimer is not None:
            self.claimer.close()
        return [Front(1, 0)]

    def claim(self, *_: Any) -> list[Any]:
        self.claims += 1
        return []

    def wait_for_work(self, seconds: float) -> None: ...


def claimer_on(store: Any, ledger: Ledger) -> Claimer:
    claimer = Claimer(
        store,
        1,
        ledger,
        Pace(),
        Times(),
        FakeClock(),
        SystemChance(),
        before_first=lambda: None,
        landed=lambda: None,
    )
    claimer.serve(Served.of([WorkflowRecord("w", "v1", "default", Policy(), {})], []))
    ledger.publish(Room(4))
    return claimer


def test_nothing_is_claimed_once_the_worker_drains() -> None:
    """The main thread may have counted the claims under way already: one more would be lost with the worker."""
    store, ledger = ClosingStore(), Ledger()
    claimer = store.claimer = claimer_on(store, ledger)

    claimer.tick()

    assert store.claims == 0
    assert ledger.is_empty


def test_an_open_claimer_claims() -> None:
    store = ClosingStore()
    claimer_on(store, Ledger()).tick()
    assert store.claims == 1
