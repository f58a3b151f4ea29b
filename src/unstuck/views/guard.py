"""What is shut out or set aside, what operators are told, and who did what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from unstuck.model.guard import Action, BlacklistEntry, Notification, SettingRecord
from unstuck.model.redaction import REDACTED, Redactions
from unstuck.store.port import Quarantined, QuarantineDuty
from unstuck.views import View


class BlacklistView(View, frozen=True, kw_only=True):
    """An entry of the blacklist. `tenant` "*": for every tenant. `active` False: somebody has lifted it."""

    number: int
    workflow: str
    tenant: str
    active: bool
    reason: str
    stuck_count: int | None
    blacklisted_at: datetime
    blacklisted_by: str
    renewed_at: datetime | None
    removed_at: datetime | None
    removed_by: str | None
    #: Whether the breaker made it.
    auto: bool

    @classmethod
    def of(cls, record: BlacklistEntry, **more: Any) -> Self:
        return cls(
            number=record.number,
            workflow=record.workflow,
            tenant=record.tenant,
            active=record.is_active,
            reason=record.reason,
            stuck_count=record.stuck_count,
            blacklisted_at=record.blacklisted_at,
            blacklisted_by=record.blacklisted_by,
            renewed_at=record.renewed_at,
            removed_at=record.removed_at,
            removed_by=record.removed_by,
            auto=record.is_auto,
            **more,
        )


class BlacklistAdded(BlacklistView, frozen=True, kw_only=True):
    """`created` False: the entry stood already, and stands unchanged."""

    created: bool


class BlacklistRemoved(View, frozen=True, kw_only=True):
    """What was lifted, and what still stands against the workflow."""

    workflow: str
    removed: tuple[BlacklistView, ...]
    left: tuple[BlacklistView, ...]


class SettingView(View, frozen=True, kw_only=True):
    """A runtime setting as it stands; `set_at` null: it has its default."""

    name: str
    value: Any
    default: Any
    meaning: str
    set_at: datetime | None
    set_by: str | None

    @classmethod
    def of(cls, record: SettingRecord) -> SettingView:
        return cls(
            name=record.name,
            value=record.value,
            default=record.default,
            meaning=record.meaning,
            set_at=record.set_at,
            set_by=record.set_by,
        )


class NotificationView(View, frozen=True, kw_only=True):
    """News for operators, until one of them has taken note."""

    number: int
    at: datetime
    title: str
    message: str
    severity: str
    link: str
    tenant: str
    workflow: str
    count: int | None
    acked_at: datetime | None
    acked_by: str | None

    @classmethod
    def of(cls, record: Notification) -> NotificationView:
        return cls(
            number=record.number,
            at=record.at,
            title=record.title,
            message=record.message,
            severity=record.severity,
            link=record.link,
            tenant=record.tenant,
            workflow=record.workflow,
            count=record.count,
            acked_at=record.acked_at,
            acked_by=record.acked_by,
        )


class QuarantineView(View, frozen=True, kw_only=True):
    """One thing that could not be written although the database answered. Every sweep tries it again, alone."""

    duty: QuarantineDuty
    job: str | None
    workflow: str | None
    target: str | None
    tenant: str
    since_at: datetime
    by: str
    tried_at: datetime
    tries: int
    error: str

    @classmethod
    def of(cls, record: Quarantined) -> QuarantineView:
        return cls(
            duty=record.duty,
            job=record.job,
            workflow=record.workflow,
            target=record.target,
            tenant=record.tenant,
            since_at=record.since_at,
            by=record.by,
            tried_at=record.tried_at,
            tries=record.tries,
            error=record.error,
        )


class QuarantineRetry(View, frozen=True, kw_only=True):
    """So many things come first in the next sweep; `job` null: all that is set aside."""

    job: str | None
    tried: int


class ActionView(View, frozen=True, kw_only=True):
    """A line of the audit: who did what, to what. `key`: the id of the API key by which it was asked, `address`: from
    where, which admins are told; both null where it was not over HTTP."""

    number: int
    at: datetime
    by: str
    verb: str
    subject: str
    tenant: str
    detail: Mapping[str, Any]
    key: str | None
    address: str | None

    @classmethod
    def of(cls, record: Action, hidden: Redactions, *, is_located: bool) -> ActionView:
        return cls(
            number=record.number,
            at=record.at,
            by=record.by,
            verb=record.verb,
            subject=record.subject,
            tenant=record.tenant,
            detail=_detail(record.detail, hidden),
            key=record.key,
            address=record.address if is_located else None,
        )


def _detail(detail: Mapping[str, Any], hidden: Redactions) -> Mapping[str, Any]:
    """As it was written, but for the argument that a bulk looked for, if it is hidden."""
    wanted: dict[str, Any] = detail.get("filter") or {}
    name, _ = wanted.get("argument") or ("", None)
    if not hidden.covers(name, wanted.get("workflow")):
        return detail
    return {**detail, "filter": {**wanted, "argument": [name, REDACTED]}}
