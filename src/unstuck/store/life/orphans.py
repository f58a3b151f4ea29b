"""Orphans: jobs in the queue that no code will ever run, found and failed with a sentence that names the worker that
knew them last."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.model.errors import ErrorType
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children
from unstuck.store.guard import isolation
from unstuck.store.life.changes import Changes
from unstuck.store.life.settle_tools import Settling
from unstuck.store.life.sweep import Queued, fail_in_queue, lock_of_queued, take_from_queue
from unstuck.store.rows import instant, span
from unstuck.store.transactions import Transactions

#: A worker's word is good for as long: the duty that refreshes it runs every minute.
_NOTE_EVERY = 30.0


def note_known(t: Transaction) -> int:
    return t.run("note_known", every=span(_NOTE_EVERY))


def fail(transactions: Transactions, route: int, orphan_after: float, batch: int) -> int:
    """Those of this route, and those of it that were set aside."""

    def look(t: Transaction) -> tuple[list[Row], list[Row]]:
        found = t.all("orphans_waiting", route=route, age=span(orphan_after), batch=batch)
        return found, t.all("aside_orphans", route=route, batch=isolation.RETRIED)

    def act(t: Transaction, some: Sequence[Queued]) -> tuple[list[int], bool]:
        return fail_orphans(t, transactions.tools, route, orphan_after, some)

    found, aside = transactions.database.read(look)
    sweeping = isolation.Sweep(transactions.database, "orphan")
    failed = sweeping.move([Queued(row["job"]) for row in found], act)
    return len(failed) + len(sweeping.again([Queued(row["job"]) for row in aside], act))


def fail_orphans(
    t: Transaction, tools: Settling, route: int, orphan_after: float, orphans: Sequence[Queued]
) -> tuple[list[int], bool]:
    """Which failed, and whether a target's next job became ready. Asked again here, in the transaction that acts: a
    worker that knows the workflow may have come since."""
    found = t.one("orphaned", route=route, age=span(orphan_after))
    if found is None:
        return [], False
    jobs = [orphan.job for orphan in orphans]
    rows = t.all("orphan_jobs", jobs=jobs, age=span(orphan_after), targets=lock_of_queued(t, jobs))
    taken = take_from_queue(t, rows)
    changes = Changes()
    error = {"error_type": ErrorType.UNKNOWN_WORKFLOW, "error_message": _message(found, orphan_after)}
    for row in rows:
        if row["job"] in taken:
            fail_in_queue(changes, t, tools, row, error)
    woke = changes.write(t)
    children.left(t, changes.ends)
    return [end["job"] for end in changes.ends], woke


def _message(found: Row, orphan_after: float) -> str:
    workflow = found["workflow"]
    if found["at"] is None:
        return f"no worker has ever known workflow {workflow}, and the job has waited for {orphan_after:g} seconds"
    last = instant(found["at"]).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"no worker has known workflow {workflow} for {orphan_after:g} seconds; "
        f"code version {found['code_version']} knew it last, at {last}"
    )
