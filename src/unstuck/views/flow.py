"""What jobs keep between their attempts: steps, waits, usage, partial results, children; and the events that are sent
to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.lifecycle import JobState
from unstuck.model.parts import Part
from unstuck.model.redaction import NOTHING, Redaction, Redactions
from unstuck.model.waits import Answer, Child, OnTimeout, Spent, StepRecord, TreeSpent, WaitKind, WaitRecord
from unstuck.observe.flow import Approval, Branch
from unstuck.store.port import FeedEvent
from unstuck.views import View, shown


class StepView(View, frozen=True, kw_only=True):
    """A step that a job has finished. Every later attempt gets `result` for it; `attempt` made it."""

    name: str
    ordinal: int
    result: Any
    run: int
    attempt: int
    at: datetime
    duration_ms: int

    @classmethod
    def of(cls, record: StepRecord, hide: Redaction = NOTHING) -> StepView:
        return cls(
            name=record.name,
            ordinal=record.ordinal,
            result=shown(record.name, record.result, hide),
            run=record.run,
            attempt=record.token,
            at=record.at,
            duration_ms=record.duration_ms,
        )


class PartialView(View, frozen=True, kw_only=True):
    """A part of a job's result, given before its end. `number` grows with each; `attempt` gave it."""

    name: str
    value: Any
    number: int
    run: int
    attempt: int
    at: datetime

    @classmethod
    def of(cls, part: Part, hide: Redaction = NOTHING) -> PartialView:
        return cls(
            name=part.name,
            value=shown(part.name, part.value, hide),
            number=part.number,
            run=part.run,
            attempt=part.token,
            at=part.at,
        )


class WaitView(View, frozen=True, kw_only=True):
    """What a job waits or waited for. `answer` None: it still does. `key` names it among the waits of its job."""

    job: str
    run: int
    kind: WaitKind
    key: str
    event: str | None
    question: str | None
    topic: str | None
    who: tuple[str, ...]
    children: tuple[str, ...]
    on_timeout: OnTimeout
    asked_at: datetime
    until_at: datetime
    answer: Answer | None
    payload: Any
    answered_at: datetime | None
    answered_by: str | None
    comment: str | None

    @classmethod
    def of(cls, record: WaitRecord, hide: Redaction = NOTHING) -> WaitView:
        asked = record.wait
        return cls(
            job=record.job,
            run=record.run,
            kind=asked.kind,
            key=asked.key,
            event=asked.name if asked.kind is WaitKind.EVENT else None,
            question=asked.name if asked.kind is WaitKind.APPROVAL else None,
            topic=asked.topic,
            who=tuple(asked.who),
            children=tuple(asked.children),
            on_timeout=asked.on_timeout,
            asked_at=record.asked_at,
            until_at=record.until_at,
            answer=record.answer,
            payload=shown(asked.name, record.payload, hide),
            answered_at=record.answered_at,
            answered_by=record.by,
            comment=record.comment,
        )


class TreeUsageView(View, frozen=True, kw_only=True):
    """What `job` and all jobs below it have used in its present run, and may use together."""

    job: str
    used: dict[str, float]
    budget: dict[str, float]

    @classmethod
    def of(cls, record: TreeSpent) -> TreeUsageView:
        return cls(job=record.job, used=dict(record.used), budget=dict(record.budget))


class UsageView(View, frozen=True, kw_only=True):
    """What a job has used of each unit in its present run, and may use; `exceeded`: the message once it is too
    much. `trees`: those whose budget it is charged to, its own first if it has one."""

    used: dict[str, float]
    budget: dict[str, float]
    exceeded: str | None
    trees: tuple[TreeUsageView, ...]

    @classmethod
    def of(cls, record: Spent) -> UsageView:
        return cls(
            used=dict(record.used),
            budget=dict(record.budget),
            exceeded=record.exceeded,
            trees=tuple(map(TreeUsageView.of, record.trees)),
        )


class ChildView(View, frozen=True, kw_only=True):
    """A job that another one spawned, under this name and ordinal."""

    id: str
    name: str
    ordinal: int
    run: int
    workflow: str
    state: JobState

    @classmethod
    def of(cls, record: Child) -> ChildView:
        return cls(
            id=record.id,
            name=record.name,
            ordinal=record.ordinal,
            run=record.run,
            workflow=record.workflow,
            state=JobState(record.state),
        )


class BranchView(View, frozen=True, kw_only=True):
    """A job and those that it spawned. `name` and `ordinal`: what its parent calls it. `left_out`: children for which
    there was no room."""

    id: str
    workflow: str
    state: JobState
    name: str | None
    ordinal: int | None
    error_type: str | None
    error_message: str | None
    left_out: int
    children: tuple[BranchView, ...]

    @classmethod
    def of(cls, branch: Branch) -> BranchView:
        return cls(
            id=branch.id,
            workflow=branch.workflow,
            state=branch.state,
            name=branch.name,
            ordinal=branch.ordinal,
            error_type=branch.error_type,
            error_message=branch.error_message,
            left_out=branch.left_out,
            children=tuple(cls.of(below) for below in branch.children),
        )


class ApprovalView(View, frozen=True, kw_only=True):
    """A question that somebody must decide. `key` names it among the questions of its job."""

    job: str
    workflow: str
    tenant: str
    key: str
    question: str
    who: tuple[str, ...]
    asked_at: datetime
    until_at: datetime
    on_timeout: OnTimeout
    cursor: str

    @classmethod
    def of(cls, record: Approval) -> ApprovalView:
        return cls(
            job=record.job,
            workflow=record.workflow,
            tenant=record.tenant,
            key=record.key,
            question=record.question,
            who=record.who,
            asked_at=record.asked_at,
            until_at=record.until_at,
            on_timeout=record.on_timeout,
            cursor=record.cursor,
        )


class FeedEventView(View, frozen=True, kw_only=True):
    """An event of the feed: a job's move, or news. `cursor` is what `after` takes to go on behind it.

    A move has a `number`, its place in the history of its `job`; news have none. Null means that it is not about one:
    `tenant` null: it is the platform's ("*": every tenant's); `attempt` null: before the first, or from none. `job`
    of news: the one that published it, asks, or blocks the target. `target`: that of the job, or that the news are
    about. `worker`: of news about a worker, its name. `topic`: what a publisher named; `by`: who published it, a
    worker for its handlers; null: unstuck tells it itself."""

    cursor: str
    tenant: str | None
    job: str | None
    workflow: str | None
    queue: str | None
    target: str | None
    topic: str | None
    worker: str | None
    by: str | None
    kind: str
    number: int | None
    run: int | None
    attempt: int | None
    at: datetime
    data: dict[str, Any]

    @classmethod
    def of(cls, event: FeedEvent, hidden: Redactions | None = None) -> FeedEventView:
        """`hidden`: what its reader may not see of what jobs publish, by their workflows."""
        return cls(
            cursor=event.cursor,
            tenant=event.tenant,
            job=event.job,
            workflow=event.workflow,
            queue=event.queue,
            target=event.target,
            topic=event.topic,
            worker=event.worker,
            by=event.by,
            kind=event.kind,
            number=event.number,
            run=event.run,
            attempt=event.token or None,
            at=event.at,
            data=_data(event, hidden),
        )


def _data(event: FeedEvent, hidden: Redactions | None) -> dict[str, Any]:
    if not hidden or event.by is None or event.workflow is None:
        return event.data
    shown: Any = hidden.of(event.tenant)[event.workflow].named(event.kind, event.data)
    return shown if isinstance(shown, dict) else {event.kind: shown}


class PublishedView(View, frozen=True, kw_only=True):
    """What became of a publication: it is in the feed until `expires_at`, or (null) as long as the feed keeps it."""

    kind: str
    tenant: str
    topic: str | None
    job: str | None
    expires_at: datetime | None
    #: It was published under this id before, and counts once.
    repeated: bool


class SentView(View, frozen=True, kw_only=True):
    """What became of an event: `answered` is the job whose wait it answered, null while it is kept for a wait that
    may come; then `awaited` are the events that the job waits for instead."""

    event: str
    job: str | None
    topic: str | None
    answered: str | None
    number: int
    awaited: tuple[WaitView, ...]
    #: It was sent under this id before, and counts once.
    repeated: bool
