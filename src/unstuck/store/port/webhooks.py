"""The webhooks' port: where events of the feed are sent, what waits to be sent there, and who sends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from unstuck.model.webhooks import (
    DeliveryAttempt,
    DeliveryState,
    TryOutcome,
    WebhookFilter,
    WebhookRules,
    WebhookState,
)
from unstuck.records import dataclass
from unstuck.store.port.read import FeedEvent

#: How many that wait are counted of each webhook.
WAITING_CEILING = 10_000
#: Seconds for which the feed is kept beyond its own time for webhooks that are behind.
HELD = 3 * 86400.0
#: Who disables a webhook that takes nothing.
ENGINE = "unstuck"


@dataclass(frozen=True, slots=True)
class WebhookRecord:
    """A webhook as it stands. `tenant` EVERY: of all tenants, and of the platform. Its secret is for senders alone.
    `waiting`: deliveries, up to a ceiling, the oldest `waiting_since`. `failures`: tries in a row that were not
    taken, the first `failing_since`. `rest_until`: nothing is sent before."""

    number: int
    tenant: str
    name: str
    url: str
    wanted: WebhookFilter
    state: WebhookState
    state_at: datetime
    state_by: str
    state_reason: str | None
    version: int
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str
    is_sealed: bool
    old_secret_until: datetime | None
    waiting: int
    waiting_since: datetime | None
    failures: int
    failing_since: datetime | None
    rest_until: datetime | None
    last_status: int | None
    last_error: str | None
    tried_at: datetime | None
    taken_at: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class NewWebhook:
    """`secret`: as it is kept."""

    name: str
    url: str
    wanted: WebhookFilter
    secret: str


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """An event for a webhook. `message`: the id under which it is sent at each try. `next_at`: when it is tried next;
    None: it has ended, or waits behind an earlier one about the same, or its webhook is not active. `rest_until`:
    until then its webhook is sent nothing."""

    number: int
    webhook: int
    name: str
    tenant: str
    message: str
    kind: str
    job: str | None
    body: str
    state: DeliveryState
    happened_at: datetime
    at: datetime
    next_at: datetime | None
    tries: int
    ended_at: datetime | None
    last_status: int | None
    last_error: str | None
    attempts: tuple[DeliveryAttempt, ...]
    rest_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class WebhookName:
    number: int
    tenant: str
    name: str


@dataclass(frozen=True, slots=True)
class DeliveryTurn:
    """A delivery that a sender has now, with all it needs. `secrets`: as they are kept, the newest first. `lease`:
    for so many seconds nobody else has this webhook, from before it was asked for. `is_aside`: it was set aside
    before."""

    lease: str
    webhook: int
    name: str
    tenant: str
    url: str
    secrets: tuple[str, ...]
    delivery: int
    message: str
    kind: str
    body: str
    tries: int
    is_aside: bool = False


@dataclass(frozen=True, slots=True)
class SettledTry:
    """`state`: of the delivery, None: the lease was another's by then, and nothing was written. `next`: what is sent
    there now, if its sender goes on."""

    state: DeliveryState | None
    next: DeliveryTurn | None = None
    disabled: str | None = None


@dataclass(frozen=True, slots=True)
class Copied:
    """`passed`: places of the feed that were looked through; `made`: deliveries that came of it; `has_more`: places
    are left."""

    passed: int
    made: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class Replayed:
    """`reopened`: deliveries that are older than the feed; what is in the feed follows. `has_more`: of the older ones
    not all were."""

    webhook: WebhookRecord
    reopened: int
    has_more: bool


#: The body of an event, as it is sent.
MakeBody = Callable[[FeedEvent], str]


class WebhooksPort(Protocol):
    """`tenant` EVERY: the webhooks of the platform."""

    def webhook_rules(self) -> WebhookRules:
        """The runtime settings of webhooks, as they stand."""
        ...

    def create_webhook(self, tenant: str, new: NewWebhook, by: str) -> WebhookRecord:
        """What happens from now on is sent there. WebhookExists, TooManyWebhooks."""
        ...

    def change_webhook(
        self, tenant: str, name: str, url: str, wanted: WebhookFilter, by: str, seen: int
    ) -> WebhookRecord:
        """Of the version that was seen; Conflict if there is a newer one. What waits goes to the new URL.
        UnknownWebhook."""
        ...

    def rotate_webhook(self, tenant: str, name: str, secret: str, overlap: float, by: str) -> WebhookRecord:
        """The old secret signs beside the new one for so many seconds."""
        ...

    def state_webhook(
        self, tenant: str, name: str, state: WebhookState, by: str, reason: str | None = None
    ) -> WebhookRecord: ...

    def test_webhook(self, tenant: str, name: str, event: str, body: str, by: str) -> DeliveryRecord:
        """A delivery of its own. NotActive."""
        ...

    def replay_webhook(
        self, tenant: str, name: str, by: str, *, since: datetime, after: str | None = None, most: int = 10_000
    ) -> Replayed:
        """Once more all that happened since then, or behind that cursor of the feed: what was delivered or given up,
        and what was never copied. NotActive, StaleCursor."""
        ...

    def delete_webhook(self, tenant: str, name: str, by: str) -> WebhookRecord: ...

    def webhook(self, tenant: str, name: str) -> WebhookRecord | None: ...

    def webhooks(self, tenant: str | None, after: int = 0, limit: int = 100) -> list[WebhookRecord]:
        """In the order in which they were made; None: everybody's."""
        ...

    def failing_webhooks(self, tenant: str | None, limit: int = 100) -> list[WebhookRecord]:
        """Those whose last try was not taken, and those that were disabled for it."""
        ...

    def delivery(self, tenant: str | None, number: int) -> DeliveryRecord | None: ...

    def deliveries(
        self,
        tenant: str | None,
        *,
        webhook: int | None = None,
        state: DeliveryState | None = None,
        job: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[DeliveryRecord]:
        """The newest first."""
        ...

    # --- for the copier and the senders ---------------------------------------------------------------------------
    def copying(self) -> int | None:
        """How many places of the feed the webhook that is furthest behind still has to look through; None: there is
        no webhook."""
        ...

    def copy_events(
        self, body: MakeBody, limit: int = 500, spared: Sequence[int] = (), only: int | None = None
    ) -> Copied:
        """Copy what webhooks want out of the next places of the feed, once for each webhook and event; but for the
        spared ones, or for one alone. An event of which no body can be made is passed by, and a notification says
        so."""
        ...

    def webhooks_behind(self, spared: Sequence[int] = ()) -> list[WebhookName]:
        """Those for which something of the feed is to be copied, the furthest behind first."""
        ...

    def next_webhook(self) -> float | None:
        """In how many seconds something is to be sent; None: nothing waits for a time."""
        ...

    def lease_webhooks(
        self,
        lease: str,
        lasting: float,
        most: int,
        spared: Sequence[int] = (),
        only: int | None = None,
        *,
        doubtful: bool | None = None,
    ) -> list[DeliveryTurn]:
        """Some that have something to send, for a sender alone; but for the spared ones, or one alone. `doubtful`:
        only those whose last try failed, or only those whose last was taken."""
        ...

    def leasable_webhooks(
        self, most: int, spared: Sequence[int] = (), *, doubtful: bool | None = None
    ) -> list[WebhookName]:
        """Whom a lease would take now."""
        ...

    def settle_try(
        self, sent: DeliveryTurn, outcome: TryOutcome, lasting: float, fraction: float, *, go_on: bool
    ) -> SettledTry:
        """What came of a try, and what follows; the lease lasts so many seconds from now on, or ends."""
        ...

    def set_delivery_aside(self, sent: DeliveryTurn, problem: str) -> None:
        """It cannot be sent, or nothing can be written about it, although the database answers: it is tried again
        later, and its webhook is given back for all others."""
        ...

    def release_webhook(self, sent: DeliveryTurn, rest: float = 0.0) -> None:
        """Give a webhook back, without a word about the delivery; nothing is sent there for so long."""
        ...

    def forget_deliveries(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Those older than this, whatever became of them, and those of webhooks that are gone."""
        ...
