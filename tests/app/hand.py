"""A worker's part of the road done by hand: claim what is due and settle it, through the real store."""

from __future__ import annotations

from unstuck.chance import SystemChance
from unstuck.model.job import ClaimedJob
from unstuck.model.settlement import Outcome
from unstuck.store.port import NewWorker, Report, Share, Store


class Hand:
    def __init__(self, store: Store, name: str = "hand") -> None:
        self._store = store
        self._chance = SystemChance()
        self.record = store.register_worker(
            NewWorker(
                incarnation=self._chance.nonce(),
                name=name,
                host="here",
                boot_id="boot",
                pid_namespace="ns",
                pid=1,
                pid_start=1,
                queues=("default",),
                code_version="1",
                lease=60.0,
            )
        )

    def claim(self, limit: int = 100) -> list[ClaimedJob]:
        self._store.release_due()
        shares = [Share(front.route, limit, is_limited=front.is_limited) for front in self._store.open_routes()]
        return self._store.claim(self.record.number, self._chance.nonce(), shares)

    def settle(self, job: ClaimedJob, outcome: Outcome, output: str | None = None) -> None:
        self._store.settle(self.record.number, [Report(job.ref, outcome, duration_ms=5, output=output)])

    def run_one(self, outcome: Outcome, output: str | None = None) -> ClaimedJob:
        [job] = self.claim(1)
        self.settle(job, outcome, output)
        return job
