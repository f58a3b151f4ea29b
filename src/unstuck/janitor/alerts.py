"""What has waited too long -> said aloud, with the reason."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from unstuck.janitor.budget import Budget
from unstuck.janitor.pages import Pages, RecentNews
from unstuck.model.times import Times
from unstuck.store.port import Store, Waiting
from unstuck.telemetry import emit

_EVERY = 60.0
#: The most reasons that a turn asks for: each is a question of its own.
_MOST = 100

#: (tenant, job) -> (code, sentence), or nothing if the job has gone on meanwhile.
Why = Callable[[str, str], tuple[str, str] | None]


class AlertsDuty:
    """Of each route the first job that is due and has been QUEUED for longer than `queued_alert`."""

    name = "alerts"

    def __init__(self, store: Store, times: Times, why: Why) -> None:
        self._store = store
        self._times = times
        self._why = why
        self._pages = Pages(store)
        self._said = RecentNews()

    @property
    def every(self) -> float:
        soon = self._times.queued_alert
        return max(self._times.sweep, min(_EVERY, soon)) if soon else _EVERY

    def tick(self, now: float, budget: Budget) -> int:
        if not self._times.queued_alert:
            return 0
        before = self._store.now() - timedelta(seconds=self._times.queued_alert)
        told = 0
        for first in self._pages.turn(budget):
            if first.since <= before and self._said.is_news(first.route, first.id, now):
                told += self._tell(first)
                if told >= _MOST or budget.is_over():
                    break
        return told

    def _tell(self, first: Waiting) -> int:
        answer = self._why(first.tenant, first.id)
        if answer is None:
            return 0
        code, sentence = answer
        emit(
            "job_waits_long",
            level=logging.WARNING,
            job=first.id,
            tenant=first.tenant,
            workflow=first.workflow,
            since=first.since.isoformat(),
            code=code,
            sentence=sentence,
        )
        return 1
