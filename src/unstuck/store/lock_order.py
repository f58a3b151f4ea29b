"""The order in which every transaction takes its locks: one that needs several takes the earlier ones first.

So no two transactions wait for each other in a circle. The order is about locks that a transaction waits for: a
statement that skips what is locked (SKIP LOCKED), or only tries, may stand anywhere. Rows of one kind are locked in
one statement, and sorted. A transaction keeps every lock until its end, and may write again what it holds.

SQLite has one writer, and nobody to lock out.
"""

from __future__ import annotations

from typing import Final

#: Each kind of lock, and the table whose rows it is; None: an advisory lock.
ORDER: Final[dict[str, str | None]] = {
    "webhooks": "unstuck_webhooks",  # who sends there, how far the feed was copied, which delivery is due
    "deliveries": "unstuck_deliveries",
    "declared": "unstuck_declared",  # which version of an app decides
    "schedules": "unstuck_schedules",  # who fires one, and by which version
    "hooks": "unstuck_hooks",  # one change after the other
    "bulks": "unstuck_bulks",  # who carries one on, and whether it goes on
    "limits": "unstuck_limits",  # counted under, by a claim
    "worker": "unstuck_workers",  # the lease holds, or has ended
    "targets": "unstuck_targets",  # whose turn it is
    "running": "unstuck_running",  # an open attempt
    "usage": "unstuck_usage",  # what a tree has used: its jobs spend at once
    "addresses": None,  # of events: a send and a park exclude each other
    "jobs": "unstuck_jobs",  # a job at rest
    "waits": "unstuck_waits",  # the first answer counts
    "timers": "unstuck_timers",
    "dead_letters": "unstuck_dead_letters",  # one verb takes it away with its run
    "line": "unstuck_line",
    "ready": "unstuck_ready",
    "breakers": "unstuck_breakers",  # marks are made and counted under them
    "entries": "unstuck_blacklist",  # of the blacklist
    "guard": None,  # claims pass it shared, a new entry shuts it
    "api_keys": "unstuck_api_keys",  # not revoked while it is rotated
    "browser_sessions": "unstuck_browser_sessions",  # they end with their key
}
#: Rows that belong to another row: a line's to its target, timers and dead letters to their job. A transaction waits
#: for such a row only while it holds the row it belongs to, so two transactions never wait for the same one, and no
#: circle leads through it: it may be taken at any place (an ingest seats heads in ready and takes from a line again
#: when it wakes jobs; a cancel drops a wait's timer before the wait). A transaction without that row skips what is
#: locked, and waits for nothing afterwards; timers of jobs that are gone belong to no row, and are the last lock that
#: a sweep takes.
UNDER: Final = {"line": "targets", "timers": "jobs", "dead_letters": "jobs", "deliveries": "webhooks"}
RANK: Final = {name: rank for rank, name in enumerate(ORDER)}
