"""The verbs of webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from unstuck.model.webhooks import DeliveryState, TryOutcome, WebhookFilter, WebhookRules, WebhookState
from unstuck.store.deliver import copying, sending, webhooks
from unstuck.store.guard import isolation
from unstuck.store.port.webhooks import (
    Copied,
    DeliveryRecord,
    DeliveryTurn,
    MakeBody,
    NewWebhook,
    Replayed,
    SettledTry,
    WebhookName,
    WebhookRecord,
)
from unstuck.store.read import lookup
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlWebhooks(SqlVerbs):
    def webhook_rules(self) -> WebhookRules:
        return self._database.read(webhooks.rules)

    def create_webhook(self, tenant: str, new: NewWebhook, by: str) -> WebhookRecord:
        return self._database.write(lambda t: webhooks.create(t, tenant, new, by))

    def change_webhook(
        self, tenant: str, name: str, url: str, wanted: WebhookFilter, by: str, seen: int
    ) -> WebhookRecord:
        return self._database.write(lambda t: webhooks.change(t, tenant, name, url, wanted, by, seen))

    def rotate_webhook(self, tenant: str, name: str, secret: str, overlap: float, by: str) -> WebhookRecord:
        return self._database.write(lambda t: webhooks.rotate(t, tenant, name, secret, overlap, by))

    def state_webhook(
        self, tenant: str, name: str, state: WebhookState, by: str, reason: str | None = None
    ) -> WebhookRecord:
        return self._database.write(lambda t: webhooks.set_state(t, tenant, name, state, by, reason))

    def test_webhook(self, tenant: str, name: str, event: str, body: str, by: str) -> DeliveryRecord:
        return self._database.write(lambda t: webhooks.test(t, tenant, name, event, body, by))

    def replay_webhook(
        self, tenant: str, name: str, by: str, *, since: datetime, after: str | None = None, most: int = 10_000
    ) -> Replayed:
        return self._database.write(lambda t: webhooks.replay(t, tenant, name, by, since, after, most))

    def delete_webhook(self, tenant: str, name: str, by: str) -> WebhookRecord:
        return self._database.write(lambda t: webhooks.delete(t, tenant, name, by))

    def webhook(self, tenant: str, name: str) -> WebhookRecord | None:
        if not lookup.can_exist(tenant, name):
            return None
        found = self._database.read(lambda t: webhooks.page(t, tenant, name, 0, 1))
        return found[0] if found else None

    def webhooks(self, tenant: str | None, after: int = 0, limit: int = 100) -> list[WebhookRecord]:
        return self._database.read(lambda t: webhooks.page(t, tenant, None, after, limit))

    def failing_webhooks(self, tenant: str | None, limit: int = 100) -> list[WebhookRecord]:
        return self._database.read(lambda t: webhooks.failing(t, tenant, limit))

    def delivery(self, tenant: str | None, number: int) -> DeliveryRecord | None:
        return self._database.read(lambda t: webhooks.delivery(t, tenant, number))

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
        if not lookup.can_exist(tenant, job):
            return []
        named = None if state is None else str(state)
        return self._database.read(lambda t: webhooks.deliveries(t, tenant, webhook, named, job, before, limit))

    def copying(self) -> int | None:
        return self._database.read(copying.behind)

    def copy_events(
        self, body: MakeBody, limit: int = 500, spared: Sequence[int] = (), only: int | None = None
    ) -> Copied:
        return self._database.write(lambda t: copying.copy(t, body, limit, spared, only), patience=isolation.PATIENCE)

    def webhooks_behind(self, spared: Sequence[int] = ()) -> list[WebhookName]:
        return self._database.read(lambda t: copying.names_behind(t, spared))

    def next_webhook(self) -> float | None:
        return self._database.read(sending.next_in)

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
        return self._database.write(lambda t: sending.lease(t, lease, lasting, most, spared, only, doubtful))

    def leasable_webhooks(
        self, most: int, spared: Sequence[int] = (), *, doubtful: bool | None = None
    ) -> list[WebhookName]:
        return self._database.read(lambda t: sending.leasable(t, most, spared, doubtful))

    def settle_try(
        self, sent: DeliveryTurn, outcome: TryOutcome, lasting: float, fraction: float, *, go_on: bool
    ) -> SettledTry:
        return self._database.write(lambda t: sending.settle(t, sent, outcome, lasting, fraction, go_on))

    def set_delivery_aside(self, sent: DeliveryTurn, problem: str) -> None:
        self._database.write(lambda t: sending.set_aside(t, sent, problem), patience=isolation.PATIENCE)

    def release_webhook(self, sent: DeliveryTurn, rest: float = 0.0) -> None:
        self._database.write(lambda t: sending.release(t, sent, rest))

    def forget_deliveries(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(lambda t: sending.forget(t, retention, batch, past))
