"""Recovery: attempts whose worker is lost, has left, or lets them run far past their limit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from unstuck.store.database import Row, Transaction
from unstuck.store.guard import isolation
from unstuck.store.life import beat, sweep, workers
from unstuck.store.port import Enough, Recovered
from unstuck.store.rows import span
from unstuck.store.transactions import Transactions
from unstuck.telemetry import emit

Rescue = Callable[[Transaction, Sequence[sweep.LostAttempt]], tuple[list[Recovered], bool]]


class Recovery:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._sweep = isolation.Sweep(transactions.database, "recover")

    def recover_lost(self, lost_grace: float, batch: int, enough: Enough) -> list[Recovered]:
        self._database.before_rescue()
        found: list[Recovered] = []
        after = 0
        while len(found) < batch and (lost := self._lost_workers(lost_grace, after)):
            for worker in lost:
                found += self._recover(worker["id"], lost_grace, batch - len(found))
            after = lost[-1]["id"]
            if enough():
                return found
        aside = self._transactions.duties_aside()
        if "recover" in aside:
            found += self._recover_again(lost_grace)
        self._mark_silent(lost_grace, enough)
        if aside:
            self._leave_stale(enough)
        return found

    def leave(self, worker: int) -> None:
        """The lease ends first, in its own transaction: then no job is charged for what is left, whether this worker
        gives it back or a sweep does."""
        self._database.write(lambda t: workers.leave(t, worker))
        after = 0
        while jobs := self._attempts_of(worker, after, 500):
            self._sweep.move(
                [sweep.LostAttempt(worker, job) for job in jobs],
                lambda t, some: beat.leave_behind(t, self._transactions.tools, worker, [one.job for one in some]),
            )
            after = jobs[-1]

    def convict_overdue(self, kill_grace: float, lease: float, batch: int) -> list[Recovered]:
        def look(t: Transaction) -> list[Row]:
            facts = {"margin": span(kill_grace + lease), "batch": batch, "retried": isolation.RETRIED}
            return t.all("overdue_jobs", **facts)

        def act(t: Transaction, some: Sequence[sweep.Queued]) -> tuple[list[Recovered], bool]:
            return sweep.convict_overdue(t, self._transactions.tools, kill_grace, lease, some)

        rows = self._database.read(look)
        sweeping = isolation.Sweep(self._database, "overdue")
        moved = sweeping.move([sweep.Queued(row["job"]) for row in rows if not row["is_aside"]], act)
        return moved + sweeping.again([sweep.Queued(row["job"]) for row in rows if row["is_aside"]], act)

    def _lost_workers(self, lost_grace: float, after: int) -> list[Row]:
        return self._database.read(lambda t: t.all("lost_workers", grace=span(lost_grace), after=after))

    def _attempts_of(self, worker: int, after: int, batch: int) -> list[int]:
        rows = self._database.read(lambda t: t.all("lost_attempts", worker=worker, after=after, batch=batch))
        return [row["job"] for row in rows]

    def _recover(self, worker: int, lost_grace: float, batch: int) -> list[Recovered]:
        """One worker's, some at a time: whatever happens to one of them undoes the rescue of nobody else."""
        found: list[Recovered] = []
        after = 0
        while len(found) < batch and (jobs := self._attempts_of(worker, after, batch - len(found))):
            lost = [sweep.LostAttempt(worker, job) for job in jobs]
            found += self._sweep.move(lost, self._rescue(worker, lost_grace))
            after = jobs[-1]
        return found

    def _rescue(self, worker: int, lost_grace: float) -> Rescue:
        return lambda t, some: sweep.recover_lost(t, self._transactions.tools, lost_grace, worker, some)

    def _recover_again(self, lost_grace: float) -> list[Recovered]:
        rows = self._database.read(lambda t: t.all("aside_attempts", batch=isolation.RETRIED))
        return [
            found
            for row in rows
            for found in self._sweep.again(
                [sweep.LostAttempt(row["worker"], row["job"])], self._rescue(row["worker"], lost_grace)
            )
        ]

    def _mark_silent(self, lost_grace: float, enough: Enough) -> None:
        """After the rescue of their jobs, and many at a time: those that have none keep nobody's rescue waiting."""
        grace, after = span(lost_grace), 0

        def act(silent: Sequence[int], patience: float) -> None:
            self._database.write(lambda t: workers.mark_lost(t, silent, grace), patience=patience)

        def look(t: Transaction) -> list[Row]:
            return t.all("silent_workers", grace=grace, after=after, batch=isolation.AT_ONCE)

        while rows := self._database.read(look):
            for worker, error in isolation.in_parts([row["id"] for row in rows], act).items():
                emit("store.not_marked", level=logging.WARNING, worker=worker, problem=isolation.problem_of(error))
            after = rows[-1]["id"]
            if enough():
                break

    def _leave_stale(self, enough: Enough) -> None:
        """What is set aside for something that nobody has to do any more leaves the quarantine."""
        left = 0

        def act(stale: Sequence[tuple[str, int]], patience: float) -> None:
            def work(t: Transaction) -> int:
                by_duty = {duty: [item for of, item in stale if of == duty] for duty, _ in stale}
                return sum(len(t.all("take_quarantined", duty=duty, items=items)) for duty, items in by_duty.items())

            nonlocal left
            left += self._database.write(work, patience=patience)

        while rows := self._database.read(lambda t: t.all("stale_quarantine", batch=isolation.AT_ONCE)):
            left = 0
            for (duty, item), error in isolation.in_parts([(r["duty"], r["item"]) for r in rows], act).items():
                problem = isolation.problem_of(error)
                emit("store.not_left", level=logging.WARNING, duty=duty, item=item, problem=problem)
            if left < isolation.AT_ONCE or enough():
                break
