"""Inbox: what others only announced, because they must wait for nobody: lines that grew, jobs that ended."""

from __future__ import annotations

from unstuck.store import pending, targets
from unstuck.store.database import Transaction
from unstuck.store.port import Ingested
from unstuck.store.settle import Settling


def ingest(t: Transaction, tools: Settling, after: int, batch: int) -> tuple[Ingested, bool]:
    """Targets first: their locks come before those of running attempts and jobs, which dependants need."""
    entries = t.all("take_inbox", after=after, batch=batch)
    if not entries:
        return Ingested(0, 0, after), False
    woken = targets.ingest(t, [entry["target"] for entry in entries])
    news = sorted({entry["job"] for entry in entries if entry["job"] is not None})
    moved, woke = pending.settle_news(t, tools, news) if news else (0, False)
    last = max(entry["seq"] for entry in entries)
    return Ingested(len(entries), woken + moved, last), woken > 0 or woke
