"""Views of API keys. What is stored of a secret is in none of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.keys import BrowserSession, KeyRecord, KeyState
from unstuck.views import View


class KeyView(View, frozen=True, kw_only=True):
    """An API key. `tenant` null: it is the platform's; `queues` and `workflows` null: all of them. `last_used_at` is
    written once a minute. `rotated_from`: the key whose place it took, `rotated_to`: the one that took its place."""

    id: str
    name: str
    state: KeyState
    tenant: str | None
    role: str
    scopes: tuple[str, ...]
    queues: tuple[str, ...] | None
    workflows: tuple[str, ...] | None
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    revoked_by: str | None
    rotated_from: str | None
    rotated_to: str | None

    @classmethod
    def of(cls, record: KeyRecord, now: datetime) -> KeyView:
        return cls(**facts_of(record, now))


class NewKeyView(KeyView, frozen=True, kw_only=True):
    """A key that was just made. `key` is what to show when asking; no other answer has it, and nobody stores it."""

    key: str

    @classmethod
    def made(cls, record: KeyRecord, now: datetime, key: str) -> NewKeyView:
        return cls(**facts_of(record, now), key=key)


class SessionView(View, frozen=True, kw_only=True):
    """A browser that somebody has logged in with the key `key`, of the name `by`. It ends at `idle_until` if it is
    not used before, and at `ends_at` in any case. `address`: from where it was begun."""

    number: int
    key: str
    by: str
    tenant: str | None
    role: str
    address: str | None
    began_at: datetime
    idle_until: datetime
    ends_at: datetime

    @classmethod
    def of(cls, session: BrowserSession) -> SessionView:
        return cls(
            number=session.number,
            key=session.key.id,
            by=session.key.name,
            tenant=session.key.tenant,
            role=session.key.role,
            address=session.address,
            began_at=session.created_at,
            idle_until=session.idle_until,
            ends_at=session.ends_at,
        )


def facts_of(record: KeyRecord, now: datetime) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "state": record.state(now),
        "tenant": record.tenant,
        "role": record.role,
        "scopes": tuple(sorted(record.scopes)),
        "queues": _sorted(record.within.queues),
        "workflows": _sorted(record.within.workflows),
        "created_at": record.created_at,
        "created_by": record.created_by,
        "expires_at": record.expires_at,
        "last_used_at": record.last_used_at,
        "revoked_at": record.revoked_at,
        "revoked_by": record.revoked_by,
        "rotated_from": record.rotated_from,
        "rotated_to": record.rotated_to,
    }


def _sorted(names: frozenset[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(sorted(names))
