"""Control: what a person may ask of a job that exists. The store decides; the answer is the job after it."""

from __future__ import annotations

from collections.abc import Callable

from unstuck.intake.submit import check_priority
from unstuck.model.errors import IllegalMove, OutcomeUnknown, UnknownJob
from unstuck.model.job import DEFAULT_TENANT, JobRecord
from unstuck.model.lifecycle import MOVES, JobState, Move
from unstuck.model.payload import check_wording
from unstuck.store.port import Store


class JobVerbs:
    """The verbs of one tenant's jobs; `by` goes into their history."""

    def __init__(self, store: Store, *, tenant: str = DEFAULT_TENANT, by: str = "app") -> None:
        self._store = store
        self._tenant = tenant
        self._by = by

    def cancel(self, job: str, reason: str | None = None, *, by: str | None = None) -> JobRecord:
        """At rest: CANCELLED now. Running: asked to stop. Ended: IllegalMove, and nothing changes."""
        who, why = self._who(by), check_wording(reason, "reason")
        return self._ask(
            job,
            lambda: self._store.cancel(self._tenant, job, who, why),
            lambda after: after.state is JobState.CANCELLED,
        )

    def interrupt(self, job: str, reason: str | None = None, *, by: str | None = None) -> JobRecord:
        """As cancel, but PAUSED, so that it can be resumed."""
        who, why = self._who(by), check_wording(reason, "reason")
        return self._ask(
            job,
            lambda: self._store.interrupt(self._tenant, job, who, why),
            lambda after: after.state is JobState.PAUSED,
        )

    def resume(self, job: str, *, from_start: bool = False, by: str | None = None) -> JobRecord:
        """A new, clean run at the job's old age."""
        before, who = self._get(job), self._who(by)
        return self._ask(
            job,
            lambda: self._store.resume(self._tenant, job, who, from_start=from_start),
            # By its run: the new one may be claimed by now, or have ended just as the old one did.
            lambda after: after.run > before.run,
        )

    def redrive(
        self, job: str, *, signature: str | None = None, signed_until: int | None = None, by: str | None = None
    ) -> JobRecord:
        """A new run of a job that has a dead letter, under another envelope if one is given."""
        before, who = self._get(job), self._who(by)
        return self._ask(
            job,
            lambda: self._store.redrive(self._tenant, job, who, signature=signature, signed_until=signed_until),
            lambda after: after.run > before.run,
        )

    def resolve(self, job: str, result: str, *, by: str | None = None) -> JobRecord:
        """A person supplies the result (JSON text)."""
        who = self._who(by)
        return self._ask(
            job,
            lambda: self._store.resolve(self._tenant, job, who, result),
            lambda after: after.state is JobState.COMPLETED,
        )

    def retry(self, job: str, *, by: str | None = None) -> JobRecord:
        """Run it again from the start; a job that waits for its time becomes due now."""
        record, who = self._get(job), self._who(by)
        if record.state is JobState.QUEUED:
            return self._store.run_now(self._tenant, job, who)
        if Move.RESUME in MOVES[record.state]:
            return self.resume(job, from_start=True, by=who)
        raise IllegalMove(job, record.state, Move.RETRY, MOVES[record.state])

    def run_now(self, job: str, *, by: str | None = None) -> JobRecord:
        """A job that waits for its time (a delay, `at=`, a retry) is due now; one that is due stays as it is.
        IllegalMove for one that is not QUEUED."""
        before, who = self._get(job), self._who(by)
        return self._ask(
            job,
            lambda: self._store.run_now(self._tenant, job, who),
            lambda after: after.token > before.token or after.available_at < before.available_at,
        )

    def reprioritise(self, job: str, priority: int, *, by: str | None = None) -> JobRecord:
        """Another priority for a job that waits, wherever it does; its age stays. IllegalMove if it runs or has
        ended."""
        who, wanted = self._who(by), check_priority(priority)
        return self._ask(
            job,
            lambda: self._store.reprioritise(self._tenant, job, wanted, who),
            lambda after: after.priority == wanted,
        )

    def release(self, job: str, *, force: bool = False, by: str | None = None) -> JobRecord:
        """Let a held job go on; with `force` it no longer waits for other jobs either."""
        before, who = self._get(job), self._who(by)
        return self._ask(
            job,
            lambda: self._store.release(self._tenant, job, who, force=force),
            lambda after: _is_released(before, after),
        )

    def skip(self, job: str, *, by: str | None = None) -> JobRecord:
        """Let the target of a job that blocks it move on; the job stays as it is."""
        before, who = self._get(job), self._who(by)
        return self._ask(
            job,
            lambda: self._store.skip(self._tenant, job, who),
            lambda after: before.is_blocker and not after.is_blocker,
        )

    def _who(self, by: str | None) -> str:
        return check_wording(by, "by") or self._by

    def _ask(self, job: str, move: Callable[[], JobRecord], is_done: Callable[[JobRecord], bool]) -> JobRecord:
        try:
            return move()
        except OutcomeUnknown:
            return self._ask_again(job, move, is_done)

    def _ask_again(self, job: str, move: Callable[[], JobRecord], is_done: Callable[[JobRecord], bool]) -> JobRecord:
        """The answer was lost. A job that stands where it should go shows that the question had arrived."""
        record = self._get(job)
        if is_done(record):
            return record
        try:
            return move()
        except IllegalMove:
            record = self._get(job)
            if not is_done(record):
                raise
            return record

    def _get(self, job: str) -> JobRecord:
        record = self._store.get(self._tenant, job)
        if record is None:
            raise UnknownJob(job)
        return record


def _is_released(before: JobRecord, after: JobRecord) -> bool:
    """By now it may have run and ended; what others do to a PENDING job leads to the two states named here."""
    if after.state is JobState.PENDING:
        return before.on_hold and not after.on_hold
    return before.state is JobState.PENDING and after.state not in (JobState.CANCELLED, JobState.PAUSED)
