"""Keys: who may ask over HTTP. What is done with one and the line of the audit that says so are one transaction."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Any

from unstuck.model.errors import KeyEnded, UnknownKey
from unstuck.model.guard import EVERY
from unstuck.model.keys import BrowserSession, KeyRecord, NewBrowserSession, NewKey, Within
from unstuck.model.payload import clean_text
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit
from unstuck.store.port import SeenKey
from unstuck.store.rows import instant, instant_or_none, listed, packed, span

LAST = 1 << 62
#: Browser sessions and tickets that ended: whoever begins one takes so many of them away.
FORGOTTEN_AT_ONCE = 100
#: Of one key as many browser sessions go on: the next one ends the oldest.
MOST_SESSIONS = 100


def add(t: Transaction, new: NewKey) -> KeyRecord | None:
    if not _insert(t, new, None):
        return None
    audit.note(t, new.by, "keys.create", new.id, new.tenant or EVERY, _told(new))
    return _known(t, new.id)


def one(t: Transaction, id: str, tenant: str | None = None, digest: str | None = None) -> SeenKey | None:
    row = t.one("api_key", id=id, tenant=tenant, digest=digest)
    return None if row is None else SeenKey(_record(row), instant(row["now"]))


def several(t: Transaction, ids: Collection[str]) -> dict[str, SeenKey]:
    rows = t.all("api_keys_of", ids=sorted(ids))
    return {row["id"]: SeenKey(_record(row), instant(row["now"])) for row in rows}


def page(t: Transaction, tenant: str | None, ended: bool, before: int | None, limit: int) -> list[KeyRecord]:
    rows = t.all("api_keys", tenant=tenant, ended=int(ended), before=before or LAST, most=limit)
    return [_record(row) for row in rows]


def revoke(t: Transaction, id: str, by: str) -> KeyRecord | None:
    is_new = t.run("revoke_api_key", id=id, by=clean_text(by, 200)) == 1
    found = one(t, id)
    if found is None:
        return None
    if is_new:
        t.run("end_browser_sessions_of_key", key=id)
        audit.note(t, by, "keys.revoke", id, found.key.tenant or EVERY, {"name": found.key.name})
    return found.key


def rotate(t: Transaction, id: str, new: NewKey, overlap: float) -> KeyRecord | None:
    t.one("lock_api_key", id=id)
    seen = one(t, id)
    if seen is None:
        raise UnknownKey(id)
    if seen.key.rotated_to is not None:
        raise KeyEnded(id, "rotated", seen.key.rotated_to)
    if (state := seen.key.state(seen.at)) != "active":
        raise KeyEnded(id, state)
    if not _insert(t, new, id):
        return None
    t.run("end_api_key_within", id=id, overlap=span(overlap))
    told = {"name": new.name, "new": new.id, "overlap": overlap}
    audit.note(t, new.by, "keys.rotate", id, new.tenant or EVERY, told)
    return _known(t, new.id)


def _insert(t: Transaction, new: NewKey, rotated_from: str | None) -> bool:
    return (
        t.run(
            "add_api_key",
            id=new.id,
            name=new.name,
            digest=new.digest,
            tenant=new.tenant,
            role=new.role,
            scopes=packed(sorted(new.scopes)),
            queues=listed(new.within.queues),
            workflows=listed(new.within.workflows),
            by=clean_text(new.by, 200),
            lasting=None if new.lasting is None else span(new.lasting),
            rotated_from=rotated_from,
        )
        == 1
    )


def _told(new: NewKey) -> dict[str, Any]:
    """Everything but what could open a door."""
    names = {"queues": new.within.queues, "workflows": new.within.workflows}
    told = {name: sorted(found) for name, found in names.items() if found is not None}
    return {"name": new.name, "role": new.role, "scopes": sorted(new.scopes) or None, "lasting": new.lasting, **told}


def _known(t: Transaction, id: str) -> KeyRecord:
    found = one(t, id)
    assert found is not None
    return found.key


def _record(row: Row) -> KeyRecord:
    return KeyRecord(
        number=row["number"],
        id=row["id"],
        name=row["name"],
        digest=row["digest"],
        tenant=row["tenant"],
        role=row["role"],
        scopes=frozenset(json.loads(row["scopes"])),
        within=Within(_names(row["queues"]), _names(row["workflows"])),
        created_at=instant(row["created_at"]),
        created_by=row["created_by"],
        expires_at=instant_or_none(row["expires_at"]),
        last_used_at=instant_or_none(row["last_used_at"]),
        revoked_at=instant_or_none(row["revoked_at"]),
        revoked_by=row["revoked_by"],
        rotated_from=row["rotated_from"],
        rotated_to=row["rotated_to"],
    )


def _names(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(json.loads(text))


# --- browser sessions ---------------------------------------------------------------------------------------------


def open_session(t: Transaction, new: NewBrowserSession, by: str) -> int:
    t.run("forget_browser_sessions", batch=FORGOTTEN_AT_ONCE)
    row = t.one(
        "add_browser_session",
        digest=new.digest,
        key=new.key,
        address=new.address,
        idle=span(new.idle),
        lasting=span(new.lasting),
    )
    assert row is not None
    t.run("forget_old_browser_sessions", key=new.key, kept=MOST_SESSIONS)
    _note_session(t, by, "sessions.begin", row["number"], new.key)
    return int(row["number"])


def session(t: Transaction, digest: str) -> BrowserSession | None:
    row = t.one("browser_session", digest=digest)
    return None if row is None else _session(row)


def sessions(
    t: Transaction, tenant: str | None, before: int | None, limit: int, least: int = 0
) -> list[BrowserSession]:
    rows = t.all(
        "browser_sessions", tenant=tenant, before=LAST if before is None else before, least=least, most=limit
    )
    return [_session(row) for row in rows]


def end_session(t: Transaction, by: str, number: int | None, digest: str | None) -> bool:
    row = t.one("end_browser_session", number=number, digest=digest)
    if row is not None:
        _note_session(t, by, "sessions.end", row["number"], row["key"])
    return row is not None


def _note_session(t: Transaction, by: str, verb: str, number: int, key: str) -> None:
    found = one(t, key)
    tenant = EVERY if found is None else found.key.tenant or EVERY
    audit.note(t, by, verb, str(number), tenant, {"key": key})


def _session(row: Row) -> BrowserSession:
    ends = [instant(row["ends_at"]), *([instant(row["expires_at"])] if row["expires_at"] is not None else [])]
    return BrowserSession(
        number=row["session"],
        key=_record(row),
        address=row["address"],
        created_at=instant(row["began_at"]),
        idle_until=min(instant(row["idle_until"]), *ends),
        ends_at=min(ends),
        at=instant(row["now"]),
    )


# --- tickets ------------------------------------------------------------------------------------------------------


def add_ticket(t: Transaction, digest: str, key: str, lasting: float) -> datetime:
    t.run("forget_tickets", batch=FORGOTTEN_AT_ONCE)
    row = t.one("add_ticket", digest=digest, key=key, lasting=span(lasting))
    assert row is not None
    return instant(row["ends_at"])


def use_ticket(t: Transaction, digest: str) -> str | None:
    row = t.one("use_ticket", digest=digest)
    return None if row is None else str(row["key"])
