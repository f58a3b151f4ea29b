"""Dead letters on a stage: jobs that stand as if a worker had refused their signature."""

from __future__ import annotations

from typing import Any

from tests.support.builders import TENANT, a_worker, all_routes, boom, chance, settle, submitted
from tests.support.troubles import execute
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.signing import SignatureProblem
from unstuck.store.guard import dead_letters
from unstuck.store.port import NewLetter, Share
from unstuck.store.sql_store import SqlStore


class Graveyard:
    """Of one database. `worker`: who claims."""

    def __init__(self, store: SqlStore, url: str) -> None:
        self.store = store
        self._url = url
        self._worker: WorkerRecord | None = None
        self._staged = 0

    @property
    def worker(self) -> WorkerRecord:
        self._worker = self._worker or a_worker(self.store, lease=1e6)
        return self._worker

    def bury(
        self,
        problem: SignatureProblem = SignatureProblem.ALTERED,
        *,
        signature: str | None = None,
        workflow: str = "greet",
        **options: Any,
    ) -> str:
        """A job that was claimed and never run, with its letter. The end of its attempt is written as that of a
        failure, and then made what it would be."""
        attempt = self._claimed(workflow=workflow, retries=0, on_failure="continue", **options)
        settle(self.store, self.worker, attempt.ref, boom(problem.sentence, "SignatureRefused"))
        number = attempt.ref.job
        execute(
            self._url,
            f"UPDATE unstuck_done SET state = 'DEAD' WHERE job = {number};"
            f"UPDATE unstuck_events SET kind = 'buried' WHERE job = {number} AND kind = 'failed';",
        )
        self.add(number, attempt.run, attempt.tenant, attempt.queue, workflow, problem, signature)
        return attempt.id

    def add(
        self,
        job: int,
        run: int,
        tenant: str,
        queue: str,
        workflow: str,
        problem: SignatureProblem,
        signature: str | None,
    ) -> None:
        letter = NewLetter(job, run, tenant, queue, workflow, problem, problem.sentence, signature)
        self.store._database.write(lambda t: dead_letters.add(t, [letter]))

    def exhaust(self, message: str = "boom", *, workflow: str = "greet", **options: Any) -> str:
        """A job that ran out of tries, of a workflow that wants letters of those."""
        asked = {"retries": 0, "dead_letter": "exhausted", "on_failure": "continue", **options}
        attempt = self._claimed(workflow=workflow, **asked)
        settle(self.store, self.worker, attempt.ref, boom(message))
        return attempt.id

    def signature(self, job: int) -> str | None:
        """As it is stored with the job of this number."""
        rows = self.store._database.read(lambda t: t.all("addresses_of_letters", jobs=[job], longest=1 << 16))
        found: str | bytes | None = rows[0]["signature"]
        return found.decode() if isinstance(found, bytes) else found

    def _claimed(self, **options: Any) -> ClaimedJob:
        """Before all that wait in its queue, by its priority."""
        self._staged += 1
        job = submitted(self.store, **{"priority": self._staged, **options})
        named = (options.get("tenant", TENANT), job.queue, job.workflow)
        (route,) = [each for each in all_routes(self.store) if (each.tenant, each.queue, each.workflow) == named]
        (attempt,) = self.store.claim(self.worker.number, chance.nonce(), [Share(route.number, 1)])
        assert attempt.id == job.id
        return attempt
