"""The claimer against the end of its worker."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from tests.support.builders import a_job, a_worker, claim_all, submitted
from tests.support.eventually import eventually
from tests.support.holdings import a_post
from tests.support.troubles import execute, holding
from unstuck.chance import SystemChance
from unstuck.clock import Clock, FakeClock, MachineClock
from unstuck.model.errors import StoreUnavailable
from unstuck.model.job import AttemptRef, ClaimedJob, NewJob, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.model.times import Times
from unstuck.store.port import (
    ANYWHERE,
    EVERY,
    Claimed,
    Due,
    Hint,
    Ingested,
    Limit,
    OpenRoute,
    OpenRoutes,
    Pause,
    Report,
    Route,
    Share,
    Store,
)
from unstuck.worker import known_routes
from unstuck.worker.claim import _LOOK_EVERY, Claimer
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.placing import Seats
from unstuck.worker.placing import room as room_of
from unstuck.worker.served import RouteBook, Served
from unstuck.worker.shares import FreeRoom


class ClosingStore:
    """Has work; while the claimer looks for it, its worker begins to drain."""

    def __init__(self) -> None:
        self.claimer: Claimer | None = None
        self.claims = 0

    def register_workflows(self, workflows: Any, **_: Any) -> None: ...
    def due(self, after: int) -> Due:
        return Due(None, has_news=False, has_ready=True)

    def release_due(self) -> int:
        return 0

    def ingest(self, after: int, batch: int) -> Ingested:
        return Ingested(0, 0, after)

    def weights(self) -> dict[str, int]:
        return {}

    def routes(self, numbers: Any) -> list[Route]:
        return [Route(1, "default", "default", "w")]

    def open_routes(self, after: int, limit: int) -> OpenRoutes:
        if self.claimer is not None:
            self.claimer.close()
        return OpenRoutes([OpenRoute(1, 0)])

    def claim(self, *_: Any) -> Claimed:
        self.claims += 1
        return Claimed()

    def wait_for_work(self, seconds: float) -> Hint | None:
        return None

    def stay_awake(self) -> None: ...


def claimer_on(store: Any, ledger: Ledger, clock: FakeClock | None = None) -> Claimer:
    claimer = Claimer(
        store,
        1,
        ledger,
        Pace(),
        Times(),
        clock or FakeClock(),
        SystemChance(),
        name="ada",
        before_first=lambda: None,
        landed=lambda: None,
    )
    claimer.serve(Served.of([WorkflowRecord("w", "v1", "default", Policy(), {})], []))
    ledger.publish(FreeRoom(4))
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


class ManyPages(ClosingStore):
    """There is always another page, each takes a while to read, and nothing on it is ever spent."""

    def __init__(self, clock: FakeClock, seconds: float) -> None:
        super().__init__()
        self.clock = clock
        self.seconds = seconds
        self.looks: list[float] = []

    def open_routes(self, after: int, limit: int) -> OpenRoutes:
        self.looks.append(self.clock.boot())
        self.clock.advance(self.seconds)
        return OpenRoutes([OpenRoute(1, 0)], looked_to=after + 1)

    def open_routes_of(self, routes: Any) -> OpenRoutes:
        return OpenRoutes()

    def open_plain_routes(self) -> OpenRoutes:
        return OpenRoutes()

    def claim(self, _worker: int, claim: str, _shares: Any) -> Claimed:
        self.clock.advance(0.01)
        return Claimed([a_claimed_job(claim)])


def a_claimed_job(claim: str) -> ClaimedJob:
    return ClaimedJob(
        ref=AttemptRef(1, 1, claim), id="j", run=1, tenant="default", queue="default", workflow="w", payload="{}",
        policy=Policy(), attempt=1, alone=False, route=1,
    )  # fmt: skip


@pytest.mark.parametrize(("takes", "apart"), [(0.001, 0.1), (0.04, 0.32), (3.0, 0.5)])
def test_pages_are_turned_the_more_slowly_the_longer_a_look_takes_but_twice_a_second(
    takes: float, apart: float
) -> None:
    """Looking must not cost more than what is found is worth; nor may it ever be given up."""
    clock, ledger = FakeClock(), Ledger()
    store = ManyPages(clock, takes)
    claimer = claimer_on(store, ledger, clock)
    while len(store.looks) < 5:
        ledger.publish(FreeRoom(1))
        claimer.tick()
        ledger.take_fresh()
    for one, next_one in pairwise(store.looks):
        assert -0.001 <= next_one - one - max(apart, takes) <= 0.05


class Strangers(ManyPages):
    """On none of its pages is a route that we serve."""

    def open_routes(self, after: int, limit: int) -> OpenRoutes:
        super().open_routes(after, limit)
        return OpenRoutes(looked_to=after + 1)


def test_hints_at_what_others_serve_cost_a_page_each_and_a_walk_only_now_and_then() -> None:
    """A hundred thousand routes of others, and a hint a hundred times a second: walks get a quarter of the time."""
    clock, ledger = FakeClock(), Ledger()
    store = Strangers(clock, 0.01)
    claimer = claimer_on(store, ledger, clock)
    began, pages = clock.boot(), []
    while clock.boot() < began + 4.0:
        ledger.publish(FreeRoom(1))
        before = len(store.looks)
        claimer.tick()
        clock.advance(0.01)
        pages.append(len(store.looks) - before)
    assert max(pages) > 1
    assert pages.count(1) > 0.8 * len(pages)
    # Walks go on all the same: what we serve may stand anywhere on the way.
    assert sum(count for count in pages if count > 1) >= 40


# --- on a real store --------------------------------------------------------------------------------------------


def a_claimer(
    store: Store,
    ledger: Ledger,
    *workflows: str,
    slots: int = 4,
    clock: Clock | None = None,
    pace: Pace | None = None,
) -> Claimer:
    worker = a_worker(store, lease=300.0)
    claimer = Claimer(
        store,
        worker.number,
        ledger,
        pace or Pace(),
        replace(Times(), poll=0.01),
        clock or FakeClock(),
        SystemChance(),
        name="ada",
        before_first=lambda: None,
        landed=lambda: None,
    )
    claimer.serve(Served.of([WorkflowRecord(name, "v1", "default", Policy(), {}) for name in workflows], []))
    ledger.publish(FreeRoom(slots))
    return claimer


def rounds(
    claimer: Claimer, ledger: Ledger, count: int, slots: int = 4, room: FreeRoom | None = None
) -> list[ClaimedJob]:
    """So many claims; every job is done with at once, so that there is always room."""
    found: list[ClaimedJob] = []
    for _ in range(count):
        claimer.tick()
        found += [holding.job for holding in ledger.take_fresh()]
        ledger.publish(room or FreeRoom(slots))
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


def test_keys_that_wait_for_one_limit_do_not_take_the_turns_of_those_that_no_limit_counts(store: Store) -> None:
    """They are older, and ask for all slots each time, of which their limit leaves them one."""
    store.set_limit(Limit("workflow", "keyed", EVERY, "dana", concurrency=1))
    store.submit([a_job(workflow="keyed", limit_key=f"k{n}") for n in range(200)])
    store.submit([a_job(workflow="ours") for _ in range(2)])
    ledger = Ledger()
    taken = Counter(job.workflow for job in rounds(a_claimer(store, ledger, "keyed", "ours"), ledger, 3))
    assert taken == {"keyed": 1, "ours": 2}


def test_tenants_are_served_by_their_weights(store: Store) -> None:
    """A55"""
    store.set_tenant("heavy", 3, "dana")
    store.submit([a_job(tenant=tenant, workflow="w") for tenant in ("heavy", "light") for _ in range(200)])
    ledger = Ledger()
    tenants = Counter(job.tenant for job in rounds(a_claimer(store, ledger, "w"), ledger, 10))
    assert tenants == {"heavy": 30, "light": 10}


@pytest.mark.parametrize("ahead", [0, 200], ids=["slow", "quick"])
def test_one_slot_takes_the_jobs_of_a_tenant_by_age_whatever_their_workflow(store: Store, ahead: int) -> None:
    """F5: sent one by one and many at once, with a head start for some, and with routes that run dry."""
    names = ["w0", "w1", "w2", "w3", "w4"]
    jobs = [a_job(workflow=names[n * n % 5], priority=n % 7 // 6) for n in range(40)]
    for many in [jobs[n : n + 1] for n in range(20)] + [jobs[20:30], jobs[30:]]:
        store.submit(many)
    expected = [job.id for job in sorted(jobs, key=lambda job: -job.priority)]
    ledger, pace = Ledger(), Pace()
    claimer = a_claimer(store, ledger, *names, slots=1, pace=pace)
    for name in names if ahead else ():
        for _ in range(10):
            pace.note(name, 1)
    room = one_slot(ahead)
    ledger.publish(room)

    found = [job.id for job in rounds(claimer, ledger, 2 * len(expected), room=room)]

    assert found == expected


def one_slot(ahead: int) -> FreeRoom:
    """As the supervisor of a worker with one slot counts it, whose executor is idle."""
    return room_of([a_post(slots=1)], [], Seats(1, 1), may_fetch_ahead=ahead > 0)


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


def test_jobs_without_a_place_do_not_hide_a_newcomer(store: Store) -> None:
    """Somebody hints at it, and no clock has to move."""
    alone = WorkflowRecord("alone", "v1", "default", Policy(isolation="process"), {})
    store.submit([a_job(workflow="alone", policy=alone.policy)])
    ledger = Ledger()
    claimer = a_claimer(store, ledger, clock=(clock := FakeClock()))
    claimer.serve(Served.of([alone, WorkflowRecord("other", "v1", "default", Policy(), {})], []))
    assert rounds(claimer, ledger, 2) == []

    comes_at_once(store, claimer, ledger, clock)


class RoomComes(FakeClock):
    """While somebody waits by this clock, a slot becomes free."""

    ledger: Ledger

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.ledger.publish(FreeRoom(4, solo=1))
        return super().wait(event, seconds)


def test_a_slot_that_becomes_free_is_used_at_once_beside_room_that_nobody_wants(store: Store) -> None:
    """A worker has room for jobs that want a process each nearly always: it must not hide that all else is full."""
    store.submit([a_job(workflow="w") for _ in range(4)])
    ledger, clock = Ledger(), RoomComes()
    clock.ledger = ledger
    claimer, before = a_claimer(store, ledger, "w", clock=clock), clock.boot()
    ledger.publish(FreeRoom(0, solo=1))

    claimer.tick()
    claimer.tick()

    assert len(ledger.take_fresh()) == 4
    assert clock.boot() == before


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_jobs_whose_limit_is_held_do_not_hide_a_newcomer(store: Store, store_url: str) -> None:
    store.set_limit(Limit("workflow", "limited", EVERY, "dana", concurrency=5))
    store.submit([a_job(workflow="limited")])
    ledger = Ledger()
    claimer = a_claimer(store, ledger, "limited", "other", clock=(clock := FakeClock()))
    with holding(store_url, "unstuck_limits", "name = 'limited'"):
        assert rounds(claimer, ledger, 20) == []

        comes_at_once(store, claimer, ledger, clock)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_a_limit_that_was_held_is_no_trouble_any_more_once_others_have_claimed(store: Store, store_url: str) -> None:
    store.set_limit(Limit("workflow", "limited", EVERY, "dana", concurrency=5))
    store.submit([a_job(workflow="limited")])
    ledger = Ledger()
    one, another = (a_claimer(store, held, "limited", clock=MachineClock()) for held in (ledger, Ledger()))
    with holding(store_url, "unstuck_limits", "name = 'limited'"):
        eventually(lambda: rounds(one, ledger, 1) == [] and "limits" in one.troubles)
    eventually(lambda: another.tick() == 0.0 and not store.open_routes(0, 10))
    seen_at = one._looked_at
    eventually(lambda: MachineClock().boot() >= seen_at + _LOOK_EVERY)
    eventually(lambda: rounds(one, ledger, 1) == [] and one.troubles == {}, timeout=3.0)


class Slipping:
    """The store; its first claim of what a limit counts does not get through."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.has_slipped = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def claim(self, worker: int, claim: str, shares: Sequence[Share]) -> Claimed:
        if not self.has_slipped and any(share.is_limited for share in shares):
            self.has_slipped = True
            raise StoreUnavailable("the connection broke")
        return self._store.claim(worker, claim, shares)


def test_a_claim_that_failed_is_no_trouble_any_more_once_others_have_claimed(store: Store) -> None:
    store.set_limit(Limit("workflow", "limited", EVERY, "dana", concurrency=5))
    job = submitted(store, workflow="limited")
    ledger, other = Ledger(), Ledger()
    slipping, clock = Slipping(store), FakeClock()
    one, another = a_claimer(slipping, ledger, "limited", clock=clock), a_claimer(store, other, "limited")
    eventually(lambda: rounds(one, ledger, 1) == [] and slipping.has_slipped)
    assert "limited claim" in one.troubles
    assert [found.id for found in rounds(another, other, 3)] == [job.id]
    clock.advance(_LOOK_EVERY)
    assert rounds(one, ledger, 1) == []
    assert one.troubles == {}


def comes_at_once(store: Store, claimer: Claimer, ledger: Ledger, clock: FakeClock) -> None:
    """Without any look that is due by time."""
    before = clock.boot()
    store.submit([a_job(workflow="other")])
    found: list[ClaimedJob] = []

    def is_here() -> bool:
        found.extend(rounds(claimer, ledger, 1))
        return bool(found)

    eventually(is_here)
    assert [job.workflow for job in found] == ["other"]
    assert clock.boot() - before < 0.4


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


class Counting:
    """The store, and how many pages of routes were read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.pages = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def open_routes(self, after: int = 0, limit: int = 1000) -> OpenRoutes:
        self.pages += 1
        return self._store.open_routes(after, limit)


# --- while nothing happens, and when something does -----------------------------------------------------------------


class Asked:
    """The store, and what it was asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.verbs: list[str] = []

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._store, name)

        def ask(*values: Any, **options: Any) -> Any:
            self.verbs.append(name)
            return verb(*values, **options)

        return ask


def settled_down(claimer: Claimer, ledger: Ledger, asked: Asked) -> None:
    """It has marked itself, and has looked once more."""

    def is_quiet() -> bool:
        asked.verbs.clear()
        rounds(claimer, ledger, 1)
        return asked.verbs == ["due", "wait_for_work"]

    eventually(is_quiet)


def test_an_idle_claimer_asks_one_question_between_two_waits(store: Store) -> None:
    """However long it has been idle: timers, inbox and routes are not asked for one by one."""
    asked, ledger, clock = Asked(store), Ledger(), FakeClock()
    claimer = a_claimer(asked, ledger, "w", clock=clock)
    submitted(store, delay=3600.0)
    settled_down(claimer, ledger, asked)
    asked.verbs.clear()
    for _ in range(20):
        clock.advance(0.2)
        rounds(claimer, ledger, 1)
    assert asked.verbs.count("due") == asked.verbs.count("wait_for_work") == 20
    assert set(asked.verbs) == {"due", "wait_for_work"}


class Hinting(Asked):
    """While its claimer waits, these jobs come, one per wait."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.coming: list[NewJob] = []
        self.hint = ANYWHERE

    def wait_for_work(self, seconds: float) -> Hint | None:
        self.verbs.append("wait_for_work")
        if not self.coming:
            return None
        self._store.submit([self.coming.pop(0)])
        return self.hint


def test_after_a_hint_it_claims_before_it_looks_and_looks_before_it_sleeps_again(store: Store) -> None:
    hinting, ledger = Hinting(store), Ledger()
    claimer = a_claimer(hinting, ledger, "w")
    store.submit([a_job(workflow="w")])
    assert len(rounds(claimer, ledger, 2)) == 1
    hinting.coming = [a_job(workflow="w") for _ in range(3)]
    coming = [job.id for job in hinting.coming]
    hinting.verbs.clear()

    found = rounds(claimer, ledger, 7)

    assert [job.id for job in found] == coming
    assert [verb for verb in hinting.verbs if verb != "weights"] == ["due", "wait_for_work", "claim"] * 3 + [
        "due", "wait_for_work",
    ]  # fmt: skip


def route_of(store: Store, workflow: str) -> int:
    return next(
        front.route for front in store.open_routes(0, 100) if store.routes([front.route])[0].workflow == workflow
    )


def hinted_by_name(store: Store, *workflows: str, known: str = "w") -> tuple[Hinting, Claimer, Ledger]:
    """A claimer that has taken a job of the first, sleeps, and will hear of the route of `known` each time."""
    hinting, ledger = Hinting(store), Ledger()
    claimer = a_claimer(hinting, ledger, *workflows)
    store.submit([a_job(workflow="w")])
    store.submit([a_job(workflow=known)])
    hinting.hint = Hint(frozenset({route_of(store, known)}))
    assert rounds(claimer, ledger, 5)
    hinting.verbs.clear()
    return hinting, claimer, ledger


def test_after_a_hint_that_names_its_route_it_claims_from_there_and_sleeps_on(store: Store) -> None:
    hinting, claimer, ledger = hinted_by_name(store, "w")
    hinting.coming = [a_job(workflow="w") for _ in range(3)]
    coming = [job.id for job in hinting.coming]

    found = rounds(claimer, ledger, 7)

    assert [job.id for job in found] == coming
    assert hinting.verbs == ["due", "wait_for_work", *["claim", "wait_for_work"] * 3]


def test_a_hint_at_what_others_serve_costs_no_question(store: Store) -> None:
    hinting, claimer, ledger = hinted_by_name(store, "w", known="of others")
    hinting.coming = [a_job(workflow="of others") for _ in range(3)]

    assert rounds(claimer, ledger, 7) == []

    assert hinting.verbs.count("claim") == hinting.verbs.count("due") - 1 == 0
    assert hinting.verbs.count("wait_for_work") == 4


def test_while_hints_come_it_looks_as_often_as_it_polls(store: Store) -> None:
    """What nobody hinted at, here because its hint got lost, waits for no end of the hints at others."""
    hinting, claimer, ledger = hinted_by_name(store, "w", "other")
    clock = claimer._clock
    assert isinstance(clock, FakeClock)
    hinting.coming = [a_job(workflow="w") for _ in range(9)]
    rounds(claimer, ledger, 1)
    store.submit([lost := a_job(workflow="other")])

    at_first = rounds(claimer, ledger, 4)
    clock.advance(claimer._times.poll)
    then = rounds(claimer, ledger, 4)

    assert len(at_first) == 2
    assert lost.id not in {job.id for job in at_first}
    assert lost.id in {job.id for job in then}


def test_it_looks_again_where_a_hint_brought_nothing_or_all_that_there_was_room_for(store: Store) -> None:
    """Another worker may hold what was hinted at, and more may have come than fits."""
    hinting, claimer, ledger = hinted_by_name(store, "w", "other", known="other")
    hinting.coming = [a_job(workflow="w")]
    assert len(rounds(claimer, ledger, 4)) == 1, "the hint was wrong"
    assert "due" in hinting.verbs[hinting.verbs.index("wait_for_work") :]
    hinting.hint = Hint(frozenset({route_of_done(store, claimer, "w")}))
    hinting.coming = [a_job(workflow="w")]
    rounds(claimer, ledger, 1)
    store.submit([a_job(workflow="w") for _ in range(7)])
    hinting.verbs.clear()
    assert len(rounds(claimer, ledger, 3)) == 8
    assert hinting.verbs[:2] == ["claim", "claim"]


def route_of_done(store: Store, claimer: Claimer, workflow: str) -> int:
    return next(n for n in claimer._known.familiar if store.routes([n])[0].workflow == workflow)


def test_a_claim_that_was_taken_apart_is_followed_by_a_look(store: Store) -> None:
    class InParts(Hinting):
        def claim(self, *given: Any) -> Claimed:
            jobs = self._store.claim(*given)
            self.verbs.append("claim")
            return Claimed(jobs, jobs.held, jobs.left_out, in_parts=True)

    hinting, ledger = InParts(store), Ledger()
    claimer = a_claimer(hinting, ledger, "w")
    store.submit([a_job(workflow="w")])
    hinting.hint = Hint(frozenset({route_of(store, "w")}))
    assert rounds(claimer, ledger, 5)
    hinting.verbs.clear()
    hinting.coming = [a_job(workflow="w")]
    assert len(rounds(claimer, ledger, 3)) == 1
    assert hinting.verbs == ["due", "wait_for_work", "claim", "due", "wait_for_work"]


def test_what_was_guessed_wrongly_after_a_hint_costs_a_claim_and_nobodys_place(store: Store) -> None:
    hinting, ledger = Hinting(store), Ledger()
    claimer = a_claimer(hinting, ledger, "w", "other")
    store.submit([a_job(workflow="w")])
    assert len(rounds(claimer, ledger, 2)) == 1
    hinting.coming = [a_job(workflow="other")]
    coming = [job.id for job in hinting.coming]

    assert [job.id for job in rounds(claimer, ledger, 2)] == coming
    assert not claimer._known.barren


def test_who_takes_jobs_one_by_one_looks_first_also_after_a_hint(store: Store) -> None:
    """F5: the route that gave jobs last need not have the eldest."""
    hinting, ledger = Hinting(store), Ledger()
    claimer = a_claimer(hinting, ledger, "w", slots=1)
    ledger.publish(one_slot(0))
    store.submit([a_job(workflow="w")])
    assert len(rounds(claimer, ledger, 2, room=one_slot(0))) == 1
    hinting.coming = [a_job(workflow="w")]
    hinting.verbs.clear()
    assert len(rounds(claimer, ledger, 2, room=one_slot(0))) == 1
    verbs = [verb for verb in hinting.verbs if verb != "weights"]
    assert verbs[:4] == ["due", "wait_for_work", "due", "open_routes"]


def test_an_idle_claimer_sleeps_no_longer_than_until_the_next_timer(store: Store) -> None:
    """Nor than the poll, whatever others set meanwhile."""
    clock, ledger = FakeClock(), Ledger()
    waits: list[float] = []

    class Waiting(Asked):
        def wait_for_work(self, seconds: float) -> None:
            waits.append(seconds)

    claimer = a_claimer(Waiting(store), ledger, "w", clock=clock)
    claimer._times = Times()
    rounds(claimer, ledger, 1)
    assert 0.9 <= waits[-1] <= 1.0
    submitted(store, workflow="w", delay=0.4)
    rounds(claimer, ledger, 1)
    assert waits[-1] <= 0.4


NUMBERS = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 30000)"


def test_thousands_of_routes_that_nobody_here_serves_do_not_hide_one_that_gave_jobs(
    store: Store, store_url: str
) -> None:
    """However many there are: it is not found again by going round all of them."""
    counting, ledger = Counting(store), Ledger()
    claimer = a_claimer(counting, ledger, "ours")
    store.submit([a_job(workflow="ours")])
    assert len(rounds(claimer, ledger, 2)) == 1
    execute(
        store_url,
        f"{NUMBERS} INSERT INTO unstuck_routes (tenant, queue, workflow) SELECT 't' || n, 'q', 'theirs' FROM number",
    )
    theirs = "SELECT id, 0, -id FROM unstuck_routes WHERE workflow = 'theirs'"
    execute(store_url, f"INSERT INTO unstuck_ready (route, rank, job) {theirs}")
    for _ in range(3):
        assert rounds(claimer, ledger, 1) == []  # which leaves the look somewhere among the others
        store.submit([a_job(workflow="ours")])
        counting.pages = 0
        assert len(rounds(claimer, ledger, 1)) == 1
        assert counting.pages <= 1  # none at all, where a hint was heard


def test_thousands_of_keys_that_wait_do_not_hide_a_workflow_without_a_key(store: Store, store_url: str) -> None:
    """Nor from a claimer that has just begun, and has heard nothing of it."""
    ledger = Ledger()
    store.submit([a_job(workflow="ours")])
    assert len(rounds(a_claimer(store, ledger, "ours"), ledger, 2)) == 1
    execute(
        store_url,
        f"{NUMBERS} INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key)"
        " SELECT 'default', 'default', 'theirs', 'k' || n FROM number",
    )
    theirs = "SELECT id, 0, -id FROM unstuck_routes WHERE workflow = 'theirs'"
    execute(store_url, f"INSERT INTO unstuck_ready (route, rank, job) {theirs}")
    store.submit([a_job(workflow="ours")])
    claimer = a_claimer(store, ledger, "ours")
    claimer._known.looked_to = 5000
    assert len(rounds(claimer, ledger, 1)) == 1


def test_thousands_of_routes_that_nobody_here_serves_do_not_hide_a_new_one(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the highest number of all, and is met by the next look, not at the end of the way round."""
    monkeypatch.setattr(known_routes, "_PAGES", 5)
    counting, ledger = Counting(store), Ledger()
    claimer = a_claimer(counting, ledger, "ours")
    execute(
        store_url,
        f"{NUMBERS} INSERT INTO unstuck_routes (tenant, queue, workflow) SELECT 't' || n, 'q', 'theirs' FROM number",
    )
    theirs = "SELECT id, 0, -id FROM unstuck_routes WHERE workflow = 'theirs'"
    execute(store_url, f"INSERT INTO unstuck_ready (route, rank, job) {theirs}")
    eventually(lambda: (rounds(claimer, ledger, 1), claimer._known.looked_to > 0)[1])
    eventually(lambda: (rounds(claimer, ledger, 1), claimer._known.looked_to == 0)[1])
    for tenant in ("first", "second", "third"):
        eventually(lambda: (rounds(claimer, ledger, 1), 0 < claimer._known.looked_to < 20_000)[1])
        store.submit([a_job(workflow="ours", tenant=tenant)])
        assert len(rounds(claimer, ledger, 1)) == 1
