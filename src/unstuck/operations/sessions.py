"""Browser sessions: the browsers that somebody has logged in with a key. They are begun over HTTP, by
`server/sessions.py`; here admins see and end them."""

from __future__ import annotations

from unstuck.model.errors import NotPermitted, UnknownSession
from unstuck.operations.keys import check_grant
from unstuck.operations.kinds import Cursor, number_of, whole_number
from unstuck.operations.table import TENANT_ADMIN, Caller, operation
from unstuck.views import Page
from unstuck.views.keys import SessionView

MOST_SESSIONS = 1000


@operation(role=TENANT_ADMIN, whose="own", paged="after")
def list_(caller: Caller, *, after: Cursor | None = None, limit: int = 50) -> Page[SessionView]:
    """The browsers that are logged in, the newest first: with whose key, from where, until when."""
    most = whole_number(limit, "limit", 1, MOST_SESSIONS)
    found = caller.store.browser_sessions(caller.own, before=number_of(after), limit=most)
    items = tuple(SessionView.of(each) for each in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == most else None)


@operation(
    role=TENANT_ADMIN, effect="change", whose="own", repeat="refused", audited="sessions.end",
    errors=(UnknownSession, NotPermitted), route="DELETE /sessions/{session}",
)  # fmt: skip
def end(caller: Caller, session: int) -> SessionView:
    """Log a browser out, by the number of its session: everywhere within 5 seconds. Its key goes on working."""
    number = whole_number(session, "session", 0)
    found = caller.store.browser_session_numbered(number, caller.own)
    if found is None:
        raise UnknownSession(number)
    check_grant(caller, found.key.role, ())
    if not caller.store.end_browser_session(caller.by, number=number):
        raise UnknownSession(number)
    return SessionView.of(found)
