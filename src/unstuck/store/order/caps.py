"""Queue caps: how many jobs of a tenant or a queue may wait at once. Counted by a submit that has inserted its own.

Two submits that run at the same instant do not see each other's rows, so together they may pass a cap by what each of
them brings: a lock that made it exact would make every submit of a tenant wait for all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from unstuck.model.errors import TooManyQueued
from unstuck.model.job import NewJob
from unstuck.records import dataclass
from unstuck.store.database import Row, Transaction
from unstuck.store.port import EVERY


@dataclass(frozen=True, slots=True)
class Cap:
    """A cap of a tenant over all its queues, or of a queue: of one tenant's jobs in it, or of all tenants'
    together."""

    most: int
    tenant: str
    queue: str | None = None

    @property
    def what(self) -> str:
        if self.queue is None:
            return f"tenant {self.tenant}"
        return f"queue {self.queue}" + ("" if self.tenant == EVERY else f" of tenant {self.tenant}")

    def waiting(self, t: Transaction) -> int:
        """Counted no further than one above the cap: more would tell nothing new."""
        if self.queue is None:
            row = t.one("queued_of_tenant", tenant=self.tenant, most=self.most + 1)
        else:
            row = t.one("queued_of_queue", queue=self.queue, tenant=self.tenant, most=self.most + 1)
        assert row is not None
        return int(row["waiting"])


def check(t: Transaction, jobs: Sequence[NewJob]) -> None:
    """TooManyQueued if these jobs, inserted by this transaction, are more than may wait: it must not be committed."""
    places = sorted({(job.tenant, job.queue) for job in jobs})
    caps = {cap for tenant, queue in places for cap in _caps_of(t, tenant, queue)}
    for cap in sorted(caps, key=lambda cap: (cap.most, cap.what)):
        if cap.waiting(t) > cap.most:
            raise TooManyQueued(cap.what, cap.most)


def expect(t: Transaction, jobs: Sequence[NewJob]) -> None:
    """The same before these jobs are inserted: a look, so that a submit that will be refused makes nothing first."""
    if t.one("has_caps") is None:
        return  # most have none, and a batch may be of many tenants
    brought: Counter[Cap] = Counter()
    for (tenant, queue), count in Counter((job.tenant, job.queue) for job in jobs).items():
        brought.update(dict.fromkeys(_caps_of(t, tenant, queue), count))
    for cap, count in sorted(brought.items(), key=lambda item: (item[0].most, item[0].what)):
        if cap.waiting(t) + count > cap.most:
            raise TooManyQueued(cap.what, cap.most)


def _caps_of(t: Transaction, tenant: str, queue: str) -> Iterable[Cap]:
    rows = t.all("queue_caps", tenant=tenant, queue=queue)
    if (most := _own_or_common(rows)) is not None:
        yield Cap(most, tenant)
    for row in rows:
        if row["kind"] == "queue":
            yield Cap(row["max_queued"], row["tenant"], queue)


def _own_or_common(rows: Sequence[Row]) -> int | None:
    """The cap of each tenant holds for those that have none of their own."""
    own = [row["max_queued"] for row in rows if row["kind"] == "tenant" and row["name"] != EVERY]
    common = [row["max_queued"] for row in rows if row["kind"] == "tenant" and row["name"] == EVERY]
    return min(own or common, default=None)
