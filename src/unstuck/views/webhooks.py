"""Webhooks: where events are sent, and what came of each delivery. Their secrets are in none of these but the
first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.webhooks import DeliveryAttempt, DeliveryState, WebhookState
from unstuck.store.port import DeliveryRecord, WebhookRecord
from unstuck.views import View, loads


class WebhookView(View, frozen=True, kw_only=True):
    """One webhook. `tenant` "*": the platform's, which gets everybody's events. `url`: for admins; others see its
    host alone. `kinds` and what follows choose events; null and []: all. `waiting`: deliveries that are not taken
    yet, up to 10,000, the oldest `waiting_since_at`. `failures`: tries in a row that were not taken, the first
    `failing_since_at`; nothing is sent before `rest_until_at`. `sealed`: its secret is kept sealed.
    `old_secret_until_at`: until then the secret before this one signs too."""

    number: int
    name: str
    tenant: str
    url: str
    state: WebhookState
    kinds: tuple[str, ...]
    workflow: str | None
    queue: str | None
    target: str | None
    topic: str | None
    job: str | None
    waiting: int
    waiting_since_at: datetime | None
    failures: int
    failing_since_at: datetime | None
    rest_until_at: datetime | None
    last_status: int | None
    last_error: str | None
    tried_at: datetime | None
    taken_at: datetime | None
    sealed: bool
    old_secret_until_at: datetime | None
    state_at: datetime
    state_by: str
    state_reason: str | None
    version: int
    created_at: datetime
    created_by: str
    changed_at: datetime
    changed_by: str

    @classmethod
    def of(cls, record: WebhookRecord, sees_all: bool) -> WebhookView:
        return cls(**_facts(record, sees_all))


class NewWebhookView(WebhookView, frozen=True, kw_only=True):
    """A webhook with a new secret. `secret` is what its receiver verifies by; no other answer has it."""

    secret: str

    @classmethod
    def made(cls, record: WebhookRecord, secret: str) -> NewWebhookView:
        return cls(**_facts(record, sees_all=True), secret=secret)


class ReplayView(View, frozen=True, kw_only=True):
    """What a replay sends again: `reopened` deliveries that are older than the feed, and whatever is in the feed
    since then. `has_more`: there are more of the older ones; ask again once these are delivered."""

    name: str
    reopened: int
    has_more: bool


class DeliveryAttemptView(View, frozen=True, kw_only=True):
    """One try. `status`: what the receiver answered, with the beginning of what it said; null: nothing, for the
    reason in `error`. `took_ms` null: nobody was reached."""

    at: datetime
    status: int | None
    error: str | None
    excerpt: str
    took_ms: int | None

    @classmethod
    def of(cls, attempt: DeliveryAttempt) -> DeliveryAttemptView:
        return cls(
            at=attempt.at,
            status=attempt.status,
            error=attempt.error,
            excerpt=attempt.excerpt,
            took_ms=attempt.took_ms,
        )


class DeliveryView(View, frozen=True, kw_only=True):
    """An event on its way to a webhook. `message`: the id under which it is sent at each try. `happened_at`: when the
    event did; `at`: when it was copied out of the feed. `next_at`: when it is tried next; null: it has ended, or
    waits behind an earlier one about the same job, or its webhook is paused or disabled. `rest_until_at`: until then
    nothing at all is sent to its webhook, which took nothing."""

    number: int
    webhook: str
    tenant: str
    message: str
    kind: str
    job: str | None
    state: DeliveryState
    tries: int
    happened_at: datetime
    at: datetime
    next_at: datetime | None
    rest_until_at: datetime | None
    ended_at: datetime | None
    last_status: int | None
    last_error: str | None

    @classmethod
    def of(cls, record: DeliveryRecord) -> DeliveryView:
        return cls(**_delivery(record))


class DeliveryDetailsView(DeliveryView, frozen=True, kw_only=True):
    """The same with its `body`, as it is sent, and its last tries."""

    body: Any
    attempts: tuple[DeliveryAttemptView, ...]

    @classmethod
    def whole(cls, record: DeliveryRecord) -> DeliveryDetailsView:
        tries = tuple(DeliveryAttemptView.of(attempt) for attempt in record.attempts)
        return cls(**_delivery(record), body=loads(record.body), attempts=tries)


def _facts(record: WebhookRecord, sees_all: bool) -> dict[str, Any]:
    wanted = record.wanted
    return {
        "number": record.number,
        "name": record.name,
        "tenant": record.tenant,
        "url": record.url if sees_all else _host(record.url),
        "state": record.state,
        "kinds": wanted.kinds,
        "workflow": wanted.workflow,
        "queue": wanted.queue,
        "target": wanted.target,
        "topic": wanted.topic,
        "job": wanted.job,
        "waiting": record.waiting,
        "waiting_since_at": record.waiting_since,
        "failures": record.failures,
        "failing_since_at": record.failing_since,
        "rest_until_at": record.rest_until,
        "last_status": record.last_status,
        "last_error": record.last_error,
        "tried_at": record.tried_at,
        "taken_at": record.taken_at,
        "sealed": record.is_sealed,
        "old_secret_until_at": record.old_secret_until,
        "state_at": record.state_at,
        "state_by": record.state_by,
        "state_reason": record.state_reason,
        "version": record.version,
        "created_at": record.created_at,
        "created_by": record.created_by,
        "changed_at": record.changed_at,
        "changed_by": record.changed_by,
    }


def _host(url: str) -> str:
    """What follows the host may be a secret."""
    begin = "/".join(url.split("/")[:3])
    return f"{begin}/…"


def _delivery(record: DeliveryRecord) -> dict[str, Any]:
    return {
        "number": record.number,
        "webhook": record.name,
        "tenant": record.tenant,
        "message": record.message,
        "kind": record.kind,
        "job": record.job,
        "state": record.state,
        "tries": record.tries,
        "happened_at": record.happened_at,
        "at": record.at,
        "next_at": record.next_at,
        "rest_until_at": record.rest_until,
        "ended_at": record.ended_at,
        "last_status": record.last_status,
        "last_error": record.last_error,
    }
