"""The verbs of readers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.why.facts import Facts
from unstuck.store.life.changes import moment
from unstuck.store.port import (
    ClockStand,
    Dossier,
    FeedBounds,
    FeedFilter,
    FeedPage,
    InboxStand,
    LockHolder,
    OutputMark,
    Overdue,
    Tally,
    TallyBy,
)
from unstuck.store.read import dossier, feed, locks, lookup, tally, why
from unstuck.store.rows import instant, instant_or_none, span, worker_of
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlRead(SqlVerbs):
    def sequence(self, kept: float = 86400.0) -> int:
        return feed.sequence(self._database, kept)

    def feed(self, after: str, wanted: FeedFilter, limit: int = 1000) -> FeedPage:
        if not lookup.can_exist(*_names(wanted)):
            wanted = FeedFilter(tenant="", job="")  # nothing is called so; the cursor moves on all the same
        return self._database.read(lambda t: feed.page(t, after, wanted, limit))

    def feed_bounds(self) -> FeedBounds:
        return self._database.read(feed.bounds)

    def output_marks(self, jobs: Sequence[str]) -> dict[str, OutputMark]:
        rows = self._database.read(lambda t: t.all("output_marks", jobs=list(jobs))) if jobs else []
        return {row["uid"]: OutputMark(row["token"] or 0, row["bytes"], row["part"] or 0) for row in rows}

    def counts(self, tenant: str | None = None, ceiling: int = 10_000) -> dict[JobState, int]:
        return self.tally(tenant, ceiling).states

    def tally(self, tenant: str | None = None, ceiling: int = 10_000) -> Tally:
        if not lookup.can_exist(tenant):
            return Tally(tenant or "", dict.fromkeys(JobState, 0))
        return self._database.read(lambda t: tally.tally(t, tenant, ceiling))

    def tallies(
        self, by: TallyBy, tenant: str = "", *, after: str = "", limit: int = 20, ceiling: int = 10_000
    ) -> list[Tally]:
        if not lookup.can_exist(tenant, after):
            return []
        names = self._database.read(lambda t: tally.names(t, by, tenant, after, limit))
        # A transaction each: together they may take longer than one call is given.
        one = partial(tally.tally_by, by=by, tenant=tenant, ceiling=ceiling)
        return [self._database.read(partial(one, name=name)) for name in names]

    def workers(self, after: int = 0, limit: int = 1000, *, ended_within: float | None = None) -> list[WorkerRecord]:
        return self._database.read(lambda t: lookup.workers(t, after, limit, ended_within))

    def live_workers(self, host: tuple[str, str] | None = None) -> list[WorkerRecord]:
        boot_id, pid_namespace = host or (None, None)
        facts = {"boot_id": boot_id, "pid_namespace": pid_namespace}
        return [worker_of(row) for row in self._database.read(lambda t: t.all("live_workers", **facts))]

    def dossier(self, tenant: str, job: str, last: int | None = None) -> Dossier | None:
        if not lookup.can_exist(tenant, job):
            return None
        return self._database.read(lambda t: dossier.of(t, self._name_ids, tenant, job, last))

    def gate_facts(self, tenant: str, job: str) -> Facts | None:
        if not lookup.can_exist(tenant, job):
            return None
        return self._database.read(lambda t: why.gate_facts(t, self._name_ids, tenant, job))

    def lock_holders(self, longer: float) -> list[LockHolder]:
        return self._database.read(lambda t: locks.holders(t, longer))

    def overdue(self, late: float, backstop: float) -> list[Overdue]:
        rows = self._database.read(lambda t: t.all("overdue", late=span(late), backstop=span(backstop)))
        return [
            Overdue(row["what"], instant(row["due_at"]), row["tenant"] or "", row["uid"], row["worker"])
            for row in rows
        ]

    def inbox_stand(self, ceiling: int = 10_000) -> InboxStand:
        (row,) = self._database.read(lambda t: t.all("inbox_stand", ceiling=ceiling))
        return InboxStand(instant_or_none(row["since_at"]), row["entries"])

    def clock_stand(self) -> ClockStand:
        (row,) = self._database.read(lambda t: t.all("clock_stand"))
        leap = (row["leap"] or 0) / 1_000_000
        at = instant_or_none(row["leapt_at"])
        return ClockStand(row["ahead"] / 1_000_000, row["leaps"], leap, at, row["noticed"] or "")

    def likely_now(self) -> datetime:
        known = self._database.likely_now()
        return instant(self._database.read(moment) if known is None else known)


def _names(wanted: FeedFilter) -> tuple[str | None, ...]:
    return (wanted.tenant, wanted.job, wanted.workflow, wanted.target, wanted.topic, *wanted.kinds)
