"""KnownRoutes: what a claimer remembers of the routes between one look and the next.

Which routes had jobs that can run here (bids), where each claim goes on (its floor), which gave jobs lately
(familiar), and which gave none (barren). All of it is a hint: the claim itself decides in the database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from unstuck.clock import Clock
from unstuck.model.job import WorkflowRecord
from unstuck.store.port import Claimed, ClaimPort, OpenRoute, OpenRoutes, Share
from unstuck.worker.pace import Pace
from unstuck.worker.served import RouteBook, Served
from unstuck.worker.shares import Bid

#: A look reads so many routes at a time, and so many times at most, until it meets a route that we serve.
_PAGE = 1000
_PAGES = 20
#: One look over the routes takes at most so many seconds. After one of several pages the looks are over one page each
#: for so many times what it took: hints at what others serve must not keep us walking.
_LOOK_FOR = 0.25
_WALKS_APART = 3.0
#: So many routes that gave jobs lately are looked at first, if a look is not over all of them.
_FAMILIAR = 100
#: Routes that gave nothing stand behind the others for so long: what is held there must not hide what is not.
_BARREN_FOR = 1.0
_LAST = 1 << 62


class KnownRoutes:
    def __init__(self, store: ClaimPort, pace: Pace, clock: Clock) -> None:
        self._store = store
        self._pace = pace
        self._clock = clock
        self.routes = RouteBook(store)
        #: Workflows that are left to others for now.
        self.shunned: frozenset[str] = frozenset()
        self.bids: dict[int, Bid] = {}
        #: Where the next look begins; 0: at the start.
        self.looked_to = 0
        #: The highest number of a route that was met.
        self._highest = 0
        #: Routes that gave jobs lately, and whether a limit counts them.
        self.familiar: dict[int, bool] = {}
        #: Before this a look reads one page.
        self._walk_at = float("-inf")
        self.barren: set[int] = set()
        self._barren_since = float("-inf")

    # --- the look -----------------------------------------------------------------------------------------------
    def next_bids(self, served: Served) -> dict[int, Bid]:
        """Those we serve, from where the last look ended: thousands of routes of others must not hide ours."""
        began = self._clock.boot()
        until = began + (_LOOK_FOR if began >= self._walk_at else 0.0)
        found: dict[int, Bid] = {}
        if self.looked_to:
            # A workflow with thousands of keys that wait for one limit must not hide those that have none.
            found = self.bids_of(self._store.open_plain_routes(), served)
            if keyed := [route for route in self.familiar if route not in found]:
                found |= self.bids_of(self._store.open_routes_of(keyed), served)
        if 0 < self.looked_to < self._highest:
            # A route that is new has a higher number than all that were met, and would come last.
            found |= self.bids_of(self._page(self._highest), served)
        for turned in range(_PAGES):
            page = self._page(self.looked_to)
            self.looked_to = page.looked_to
            found |= self.bids_of(page, served)
            now = self._clock.boot()
            if turned:
                self._walk_at = now + _WALKS_APART * (now - began)
            if found or self.looked_to == 0 or now >= until:
                break
        return found

    def _page(self, after: int) -> OpenRoutes:
        page = self._store.open_routes(after, _PAGE)
        self._highest = max([self._highest, page.looked_to, *(front.route for front in page)])
        return page

    def look_again(self, shares: Sequence[Share], served: Served) -> None:
        """Which job comes next, where routes were taken from only as far as others begin."""
        if asked := [share.route for share in shares if share.last is not None]:
            self.bids |= self.bids_of(self._store.open_routes_of(asked), served)

    def bids_of(self, page: OpenRoutes, served: Served) -> dict[int, Bid]:
        self.routes.learn([front.route for front in page])
        return {front.route: bid for front in page if (bid := self._bid(front, served))}

    def _workflow_of(self, number: int, served: Served) -> WorkflowRecord | None:
        """None: nothing of that route can run here now."""
        route = self.routes.get(number)
        if route is None or route.queue not in served.queues or route.workflow in self.shunned:
            return None
        return served.workflows.get(route.workflow)

    def _bid(self, front: OpenRoute, served: Served) -> Bid | None:
        route, workflow = self.routes.get(front.route), self._workflow_of(front.route, served)
        if route is None or workflow is None:
            return None
        return Bid(
            route=front.route,
            tenant=route.tenant,
            rank=_LAST if front.route in self.barren else front.rank,
            is_quick=self._pace.is_quick(workflow.name),
            is_solo=workflow.policy.isolation == "process",
            is_limited=front.is_limited,
            job=front.job,
        )

    # --- a hint's routes ----------------------------------------------------------------------------------------
    def ours(self, routes: Collection[int], served: Served) -> list[int]:
        self.routes.learn(routes)
        return [route for route in routes if self._workflow_of(route, served) is not None]

    def likely_bids(self, routes: Iterable[int], served: Served) -> dict[int, Bid]:
        free = [route for route in routes if not self.familiar.get(route)]
        if len(free) != 1:
            return self.bids_of(self._store.open_routes_of(free), served) if free else {}
        return self.bids_of(OpenRoutes([OpenRoute(free[0], rank=0)]), served)

    # --- what a claim brought -----------------------------------------------------------------------------------
    def remember(self, shares: Sequence[Share], jobs: Claimed, asked: Collection[int], now: float) -> None:
        """Where each route's next claim begins, and which routes gave nothing of those that were `asked`."""
        # By rank within each route, so the last is where the next claim begins.
        gave = {job.route: job for job in jobs}
        for route, job in gave.items():
            if bid := self.bids.get(route):
                # What comes next there is not known: behind those of the same age that are known to wait.
                self.bids[route] = replace(bid, rank=max(bid.rank, job.rank + 1), floor=(job.rank, job.ref.job))
        limited = {share.route: share.is_limited for share in shares}
        familiar = {route: limited[route] for route in gave if route in limited} | {
            route: is_limited for route, is_limited in self.familiar.items() if route not in gave
        }
        self.familiar = dict(list(familiar.items())[:_FAMILIAR])
        self.barren -= gave.keys()
        if barren := set(asked) - gave.keys():
            self._barren_since = now if not self.barren else self._barren_since
            self.barren |= barren

    def drop_spent(self, shares: Sequence[Share], jobs: Claimed, got: Mapping[int, int]) -> None:
        """What gave less than it was asked for has no more, or may give no more: the next look will tell."""
        for share in shares:
            if got.get(share.route, 0) < share.limit and share.route not in jobs.held:
                self.bids.pop(share.route, None)

    def forget_barren(self, now: float) -> None:
        """Once they have stood behind the others for long enough."""
        if now - self._barren_since >= _BARREN_FOR:
            self.barren.clear()
