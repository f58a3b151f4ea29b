"""Audit: what people did, written in the transaction that did it; and the news that people should take note of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from unstuck.model.errors import UnknownNotification
from unstuck.model.guard import EVERY, Action, Notification
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import clean_text
from unstuck.store.database import Row, Transaction
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.port import asked_from
from unstuck.store.rows import instant, instant_or_none, packed

_LAST = 1 << 62


class AuditLine(NamedTuple):
    """What somebody did to one thing."""

    subject: str
    tenant: str
    detail: Mapping[str, Any]


def note(
    t: Transaction, by: str, verb: str, subject: str, tenant: str, detail: Mapping[str, Any] | None = None
) -> None:
    note_all(t, by, verb, [AuditLine(subject, tenant, detail or {})])


def note_all(t: Transaction, by: str, verb: str, lines: Iterable[AuditLine]) -> None:
    """What they say about the action is cut to what both databases can keep."""
    rows = [
        {
            "subject": clean_text(line.subject, 400),
            "tenant": line.tenant,
            "detail": packed({name: _storable(value) for name, value in line.detail.items() if value is not None}),
        }
        for line in lines
    ]
    origin, who = asked_from(), clean_text(by or "?", 200)
    t.run("add_audit", rows=packed(rows), by=who, verb=verb, key=origin.key, address=origin.address)


def _storable(value: Any) -> Any:
    return clean_text(value, MAX_MESSAGE) if isinstance(value, str) else value


def actions(
    t: Transaction,
    tenant: str | None,
    verb: str | None,
    subject: str | None,
    before: int | None,
    limit: int,
    with_platform: bool,
) -> list[Action]:
    """The newest first."""
    asked = {
        "tenant": tenant,
        "with_platform": int(with_platform),
        "verb": verb,
        "subject": subject,
        "before": before or _LAST,
        "most": limit,
    }
    return [_action_of(row) for row in t.all("audit", **asked)]


def _action_of(row: Row) -> Action:
    return Action(
        number=row["id"],
        at=instant(row["at"]),
        by=row["by"],
        verb=row["verb"],
        subject=row["subject"],
        tenant=row["tenant"],
        detail=json.loads(row["detail"]),
        key=row["key"],
        address=row["address"],
    )


# --- notifications ------------------------------------------------------------------------------------------------


def notifications(
    t: Transaction, tenant: str | None, acked: bool, before: int | None, limit: int
) -> list[Notification]:
    """The newest first; those that nobody has taken note of, or all."""
    statement = "notifications" if acked else "open_notifications"
    return [_notification_of(row) for row in t.all(statement, tenant=tenant, before=before or _LAST, most=limit)]


def notify(
    t: Transaction, title: str, message: str, link: str, severity: str, tenant: str = EVERY, workflow: str = ""
) -> bool:
    """Once, for as long as nobody has taken note; about the platform, unless a tenant is named."""
    told = {
        "title": clean_text(title, 200),
        "message": clean_text(message, MAX_MESSAGE),
        "link": clean_text(link, 400),
    }
    row = t.one("notify", **told, severity=severity, tenant=tenant, workflow=workflow)
    if row is not None:
        _tell(t, row["id"], told, severity, tenant, workflow)
    return row is not None


def add_notification(
    t: Transaction, title: str, message: str, link: str, severity: str, tenant: str, workflow: str, count: int | None
) -> None:
    """Whether or not the same is open already."""
    told = {"title": title, "message": message, "link": link}
    row = t.one("add_notification", **told, severity=severity, tenant=tenant, workflow=workflow, count=count)
    assert row is not None
    _tell(t, row["id"], told, severity, tenant, workflow)


def _tell(t: Transaction, number: int, told: dict[str, str], severity: str, tenant: str, workflow: str) -> None:
    """Who reads notifications: those about no tenant are the platform's alone."""
    facts = {"number": number, "severity": severity, **told}
    news.tell(t, [NewsItem(NewsKind.NOTIFICATION, facts, news.of_all(tenant), workflow=workflow or None)])


def ack(t: Transaction, number: int, by: str, tenant: str | None) -> Notification:
    """The first to take note is kept: a repeat changes nothing."""
    who = clean_text(by, 200)
    is_first = t.run("ack_notification", number=number, by=who, tenant=tenant) == 1
    row = t.one("notification", number=number, tenant=tenant)
    if row is None:
        raise UnknownNotification(number)
    if is_first:
        note(t, who, "notifications.ack", str(number), row["tenant"], {"title": row["title"]})
    return _notification_of(row)


def _notification_of(row: Row) -> Notification:
    return Notification(
        number=row["id"],
        at=instant(row["at"]),
        title=row["title"],
        message=row["message"],
        severity=row["severity"],
        link=row["link"],
        tenant=row["tenant"],
        workflow=row["workflow"],
        count=row["count"],
        acked_at=instant_or_none(row["acked_at"]),
        acked_by=row["acked_by"],
    )
