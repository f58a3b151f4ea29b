"""Quarantine: single things that could not be written although the store answered, set aside so that they delay
nothing but themselves.

A batch that fails is halved down to the single item, and that item comes here. Batches leave out what is here, and
each sweep tries some of it again, one by one. An item leaves as soon as it was written, or when there is nothing
left to do.
"""

from __future__ import annotations

from collections.abc import Mapping

from unstuck.model.errors import StoreBusy
from unstuck.model.payload import clean_text
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import audit
from unstuck.store.port import Quarantined, QuarantineDuty
from unstuck.store.rows import instant, packed

LINK = "/platform/diagnostics?tab=quarantine"
_MAX_ERROR = 2000


def reason(error: BaseException) -> str:
    """What it said, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'it said nothing'}"


def put(t: Transaction, duty: QuarantineDuty, errors: Mapping[int, str], by: str, *, is_news: bool = True) -> None:
    rows = [{"item": item, "error": clean_text(error, _MAX_ERROR)} for item, error in sorted(errors.items())]
    put_now = t.all("quarantine", duty=duty, rows=packed(rows), by=clean_text(by, 200))
    for row in put_now:
        if is_news and row["is_new"]:
            _notify(t, duty, row["item"])


def _notify(t: Transaction, duty: QuarantineDuty, item: int) -> None:
    """One open notification per duty and workflow: a thousand bad rows are one piece of news."""
    found = t.all("quarantined", after_duty=duty, after_item=item - 1, tenant=None, job=None, most=1)
    if not found:
        return
    row = found[0]
    what = f"target {row['target']}" if duty == "target" else f"job {row['uid']}"
    # A lock may be that of a whole table, for which everybody waits.
    is_lock = row["error"].startswith(f"{StoreBusy.__name__}:")
    rest = "See who holds what it needs: unstuck health" if is_lock else "Nothing else waits for it"
    message = (
        f"{what} could not be written ({duty}): {row['error']}. {rest}; "
        "it is tried again with every sweep: unstuck quarantine"
    )
    place = {"tenant": row["tenant"] or "", "workflow": row["workflow"] or ""}
    audit.notify(t, f"Set aside: {duty}", message, LINK, "error", **place)


def page(
    t: Transaction, tenant: str | None, job: str | None, after: tuple[str, int], limit: int
) -> list[Quarantined]:
    duty, item = after
    rows = t.all("quarantined", tenant=tenant, job=job, after_duty=duty, after_item=item, most=limit)
    return [_quarantined_of(row) for row in rows]


def _quarantined_of(row: Row) -> Quarantined:
    return Quarantined(
        duty=row["duty"],
        item=row["item"],
        tenant=row["tenant"] or "",
        since_at=instant(row["since_at"]),
        tried_at=instant(row["tried_at"]),
        tries=row["tries"],
        error=row["error"],
        by=row["by"],
        job=row["uid"],
        workflow=row["workflow"],
        target=row["target"],
    )
