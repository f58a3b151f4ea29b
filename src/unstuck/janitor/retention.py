"""What nobody needs any more -> gone. Each kind of thing has turns of its own, so that one that fails stops no other.

Jobs must go as fast as they end, and not at the price of those that run. So a turn is one batch, and a rest in
proportion comes after it: others get to write, whatever the machine is busy with. While there is more, it is counted
once a second how many jobs end. Where batches with rests would not keep up with that, the rest becomes shorter; where
batches without a rest do not, they become larger. How long a batch took says little about its size, for most of that
may be waiting: it gets smaller only when it comes near to what a store call may take. One that fails is cut to a
quarter, down to the single thing; that one is passed by until the next round, and the rest goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from unstuck.clock import Clock
from unstuck.janitor.budget import Budget
from unstuck.model.alerts import WINDOW
from unstuck.model.batch import Batch
from unstuck.model.errors import StoreBusy, StoreError
from unstuck.model.names import KEPT, LIFE
from unstuck.model.series import SERIES_KEPT, TOTALS_KEPT
from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.store.port import FIRST_ENDED, NameKind, Store
from unstuck.telemetry import emit

#: SQLite's writer, which serves nobody else meanwhile, needs about 20 microseconds of CPU for each.
_MOST = 1_000
#: And while more of them come than go.
_MOST_BEHIND = 4 * _MOST
_LEAST = 10
#: What a batch may take, of a store call.
_AIM = 1 / 3
_EVERY = 60.0
#: Where the look itself costs: some hundred milliseconds of CPU for a million.
_SELDOM = {"published": 600.0}
#: How long the rest after a batch is while there is more, of what the batch took.
_REST = 1 / 2
#: How many are to go for each that ends: a tenth more, so that what has gathered goes too.
_HEADROOM = 1.1
#: The seconds over which it is counted how many end, and so many at most: nothing goes faster.
_COUNTED_FOR = 1.0
_MOST_COUNTED = 50_000
#: Where so many in a row cannot go, likely none can.
_MOST_REFUSED = 20
#: Whoever asked has long read the answer; a stack is large.
ORDERS_KEPT = 3600.0
DAY = 86400.0
AUDIT_KEPT = 365 * 86400.0
#: A worker that is gone is news for an hour and of use for a post-mortem; a crash loop leaves thousands a day.
WORKERS_KEPT = 86400.0


def retention(store: Store, times: Times, clock: Clock) -> list[RetentionDuty]:
    """A duty for each kind of thing."""
    kinds: dict[str, Forget] = {
        "jobs": EndedJobs(store, times.retention, clock),
        "keys": Oldest(store.forget_keys),
        "workers": Oldest(lambda *part: store.forget_workers(min(WORKERS_KEPT, times.retention), *part)),
        "starts": Oldest(store.forget_starts),
        "orders": Oldest(lambda *part: store.forget_orders(ORDERS_KEPT, *part)),
        "stucks": Oldest(lambda *part: store.forget_stucks(times.retention, *part)),
        "audit": Oldest(lambda *part: store.forget_audit(AUDIT_KEPT, *part)),
        "bulks": Oldest(lambda *part: store.forget_bulks(times.retention, *part)),
        "firings": Oldest(lambda *part: store.forget_firings(times.retention, *part)),
        "hook_deliveries": Oldest(store.forget_hook_deliveries),
        "followed_ends": Oldest(
            lambda *part: store.forget_followed_ends(max(times.retention, times.feed_retention) + DAY, *part)
        ),
        "series": Oldest(lambda *part: store.forget_series(SERIES_KEPT, *part)),
        "totals": Oldest(lambda *part: store.forget_totals(TOTALS_KEPT, *part)),
        "unclaimed_events": Oldest(store.forget_unclaimed_events),
        "event_ids": Oldest(store.forget_event_ids),
        "routes": Oldest(OldNames(store, "routes", times.retention, clock).forget),
        "targets": Oldest(OldNames(store, "targets", times.retention, clock).forget),
        "workflows": Oldest(lambda *part: store.forget_workflows(times.retention, *part)),
        "breakers": Oldest(store.forget_breakers),
        "news": Oldest(lambda *part: store.forget_news(times.feed_retention, *part)),
        "published": Oldest(store.forget_published),
        "feed": Oldest(lambda *part: store.forget_feed(times.feed_retention, *part)),
        "deliveries": Oldest(lambda *part: store.forget_deliveries(times.delivery_retention, *part)),
        "alerts": Oldest(lambda *part: store.forget_alerts(times.retention, *part)),
        "recoveries": Oldest(lambda *part: store.forget_recoveries(2 * WINDOW, *part)),
        "dead_letters": Oldest(lambda *part: store.forget_dead_letters(times.dead_letter_retention, *part)),
    }
    return [RetentionDuty(kind, forget, times, clock, _SELDOM.get(kind, _EVERY)) for kind, forget in kinds.items()]


@dataclass(frozen=True, slots=True)
class Forgotten:
    gone: int
    has_more: bool


class Oldest:
    """Things of which a batch is the oldest there are, past those that could not go in this round."""

    #: How many more of them there are each second, where that is known.
    come = 0.0

    def __init__(self, forget: Callable[[int, int], int]) -> None:
        """`forget` takes the size of a batch, and past how many of the oldest it begins; how many went."""
        self._forget = forget
        self._past = 0
        self._refused = 0

    def batch(self, size: int) -> Forgotten:
        gone = self._forget(size, self._past)
        has_more = gone >= size
        self._past = self._past if has_more else 0
        self._refused = 0
        return Forgotten(gone, has_more)

    def pass_by(self) -> bool:
        """Where so many in a row cannot go, likely none can: enough for now."""
        self._past += 1
        self._refused += 1
        return self._refused % _MOST_REFUSED != 0


class EndedJobs:
    """From the oldest end to the youngest that is old enough, then from the beginning. The place is remembered: those
    that must stay, and the dead rows of those that went, are walked over once in a round, not once in a batch."""

    def __init__(self, store: Store, kept: float, clock: Clock) -> None:
        self._store = store
        self._kept = kept
        self._clock = clock
        self._place = FIRST_ENDED
        self._counted_at = float("-inf")
        self.come = 0.0

    def batch(self, size: int) -> Forgotten:
        forgotten = self._batch(size)
        if forgotten.has_more and self._clock.boot() - self._counted_at >= _COUNTED_FOR:
            self.come = self._store.count_ended(_COUNTED_FOR, _MOST_COUNTED) / _COUNTED_FOR
            self._counted_at = self._clock.boot()
        return forgotten

    def _batch(self, size: int) -> Forgotten:
        found = self._store.ended_before(self._kept, self._place, size)
        gone = self._store.forget_jobs([place.job for place in found], self._kept) if found else 0
        has_more = len(found) >= size
        self._place = found[-1] if has_more else FIRST_ENDED
        return Forgotten(gone, has_more)

    def pass_by(self) -> bool:
        found = self._store.ended_before(self._kept, self._place, 1)
        self._place = found[0] if found else FIRST_ENDED
        return bool(found)


class OldNames:
    """Routes or targets. Their age counts up to what the database's clock said two lives of a cache ago, by our own
    clock: if it leapt since, whoever holds a number has looked it up again before it seems old."""

    def __init__(self, store: Store, kind: NameKind, kept: float, clock: Clock) -> None:
        self._store = store
        self._kind: NameKind = kind
        self._kept = timedelta(seconds=max(KEPT, kept))
        self._clock = clock
        self._moments: list[tuple[float, datetime]] = []

    def forget(self, batch: int, past: int) -> int:
        before = self._before()
        return 0 if before is None else self._store.forget_names(self._kind, before, batch, past)

    def _before(self) -> datetime | None:
        now = self._clock.boot()
        if not self._moments or now - self._moments[-1][0] >= LIFE:
            self._moments.append((now, self._store.now()))
        past = [moment for moment in self._moments if now - moment[0] >= 2 * LIFE]
        self._moments = past[-1:] + self._moments[len(past) :]
        return past[-1][1] - self._kept if past else None


Forget = Oldest | EndedJobs


class RetentionDuty:
    def __init__(self, kind: str, forget: Forget, times: Times, clock: Clock, idle: float = _EVERY) -> None:
        """`idle`: how long it rests where there is nothing more to do."""
        self.name = f"retention of {kind}"
        self._forget = forget
        self._times = times
        self._clock = clock
        self._batch = Batch(_MOST, least=_LEAST)
        self._idle = self._rest = idle

    @property
    def every(self) -> float:
        return self._rest

    def tick(self, now: float, budget: Budget) -> int:
        began, size = self._clock.boot(), self._batch.size
        some = self._forget_some()
        self._rest = self._rest_after(size, self._clock.boot() - began) if some.has_more else self._idle
        return some.gone

    def _rest_after(self, size: int, took: float) -> float:
        """As long as so many may take while as many more come."""
        come = self._forget.come * _HEADROOM
        spare = size / come - took if come else took
        self._batch.most = _MOST if spare >= 0 else _MOST_BEHIND
        return max(0.0, min(took * _REST, spare))

    def _forget_some(self) -> Forgotten:
        began = self._clock.boot()
        try:
            some = self._forget.batch(self._batch.size)
        except StoreBusy as problem:
            return self._failed(problem)
        except StoreError:
            self._batch.failed()  # in case the store is not away and this was more than one call can do
            raise
        except Exception as problem:  # a row that the database refuses to give up
            return self._failed(problem)
        if some.has_more:
            self._batch.took(self._clock.boot() - began, self._times.store_call * _AIM)
        return some

    def _failed(self, problem: Exception) -> Forgotten:
        """Fewer next time; of a single one that fails, the next."""
        if self._batch.size > 1:
            self._batch.failed()
            return Forgotten(0, has_more=True)
        emit("not_forgotten", level=logging.WARNING, duty=self.name, problem=str(problem)[:200])
        return Forgotten(0, has_more=self._forget.pass_by())
