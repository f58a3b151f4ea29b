"""Signing keys as they are shown: never themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from unstuck.store.port import Revocation
from unstuck.views import View


class RevocationView(View, frozen=True, kw_only=True):
    """A signing key that is revoked, by its id."""

    key: str
    revoked_at: datetime
    revoked_by: str
    reason: str | None

    @classmethod
    def of(cls, record: Revocation, **more: Any) -> Self:
        return cls(
            key=record.key,
            revoked_at=record.revoked_at,
            revoked_by=record.revoked_by,
            reason=record.reason,
            **more,
        )


class RevocationAdded(RevocationView, frozen=True, kw_only=True):
    """`created` False: it was revoked already, and nothing changed."""

    created: bool


class RevocationRemoved(View, frozen=True, kw_only=True):
    """What stood against it; null: it was not revoked."""

    key: str
    was: RevocationView | None
