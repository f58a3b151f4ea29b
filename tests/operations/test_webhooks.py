"""Webhooks as operations: who may ask what, what is refused at the door, what is told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.operations.conftest import Ask
from tests.support.builders import submitted
from tests.support.webhooks import BROKEN, allow, copied, leased, settled
from unstuck.model.errors import (
    AddressRefused,
    InvalidInput,
    NotPermitted,
    UnknownDelivery,
    UnknownJob,
    UnknownWebhook,
    WebhookExists,
)
from unstuck.operations import audit, deliveries, health, metrics, webhooks
from unstuck.operations.table import OPERATOR, READER, TENANT_ADMIN
from unstuck.sealing import Sealer
from unstuck.store.sql_store import SqlStore
from unstuck.views import as_json

URL = "http://127.0.0.1:9/in/token-in-a-url"


@pytest.fixture(autouse=True)
def _loopback_is_allowed(store: SqlStore) -> None:
    allow(store)


def test_a_secret_is_told_once_and_never_again(ask: Ask, store: SqlStore) -> None:
    made = webhooks.create(ask(), "hook", URL, kinds="completed")
    assert made.secret.startswith("whsec_")
    rotated = webhooks.rotate(ask(), "hook", overlap="1h")
    assert rotated.secret != made.secret
    assert rotated.old_secret_until_at is not None
    submitted(store)
    copied(store)
    answers = [
        *(webhooks.get(ask(), "hook"), webhooks.list_(ask()), webhooks.pause(ask(), "hook")),
        *(webhooks.enable(ask(), "hook"), webhooks.test(ask(), "hook"), webhooks.update(ask(), "hook", kinds=())),
        *(deliveries.list_(ask()), deliveries.get(ask(), 1), audit.list_(ask()), webhooks.delete(ask(), "hook")),
    ]
    for answer in answers:
        assert made.secret[6:] not in as_json(answer)
        assert rotated.secret[6:] not in as_json(answer)


def test_a_secret_is_kept_sealed_where_there_is_a_key(ask: Ask, store: SqlStore) -> None:
    plain = webhooks.create(ask(), "plain", URL)
    sealed = webhooks.create(ask(sealer=lambda: Sealer([("k", b"k" * 32)])), "sealed", URL)
    assert (plain.sealed, sealed.sealed) == (False, True)
    submitted(store)
    copied(store)
    kept = {each.name: each.secrets[0] for each in leased(store)}
    assert plain.secret[6:] in kept["plain"]
    assert sealed.secret[6:] not in kept["sealed"]


def test_who_may_do_what(ask: Ask) -> None:
    admin, operator, reader = (
        ask(role=role, bound="default", key="k", by=role) for role in (TENANT_ADMIN, OPERATOR, READER)
    )
    webhooks.create(admin, "hook", URL)
    assert webhooks.get(admin, "hook").url == URL
    assert webhooks.get(reader, "hook").url == "http://127.0.0.1:9/…"  # the rest may be a secret
    assert [each.name for each in webhooks.list_(reader)] == ["hook"]
    for verb in (webhooks.pause, webhooks.disable, webhooks.enable, webhooks.test):
        verb(operator, "hook")
        with pytest.raises(NotPermitted):
            verb(reader, "hook")
    webhooks.replay(operator, "hook", since=datetime(2020, 1, 1, tzinfo=UTC))
    for asked in (
        lambda: webhooks.create(operator, "more", URL),
        lambda: webhooks.update(operator, "hook", url=URL),
        lambda: webhooks.rotate(operator, "hook"),
        lambda: webhooks.delete(operator, "hook"),
        lambda: webhooks.create(ask(role=TENANT_ADMIN, bound="default", tenant="*"), "all", URL),
        lambda: webhooks.list_(ask(role=READER, bound="default", queues=frozenset({"io"}))),
    ):
        with pytest.raises(NotPermitted):
            asked()
    with pytest.raises(UnknownWebhook):
        webhooks.get(ask(role=READER, bound="other"), "hook")


def test_the_platforms_webhooks_get_everybodys_events(ask: Ask, store: SqlStore) -> None:
    webhooks.create(ask(tenant="*"), "all", URL)
    webhooks.create(ask(), "ours", URL)
    submitted(store, tenant="other")
    copied(store)
    assert [each.tenant for each in webhooks.list_(ask(tenant="*"))] == ["*", "default"]
    assert [each.name for each in webhooks.list_(ask())] == ["ours"]
    assert [each.webhook for each in deliveries.list_(ask(tenant="*"))] == ["all"]
    assert deliveries.list_(ask()).items == ()
    assert webhooks.get(ask(tenant="*"), "all").waiting == 1
    with pytest.raises(UnknownDelivery):
        deliveries.get(ask(), deliveries.list_(ask(tenant="*"))[0].number)


def test_an_address_that_is_not_public_is_refused_at_the_door(ask: Ask) -> None:
    for url in (
        "https://10.0.0.1/",
        "http://93.184.216.34/",
        "https://[::ffff:10.0.0.1]/",
        "https://93.184.216.34:22/",
    ):
        with pytest.raises(AddressRefused, match="webhook_allow"):
            webhooks.create(ask(), "hook", url)
    for url in ("https://2130706433/", "ftp://x.example/", "https://u:p@x.example/"):
        with pytest.raises(InvalidInput):
            webhooks.create(ask(), "hook", url)
    webhooks.create(ask(), "hook", URL)
    with pytest.raises(AddressRefused):
        webhooks.update(ask(), "hook", url="https://192.168.0.1/")
    assert webhooks.get(ask(), "hook").url == URL


def test_what_cannot_be_asked_is_told(ask: Ask) -> None:
    webhooks.create(ask(), "hook", URL, kinds=["completed", "mine.own"], workflow="w")
    with pytest.raises(WebhookExists):
        webhooks.create(ask(), "hook", URL)
    for wrong in (
        lambda: webhooks.create(ask(), "", URL),
        lambda: webhooks.create(ask(), "x" * 101, URL),
        lambda: webhooks.create(ask(), "x", URL, kinds=["not a kind"]),
        lambda: webhooks.create(ask(), "x", URL, kinds=[f"k{n}" for n in range(101)]),
        lambda: webhooks.create(ask(), "x", URL, secret="whsec_short"),
        lambda: webhooks.rotate(ask(), "hook", overlap="-1"),
        lambda: webhooks.replay(ask(), "hook"),
        lambda: webhooks.replay(ask(), "hook", since=datetime(2030, 1, 1, tzinfo=UTC), after="x-1"),
        lambda: webhooks.replay(ask(), "hook", after="nonsense"),
        lambda: deliveries.list_(ask(), state="lost"),
        lambda: deliveries.get(ask(), -1),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    with pytest.raises(UnknownJob):
        webhooks.create(ask(), "x", URL, job="nobody")
    with pytest.raises(UnknownWebhook):
        webhooks.get(ask(), "nobody")
    with pytest.raises(UnknownDelivery):
        deliveries.get(ask(), 77)


def test_an_update_changes_what_is_named_alone(ask: Ask) -> None:
    webhooks.create(ask(), "hook", URL, kinds=["completed"], workflow="w", queue="io")
    changed = webhooks.update(ask(), "hook", workflow=None, topic="t")
    assert (changed.kinds, changed.workflow, changed.queue, changed.topic) == (("completed",), None, "io", "t")
    assert (changed.url, changed.version) == (URL, 2)


def test_a_delivery_tells_what_came_of_each_try(ask: Ask, store: SqlStore) -> None:
    webhooks.create(ask(), "hook", URL)
    job = submitted(store)
    copied(store)
    [sending] = leased(store)
    settled(store, sending, BROKEN)
    [listed] = deliveries.list_(ask(), webhook="hook", state="waiting", job=job.id)
    assert (listed.tries, listed.last_status, listed.last_error) == (1, 500, "it answered 500")
    whole = deliveries.get(ask(), listed.number)
    assert [each.status for each in whole.attempts] == [500]
    assert whole.body["data"]["job"] == job.id


def test_what_fails_is_seen_in_health_and_metrics(ask: Ask, store: SqlStore) -> None:
    webhooks.create(ask(), "hook", URL)
    submitted(store)
    copied(store)
    [sending] = leased(store)
    settled(store, sending, BROKEN)
    [found] = [each for each in health.check(ask()).checks if each.name == "webhooks"]
    assert "first hook: it has not taken its last 1 tries: it answered 500" in found.detail
    measured = metrics.measure(ask(), metrics.MetricsMemory())
    assert measured.get("unstuck_webhooks", "active") == 1
    assert measured.get("unstuck_deliveries_waiting") == 1
    assert measured.get("unstuck_webhook_failures", "1") == 1
    assert measured.get("unstuck_webhooks_behind") == 0
