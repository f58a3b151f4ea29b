"""Notifications: news for the operators of the platform, until one of them takes note."""

from __future__ import annotations

from unstuck.model.errors import UnknownNotification
from unstuck.operations.kinds import Cursor, number_of
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.guard import NotificationView


@operation(role=READER, whose="own", paged="after")
def list_(
    caller: Caller, *, acked: bool = False, after: Cursor | None = None, limit: int = 50
) -> Page[NotificationView]:
    """Those that nobody has taken note of, with `acked` all; the newest first."""
    found = caller.guard.notifications(acked=acked, before=number_of(after), limit=limit)
    items = tuple(NotificationView.of(record) for record in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == limit else None)


@operation(
    role=OPERATOR,
    effect="change",
    whose="own",
    repeat="same",
    audited="notifications.ack",
    errors=(UnknownNotification,),
)
def ack(caller: Caller, number: int) -> NotificationView:
    """Take note of one, so that others need not. The first to do so is kept."""
    return NotificationView.of(caller.guard.ack(number))
