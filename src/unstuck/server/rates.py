"""Rates: how often one key may ask. A bucket for each, filled by time; forgotten when it is full again."""

from __future__ import annotations

import threading
from collections import OrderedDict

from unstuck.clock import Clock
from unstuck.server.problems import HttpProblem

#: Buckets that are kept; the one that was used longest ago goes first.
MOST_KEYS = 10_000


class Rates:
    """`per_second` requests on average; twice as many at once."""

    def __init__(self, per_second: float, clock: Clock) -> None:
        self._per_second = per_second
        self._most = 2 * per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """How many keys it remembers."""
        return len(self._buckets)

    def take(self, key: str) -> None:
        """One request of this key, or a refusal that says when to come again."""
        now = self._clock.boot()
        with self._lock:
            left, at = self._buckets.pop(key, (self._most, now))
            left = min(self._most, left + (now - at) * self._per_second)
            is_allowed = left >= 1
            self._buckets[key] = (left - 1 if is_allowed else left, now)
            if len(self._buckets) > MOST_KEYS:
                self._buckets.popitem(last=False)
        if not is_allowed:
            wait = max(1, round((1 - left) / self._per_second))
            raise HttpProblem(
                "TooManyRequests", f"this key may ask {self._per_second:g} times a second", Retry_After=str(wait)
            )
