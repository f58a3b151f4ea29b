"""The claimer against the end of its worker."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from tests.support.builders import a_job, a_worker, claim_all, submitted
from unstuck.chance import SystemChance
from unstuck.clock import FakeClock
from unstuck.model.job import ClaimedJob, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.model.times import Times
from unstuck.store.port import EVERY, Claimed, Front, Fronts, Ingested, Pause, Report, Route, Store
from unstuck.worker.claim import Claimer, RouteBook, Served
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.shares import Room


class ClosingStore:
    """Has work; while the claimer looks for it, its worker begins to drain."""

    def __init__(self) -> None:
        self.claimer: Claimer | None = None
        self.claims = 0

    def register_workflows(self, workflows: Any, **_: Any) -> None: ...
    def release_due(self) -> int:
        return 0

    def ingest(self, after: int, batch: int) -> Ingested:
        return Ingested(0, 0, after)

    def weights(self) -> dict[str, int]:
        return {}

    def routes(self, numbers: Any) -> list[Route]:
        return [Route(1, "default", "default", "w")]

    def fronts(self, after: int, limit: int) -> Fronts:
        if self.claimer is not None:
            self.claimer.close()
        return Fronts([Front(1, 0)])

    def claim(self, *_: Any) -> Claimed:
        self.claims += 1
        return Claimed()

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


# --- on a real store --------------------------------------------------------------------------------------------


def a_claimer(store: Store, ledger: Ledger, *workflows: str, slots: int = 4) -> Claimer:
    worker = a_worker(store, lease=300.0)
    claimer = Claimer(
        store,
        worker.number,
        ledger,
        Pace(),
        replace(Times(), poll=0.01),
        FakeClock(),
        SystemChance(),
        before_first=lambda: None,
        landed=lambda: None,
    )
    claimer.serve(Served.of([WorkflowRecord(name, "v1", "default", Policy(), {}) for name in workflows], []))
    ledger.publish(Room(slots))
    return claimer


def rounds(claimer: Claimer, ledger: Ledger, count: int, slots: int = 4) -> list[ClaimedJob]:
    """So many claims; every job is done with at once, so that there is always room."""
    found: list[ClaimedJob] = []
    for _ in range(count):
        claimer.tick()
        found += [holding.job for holding in ledger.take_fresh()]
        ledger.publish(Room(slots))
    return found


def test_a_tenant_with_ten_jobs_beside_one_with_thousands_is_served_at_once(store: Store) -> None:
    """A55"""
    for _ in range(5):
        store.submit([a_job(tenant="big", workflow=f"w{n % 5}") for n in range(1000)])
    store.submit([a_job(tenant="small", workflow="w0") for _ in range(10)])
    ledger = Ledger()
    claimer = a_claimer(store, ledger, "w0", "w1", "w2", "w3", "w4")

    tenants = Counter(job.tenant for job in rounds(claimer, ledger, 6))
    assert tenants["small"] == 10
    assert tenants["big"] >= 10


def test_tenants_are_served_by_their_weights(store: Store) -> None:
    """A55"""
    store.set_tenant("heavy", 3, "dana")
    store.submit([a_job(tenant=tenant, workflow="w") for tenant in ("heavy", "light") for _ in range(200)])
    ledger = Ledger()
    tenants = Counter(job.tenant for job in rounds(a_claimer(store, ledger, "w"), ledger, 10))
    assert tenants == {"heavy": 30, "light": 10}


def test_a_held_job_in_front_hides_neither_its_route_nor_the_others_of_its_tenant(store: Store) -> None:
    """With a single slot the oldest route is always asked first; what is held there must not be all that is asked."""
    stuck_worker = a_worker(store, "stuck", lease=300.0)
    held = submitted(store, workflow="w0")
    (attempt,) = claim_all(store, stuck_worker)
    store.settle(stuck_worker.number, [Report(attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "deaf")))])
    store.resume("default", held.id, "dana")
    other = submitted(store, workflow="w1")
    ledger = Ledger()
    claimed = rounds(a_claimer(store, ledger, "w0", "w1", slots=1), ledger, 3, slots=1)
    assert [job.id for job in claimed] == [other.id]


def test_routes_are_learned_by_number_and_only_some_are_remembered(store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr(RouteBook, "MOST", 30)
    store.submit([a_job(workflow=f"w{n}") for n in range(100)])
    book = RouteBook(store)
    for first in range(1, 101, 10):
        numbers = list(range(first, first + 10))
        book.learn(numbers)
        assert [route.number for n in numbers if (route := book.get(n))] == numbers
        assert len(book) <= 30


def test_a_paused_queue_costs_no_claims_and_opens_again(store: Store) -> None:
    store.submit([a_job(workflow=f"w{n}") for n in range(20)])
    store.pause(Pause("queue", "default", EVERY, "dana"))
    ledger = Ledger()
    claimer = a_claimer(store, ledger, *[f"w{n}" for n in range(20)])
    claims: list[Any] = []
    claim = store.claim

    def counted(*given: Any) -> Any:
        claims.append(given)
        return claim(*given)

    store.claim = counted  # type: ignore[method-assign, assignment]
    assert rounds(claimer, ledger, 3) == []
    assert claims == []
    store.unpause("queue", "default", EVERY)
    assert len(rounds(claimer, ledger, 5)) == 20


def test_jobs_too_large_for_one_claim_all_get_through_and_are_asked_for_in_smaller_numbers(store: Store) -> None:
    for _ in range(20):
        store.submit([a_job(workflow="w", payload='"' + "x" * 1_000_000 + '"') for _ in range(2)])
    ledger = Ledger()
    claimer = a_claimer(store, ledger, "w", slots=40)

    first = rounds(claimer, ledger, 1, slots=40)
    rest = rounds(claimer, ledger, 4, slots=40)

    assert 1 <= len(first) < 40
    assert len({job.id for job in first + rest}) == len(first + rest) == 40
    # Asked for what had come the first time, then for a little more: hardly anything was claimed in vain again.
    assert sum(job.ref.token - 1 for job in first + rest) <= 40 - len(first) + 10
