"""What webhooks want of the feed -> deliveries, once for each webhook and event.

While there are webhooks it looks every second, and where there are none once in a sweep: one read of an index.
Reading the feed gives events their places, as any reader does. A webhook whose rows cannot be written, its own or
those of its deliveries, is left where it is, so that it misses nothing: it is tried again alone, once in a sweep, and
a notification says so. What sends the deliveries sleeps until it is told here that there are some.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from unstuck.janitor.budget import Budget, nobody_asks
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.errors import StoreBusy, StoreError, StoreLocked
from unstuck.model.spelling import screen
from unstuck.model.times import Times
from unstuck.store.port import Copied, MakeBody, Store, WebhookName
from unstuck.telemetry import emit

_LOOK_EVERY = 1.0
#: Another reader gives places at this moment: so often it is let finish.
_MOST_PASSES = 20


class WebhooksDuty(SweepDuty):
    name = "webhooks"
    most = 500

    def __init__(
        self,
        store: Store,
        times: Times,
        bodies: Callable[[], MakeBody],
        wake: Callable[[], None] = nobody_asks,
    ) -> None:
        """`bodies`: how an event is written, as it stands now; `wake`: called when there is something to send."""
        super().__init__(store, times)
        self._bodies = bodies
        self._wake = wake
        self._rest = times.sweep
        #: By number: when something is copied for it again.
        self._spared: dict[int, float] = {}

    @property
    def every(self) -> float:
        return self._rest

    def tick(self, now: float, budget: Budget) -> int:
        self._rest = self._times.sweep  # should this turn fail
        if self._store.copying() is None:
            return 0
        self._rest = min(self._times.sweep, _LOOK_EVERY)
        self._sequence(budget)
        made = self._copy(now, budget) if self._store.copying() else 0
        if self._store.next_webhook() is not None:
            self._wake()
        return made

    def _sequence(self, budget: Budget) -> None:
        for _ in range(_MOST_PASSES):
            if self._store.sequence(self._times.feed_retention) <= 0 or budget.is_over():
                return

    def _copy(self, now: float, budget: Budget) -> int:
        body, asked = self._bodies(), 0
        made = self._try_again(body, now, budget)

        def copy(most: int) -> Copied:
            nonlocal asked
            asked = most
            return self._store.copy_events(body, most, list(self._spared))

        while True:
            try:
                copied = budget.call(self._batch, copy)
            except Exception as problem:
                if _is_away(problem):
                    raise
                if asked > 1 and not isinstance(problem, StoreBusy):
                    return made  # fewer the next time; what is slow or held is not looked for by halves
                copied = self._each(body, now, budget)
            made += copied.made
            if not copied.has_more or budget.is_over():
                return made

    def _try_again(self, body: MakeBody, now: float, budget: Budget) -> int:
        """Those that could not be served, each alone: they keep no other back. The first to come are those that have
        rested for longest."""
        due = [number for number, until in self._spared.items() if until <= now]
        behind = {webhook.number: webhook for webhook in self._store.webhooks_behind()} if due else {}
        made = 0
        for number in due:
            del self._spared[number]
            if number in behind:
                made += self._alone(behind[number], body, now)
                if budget.is_over():
                    break
        return made

    def _each(self, body: MakeBody, now: float, budget: Budget) -> Copied:
        """The next event, for each webhook by itself. One that is slow or held takes its whole patience, and so may
        hundreds."""
        made = 0
        for webhook in self._store.webhooks_behind(list(self._spared)):
            made += self._alone(webhook, body, now)
            if budget.is_over():
                break
        return Copied(1, made, has_more=True)

    def _alone(self, webhook: WebhookName, body: MakeBody, now: float) -> int:
        try:
            return self._store.copy_events(body, 1, only=webhook.number).made
        except Exception as problem:
            if _is_away(problem):
                raise
            self._spared[webhook.number] = now + self._times.sweep
            self._tell(webhook, problem)
            return 0

    def _tell(self, webhook: WebhookName, problem: Exception) -> None:
        emit("webhook_not_copied", level=logging.ERROR, webhook=webhook.name, problem=_said(problem))
        message = (
            f"nothing is copied out of the feed for webhook {webhook.name} of tenant {webhook.tenant}: "
            f"{_said(problem)}; it is tried again with every sweep, and misses nothing"
        )
        self._store.notify("Webhook cannot be served", message, screen("webhooks", webhook.name), "error")


def _is_away(problem: Exception) -> bool:
    """Whether no webhook is to blame for it."""
    return isinstance(problem, StoreError) and (
        not isinstance(problem, StoreBusy) or isinstance(problem, StoreLocked)
    )


def _said(problem: Exception) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
