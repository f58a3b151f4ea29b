"""Sessions: those of ours on the server's side whose answers nobody reads. A file has none."""

from __future__ import annotations

import logging

from unstuck.store.database import Database
from unstuck.store.port import ServerSession
from unstuck.store.rows import instant, microseconds, span
from unstuck.telemetry import emit


def unread(database: Database, unread_for: float) -> list[ServerSession]:
    rows = database.read(lambda t: t.all("unread_sessions", unread_for=span(unread_for)))
    return [ServerSession(row["pid"], instant(row["asked_at"]), row["application"]) for row in rows]


def end(database: Database, session: ServerSession) -> bool:
    """Whether it was still the one that was seen, and was told to end."""
    facts = {"pid": session.pid, "asked_at": microseconds(session.asked_at)}
    row = database.read(lambda t: t.one("end_unread_session", **facts))
    ended = row is not None and bool(row["ended"])
    if ended:
        emit(
            "store.session_ended",
            level=logging.WARNING,
            pid=session.pid,
            application=session.application,
            asked_at=session.asked_at.isoformat(),
            reason="nobody read its answer",
        )
    return ended
