"""Line: the jobs that want to run on a target, and the one step from there to ready.

The order in which locks are taken is in `store/lock_order.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from unstuck.store.database import Transaction
from unstuck.store.rows import packed

#: When a stay in the queue would have ended (None: it has no end), and the job that stayed.
Stay = tuple[int | None, int]


def lock(t: Transaction, targets: Iterable[int | None]) -> list[int]:
    """In one statement and sorted: two that need the same targets never wait for each other in a circle."""
    wanted = sorted({target for target in targets if target is not None})
    if wanted:
        t.all("lock_targets", targets=wanted)
    return wanted


def lock_free(t: Transaction, targets: Iterable[int | None]) -> tuple[list[int], list[int]]:
    """Those that were free, locked now, and those that are locked: a caller that serves every job waits for none."""
    wanted = sorted({target for target in targets if target is not None})
    locked = [row["id"] for row in t.all("lock_free_targets", targets=wanted)] if wanted else []
    if len(locked) == len(wanted):
        return locked, []
    missing = sorted(set(wanted).difference(locked))
    return locked, [row["id"] for row in t.all("known_targets", targets=missing)]


def lock_of_jobs(t: Transaction, jobs: Sequence[int]) -> list[int]:
    """The targets on which these jobs run, but for those that another transaction holds. A running row never changes
    its target."""
    if t.one_table_per_statement or not jobs:
        return []  # one writer: there is nobody to lock out
    return [row["id"] for row in t.all("lock_targets_of_jobs", jobs=sorted(jobs))]


def promote(t: Transaction, targets: Iterable[int]) -> int:
    """Give each of these targets, locked by an earlier statement, its head if it has none; how many became ready."""
    wanted = sorted(set(targets))
    if not wanted:
        return 0
    heads = t.all("promote", targets=wanted)
    if t.one_table_per_statement and heads:
        rows = packed([dict(row) for row in heads])
        t.run("leave_line", rows=rows)
        t.run("seat_heads", rows=rows)
        t.run("add_ready", jobs=[row["job"] for row in heads])
    return len(heads)


def end_stays(t: Transaction, stays: Iterable[Stay]) -> None:
    """Jobs that left the queue: the timers of their stays there go too."""
    if rows := stays_of(stays):
        t.all("end_stays", rows=rows)


def stays_of(stays: Iterable[Stay]) -> str | None:
    """As the statement wants them; None when none of the jobs had a time to leave the queue by."""
    timers = [{"due_at": due_at, "job": job} for due_at, job in stays if due_at is not None]
    return packed(timers) if timers else None
