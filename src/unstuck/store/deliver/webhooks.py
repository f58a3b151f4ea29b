"""Webhooks: how they are kept, and what people ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from unstuck.model.errors import (
    Conflict,
    NotActive,
    TooManyWebhooks,
    UnknownWebhook,
    WebhookExists,
)
from unstuck.model.guard import webhook_rules_of
from unstuck.model.payload import clean_text
from unstuck.model.spelling import about
from unstuck.model.webhooks import (
    TEST_KIND,
    DeliveryState,
    WebhookFilter,
    WebhookRules,
    WebhookState,
    attempts_of,
    message_id,
)
from unstuck.sealing import is_clear
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.port.webhooks import (
    ENGINE,
    WAITING_CEILING,
    DeliveryRecord,
    NewWebhook,
    Replayed,
    WebhookName,
    WebhookRecord,
)
from unstuck.store.read import feed
from unstuck.store.rows import instant, instant_or_none, microseconds, span

_LAST = 1 << 62


def rules(t: Transaction) -> WebhookRules:
    """Read in the transaction that goes by them."""
    return webhook_rules_of((row["name"], row["value"]) for row in t.all("settings_set"))


def create(t: Transaction, tenant: str, new: NewWebhook, by: str) -> WebhookRecord:
    if t.one("lock_webhook", tenant=tenant, name=new.name) is not None:
        raise WebhookExists(new.name)
    in_force, counted = rules(t), t.one("count_webhooks", tenant=tenant)
    if counted is not None and counted["webhooks"] >= in_force.most:
        raise TooManyWebhooks(tenant, in_force.most)
    who = clean_text(by, 200)
    facts = {"tenant": tenant, "name": new.name, "url": new.url, "filter": new.wanted.to_json(), "secret": new.secret}
    if t.one("add_webhook", **facts, by=who, position=feed.reach_of(t)["position"]) is None:
        raise WebhookExists(new.name)  # at this instant, by somebody else
    audit.note(t, who, "webhooks.create", new.name, tenant, _told(new.url, new.wanted))
    return _seen(t, tenant, new.name)


def change(
    t: Transaction, tenant: str, name: str, url: str, wanted: WebhookFilter, by: str, seen: int
) -> WebhookRecord:
    row, who = _locked(t, tenant, name), clean_text(by, 200)
    if row["version"] != seen:
        look = about("unstuck webhooks show", name)
        raise Conflict(f"webhook {name} was changed meanwhile; look at it again: {look}")
    t.run("change_webhook", webhook=row["id"], url=url, filter=wanted.to_json(), by=who)
    audit.note(t, who, "webhooks.update", name, tenant, _told(url, wanted))
    return _seen(t, tenant, name)


def rotate(t: Transaction, tenant: str, name: str, secret: str, overlap: float, by: str) -> WebhookRecord:
    row, who = _locked(t, tenant, name), clean_text(by, 200)
    t.run("rotate_webhook", webhook=row["id"], secret=secret, overlap=span(overlap), by=who)
    audit.note(t, who, "webhooks.rotate", name, tenant, {"overlap": overlap})
    return _seen(t, tenant, name)


_VERBS = {
    WebhookState.ACTIVE: "webhooks.enable",
    WebhookState.PAUSED: "webhooks.pause",
    WebhookState.DISABLED: "webhooks.disable",
}


def set_state(
    t: Transaction, tenant: str, name: str, state: WebhookState, by: str, reason: str | None
) -> WebhookRecord:
    row, who = _locked(t, tenant, name), clean_text(by, 200)
    why = clean_text(reason, MAX_MESSAGE) if reason else None
    if state is WebhookState.ACTIVE:
        t.run("revive_deliveries", webhook=row["id"])
    become(t, row["id"], state, who, why)
    audit.note(t, who, _VERBS[state], name, tenant, {"reason": why})
    return _seen(t, tenant, name)


def become(t: Transaction, webhook: int, state: WebhookState, by: str, reason: str | None) -> None:
    """Of a webhook that this transaction has locked."""
    position = feed.reach_of(t)["position"]
    t.run("state_webhook", webhook=webhook, state=str(state), by=by, reason=reason, position=position)


def test(t: Transaction, tenant: str, name: str, event: str, body: str, by: str) -> DeliveryRecord:
    row = _locked(t, tenant, name)
    if row["state"] != WebhookState.ACTIVE:
        raise NotActive(name, row["state"])
    message = message_id(row["id"], event)
    facts = {"webhook": row["id"], "tenant": tenant, "message": message, "kind": TEST_KIND, "body": body}
    added = t.one("add_test_delivery", **facts)
    assert added is not None
    t.run("wake_webhook", webhooks=[row["id"]])
    audit.note(t, by, "webhooks.test", name, tenant)
    found = delivery(t, tenant, added["id"])
    assert found is not None
    return found


def replay(
    t: Transaction, tenant: str, name: str, by: str, since: datetime, after: str | None, most: int
) -> Replayed:
    """What the feed no longer has is opened again here; the copier goes through the feed itself from there on."""
    row = _locked(t, tenant, name)
    if row["state"] == WebhookState.DISABLED:
        raise NotActive(name, row["state"])
    asked = microseconds(since)
    place = t.one("replay_place", since=asked)
    assert place is not None
    position = place["place"]
    if after is not None:
        position, asked = _place_of(t, after), 0
    # A walk that is under way is not cut short.
    position = min(position, row["position"])
    old: list[Row] = []
    if after is None:
        old = t.all("old_deliveries", webhook=row["id"], floor=place["floor"], since=asked, most=most)
    if old:
        t.run("reopen_deliveries", deliveries=[each["id"] for each in old])
        seat(t, row["id"], {each["about"] for each in old}, is_replay=True)
        t.run("wake_webhook", webhooks=[row["id"]])
    t.run("replay_webhook", webhook=row["id"], position=position, since=asked)
    told = {"since": since.isoformat() if after is None else None, "after": after, "reopened": len(old)}
    audit.note(t, by, "webhooks.replay", name, tenant, told)
    return Replayed(_seen(t, tenant, name), len(old), has_more=len(old) >= most)


def _place_of(t: Transaction, cursor: str) -> int:
    era, position = feed.parsed(cursor)
    reach = feed.reach_of(t)
    feed.check(cursor, era, position, reach)
    return position


def seat(t: Transaction, webhook: int, abouts: set[str], *, is_replay: bool) -> None:
    """The first about each of these is due. `is_replay`: a later one may be already."""
    listed = sorted(abouts)
    if is_replay:
        t.run("unseat_deliveries", webhook=webhook, abouts=listed)
    t.run("seat_deliveries", webhook=webhook, abouts=listed)


def delete(t: Transaction, tenant: str, name: str, by: str) -> WebhookRecord:
    found = _seen(t, tenant, name)
    row = _locked(t, tenant, name)
    t.run("delete_webhook", webhook=row["id"])
    audit.note(t, by, "webhooks.delete", name, tenant, _told(found.url, found.wanted))
    return replace(found, state=WebhookState.DISABLED)


def page(t: Transaction, tenant: str | None, name: str | None, after: int, limit: int) -> list[WebhookRecord]:
    rows = t.all("webhooks", tenant=tenant, name=name, after=after, most=limit, ceiling=WAITING_CEILING)
    return [record_of(row) for row in rows]


def failing(t: Transaction, tenant: str | None, limit: int) -> list[WebhookRecord]:
    return [record_of(row) for row in t.all("failing_webhooks", tenant=tenant, engine=ENGINE, most=limit)]


def delivery(t: Transaction, tenant: str | None, number: int) -> DeliveryRecord | None:
    row = t.one("delivery", tenant=tenant, delivery=number)
    return None if row is None else delivery_of(row)


def deliveries(
    t: Transaction,
    tenant: str | None,
    webhook: int | None,
    state: str | None,
    job: str | None,
    before: int | None,
    limit: int,
) -> list[DeliveryRecord]:
    asked = {"state": state, "job": job, "before": before or _LAST, "most": limit}
    if webhook is not None:
        rows = t.all("deliveries_of_webhook", webhook=webhook, **asked)
    elif tenant is not None:
        rows = t.all("deliveries_of_tenant", tenant=tenant, **asked)
    else:
        rows = t.all("deliveries", **asked)
    return [delivery_of(row) for row in rows]


# --- rows ---------------------------------------------------------------------------------------------------------


def _locked(t: Transaction, tenant: str, name: str) -> Row:
    row = t.one("lock_webhook", tenant=tenant, name=name)
    if row is None:
        raise UnknownWebhook(name)
    return row


def _seen(t: Transaction, tenant: str, name: str) -> WebhookRecord:
    found = page(t, tenant, name, 0, 1)
    if not found:
        raise UnknownWebhook(name)
    return found[0]


def _told(url: str, wanted: WebhookFilter) -> dict[str, Any]:
    """For the audit: the host alone, because the rest of a URL may be a secret."""
    return {"host": url.split("/")[2] if url.count("/") > 1 else url, "wanted": wanted.to_json()}


def names_of(rows: Sequence[Row]) -> list[WebhookName]:
    return [WebhookName(row["id"], row["tenant"], row["name"]) for row in rows]


def filter_of(row: Row) -> WebhookFilter:
    """Of a row that was damaged: nothing is called so."""
    try:
        return WebhookFilter.from_json(row["filter"])
    except (ValueError, TypeError):
        return WebhookFilter(job="")


def record_of(row: Row) -> WebhookRecord:
    return WebhookRecord(
        number=row["id"],
        tenant=row["tenant"],
        name=row["name"],
        url=row["url"],
        wanted=filter_of(row),
        state=WebhookState(row["state"]),
        state_at=instant(row["state_at"]),
        state_by=row["state_by"],
        state_reason=row["state_reason"],
        version=row["version"],
        created_at=instant(row["created_at"]),
        created_by=row["created_by"],
        changed_at=instant(row["changed_at"]),
        changed_by=row["changed_by"],
        is_sealed=not is_clear(row["secret"]),
        old_secret_until=_ahead(row["old_secret_until"], row["now"]),
        waiting=row["waiting"],
        waiting_since=instant_or_none(row["waiting_since"]),
        failures=row["failures"],
        failing_since=instant_or_none(row["failing_since"]),
        rest_until=_ahead(row["rest_until"], row["now"]),
        last_status=row["last_status"],
        last_error=row["last_error"],
        tried_at=instant_or_none(row["tried_at"]),
        taken_at=instant_or_none(row["taken_at"]),
        now=instant(row["now"]),
    )


def _ahead(at: int | None, now: int) -> datetime | None:
    return instant(at) if at is not None and at > now else None


def delivery_of(row: Row) -> DeliveryRecord:
    is_due = row["due_at"] is not None and row["webhook_state"] == WebhookState.ACTIVE
    next_at = max(row["due_at"], row["rest_until"], row["again_at"] or 0) if is_due else None
    return DeliveryRecord(
        number=row["id"],
        webhook=row["webhook"],
        name=row["name"],
        tenant=row["tenant"],
        message=row["message"],
        kind=row["kind"],
        job=row["job"],
        body=row["body"],
        state=DeliveryState(row["state"]),
        happened_at=instant(row["happened_at"]),
        at=instant(row["at"]),
        next_at=instant_or_none(next_at),
        tries=row["tries"],
        ended_at=instant_or_none(row["ended_at"]),
        last_status=row["last_status"],
        last_error=row["last_error"] if row["aside"] is None else f"set aside: {row['aside']}",
        attempts=attempts_of(row["attempts"]),
        rest_until=_ahead(row["rest_until"], row["now"]) if is_due else None,
    )
