"""Sweep of the flow: waits whose time has passed, and children whose parent was cancelled or failed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from unstuck.model.errors import IllegalMove, UnknownJob
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import Move
from unstuck.store.database import Row, Transaction
from unstuck.store.flow import children, waking
from unstuck.store.guard import isolation, quarantine
from unstuck.store.guard.bisection import AWAY, MOST_FAILURES
from unstuck.store.life.control import Again, Control
from unstuck.store.port import Enough
from unstuck.store.transactions import BY_JANITOR, LOOKS, Transactions

EXPIRE_ROUNDS = 50
TEND_ROUNDS = 3


class FlowSweep:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._isolation = isolation.Isolation(transactions.database)

    def expire_waits(self, batch: int, enough: Enough) -> int:
        """Batch after batch, up to a bound, as stays in the queue; each round goes on behind the last: what somebody
        holds keeps its timer, and nobody else waiting."""
        moved, after = 0, (0, 0)
        for _ in range(EXPIRE_ROUNDS):
            due = self._database.read(partial(waking.due, after=after, batch=batch))
            moved += self._expire([(row["due_at"], row["job"]) for row in due if not row["is_orphan"]])
            if any(row["is_orphan"] for row in due):
                self._database.write(lambda t: t.run("drop_orphan_timers", kind="wait"))
            if len(due) < batch or enough():
                break
            after = due[-1]["due_at"], due[-1]["job"]
        return moved

    def _expire(self, timers: Sequence[tuple[int, int]]) -> int:
        moved, errors = self._isolation.each(timers, lambda t, some: waking.expire(t, self._transactions.tools, some))
        self._transactions.set_aside("wait", {job: error for (_, job), error in errors.items()}, BY_JANITOR)
        return moved

    def tend_children(self, batch: int, enough: Enough) -> int:
        """Each in a transaction of its own: it needs the locks of its own target and attempt. One that keeps moving,
        or that another transaction holds, is left for the next time, and keeps nobody waiting."""
        moved, after = 0, (0, 0)
        for _ in range(TEND_ROUNDS):
            rows = self._database.read(partial(children.left_ones, after=after, batch=batch))
            for row in rows:
                moved += self._tend_or_set_aside(row)
                if enough():
                    return self._transactions.hinting(moved)
            if len(rows) < batch or moved >= batch:
                break
            after = rows[-1]["left_at"], rows[-1]["child"]
        return self._transactions.hinting(moved)

    def tend_again(self, batch: int) -> int:
        """Children that were set aside."""
        moved = 0
        for child in self._transactions.quarantine_due("children", batch)[:MOST_FAILURES]:
            row = self._database.read(partial(_left_child, child=child))
            self._transactions.leave_quarantine("children", child)  # it comes back if it fails again
            moved += self._tend_or_set_aside(row) if row else 0
        return self._transactions.hinting(moved)

    def _tend_or_set_aside(self, row: Row) -> bool:
        try:
            return self._tend_child(row)
        except AWAY:
            raise
        except Exception as problem:
            self._transactions.set_aside("children", {row["child"]: quarantine.reason(problem)}, BY_JANITOR)
            return False

    def _tend_child(self, row: Row) -> bool:
        def work(t: Transaction) -> bool | Again:
            """Its mark goes with the cancel, or because it has ended by itself."""
            if not children.hold(t, row):
                return False
            try:
                stopped: JobRecord | Again | None = verb.stop(t, Move.CANCEL, children.reason(row))
            except (IllegalMove, UnknownJob):
                stopped = None
            if isinstance(stopped, Again):
                return stopped
            t.run("tended", child=row["child"])
            return stopped is not None

        by = f"parent {row['parent_uid'] or ''}".strip()
        verb = Control(self._transactions.name_ids, row["tenant"], row["uid"], by)
        for _ in range(LOOKS):
            moved = self._database.write(work, patience=isolation.IMPATIENCE)
            if not isinstance(moved, Again):
                return moved
        return False


def _left_child(t: Transaction, child: int) -> Row | None:
    return t.one("left_child", child=child)
