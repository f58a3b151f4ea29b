"""Webhooks for tests: made, what the feed has copied for them, and sent by a sender of the test's own."""

from __future__ import annotations

import json
from typing import Any

from tests.support.budgets import endless
from tests.support.builders import TENANT
from tests.support.receiver import ALLOWED
from unstuck.assembly.janitor import event_bodies
from unstuck.chance import SeededChance
from unstuck.clock import MachineClock
from unstuck.deliver.dialler import WebhookDialler
from unstuck.deliver.sender import Sender
from unstuck.janitor.webhooks import WebhooksDuty
from unstuck.model.times import Times
from unstuck.model.webhooks import DeliveryState, TryOutcome, WebhookFilter, secret_bytes, secret_place, spell_secret
from unstuck.sealing import NO_SEALER, Sealer
from unstuck.store.port import DeliveryRecord, DeliveryTurn, NewWebhook, SettledTry, Store, WebhookRecord

SECRET = spell_secret(b"s" * 32)
TAKEN, BROKEN = TryOutcome(200), TryOutcome(500, "it answered 500")


def made(
    store: Store, name: str = "hook", url: str = "https://hooks.example/", tenant: str = TENANT, **wanted: Any
) -> WebhookRecord:
    new = NewWebhook(name, url, WebhookFilter(**wanted), kept(SECRET, name, tenant))
    return store.create_webhook(tenant, new, "ada")


def kept(secret: str, name: str = "hook", tenant: str = TENANT, sealer: Sealer = NO_SEALER) -> str:
    return sealer.seal(secret_bytes(secret), secret_place(tenant, name))


def allow(store: Store) -> None:
    """Receivers of tests are on loopback."""
    setting(store, "webhook_allow", ALLOWED)


def setting(store: Store, name: str, value: Any) -> None:
    store.set_setting(name, json.dumps(value), "ada")


def copied(store: Store) -> int:
    """A turn of the janitor's duty: how many deliveries it made."""
    return the_duty(store).tick(0.0, endless())


def the_duty(store: Store) -> WebhooksDuty:
    return WebhooksDuty(store, Times(), lambda: event_bodies(store))


def seen(store: Store, name: str = "hook") -> WebhookRecord:
    found = store.webhook(TENANT, name)
    assert found is not None
    return found


def deliveries(store: Store, name: str = "hook", tenant: str = TENANT) -> list[DeliveryRecord]:
    """The oldest first."""
    found = store.webhook(tenant, name)
    assert found is not None
    return store.deliveries(tenant, webhook=found.number, limit=100_000)[::-1]


def kinds(store: Store, name: str = "hook") -> list[str]:
    return [each.kind for each in deliveries(store, name)]


def states(store: Store, name: str = "hook") -> list[DeliveryState]:
    return [each.state for each in deliveries(store, name)]


def leased(store: Store, lease: str = "a lease", lasting: float = 30.0, most: int = 10) -> list[DeliveryTurn]:
    return store.lease_webhooks(lease, lasting, most)


def settled(store: Store, sending: DeliveryTurn, outcome: TryOutcome = TAKEN, *, go_on: bool = True) -> SettledTry:
    return store.settle_try(sending, outcome, 30.0, 0.0, go_on=go_on)


def sent(store: Store, outcome: TryOutcome = TAKEN, most: int = 1000) -> list[DeliveryTurn]:
    """All that is due, one after the other, each with this outcome."""
    found: list[DeliveryTurn] = []
    for first in leased(store, lease=SeededChance(len(found) + 1).nonce()):
        following: DeliveryTurn | None = first
        while following is not None and len(found) < most:
            found.append(following)
            following = settled(store, following, outcome).next
    return found


def a_sender(store: Store, sealer: Sealer = NO_SEALER, dialler: WebhookDialler | None = None) -> Sender:
    clock = MachineClock()
    return Sender(store, dialler or WebhookDialler(clock=clock), sealer, clock, SeededChance(7))
