"""Alerts: opened, refreshed and closed by conditional writes; any number of janitors may do so at once.

Theory of operation. A unique index lets one alert of a cause be open. Whoever finds a trouble locks the open alert if
nobody has it, and says that it was seen; where there is none it inserts one, and the insert of a second is nothing.
The notification and the event of an alert are told in the transaction that opens or closes it. A notification that
the database refuses keeps no alert from being opened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from unstuck.model.alerts import BY_ITSELF, RULES, AlertFinding, AlertNumbers, AlertRecord, RuleStand
from unstuck.model.errors import UnknownAlert
from unstuck.model.guard import alert_numbers_of
from unstuck.model.news import NewsItem, NewsKind
from unstuck.model.payload import clean_text
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.guard import audit, isolation
from unstuck.store.life import news
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.port import AlertStand, AlertTurn, SeenAlerts
from unstuck.store.rows import instant, instant_or_none, microseconds, packed, span

_LAST = 1 << 62
#: More than this are never open of one rule, but for a moment.
_MOST_OPEN = 1000


def numbers(t: Transaction) -> AlertNumbers:
    return alert_numbers_of((row["name"], row["value"]) for row in t.all("settings_set"))


# --- turns --------------------------------------------------------------------------------------------------------


def rules(t: Transaction) -> list[RuleStand]:
    return [_stand_of(row) for row in t.all("alert_rules") if row["rule"] in RULES]


def _stand_of(row: Row) -> RuleStand:
    return RuleStand(
        rule=row["rule"],
        turn_at=instant(row["turn_at"]) if row["turn_at"] else None,
        by=row["by"],
        looked_at=instant_or_none(row["looked_at"]),
        failing_at=instant_or_none(row["failing_at"]),
        failures=row["failures"],
        error=row["error"],
    )


def take_turn(t: Transaction, rule: str, by: str, every: float) -> AlertTurn | None:
    taken = t.one("take_alert_turn", rule=rule, by=clean_text(by, 200), every=span(every))
    if taken is None:
        return None
    rows = t.all("open_causes", rule=rule, most=_MOST_OPEN)
    told = {row["cause"]: (row["subject"], instant(row["told_at"])) for row in rows}
    return AlertTurn(rule, instant(taken["now"]), instant(taken["began_at"]), taken["place"] or "", told, taken["by"])


def end_turn(t: Transaction, turn: AlertTurn, place: str, error: str | None) -> bool:
    told = None if error is None else clean_text(error, MAX_MESSAGE)
    whose = {"rule": turn.rule, "turn_at": microseconds(turn.now), "by": turn.by}
    return t.run("end_alert_turn", **whose, place=place or None, error=told) == 1


# --- what was found -----------------------------------------------------------------------------------------------


def see(database: Database, rule: str, findings: Sequence[AlertFinding]) -> SeenAlerts:
    """In parts: what fails alone is told, and the rest is written."""
    by_cause = {found.cause: found for found in findings}
    opened: dict[str, AlertRecord] = {}

    def act(causes: Sequence[str], patience: float) -> None:
        some = [by_cause[cause] for cause in causes]
        new = database.write(lambda t: _see(t, rule, some), patience=patience)
        opened.update({each.cause: each for each in new})

    failed = isolation.in_parts(list(by_cause), act)
    return SeenAlerts(
        tuple(opened.values()), {by_cause[c].subject: isolation.problem_of(e) for c, e in failed.items()}
    )


def _see(t: Transaction, rule: str, findings: Sequence[AlertFinding]) -> list[AlertRecord]:
    causes = [found.cause for found in findings]
    known = {row["cause"]: row["id"] for row in t.all("lock_open_alerts", rule=rule, causes=causes)}
    seen = [_seen(known[found.cause], found) for found in findings if found.cause in known]
    if seen:
        t.run("see_alerts", rows=packed(seen))
    return [
        opened for found in findings if found.cause not in known and (opened := _open(t, rule, found)) is not None
    ]


def _seen(number: int, found: AlertFinding) -> dict[str, Any]:
    message = None if found.message is None else clean_text(found.message, MAX_MESSAGE)
    subject = clean_text(found.subject, 400)
    return {"id": number, "severity": found.severity, "subject": subject, "count": found.count, "message": message}


def _open(t: Transaction, rule: str, found: AlertFinding) -> AlertRecord | None:
    """None: somebody else has opened it, or holds the one that is open."""
    told = {
        "title": clean_text(found.title, 200),
        "message": clean_text(found.message or found.title, MAX_MESSAGE),
        "link": clean_text(found.link, 400),
    }
    row = t.one(
        "open_alert",
        rule=rule,
        cause=found.cause,
        tenant=found.tenant,
        workflow=found.workflow,
        severity=found.severity,
        subject=clean_text(found.subject, 400),
        count=found.count,
        **told,
    )
    if row is None:
        return None
    number = row["id"]
    if row["muted_until"] is None:
        t.apart(lambda: _notify(t, number, found, told))
        facts = {"number": number, "rule": rule, "severity": found.severity, "subject": found.subject, **told}
        _tell(t, NewsKind.ALERT_OPENED, facts, found.tenant, found.workflow)
    return one(t, number, None)


def _notify(t: Transaction, number: int, found: AlertFinding, told: Mapping[str, str]) -> None:
    """Where the same is told already (dead letters, a silent schedule), that is its notification."""
    audit.notify(t, **told, severity=found.severity, tenant=found.tenant, workflow=found.workflow)
    place = {"title": told["title"], "link": told["link"], "tenant": found.tenant, "workflow": found.workflow}
    row = t.one("open_notification", **place)
    if row is not None:
        t.run("link_alert", number=number, notification=row["id"])


def _tell(t: Transaction, kind: NewsKind, facts: Mapping[str, Any], tenant: str, workflow: str) -> None:
    news.tell(t, [NewsItem(kind, facts, news.of_all(tenant), workflow=workflow or None)])


def close(database: Database, rule: str, began_at: datetime, after: float) -> list[AlertRecord]:
    asked = {"began": microseconds(began_at), "after": span(after)}
    found = database.read(lambda t: t.all("closable_alerts", rule=rule, most=_MOST_OPEN, **asked))
    closed: dict[int, AlertRecord] = {}

    def act(numbers: Sequence[int], patience: float) -> None:
        over = database.write(lambda t: [_close(t, number, asked) for number in numbers], patience=patience)
        closed.update({each.number: each for each in over if each is not None})

    failed = isolation.in_parts([row["id"] for row in found], act)
    for error in failed.values():
        raise error
    return list(closed.values())


def _close(t: Transaction, number: int, asked: Mapping[str, int]) -> AlertRecord | None:
    """None: it was seen meanwhile, or somebody holds it."""
    row = t.one("close_alert", number=number, **asked)
    if row is None:
        return None
    record = record_of(row)
    if record.notification is not None:
        notification = record.notification
        t.apart(lambda: t.run("note_notification", number=notification, by=BY_ITSELF))
    if not row["is_muted"]:
        open_for = round((row["closed_at"] - row["opened_at"]) / 1_000)
        facts = {"number": number, "rule": record.rule, "severity": record.severity, "subject": record.subject}
        facts |= {"title": record.title, "open_ms": open_for}
        _tell(t, NewsKind.ALERT_CLOSED, facts, record.tenant, record.workflow)
    return record


# --- what people ask ----------------------------------------------------------------------------------------------


def page(
    t: Transaction, tenant: str | None, closed: bool, rule: str | None, before: int | None, limit: int
) -> list[AlertRecord]:
    statement = "alerts" if closed else "open_alerts"
    rows = t.all(statement, tenant=tenant, rule=rule, before=before or _LAST, most=limit)
    return [record_of(row) for row in rows]


def one(t: Transaction, number: int, tenant: str | None) -> AlertRecord:
    row = t.one("alert", number=number, tenant=tenant)
    if row is None:
        raise UnknownAlert(number)
    return record_of(row)


def ack(t: Transaction, number: int, by: str, tenant: str | None) -> AlertRecord:
    """The first to take note is kept: a repeat changes nothing."""
    who = clean_text(by, 200)
    is_first = t.run("ack_alert", number=number, by=who, tenant=tenant) == 1
    record = one(t, number, tenant)
    if is_first:
        if record.notification is not None:
            t.run("note_notification", number=record.notification, by=who)
        audit.note(t, who, "alerts.ack", str(number), record.tenant, _named(record))
    return record


def mute(t: Transaction, number: int, seconds: float | None, by: str, tenant: str | None) -> AlertRecord:
    record, who = one(t, number, tenant), clean_text(by, 200)
    if seconds is None:
        t.run("unmute_cause", rule=record.rule, cause=record.cause)
    else:
        t.run("mute_alert", number=number, seconds=span(seconds), by=who)
        if record.notification is not None:
            t.run("note_notification", number=record.notification, by=who)
    detail = {**_named(record), "seconds": seconds}
    audit.note(t, who, "alerts.unmute" if seconds is None else "alerts.mute", str(number), record.tenant, detail)
    return one(t, number, tenant)


def _named(record: AlertRecord) -> dict[str, Any]:
    return {"rule": record.rule, "subject": record.subject}


def stands(t: Transaction, tenant: str | None) -> list[AlertStand]:
    return [
        AlertStand(row["rule"], row["severity"], int(row["alerts"]), int(row["muted"]), instant(row["since_at"]))
        for row in t.all("count_alerts", tenant=tenant)
    ]


def record_of(row: Row) -> AlertRecord:
    return AlertRecord(
        number=row["id"],
        rule=row["rule"],
        cause=row["cause"],
        tenant=row["tenant"],
        workflow=row["workflow"],
        severity=row["severity"],
        title=row["title"],
        subject=row["subject"],
        message=row["message"],
        link=row["link"],
        count=row["count"],
        opened_at=instant(row["opened_at"]),
        seen_at=instant(row["seen_at"]),
        closed_at=instant_or_none(row["closed_at"]),
        notification=row["notification"],
        acked_at=instant_or_none(row["acked_at"]),
        acked_by=row["acked_by"],
        muted_until=instant_or_none(row["muted_until"]),
        muted_by=row["muted_by"],
    )


# --- recoveries ---------------------------------------------------------------------------------------------------


def note_recoveries(t: Transaction, rows: Sequence[Row]) -> None:
    """Of attempts that were taken from a lost worker. A rescue is not to fail because it cannot be counted."""
    jobs: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = (row["worker"], row["worker_name"], row["tenant"], row["workflow"])
        jobs[key] = jobs.get(key, 0) + 1
    if jobs:
        names = ("worker", "name", "tenant", "workflow", "jobs")
        told = packed([dict(zip(names, (*key, number), strict=True)) for key, number in jobs.items()])
        t.apart(lambda: t.run("add_recoveries", rows=told))
