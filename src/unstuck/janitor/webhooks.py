"""What webhooks want of the feed -> deliveries, once for each webhook and event.

While there are webhooks it looks every second, and where there are none once in a sweep: one read of an index.
Reading the feed gives events their places, as any reader does. An event that cannot be copied, whatever the reason,
is passed by alone, and a notification says so; a webhook whose own row cannot be written is left alone for a minute.
What sends the deliveries sleeps until it is told here that there are
some.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from unstuck.janitor.budget import Budget, nobody_asks
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.errors import StoreError
from unstuck.model.spelling import screen
from unstuck.model.times import Times
from unstuck.store.port import Copied, MakeBody, Store
from unstuck.telemetry import emit

_LOOK_EVERY = 1.0
#: Another reader gives places at this moment: so often it is let finish.
_MOST_PASSES = 20
#: Seconds.
_LEFT_ALONE = 60.0


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
        #: By number: until when nothing is copied for it.
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
        self._spared = {number: until for number, until in self._spared.items() if until > now}
        made = self._copy(now, budget) if self._store.copying() else 0
        if self._store.next_webhook() is not None:
            self._wake()
        return made

    def _sequence(self, budget: Budget) -> None:
        for _ in range(_MOST_PASSES):
            if self._store.sequence(self._times.feed_retention) <= 0 or budget.is_over():
                return

    def _copy(self, now: float, budget: Budget) -> int:
        body, made, asked = self._bodies(), 0, 0

        def copy(most: int) -> Copied:
            nonlocal asked
            asked = most
            return self._store.copy_events(body, most, list(self._spared))

        while True:
            try:
                copied = budget.call(self._batch, copy)
            except StoreError:
                raise
            except Exception as problem:
                if asked > 1:
                    return made  # fewer the next time
                copied = self._pass_by(problem, body, now)
            made += copied.made
            if not copied.has_more or budget.is_over():
                return made

    def _pass_by(self, problem: Exception, body: MakeBody, now: float) -> Copied:
        """The one event at this place; where not even that can be written, it is one of the webhooks there."""
        said = _said(problem)
        try:
            self._store.pass_event(said, list(self._spared))
        except StoreError:
            raise
        except Exception:
            return self._leave_alone(body, now)
        emit("event_not_copied", level=logging.ERROR, problem=said)
        return Copied(1, 0, has_more=True)

    def _leave_alone(self, body: MakeBody, now: float) -> Copied:
        made = 0
        for webhook in self._store.webhooks_behind(list(self._spared)):
            try:
                made += self._store.copy_events(body, 1, only=webhook.number).made
            except StoreError:
                raise
            except Exception as problem:
                self._spared[webhook.number] = now + _LEFT_ALONE
                emit("webhook_not_copied", level=logging.ERROR, webhook=webhook.name, problem=_said(problem))
                message = (
                    f"nothing is copied out of the feed for webhook {webhook.name} of tenant {webhook.tenant} for "
                    f"now: {_said(problem)}"
                )
                self._store.notify("Webhook cannot be served", message, screen("webhooks", webhook.name), "error")
        return Copied(1, made, has_more=True)


def _said(problem: Exception) -> str:
    return " ".join(f"{type(problem).__name__}: {problem}".split())[:300]
