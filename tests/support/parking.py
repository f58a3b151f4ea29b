"""Jobs that wait, have finished steps or have children, made by a worker's own verbs on the real store."""

from __future__ import annotations

from typing import Any

from tests.support.builders import a_job, a_worker, claimed, settle
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import Outcome, Parked
from unstuck.model.waits import Child, Wait, WaitKind
from unstuck.store.port import NewChild, NewStep, Store, Verdict


class Stage:
    """One worker whose attempts do what a handler would."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.worker: WorkerRecord = a_worker(store, lease=600.0)

    def begun(self, **options: Any) -> ClaimedJob:
        return claimed(self.store, self.worker, **options)

    def park(self, attempt: ClaimedJob, wait: Wait) -> str:
        settled = settle(self.store, self.worker, attempt.ref, Parked(wait))
        assert settled.state is JobState.WAITING
        return attempt.id

    def asks(self, question: str = "Deploy?", key: str = "approval#1", *, of: Any = None, **how: Any) -> str:
        """A job that waits for a decision; `of`: options of the job."""
        return self.park(self.begun(**(of or {})), Wait(WaitKind.APPROVAL, key, question, **how))

    def awaits(self, event: str, *, topic: str | None = None, of: Any = None, **how: Any) -> str:
        return self.park(
            self.begun(**(of or {})), Wait(WaitKind.EVENT, f"event:{event}#1", event, topic=topic, **how)
        )

    def end(self, attempt: ClaimedJob, outcome: Outcome | None = None) -> str:
        settle(self.store, self.worker, attempt.ref, outcome)
        return attempt.id

    def step(self, attempt: ClaimedJob, name: str, result: str = "null", ordinal: int = 1) -> None:
        assert self.store.record_steps([NewStep(attempt.ref, name, ordinal, result, 12)]) == [Verdict.DONE]

    def part(self, attempt: ClaimedJob, name: str, value: str, serial: int) -> None:
        assert self.store.keep_part(attempt.ref, serial, name, value) is Verdict.DONE

    def spawn(self, attempt: ClaimedJob, workflow: str, ordinal: int = 1) -> Child:
        child = self.store.spawn(NewChild(attempt.ref, workflow, ordinal, a_job(workflow=workflow)))
        assert child is not None
        return child
