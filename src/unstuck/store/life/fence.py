"""Fence: which attempts are still their worker's, locked for as long as a transaction writes about them.

Nobody waits here. An attempt that another transaction holds at this moment (a person in psql, a backup, one of our
own) is neither ours nor gone: it is busy, and the caller comes again.
"""

from __future__ import annotations

from collections.abc import Iterable

from unstuck.model.job import AttemptRef
from unstuck.store.database import Transaction
from unstuck.store.port import Verdict
from unstuck.store.rows import packed, ref_of


def verdicts(t: Transaction, refs: Iterable[AttemptRef]) -> dict[AttemptRef, Verdict]:
    """DONE: open, and locked until the commit: write."""
    wanted = set(refs)
    locked = {ref_of(row) for row in t.all("open_attempts_of", rows=_rows(wanted))}
    busy = held_by_others(t, wanted - locked)
    told = {ref: Verdict.BUSY if ref in busy else Verdict.FENCED for ref in wanted - locked}
    return told | dict.fromkeys(locked, Verdict.DONE)


def held_by_others(t: Transaction, refs: Iterable[AttemptRef], worker: int | None = None) -> set[AttemptRef]:
    """Of attempts that could not be locked: those that are open all the same. SQLite skips nothing."""
    wanted = set(refs)
    if t.one_table_per_statement or not wanted:
        return set()
    seen = t.all("attempts_seen", rows=_rows(wanted))
    return {ref_of(row) for row in seen if worker is None or row["worker"] == worker}


def _rows(refs: set[AttemptRef]) -> str:
    """Sorted by job, as every settle locks them."""
    ordered = sorted(refs, key=lambda ref: ref.job)
    return packed([{"job": ref.job, "token": ref.token, "claim": ref.claim} for ref in ordered])
