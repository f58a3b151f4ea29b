"""The order in which locks are taken, by everybody: who needs several takes the earlier ones first.

So no two transactions wait for each other in a circle. The order is about locks that a transaction waits for: who
skips what is locked (SKIP LOCKED), or only tries, may do so at any time. Rows of one kind are locked in one
statement, and sorted. A transaction keeps every lock until its end, and may write again what it holds.

SQLite has one writer, and nobody to lock out.
"""

from __future__ import annotations

from typing import Final

#: Each kind of lock, and the table whose rows it is; None: an advisory lock.
ORDER: Final[dict[str, str | None]] = {
    "limits": "unstuck_limits",  # counted under, by a claim
    "worker": "unstuck_workers",  # the lease holds, or has ended
    "targets": "unstuck_targets",  # whose turn it is
    "running": "unstuck_running",  # an open attempt
    "addresses": None,  # of events: who sends and who parks exclude each other
    "jobs": "unstuck_jobs",  # a job at rest
    "waits": "unstuck_waits",  # who answers first
    "timers": "unstuck_timers",
    "line": "unstuck_line",
    "ready": "unstuck_ready",
    "breakers": "unstuck_breakers",  # marks are made and counted under them
    "entries": "unstuck_blacklist",  # of the blacklist
    "guard": None,  # claims pass it shared, whoever makes an entry shuts it
}
#: Rows that are waited for only by whoever holds the row they belong to: a line's by its target's, a timer by its
#: job's. Who takes them without it skips what is locked, and waits for nothing behind it. With that row in hand they
#: may come at any place: an ingest seats heads first, and wakes jobs afterwards.
UNDER: Final = {"line": "targets", "timers": "jobs"}
RANK: Final = {name: rank for rank, name in enumerate(ORDER)}
