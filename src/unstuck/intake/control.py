"""Control: what a person may ask of a job that exists. The store decides; the answer is the job after it."""

from __future__ import annotations

from collections.abc import Callable

from unstuck.model.errors import IllegalMove, OutcomeUnknown, UnknownJob
from unstuck.model.job import DEFAULT_TENANT, JobRecord
from unstuck.model.lifecycle import MOVES, JobState, Move
from unstuck.store.port import Store


class Control:
    """The verbs of one tenant's jobs; `by` goes into their history."""

    def __init__(self, store: Store, *, tenant: str = DEFAULT_TENANT, by: str = "app") -> None:
        self._store = store
        self._tenant = tenant
        self._by = by

    def cancel(self, job: str, reason: str | None = None, *, by: str | None = None) -> JobRecord:
        """At rest: CANCELLED now. Running: asked to stop. Ended: IllegalMove, and nothing changes."""
        return self._ask(
            job, JobState.CANCELLED, lambda: self._store.cancel(self._tenant, job, by or self._by, reason)
        )

    def interrupt(self, job: str, reason: str | None = None, *, by: str | None = None) -> JobRecord:
        """As cancel, but PAUSED, so that it can be resumed."""
        return self._ask(
            job, JobState.PAUSED, lambda: self._store.interrupt(self._tenant, job, by or self._by, reason)
        )

    def resume(self, job: str, *, from_start: bool = False, by: str | None = None) -> JobRecord:
        """A new, clean run at the job's old age."""
        return self._ask(
            job,
            JobState.QUEUED,
            lambda: self._store.resume(self._tenant, job, by or self._by, from_start=from_start),
        )

    def resolve(self, job: str, result: str, *, by: str | None = None) -> JobRecord:
        """A person supplies the result (JSON text)."""
        return self._ask(
            job, JobState.COMPLETED, lambda: self._store.resolve(self._tenant, job, by or self._by, result)
        )

    def retry(self, job: str, *, by: str | None = None) -> JobRecord:
        """Run it again from the start; a job that waits for its time becomes due now."""
        record = self._get(job)
        if record.state is JobState.QUEUED:
            return self._store.hurry(self._tenant, job, by or self._by)
        if Move.RESUME in MOVES[record.state]:
            return self.resume(job, from_start=True, by=by)
        raise IllegalMove(job, record.state, Move.RETRY, MOVES[record.state])

    def _ask(self, job: str, wanted: JobState, move: Callable[[], JobRecord]) -> JobRecord:
        try:
            return move()
        except OutcomeUnknown:
            return self._ask_again(job, wanted, move)

    def _ask_again(self, job: str, wanted: JobState, move: Callable[[], JobRecord]) -> JobRecord:
        """The answer was lost. If the repeat finds the job where it should go, the first one had been carried out."""
        try:
            return move()
        except IllegalMove:
            record = self._get(job)
            if record.state is not wanted:
                raise
            return record

    def _get(self, job: str) -> JobRecord:
        record = self._store.get(self._tenant, job)
        if record is None:
            raise UnknownJob(job)
        return record
