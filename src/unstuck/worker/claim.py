"""Free slots -> claimed jobs: what to ask for, in which order, and how often when there is nothing.

The claimer never asks for more than there is room. It looks over the fronts (the first due job of every route) when
it has nothing better to do and at least twice a second, and claims from the last view of them in between, until a
claim brings less than it asked for. Everything it remembers is a hint: the claim itself decides in the database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from unstuck.chance import Chance
from unstuck.clock import Clock
from unstuck.model.errors import OutcomeUnknown
from unstuck.model.job import ClaimedJob, WorkflowRecord
from unstuck.model.times import Times
from unstuck.store.port import Front, Route, Share, Store
from unstuck.telemetry import emit
from unstuck.worker.ledger import Ledger
from unstuck.worker.pace import Pace
from unstuck.worker.shares import Bid, Room, divide

BATCH = 400
_LOOK_EVERY = 0.5
#: A look reads so many routes at a time, and so many times at most, until it meets one that we serve.
_PAGE = 1000
_PAGES = 20
_REREAD_ROUTES_EVERY = 60.0
#: Numbers are given out before they commit: a route may become visible after one with a higher number.
_ROUTE_OVERLAP = 1000


@dataclass(frozen=True, slots=True)
class Served:
    """What this worker can run."""

    workflows: dict[str, WorkflowRecord]
    queues: frozenset[str]

    @classmethod
    def of(cls, workflows: Sequence[WorkflowRecord], queues: Sequence[str]) -> Served:
        """No queues named: all that the workflows name."""
        return cls({w.name: w for w in workflows}, frozenset(queues or [w.queue for w in workflows]))


class RouteBook:
    """Which number means which route, and whether it is ours."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._routes: dict[int, Route] = {}
        self._highest = 0
        self._read_all_at = float("-inf")

    def refresh(self, now: float) -> None:
        if now - self._read_all_at >= _REREAD_ROUTES_EVERY:
            self._read(0)
            self._read_all_at = now

    def learn(self, numbers: Sequence[int]) -> None:
        """Find out about numbers not met before."""
        if any(n not in self._routes for n in numbers):
            self._read(max(0, self._highest - _ROUTE_OVERLAP))
        if any(n not in self._routes for n in numbers):
            self._read(0)

    def _read(self, after: int) -> None:
        for route in self._store.routes(after):
            self._routes[route.number] = route
            self._highest = max(self._highest, route.number)

    def get(self, number: int) -> Route | None:
        return self._routes.get(number)


class Claimer:
    def __init__(
        self,
        store: Store,
        worker: int,
        ledger: Ledger,
        pace: Pace,
        times: Times,
        clock: Clock,
        chance: Chance,
        *,
        before_first: Callable[[], None],
        landed: Callable[[], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._ledger = ledger
        self._pace = pace
        self._times = times
        self._clock = clock
        self._chance = chance
        self._before_first = before_first
        self._landed = landed
        self._routes = RouteBook(store)
        self._served: Served | None = None
        self._registered: Served | None = None
        self._is_first = True
        self._is_open = True
        self._fronts: list[Front] = []
        self._looked_at = float("-inf")
        self._looked_to = 0
        self._released_at = float("-inf")
        self._turns: dict[str, int] = {}
        self._turn = 0
        self._most = BATCH

    # --- from other threads -------------------------------------------------------------------------------------
    def serve(self, served: Served) -> None:
        self._served = served
        self._ledger.has_room.set()

    def close(self) -> None:
        """No claim begins from now on; what one under way brings is given back by the supervisor."""
        self._is_open = False
        self._ledger.has_room.set()

    # --- the loop -----------------------------------------------------------------------------------------------
    def tick(self) -> float:
        """One round; the answer is how long to rest."""
        served = self._served
        if not self._is_open or served is None:
            self._clock.wait(self._ledger.has_room, self._times.poll)
            self._ledger.has_room.clear()
            return 0.0
        self._prepare(served)
        room = self._ledger.room()
        if room.total <= 0:
            self._clock.wait(self._ledger.has_room, self._times.poll)
            return 0.0
        now = self._clock.boot()
        self._release_due(now)
        self._look(now)
        bids = [bid for front in self._fronts if (bid := self._bid(front, served))]
        if shares := self._shares(bids, room):
            self._claim(shares, now)
        elif bids:
            # There is work, but not for the kind of room we have.
            self._clock.wait(self._ledger.has_room, self._times.poll)
        else:
            self._idle()
        return 0.0

    def _prepare(self, served: Served) -> None:
        if self._registered is not served:
            self._store.register_workflows(tuple(served.workflows.values()))
            self._registered = served
        if self._is_first:
            self._before_first()
            self._is_first = False

    def _release_due(self, now: float) -> None:
        """The janitor does it as well; here it lets delayed jobs and retries start on time."""
        if now - self._released_at >= min(0.5, self._times.poll):
            self._released_at = now
            self._store.release_due()

    def _look(self, now: float) -> None:
        if self._fronts and now - self._looked_at < _LOOK_EVERY:
            return
        self._routes.refresh(now)
        self._fronts = self._next_fronts()
        self._looked_at = now

    def _next_fronts(self) -> list[Front]:
        """Those we serve, from where the last look ended: thousands of routes of others must not hide ours."""
        for _ in range(_PAGES):
            page = self._store.fronts(self._looked_to, _PAGE)
            self._routes.learn([front.route for front in page])
            self._looked_to = page[-1].route if len(page) == _PAGE else 0
            if ours := [front for front in page if self._is_ours(front)]:
                return ours
            if self._looked_to == 0:
                break
        return []

    def _shares(self, bids: Sequence[Bid], room: Room) -> list[Share]:
        slots = min(room.slots, self._most)
        room = Room(slots, min(room.ahead, self._most - slots), room.solo)
        shares = divide(bids, room, self._turns)
        self._take_turns(shares)
        return shares

    def _bid(self, front: Front, served: Served) -> Bid | None:
        workflow = self._workflow_of(front, served)
        route = self._routes.get(front.route)
        if workflow is None or route is None:
            return None
        return Bid(
            route=front.route,
            tenant=route.tenant,
            rank=front.rank,
            is_quick=self._pace.is_quick(workflow.name),
            is_solo=workflow.policy.isolation == "process",
        )

    def _is_ours(self, front: Front) -> bool:
        return self._served is not None and self._workflow_of(front, self._served) is not None

    def _workflow_of(self, front: Front, served: Served) -> WorkflowRecord | None:
        route = self._routes.get(front.route)
        if route is None or route.queue not in served.queues:
            return None
        return served.workflows.get(route.workflow)

    def _take_turns(self, shares: Sequence[Share]) -> None:
        self._turn += 1
        for share in shares:
            if route := self._routes.get(share.route):
                self._turns[route.tenant] = self._turn

    def _claim(self, shares: Sequence[Share], now: float) -> None:
        claim = self._chance.nonce()
        self._ledger.announce(claim)
        if not self._is_open:
            # Closed before the main thread could see our announcement: it may count on nothing being under way.
            self._ledger.give_up(claim)
            return
        jobs = self._ask(claim, shares)
        self._ledger.admit(claim, jobs, self._clock.boot())
        self._most = min(BATCH, 2 * self._most)
        if len(jobs) < sum(share.limit for share in shares):
            self._fronts = []
        if jobs:
            self._landed()
        elif now - self._looked_at > 0:
            # An old view promised what others took: look again. A fresh one that brings nothing is no reason to spin.
            return
        else:
            self._idle()

    def _ask(self, claim: str, shares: Sequence[Share]) -> list[ClaimedJob]:
        try:
            try:
                return self._store.claim(self._worker, claim, shares)
            except OutcomeUnknown:
                # The same id: it answers with what the first call opened, if it did.
                emit("claim_repeated", claim=claim)
                return self._store.claim(self._worker, claim, shares)
        except Exception:
            self._ledger.give_up(claim)
            self._most = max(1, self._most // 4)  # what a slow store cannot answer in time would never come
            raise

    def _idle(self) -> None:
        self._fronts = []
        self._store.wait_for_work(self._times.poll * (0.5 + 0.5 * self._chance.fraction()))
