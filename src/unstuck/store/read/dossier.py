"""Dossier: everything about one job, by as few questions as it has things to tell. Nothing here takes a lock."""

from __future__ import annotations

import json
from typing import Any

from unstuck.model.job import AttemptRecord, EventRecord
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children, steps, usage, waits
from unstuck.store.order.name_ids import NameIds
from unstuck.store.port import ATTEMPTS_PAGE, HISTORY_PAGE, Dossier
from unstuck.store.rows import attempts_of, event_of, instant, job_of


def of(t: Transaction, name_ids: NameIds, tenant: str, uid: str, last: int | None) -> Dossier | None:
    few = HISTORY_PAGE if last is None else min(last, HISTORY_PAGE)
    row = t.one("dossier", tenant=tenant, uid=uid, last=few, most=few)
    if row is None:
        return None
    number, policy = row["number"], name_ids.policy(t, row["policy"])
    events = [event_of({**event, "uid": uid}) for event in _list(row["events"])]
    has_spent = row["has_usage"] or row["payer"] is not None
    return Dossier(
        at=instant(row["now"]),
        job=job_of(row, policy),
        events=events,
        attempts=_attempts(t, row, events, last),
        progress=row["progress"],
        steps=steps.by_number(t, number) if row["has_steps"] else [],
        waits=waits.by_id(t, tenant, uid) if row["has_waits"] else [],
        usage=usage.by_row(t, name_ids, row) if has_spent else usage.nothing_spent(uid, policy),
        children=children.by_number(t, number) if row["has_children"] else [],
        parent=row["parent"],
        parts=row["parts"],
        is_redacted=bool(row["is_redacted"]),
        letter=row["dead_letter"],
    )


def _attempts(t: Transaction, row: Row, events: list[EventRecord], last: int | None) -> list[AttemptRecord]:
    """The events tell of them, if they are all there."""
    if not row["token"]:
        return []
    after = max(0, row["token"] - (ATTEMPTS_PAGE if last is None else min(last, ATTEMPTS_PAGE)))
    wanted = {"tenant": row["tenant"], "uid": row["uid"], "after": after, "upto": after + ATTEMPTS_PAGE}
    if len(events) == row["event_count"]:
        theirs = [event for event in events if after < event.token <= after + ATTEMPTS_PAGE]
    else:
        theirs = [event_of(event) for event in t.all("events_of_attempts", **wanted)]
    return attempts_of(theirs, t.all("outputs", **wanted))


def _list(found: Any) -> list[dict[str, Any]]:
    """PostgreSQL's driver has read the JSON, SQLite's has not; nothing at all is NULL on one and [] on the other."""
    return (json.loads(found) if isinstance(found, str) else found) or []
