"""Renews this worker's lease, on a thread and a connection of its own.

An answer that was lost counts as not renewed. Each beat also reconciles: what the database grants and is not held
here goes back, what is held here and no longer granted is stopped. What of that could not be done (another session
holds a row) comes with the next beat, and costs no lease.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from unstuck.clock import Clock
from unstuck.model.job import AttemptRef
from unstuck.model.times import Times
from unstuck.store.port import Beat, WorkerPort
from unstuck.telemetry import emit
from unstuck.worker.ledger import BeatReport, Ledger


class Heartbeat:
    def __init__(
        self,
        store: WorkerPort,
        worker: int,
        ledger: Ledger,
        times: Times,
        clock: Clock,
        *,
        describe: Callable[[], tuple[str, Mapping[str, Any]]],
        renewed: Callable[[float, Beat], None],
        fenced: Callable[[], None],
    ) -> None:
        self._store = store
        self._worker = worker
        self._ledger = ledger
        self._times = times
        self._clock = clock
        self._describe = describe
        self._renewed = renewed
        self._fenced = fenced

    def tick(self) -> float:
        before = self._clock.boot()
        state, info = self._describe()
        renewed = self._store.renew(self._worker, self._times.lease, state=state, info=info)
        if not renewed.alive:
            self._fenced()
            return self._times.beat
        # Only now: the renewal waits for whoever holds our row, and claims are not to wait for it.
        with self._ledger.still() as snapshot:
            reported = self._starts(snapshot, before)
            beat = self._store.reconcile(
                self._worker,
                renewed,
                snapshot.held,
                pending_claims=snapshot.pending_claims,
                settling=snapshot.settling,
                started={ref.job: at for ref, at in reported.items()},
            )
        self._ledger.starts_known(ref for ref in reported if ref.job not in beat.unstarted)
        for stray in beat.unheld:
            emit("unheld_given_back", job=stray.job, claim=stray.claim)
        emit("beat", level=logging.DEBUG, held=len(snapshot.held), lease=self._times.lease)
        self._renewed(before, beat)
        return max(0.0, before + self._times.beat - self._clock.boot())

    def _starts(self, snapshot: BeatReport, now: float) -> dict[AttemptRef, datetime]:
        """When handlers began, on the database's clock; only of those older than a beat: most end before."""
        ages = {ref: now - at for ref, at in snapshot.unreported if now - at >= self._times.beat}
        if not ages:
            return {}
        store_now = self._store.now()
        return {ref: store_now - timedelta(seconds=age) for ref, age in ages.items()}
