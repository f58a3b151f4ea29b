"""Locks: who holds what others need, read from PostgreSQL's own books without locking anything.

SQLite has one lock, on the file, and cannot say who has it: there a write that waits in vain is all that can be seen.
"""

from __future__ import annotations

from unstuck.model.target import FIRST
from unstuck.model.why.facts import HELD_TOO_LONG, OURS_TOO_LONG, Lock, Locker
from unstuck.store.database import Row, Transaction
from unstuck.store.port import LockHolder
from unstuck.store.rows import instant_or_none, span


def locks_on(t: Transaction, job: int) -> tuple[Lock, ...]:
    """What others have held for too long of all that this job needs."""
    rows = t.all("locks_on", job=job, first=FIRST, longer=span(HELD_TOO_LONG), ours=span(OURS_TOO_LONG))
    return tuple(
        Lock(
            what=row["what"],
            by=_locker(row, row["since_at"]),
            name=row["name"],
            table=row["place"],
            mode=row["mode"] or "",
        )
        for row in rows
    )


def holders(t: Transaction, longer: float) -> list[LockHolder]:
    return [
        LockHolder(
            _locker(row),
            tuple(row["held"]),
            row["waiting"],
            None if row["held_for"] is None else row["held_for"] / 1_000_000,
        )
        for row in t.all("lock_holders", longer=span(longer), ours=span(max(longer, OURS_TOO_LONG)))
    ]


def _locker(row: Row, since: int | None = None) -> Locker:
    doing = ", ".join(word for word in (row["state"], row["wait_event"]) if word and word != "ClientRead")
    return Locker(row["pid"], row["application_name"] or "", row["usename"] or "", doing, instant_or_none(since))
