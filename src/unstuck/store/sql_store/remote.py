"""The verbs of a server for workers at a distance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unstuck.model.job import AttemptRef, WorkerRecord
from unstuck.model.offers import key_of, remote_incarnation
from unstuck.store.guard import audit, isolation
from unstuck.store.life import offers as offering
from unstuck.store.life import workers
from unstuck.store.port import ControlNews, NewWorker, Verdict
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlRemote(SqlVerbs):
    def register_remote_worker(self, worker: NewWorker) -> WorkerRecord:
        return self._database.write(lambda t: workers.register(t, worker, is_remote=True))

    def standing_of_key(self, incarnation: str, most: int) -> int:
        beginning = remote_incarnation(key_of(incarnation), "")
        facts = {"beginning": beginning, "length": len(beginning), "but": incarnation, "most": most}
        row = self._database.read(lambda t: t.one("standing_of_key", **facts))
        return 0 if row is None else int(row["number"])

    def incarnation_of(self, worker: int) -> str | None:
        row = self._database.read(lambda t: t.one("worker_incarnation", worker=worker))
        return None if row is None else str(row["incarnation"])

    def tell_refused_worker(self, by: str, tenant: str, reason: str, repeated: int) -> None:
        told = {"reason": reason, "repeated": repeated or None}
        self._database.write(
            lambda t: audit.note(t, by, "workers.refuse", by, tenant, told), patience=isolation.IMPATIENCE
        )

    def acknowledge(self, worker: int, claim: str, offers: Sequence[AttemptRef]) -> list[Verdict]:
        return self._database.write(
            lambda t: offering.acknowledge(t, worker, claim, offers), patience=isolation.IMPATIENCE
        )

    def payload_of(self, ref: AttemptRef) -> str | None:
        row = self._database.read(lambda t: t.one("payload_of", job=ref.job, token=ref.token, claim=ref.claim))
        return None if row is None else str(row["payload"])

    def return_offers(self, overdue: float, batch: int = 500, *, worker: int | None = None) -> int:
        found = self._database.read(lambda t: offering.overdue(t, overdue, batch, worker))
        return sum(self._beats.return_unheard(number, refs, offering.UNHEARD) for number, refs in found.items())

    def control_news(self, workers: Sequence[int]) -> Mapping[int, ControlNews]:
        return self._database.read(lambda t: offering.control_news(t, workers))
