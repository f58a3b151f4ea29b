"""The audit: who did what, and when."""

from __future__ import annotations

from unstuck.operations.kinds import Cursor, number_of
from unstuck.operations.table import INCLUDED, READER, TENANT_ADMIN, Caller, operation
from unstuck.views import Page
from unstuck.views.guard import ActionView


@operation(role=READER, whose="own", paged="after", command="audit")
def list_(
    caller: Caller,
    *,
    verb: str | None = None,
    subject: str | None = None,
    after: Cursor | None = None,
    limit: int = 50,
) -> Page[ActionView]:
    """What operators did, the newest first; over HTTP with the key and, for admins, the address. `verb`: one
    ("jobs.cancel"), or all of a noun ("jobs")."""
    found = caller.guard.audit(verb=verb, subject=subject, before=number_of(after), limit=limit)
    hidden = caller.redactions
    is_located = TENANT_ADMIN in INCLUDED[caller.role]
    items = tuple(ActionView.of(record, hidden, is_located=is_located) for record in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == limit else None)
