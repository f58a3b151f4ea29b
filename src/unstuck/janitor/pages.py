"""Pages: the routes on which jobs wait, for as long as a turn lasts; the next one goes on where it ended."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from unstuck.janitor.budget import Budget
from unstuck.model.batch import Batch
from unstuck.store.port import Store, Waiting

_PAGE = 1000


class Pages:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked_to = 0
        self._size = Batch(_PAGE)

    def turn(self, budget: Budget) -> Iterator[Waiting]:
        """Page after page until the budget is over, and never past the last: a turn ends, however many there are. A
        turn that stops in the middle of a page is continued behind its last route."""
        while True:
            page = budget.call(self._size, lambda most: self._store.waits(self._looked_to, most))
            for first in page:
                self._looked_to = first.route
                yield first
            self._looked_to = page.looked_to
            if self._looked_to == 0 or budget.is_over():
                return


class RecentNews:
    """What was reported lately: the same news again only after a while."""

    AGAIN_AFTER = 3600.0

    def __init__(self) -> None:
        #: The oldest first.
        self._said: dict[tuple[Hashable, str], float] = {}

    def is_news(self, about: Hashable, what: str, now: float) -> bool:
        while self._said and now - self._said[oldest := next(iter(self._said))] >= self.AGAIN_AFTER:
            del self._said[oldest]
        if (about, what) in self._said:
            return False
        self._said[about, what] = now
        return True
