"""Old jobs, keys, workers, starts, orders, marks, audit lines, letters, places in the feed -> gone, in batches."""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 500
#: They are narrow, and there are several to a job.
FEED_BATCH = 5000
_EVERY = 60.0
_HURRIED = 1.0
#: Whoever asked has long read the answer; a stack is large.
ORDERS_KEPT = 3600.0
AUDIT_KEPT = 365 * 86400.0


class Retention:
    name = "retention"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times
        self._has_more = False

    @property
    def every(self) -> float:
        """One batch a turn; the next turn comes soon while there is more."""
        return _HURRIED if self._has_more else _EVERY

    def tick(self, now: float, budget: Budget) -> int:
        jobs = self._store.forget_ended(self._times.retention, BATCH)
        keys = self._store.forget_keys(self._times.key_retention, BATCH)
        workers = self._store.forget_workers(self._times.retention, BATCH)
        starts = self._store.forget_starts(BATCH)
        orders = self._store.forget_orders(ORDERS_KEPT, BATCH)
        marks = self._store.forget_marks(self._times.retention, BATCH)
        audit = self._store.forget_audit(AUDIT_KEPT, BATCH)
        letters = self._store.forget_letters(BATCH)
        places = self._store.forget_feed(self._times.feed_retention, FEED_BATCH)
        gone = (jobs, keys, workers, starts, orders, marks, audit, letters)
        self._has_more = max(gone) >= BATCH or places >= FEED_BATCH
        return sum(gone) + places
