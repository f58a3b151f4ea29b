"""One incarnation on a real store, with executors that do what the test says: lost answers, revoked attempts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.support.eventually import eventually
from tests.support.fake_fleet import FakeFleet
from unstuck.assembly import build_janitor
from unstuck.chance import SystemChance
from unstuck.clock import MachineClock
from unstuck.model.errors import OutcomeUnknown
from unstuck.model.job import ClaimedJob, JobRecord, NewJob, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.settlement import Returned
from unstuck.model.times import Times
from unstuck.store.port import Share, Store
from unstuck.store.sql_store import SqlStore
from unstuck.worker.incarnation import End, Incarnation, Parts
from unstuck.worker.placing import Seats
from unstuck.worker.plan import Limits
from unstuck.worker.processes import ExecutorDied, Finished, Imported, Started
from unstuck.worker.shutdown import Shutdown

TIMES = Times(
    lease=6.0,
    beat=0.4,
    margin=2.0,
    sweep=0.5,
    poll=0.1,
    cancel_poll=0.2,
    kill_grace=0.3,
    store_call=0.39,
    offer_ack=1,
)
WORKFLOW = WorkflowRecord("w", "v1", "default", Policy(), {})


def a_job_of(workflow: str, **policy: Any) -> NewJob:
    return NewJob(SystemChance().job_id(), "default", "default", workflow, "{}", Policy(**policy))


class Shop:
    """A store, a fake fleet and the incarnation between them."""

    def __init__(self, store: Store, **seats: int) -> None:
        self.store = store
        self.fleet = FakeFleet()
        self.shutdown = Shutdown(TIMES)
        parts = Parts(
            incarnation=SystemChance().nonce(),
            store=store,
            beat_store=store,
            fleet=self.fleet,
            chores=lambda me: build_janitor(store, TIMES, me),
            clock=MachineClock(),
            chance=SystemChance(),
            times=TIMES,
            seats=Seats(**{"slots": 2, "processes": 1, **seats}),
            limits=Limits(),
        )
        self.incarnation = Incarnation(parts, self.shutdown)
        self.ends: list[End] = []
        self.thread = threading.Thread(target=lambda: self.ends.append(self.incarnation.run()))

    def open(self) -> None:
        self.fleet.say(Imported((WORKFLOW,), "v1", "fork", ""))
        self.thread.start()

    def submit(self, count: int = 1, **policy: Any) -> list[str]:
        new = [a_job_of("w", **policy) for _ in range(count)]
        return [stored.id for stored in self.store.submit(new)]

    def fed(self, count: int = 1) -> list[ClaimedJob]:
        def arrived() -> list[ClaimedJob]:
            jobs = [job for jobs in self.fleet.fed.values() for job in jobs]
            assert len(jobs) >= count
            return jobs

        return eventually(arrived)

    def begin(self, job: ClaimedJob) -> None:
        self.fleet.say(Started(1, job.ref, MachineClock().boot()))

    def finish(self, job: ClaimedJob) -> None:
        self.fleet.say(Finished(1, job.ref, Returned("1"), 1))

    def record(self, job: str) -> JobRecord:
        found = self.store.get("default", job)
        assert found is not None
        return found

    def until(self, job: str, state: JobState) -> JobRecord:
        eventually(lambda: self.record(job).state is state)
        return self.record(job)


@pytest.fixture
def build(store: SqlStore) -> Iterator[Callable[..., Shop]]:
    shops: list[Shop] = []

    def make(over: Callable[[Store], Store] = lambda store: store, **seats: int) -> Shop:
        shop = Shop(over(store), **seats)
        shops.append(shop)
        shop.open()
        return shop

    yield make
    for shop in shops:
        for _ in range(3):
            shop.shutdown.ask()
        shop.fleet.say(*[ExecutorDied(n, 1, "end", (), ()) for n in tuple(shop.fleet.fed)])
        shop.thread.join(20)
        assert not shop.thread.is_alive()


class Lossy:
    """The store, except that the answer of the first claims is lost after they were carried out."""

    def __init__(self, store: Store, losses: int) -> None:
        self._store = store
        self.losses = losses
        self.claims: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> list[ClaimedJob]:
        jobs = self._store.claim(worker, claim, shares)
        self.claims.append(claim)
        if jobs and self.losses > 0:
            self.losses -= 1
            raise OutcomeUnknown("the answer was lost")
        return jobs


def test_it_never_claims_more_than_it_has_slots_for(build: Callable[..., Shop]) -> None:
    shop = build()
    ids = shop.submit(5)
    first, second = shop.fed(2)
    assert [shop.record(job).state for job in ids].count(JobState.RUNNING) == 2
    for job in (first, second):
        shop.begin(job)
        shop.finish(job)
    assert len(shop.fed(4)) == 4


def test_thousands_of_routes_that_it_does_not_serve_do_not_hide_its_own(
    build: Callable[..., Shop], store: SqlStore
) -> None:
    store.submit([a_job_of(f"foreign-{n}") for n in range(1100)])
    shop = build()

    [job] = shop.submit(1)

    assert [fed.id for fed in shop.fed(1)] == [job]


def test_a_lost_answer_of_a_claim_is_asked_for_again_under_the_same_id(build: Callable[..., Shop]) -> None:
    lossy: list[Lossy] = []

    def over(store: Store) -> Any:
        lossy.append(Lossy(store, losses=1))
        return lossy[0]

    shop = build(over)
    (id,) = shop.submit()
    (job,) = shop.fed()
    assert job.ref.claim == lossy[0].claims[-1] == lossy[0].claims[-2]
    shop.begin(job)
    shop.finish(job)
    assert shop.until(id, JobState.COMPLETED).token == 1


def test_a_claim_whose_answer_never_comes_goes_back_with_the_next_beat_uncharged(build: Callable[..., Shop]) -> None:
    shop = build(lambda store: Lossy(store, losses=2))
    (id,) = shop.submit()
    (job,) = shop.fed()
    assert job.ref.token == 2
    kinds = [event.kind for event in shop.store.history("default", id)]
    assert kinds == ["submitted", "claimed", "given_back", "claimed"]
    assert shop.record(id).losses == 0


def test_an_attempt_that_the_database_took_away_is_stopped_and_its_executor_ended(build: Callable[..., Shop]) -> None:
    """A worker whose attempt was revoked ends that executor; what the old body says later changes nothing."""
    shop = build()
    (id,) = shop.submit(timeout=0.001, grace=0.05)
    (job,) = shop.fed()
    shop.begin(job)
    eventually(lambda: shop.store.convict_overdue(kill_grace=0.0, lease=0.0))

    eventually(lambda: shop.fleet.told("drain"))
    eventually(lambda: shop.fleet.told("kill"))
    assert shop.record(id).held
    shop.finish(job)
    assert shop.record(id).error_type == "ExecutionStuck"
    eventually(lambda: not shop.record(id).held)


def test_the_lease_is_granted_to_the_executors_with_every_beat(build: Callable[..., Shop]) -> None:
    shop = build()
    eventually(lambda: shop.fleet.granted is not None)
    first = shop.fleet.granted
    assert first is not None
    eventually(lambda: (shop.fleet.granted or 0) > first)
    assert (shop.fleet.granted or 0) <= MachineClock().boot() + TIMES.lease - TIMES.margin


def test_an_incarnation_whose_lease_was_ended_by_others_stops_for_good(build: Callable[..., Shop]) -> None:
    shop = build()
    (id,) = shop.submit()
    shop.begin(shop.fed()[0])
    eventually(lambda: shop.record(id).state is JobState.RUNNING)
    (worker,) = shop.store.workers()
    eventually(lambda: shop.store.expire_worker(worker.number, shop.store.workers()[0].lease_until, "a test says so"))
    eventually(lambda: shop.ends == [End.FENCED])
    assert ("close",) in shop.fleet.orders
