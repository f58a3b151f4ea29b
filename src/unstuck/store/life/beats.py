"""Beats: a beat in its parts, each by itself: the lease, the starts, and what the worker does not hold."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from unstuck.model.job import AttemptRef
from unstuck.store.guard import isolation
from unstuck.store.life import beat
from unstuck.store.life.beat import BeatFacts
from unstuck.store.port import Beat
from unstuck.store.transactions import Transactions
from unstuck.telemetry import emit


class Beats:
    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._database = transactions.database

    def renew(self, worker: int, lease: float, state: str, info: Mapping[str, Any] | None) -> Beat:
        renewed = beat.renew(self._database, worker, lease, state, info)
        if not renewed.alive:
            # a worker that lost its lease begins anew; before that it must be able to write that it left
            self._transactions.probe()
        return renewed

    def reconcile(self, worker: int, renewed: Beat, holding: BeatFacts) -> Beat:
        try:
            return self._reconcile(renewed, worker, holding)
        except Exception as error:
            emit("store.beat.unreconciled", level=logging.WARNING, worker=worker, problem=isolation.problem_of(error))
            return replace(renewed, unstarted=frozenset(holding.started))

    def give_back(self, worker: int, refs: Sequence[AttemptRef], reason: str) -> None:
        """What a claim opened and could not bring."""
        emit("store.claim.left_out", attempts=len(refs))
        try:
            self._transactions.waking(lambda t: beat.give_back(t, self._transactions.tools, worker, refs, reason))
        except Exception as problem:
            # The claim stands, and what it brought must reach its worker. The next beat gives the rest back: it is
            # nowhere in what the worker says it holds.
            emit("store.claim.give_back_failed", attempts=len(refs), problem=str(problem)[:200])

    def return_unheard(self, worker: int, refs: Sequence[AttemptRef], reason: str) -> int:
        """Offers that nobody acknowledged: how many went back. What somebody holds comes with the next sweep."""
        back = self._transactions.waking(lambda t: beat.give_back(t, self._transactions.tools, worker, refs, reason))
        return len(back)

    def _reconcile(self, renewed: Beat, worker: int, holding: BeatFacts) -> Beat:
        """Each part by itself: none of them must cost another, as none may cost the lease."""
        if holding.started:
            self._write_starts(worker, holding.started)
        granted = self._database.read(lambda t: beat.look(t, worker))
        found = beat.compare(renewed, granted, holding)
        if not (unheld := beat.unheld(granted, holding, renewed.renewed_at)):
            return found
        given: list[AttemptRef] = []

        def act(refs: Sequence[AttemptRef], patience: float) -> None:
            given.extend(
                self._transactions.waking(
                    lambda t: beat.give_back(t, self._transactions.tools, worker, refs), patience
                )
            )

        for ref, error in isolation.in_parts(unheld, act).items():
            problem = isolation.problem_of(error)
            emit("store.beat.unheld_kept", level=logging.WARNING, job=ref.job, problem=problem)
        return replace(
            found, unheld=tuple(given), asked=tuple(asked for asked in found.asked if asked.ref not in given)
        )

    def _write_starts(self, worker: int, started: Mapping[int, datetime]) -> None:
        """Those that fail are found missing by the look that follows."""

        def act(jobs: Sequence[int], patience: float) -> None:
            some = {job: started[job] for job in jobs}
            self._database.write(lambda t: beat.write_starts(t, worker, some), patience=patience)

        for job, error in isolation.in_parts(sorted(started), act).items():
            emit("store.beat.start_kept", level=logging.WARNING, job=job, problem=isolation.problem_of(error))
