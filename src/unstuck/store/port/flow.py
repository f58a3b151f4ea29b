"""The flow's port: events, approvals, and what a job has recorded."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from unstuck.model.keys import Within
from unstuck.model.news import Publication
from unstuck.model.parts import MOST_PARTS, Part
from unstuck.model.waits import Answer, Child, Signalled, Spent, StepRecord, WaitRecord
from unstuck.records import dataclass


@dataclass(frozen=True, slots=True)
class Published:
    """What became of a publication. `is_repeat`: it was told before under this key."""

    number: int
    expires_at: datetime | None
    is_repeat: bool = False


class FlowPort(Protocol):
    """What jobs wait for, and what they leave between their attempts."""

    def signal(
        self,
        tenant: str,
        event: str,
        payload: str,
        by: str,
        *,
        job: str | None = None,
        topic: str | None = None,
        id: str | None = None,
    ) -> Signalled:
        """Send an event to a job or a topic: it answers one wait, or is kept for one until its time has passed.
        UnknownJob; NotWaiting for a job that has ended. The same `id` again, to the same job or topic and for as long
        as events are kept, is the same event and counts once; EventConflict for another event under it."""
        ...

    def publish(self, tenant: str, given: Publication, by: str, key: str, *, job: str | None = None) -> Published:
        """Tell it in the feed, about this job if one is named (UnknownJob). The same key again tells nothing."""
        ...

    def decide(
        self, tenant: str, job: str, answer: Answer, by: str, comment: str | None = None, *, key: str | None = None
    ) -> WaitRecord:
        """APPROVED or REJECTED: the open approval of this job (`key`: this one). NotWaiting when there is none."""
        ...

    def open_waits(
        self,
        tenant: str | None = None,
        *,
        kind: str = "approval",
        after: str = "",
        limit: int = 100,
        within: Within | None = None,
    ) -> list[WaitRecord]:
        """Of jobs that are `within`, the oldest first; `after` is the `cursor` of the last one of the page before."""
        ...

    def waits_of(self, tenant: str, job: str) -> list[WaitRecord]:
        """All that a job ever waited for, the oldest first."""
        ...

    def steps_of(self, tenant: str, job: str) -> list[StepRecord]:
        """In the order they were finished."""
        ...

    def waits_page(self, tenant: str, job: str, skip: int = 0) -> list[WaitRecord]:
        """The same waits behind the first `skip`, some at a time, bounded in rows and bytes; none: those were all."""
        ...

    def steps_page(self, tenant: str, job: str, skip: int = 0) -> list[StepRecord]:
        """The same of steps."""
        ...

    def parts_of(self, tenant: str, job: str, after: int = 0, limit: int = MOST_PARTS) -> list[Part]:
        """Its partial results above this number, the lowest number first."""
        ...

    def usage_of(self, tenant: str, job: str) -> Spent:
        """Of its present run."""
        ...

    def children_of(self, tenant: str, job: str) -> list[Child]: ...

    def parent_of(self, tenant: str, job: str) -> str | None: ...
