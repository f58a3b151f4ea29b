"""What jobs wait for: events, decisions, children, time; and the events that are sent to them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.waits import OnTimeout, WaitKind, WaitRecord
from unstuck.observe.flow import Approval
from unstuck.store.port import FeedEvent
from unstuck.views import View
from unstuck.views.jobs import loads


class WaitView(View, frozen=True, kw_only=True):
    """What a job waits or waited for. `answer` null: it still does."""

    job: str
    run: int
    kind: str
    key: str
    event: str | None
    question: str | None
    topic: str | None
    who: tuple[str, ...]
    children: tuple[str, ...]
    on_timeout: OnTimeout
    asked_at: datetime
    until_at: datetime
    answer: str | None
    payload: Any
    answered_at: datetime | None
    answered_by: str | None
    comment: str | None

    @classmethod
    def of(cls, record: WaitRecord) -> WaitView:
        asked = record.wait
        return cls(
            job=record.job,
            run=record.run,
            kind=asked.kind.value,
            key=asked.key,
            event=asked.name if asked.kind is WaitKind.EVENT else None,
            question=asked.name if asked.kind is WaitKind.APPROVAL else None,
            topic=asked.topic,
            who=tuple(asked.who),
            children=tuple(asked.children),
            on_timeout=asked.on_timeout,
            asked_at=record.asked_at,
            until_at=record.until_at,
            answer=record.answer.value if record.answer else None,
            payload=loads(record.payload),
            answered_at=record.answered_at,
            answered_by=record.by,
            comment=record.comment,
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
    """An event of the feed. `cursor` is what `after` takes to go on behind it; `attempt` null: before the first."""

    cursor: str
    tenant: str
    job: str
    workflow: str
    queue: str
    kind: str
    number: int
    run: int
    attempt: int | None
    at: datetime
    data: dict[str, Any]

    @classmethod
    def of(cls, event: FeedEvent) -> FeedEventView:
        return cls(
            cursor=event.cursor,
            tenant=event.tenant,
            job=event.job,
            workflow=event.workflow,
            queue=event.queue,
            kind=event.kind,
            number=event.number,
            run=event.event.run,
            attempt=event.event.token or None,
            at=event.at,
            data=event.data,
        )


class SentView(View, frozen=True, kw_only=True):
    """What became of an event: `answered` is the job whose wait it answered, null while it is kept for a wait that
    may come; then `awaited` are the events that the job waits for instead."""

    event: str
    job: str | None
    topic: str | None
    answered: str | None
    number: int
    awaited: tuple[WaitView, ...]
