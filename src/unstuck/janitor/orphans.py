"""Jobs that no worker will ever take -> reported; if no worker has known their workflow for long -> failed.

A job may wait although nothing is wrong: its workflow is paused, the worker that knows it drains, or a deploy is
under way. So a job fails only if no live worker knows its workflow, and only after `orphan_after`. A route is asked
for such jobs once the first that waits there is as old as that; those behind it that are older still wait for it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta

from unstuck.janitor.budget import Budget
from unstuck.janitor.pages import Pages, RecentNews
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.job import WorkerRecord
from unstuck.model.times import Times
from unstuck.records import dataclass
from unstuck.store.port import Store, Waiting
from unstuck.telemetry import emit

_EVERY = 60.0
#: Batches of one route in one walk: other routes are not to wait for its end.
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Known:
    """What the workers whose lease holds say they can run, of whose jobs (None: everybody's), and from which queues
    they take it."""

    workflows: frozenset[tuple[str | None, str]]
    served: frozenset[tuple[str | None, str, str]]

    @classmethod
    def of(cls, workers: Iterable[WorkerRecord]) -> Known:
        live = [w for w in workers if w.state in ("active", "draining")]
        workflows = {(w.tenant, name) for w in live for name in w.serves.get("workflows", ())}
        served = {
            (w.tenant, queue, name)
            for w in live
            if w.state == "active"
            for queue in w.serves.get("queues", ())
            for name in w.serves.get("workflows", ())
        }
        return cls(frozenset(workflows), frozenset(served))

    def is_known(self, job: Waiting) -> bool:
        return any((tenant, job.workflow) in self.workflows for tenant in (None, job.tenant))

    def is_served(self, job: Waiting) -> bool:
        return any((tenant, job.queue, job.workflow) in self.served for tenant in (None, job.tenant))


class OrphansDuty(SweepDuty):
    name = "orphans"

    def __init__(self, store: Store, times: Times) -> None:
        super().__init__(store, times)
        self._pages = Pages(store)
        self._said = RecentNews()

    @property
    def every(self) -> float:
        soon = self._times.orphan_after / 4
        return max(self._times.sweep, min(_EVERY, soon)) if soon else _EVERY

    def tick(self, now: float, budget: Budget) -> int:
        self._store.note_known()
        known = Known.of(self._store.live_workers())
        old = self._store.now() - timedelta(seconds=self._times.orphan_after)
        failed = 0
        for first in self._pages.turn(budget):
            if first.is_paused or known.is_served(first):
                continue
            self._report(first, known, now)
            if self._times.orphan_after and first.since <= old and not known.is_known(first):
                failed += self._fail(first, budget)
                if budget.is_over():
                    break
        return failed

    def _report(self, first: Waiting, known: Known, now: float) -> None:
        """Once for all tenants: it is the same worker that is missing."""
        if not self._said.is_news((first.queue, first.workflow), "unserved", now):
            return
        is_known = known.is_known(first)
        emit(
            "unserved",
            level=logging.WARNING,
            workflow=first.workflow,
            queue=first.queue,
            tenant=first.tenant,
            job=first.id,
            since=first.since.isoformat(),
            problem="no worker takes it from this queue" if is_known else "no worker knows this workflow",
        )

    def _fail(self, first: Waiting, budget: Budget) -> int:
        failed, after = 0, self._times.orphan_after
        for _ in range(_ROUNDS):
            some = budget.call(self._batch, lambda most: self._store.fail_orphans(first.route, after, most))
            failed += some
            if some == 0 or budget.is_over():
                break
        if failed:
            emit("orphans_failed", level=logging.WARNING, workflow=first.workflow, tenant=first.tenant, jobs=failed)
        return failed
