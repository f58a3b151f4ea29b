"""WorkDesk: finds jobs for the workers that wait at this server, and wakes those for whom there may be some.

Theory of operation. A worker at a distance says what it has room for; which routes there are, and who is next, it
does not learn. The desk looks over the open routes, once for everybody who asks in the same moment, leaves out what
the worker's key is not granted, divides the room by the rules of `worker.shares` (one count of turns for the whole
server, so tenants share what all its workers have) and claims. Who gets nothing waits without a thread. One thread
listens for hints, releases timers and works off the inbox, as each worker beside the database does for itself, and
wakes those to whom an open route belongs. Nobody waits: nothing is looked at.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence

from unstuck.clock import Clock
from unstuck.model.job import ClaimedJob
from unstuck.model.offers import offered
from unstuck.model.signing import SignatureProblem
from unstuck.records import dataclass
from unstuck.signing import SigningKeys
from unstuck.store.port import Grant, OpenRoute, Route, Store, Wanted
from unstuck.telemetry import logger
from unstuck.worker.served import RouteBook
from unstuck.worker.shares import Bid, FreeRoom, Turns, divide
from unstuck.worker.verifier import bury, refusals

#: Jobs in one answer.
MOST_JOBS = 400
#: Seconds for which a look is good enough for others who are woken; never for one who came after it began.
FRESH = 0.02
_PAGE = 1000
_PAGES = 20
#: Seconds without a hint after which the thread looks all the same; and for which it goes on when nobody waits.
POLL = 1.0
LINGER = 5.0
#: So many are woken at first; and seconds that they have to claim before others are.
FIRST_WOKEN = 16
_TO_CLAIM = 0.01
#: Routes that gave nothing stand behind the others for so long.
_BARREN_FOR = 1.0
_LAST = 1 << 62
#: Seconds until a limit that another claim holds is asked for again.
HELD_FOR = 0.02
_WEIGH_EVERY = 5.0
_INGEST_BACK = 1000
_AWAY = 1.0
_PIECE = 0.2


@dataclass(frozen=True, slots=True)
class Taker:
    """One worker that has room, and what it wants of what its key is granted; `tenant`: None means all."""

    worker: int
    claim: str
    wanted: Wanted
    queues: frozenset[str]
    workflows: frozenset[str]
    tenant: str | None = None
    again: bool = False

    @classmethod
    def of(cls, worker: int, claim: str, wanted: Wanted, grant: Grant, *, again: bool = False) -> Taker:
        queues, workflows = frozenset(wanted.queues), frozenset(wanted.workflows)
        within = grant.within
        return cls(
            worker,
            claim,
            wanted,
            queues if within.queues is None else queues & within.queues,
            workflows if within.workflows is None else workflows & within.workflows,
            grant.tenant,
            again,
        )

    def may_take(self, route: Route) -> bool:
        return (
            route.workflow in self.workflows
            and route.queue in self.queues
            and (self.tenant is None or route.tenant == self.tenant)
        )


@dataclass(frozen=True, slots=True)
class FoundJobs:
    """`again_in`: seconds after which it is worth another try; None: when somebody wakes it."""

    jobs: tuple[ClaimedJob, ...] = ()
    again_in: float | None = None


class WorkDesk:
    """`store`: that of this desk alone; hints are heard by one listener. `keys`: by which it verifies what it hands
    out, because a worker at a distance holds none; asked with True where somebody named another one."""

    def __init__(self, store: Callable[[], Store], clock: Clock, keys: Callable[[bool], SigningKeys]) -> None:
        self._open = store
        self._keys = keys
        self._clock = clock
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        #: With the moment in which each began to wait.
        self._waiting: dict[Taker, tuple[Callable[[], None], float]] = {}
        self._thread: threading.Thread | None = None
        self._has_waiters = threading.Event()
        self._closed = threading.Event()
        self._book: RouteBook | None = None
        self._fronts: list[tuple[OpenRoute, Route]] = []
        self._looked_at = float("-inf")
        #: Where the next look begins; 0: at the start.
        self._looked_to = 0
        self._turns = Turns()
        self._weighed_at = float("-inf")
        self._barren: dict[int, float] = {}
        self._ingested = 0

    def close(self) -> None:
        self._closed.set()
        self._has_waiters.set()
        if (thread := self._thread) is not None:
            thread.join(POLL + 5.0)

    # --- those who wait -------------------------------------------------------------------------------------------

    def join(self, taker: Taker, wake: Callable[[], None]) -> None:
        """`wake` is called on another thread, whenever there may be something for it, until it leaves."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                thread = threading.Thread(target=self._listen, name="unstuck-work", daemon=True)
                thread.start()
                self._thread = thread
            self._waiting[taker] = wake, self._clock.boot()
            self._has_waiters.set()

    def leave(self, taker: Taker) -> None:
        with self._lock:
            self._waiting.pop(taker, None)
            if not self._waiting:
                self._has_waiters.clear()

    # --- the choice -----------------------------------------------------------------------------------------------

    def find(self, taker: Taker) -> FoundJobs:
        """On any thread: what is claimed for it now."""
        store, claim = self._open(), offered(taker.claim)
        if taker.again and (earlier := store.claim(taker.worker, claim, ())):
            return _found(self._verified(store, taker, claim, earlier))
        bids = self._bids(taker)
        if not bids:
            return FoundJobs()
        self._weigh(store)
        with self._lock:
            shares = divide(list(bids.values()), _room(taker.wanted), self._turns)
        if not shares:
            return FoundJobs()
        jobs = store.claim(taker.worker, claim, shares)
        got = Counter(job.route for job in jobs)
        asked = {share.route for share in shares} - jobs.held
        self._note(got, {route: bids[route].tenant for route in asked})
        if len(jobs) < sum(share.limit for share in shares):
            # What was seen open is taken: a thousand who were woken for one job must not all try to claim it.
            self._looked_at = float("-inf")
        if jobs.held and not jobs:
            return FoundJobs(again_in=HELD_FOR)
        return _found(self._verified(store, taker, claim, jobs))

    def _verified(self, store: Store, taker: Taker, claim: str, jobs: Sequence[ClaimedJob]) -> Sequence[ClaimedJob]:
        """Those whose signatures hold; the others end DEAD. What cannot be settled now is an offer that nobody hears:
        it goes back, and is refused again. So is everything if the signatures cannot be read."""
        keys = self._keys(False).also_requiring(taker.wanted.signed)
        if not keys or not jobs:
            return jobs
        facts = store.signed_facts(taker.worker, claim)
        refused = refusals(keys, jobs, facts)
        if any(why.problem == SignatureProblem.UNKNOWN_KEY for why in refused.values()):
            refused = refusals(self._keys(True).also_requiring(taker.wanted.signed), jobs, facts)
        if refused:
            bury(store, taker.worker, [(job, refused[job.ref]) for job in jobs if job.ref in refused])
        return [job for job in jobs if job.ref not in refused]

    def _bids(self, taker: Taker) -> dict[int, Bid]:
        wanted, now = taker.wanted, self._clock.boot()
        quick, alone = frozenset(wanted.quick), frozenset(wanted.alone)
        return {
            front.route: Bid(
                route=front.route,
                tenant=route.tenant,
                rank=_LAST if self._barren.get(front.route, now) > now else front.rank,
                is_quick=route.workflow in quick,
                is_solo=route.workflow in alone,
                is_limited=front.is_limited,
                job=front.job,
            )
            for front, route in self._look(self._needed_since(taker))
            if taker.may_take(route)
        }

    def _note(self, got: Counter[int], tenants: dict[int, str]) -> None:
        """Whose turn it was, and which routes gave nothing."""
        by_tenant: Counter[str] = Counter()
        for route, count in got.items():
            by_tenant[tenants.get(route, "")] += count
        until = self._clock.boot() + _BARREN_FOR
        with self._lock:
            self._turns.served(tenants.values(), by_tenant)
            self._barren = {route: at for route, at in self._barren.items() if at > until - _BARREN_FOR}
            self._barren |= {route: until for route in tenants if route not in got}

    def _weigh(self, store: Store) -> None:
        now = self._clock.boot()
        if now - self._weighed_at >= _WEIGH_EVERY:
            self._weighed_at = now
            self._turns.weights = store.weights()

    def _needed_since(self, taker: Taker) -> float:
        """A hint may have been heard just before it came, and nobody wakes it for what was there by then."""
        now = self._clock.boot()
        with self._lock:
            _, came = self._waiting.get(taker, (None, now))
        return max(came, now - FRESH)

    def _look(self, since: float) -> list[tuple[OpenRoute, Route]]:
        """The open routes, each with its first job, by a look that began after that."""
        with self._looking:
            if self._looked_at > since:
                return self._fronts
            store, began = self._open(), self._clock.boot()
            book = self._book = self._book or RouteBook(store)
            fronts = list[OpenRoute]()
            has_all = self._looked_to == 0
            for _ in range(_PAGES):
                page = store.open_routes(self._looked_to, _PAGE)
                fronts += page
                self._looked_to = page.looked_to
                if not self._looked_to:
                    break
            if not has_all or self._looked_to:
                # Too many for one look, which goes on with the next; those without a limit key do not wait for that.
                met = {front.route for front in fronts}
                fronts += [front for front in store.open_plain_routes() if front.route not in met]
            book.learn([front.route for front in fronts])
            self._fronts = [(front, route) for front in fronts if (route := book.get(front.route)) is not None]
            self._looked_at = began
            return self._fronts

    # --- the thread -----------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        while not self._closed.is_set():
            if not self._clock.wait(self._has_waiters, LINGER):
                with self._lock:
                    if not self._waiting:
                        self._thread = None
                        return
            try:
                self._turn()
            except Exception:
                logger.exception("the work for workers at a distance could not be looked at")
                self._clock.wait(self._closed, _AWAY)

    def _turn(self) -> None:
        store = self._open()
        due = store.due(max(0, self._ingested - _INGEST_BACK))
        if due.has_timers:
            store.release_due()
        if due.has_news:
            self._ingested = max(self._ingested, store.ingest(max(0, self._ingested - _INGEST_BACK)).last)
        if due.has_ready or due.has_timers or due.has_news:
            self._wake_some()
        ahead = POLL if due.timer_in is None else min(POLL, max(0.05, due.timer_in))
        if self._is_hinted(store, ahead):
            self._wake_some()

    def _is_hinted(self, store: Store, within: float) -> bool:
        """In pieces: who closes this desk must not wait for long."""
        until = self._clock.boot() + within
        while (left := until - self._clock.boot()) > 0 and not self._closed.is_set():
            if store.wait_for_work(min(left, _PIECE)):
                return True
        return False

    def _wake_some(self) -> None:
        """Those for whom there is a route, who have waited longest first. A few, and the more the longer there is
        something left: a thousand who are woken for one job would hold up the one who gets it."""
        with self._lock:
            waiting = [(taker, wake) for taker, (wake, _) in self._waiting.items()]
        few = FIRST_WOKEN
        while waiting and not self._closed.is_set():
            routes = {route.number: route for _, route in self._look(self._clock.boot())}.values()
            wanting = [each for each in waiting if any(each[0].may_take(route) for route in routes)]
            for _, wake in wanting[:few]:
                wake()
            waiting, few = wanting[few:], 2 * few
            if waiting:
                self._clock.wait(self._closed, _TO_CLAIM)


def _found(jobs: Sequence[ClaimedJob]) -> FoundJobs:
    """Without the numbers of routes and ranks, which are about others too."""
    return FoundJobs(tuple(job._replace(route=0, rank=0) for job in jobs))


def _room(wanted: Wanted) -> FreeRoom:
    slots = min(wanted.slots, MOST_JOBS)
    return FreeRoom(slots, min(wanted.ahead, MOST_JOBS - slots), min(wanted.solo, MOST_JOBS), wanted.in_order)
