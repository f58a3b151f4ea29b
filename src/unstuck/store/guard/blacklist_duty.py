"""The blacklist's duty: what it bars leaves the queue, what it held goes on, and its probes are judged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial

from unstuck.model.errors import StoreError
from unstuck.store.database import Transaction
from unstuck.store.guard import blacklist_sweep, isolation
from unstuck.store.guard.bisection import AWAY
from unstuck.store.guard.blacklist_sweep import BlacklistedJob
from unstuck.store.life.settle_tools import Settling
from unstuck.store.port import Enough, never
from unstuck.store.transactions import Transactions
from unstuck.telemetry import emit

ROUNDS = 50
BATCH = 500


class BlacklistDuty:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database

    def tend(self, batch: int, enough: Enough) -> int:
        """The look first: where nothing is blacklisted, SQLite's write lock is not asked for."""
        use = self._database.read(lambda t: t.one("guard_in_use"))
        assert use is not None
        moved = self._tend_probes() if use["has_entries"] else 0
        moved += self._refuse(batch, enough) if use["has_entries"] else 0
        return moved + (self._release(batch, enough) if use["has_held"] else 0)

    def release_at_once(self, workflow: str) -> None:
        """An entry was lifted. It is gone whatever fails here: any janitor does the rest."""
        try:
            self._release(BATCH, never)
        except StoreError as problem:
            emit("store.blacklist.release_left", workflow=workflow, problem=str(problem)[:200])

    def _refuse(self, batch: int, enough: Enough) -> int:
        return self._rounds(blacklist_sweep.at_the_gate, blacklist_sweep.refuse, batch, enough)

    def _release(self, batch: int, enough: Enough) -> int:
        return self._rounds(blacklist_sweep.freed, blacklist_sweep.release, batch, enough)

    def _tend_probes(self) -> int:
        """A transaction each: one that holds an entry may ask for no lock that comes before it."""
        probes, due = self._database.read(lambda t: (t.all("probes"), blacklist_sweep.due_for_probe(t)))
        moved = sum(self._tend_probe(partial(blacklist_sweep.judge, probe=probe)) for probe in probes)
        send = partial(blacklist_sweep.send, tools=self._transactions.tools)
        return moved + sum(self._tend_probe(partial(send, entry=one)) for one in due)

    def _tend_probe(self, work: Callable[[Transaction], tuple[int, bool]]) -> int:
        """One that cannot be judged now keeps neither the others nor the blacklist from their turn."""
        try:
            return self._transactions.waking(work, isolation.PATIENCE)
        except blacklist_sweep.Lifted:
            return 0  # rolled back; the next sweep sees how things stand then
        except AWAY:
            raise
        except Exception as error:
            emit("store.probe_kept", level=logging.WARNING, problem=isolation.problem_of(error))
            return 0

    def _rounds(
        self,
        look: Callable[..., list[BlacklistedJob]],
        act: Callable[[Transaction, Settling, Sequence[BlacklistedJob]], tuple[list[int], bool]],
        batch: int,
        enough: Enough,
    ) -> int:
        def move(t: Transaction, jobs: Sequence[BlacklistedJob]) -> tuple[list[int], bool]:
            try:
                return act(t, self._transactions.tools, jobs)
            except blacklist_sweep.Lifted:
                raise isolation.Undone from None  # the next sweep sees how things stand then

        sweeping = isolation.Sweep(self._database, "blacklist")
        moved = 0
        for _ in range(ROUNDS):
            found = self._database.read(partial(look, batch=batch, aside=False))
            some = len(sweeping.move(found, move))
            moved += some
            if not some or enough():
                break
        if self._transactions.quarantine_due("blacklist", 1):
            again = self._database.read(partial(look, batch=isolation.RETRIED, aside=True))
            moved += len(sweeping.again(again, move))
        return moved
