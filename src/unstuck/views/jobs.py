"""Jobs, as every face shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, shown_state
from unstuck.model.lifecycle import JobState, Shown
from unstuck.model.logs import LogRecord, split
from unstuck.model.policy import Policy
from unstuck.model.redaction import NOTHING, REDACTED, Redaction
from unstuck.model.signing import Envelope
from unstuck.model.trace import TraceContext
from unstuck.model.why.facts import AwaitedJob
from unstuck.observe.logs import LogPiece
from unstuck.views import Page, View, loads, shown
from unstuck.views.flow import ChildView, StepView, UsageView, WaitView
from unstuck.views.meaning import explain

#: A JobState or a Shown. Told as text: nothing that reads JSON by its types can tell two enums of texts apart.
ShownState = Annotated[str, Meta(extra_json_schema={"enum": [*map(str, JobState), *map(str, Shown)]})]


class JobView(View, frozen=True, kw_only=True):
    """A job. `shown_state` says the stored state more precisely where that helps, `meaning` what it means for this
    job and what can be done. `attempts` and `events` are their numbers; `duration_ms` is the last attempt's,
    `total_ms` all from the submission to the end. `made_by`: what of the engine made it (parent, replay, schedule …);
    None: a caller submitted it. `trace`: the id of the trace that it was submitted in."""

    id: str
    workflow: str
    state: JobState
    shown_state: ShownState
    tenant: str
    queue: str
    target: str | None
    priority: int
    key: str | None
    tags: tuple[str, ...]
    limit_key: str | None
    on_hold: bool
    is_blocker: bool
    is_blocked: bool
    replay_of: str | None
    made_by: str | None
    trace: str | None
    run: int
    attempts: int
    failures: int
    losses: int
    created_at: datetime
    available_at: datetime
    claimed_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None
    total_ms: int | None
    worker: str | None
    heartbeat_at: datetime | None
    lease_until: datetime | None
    request: str | None
    requested_at: datetime | None
    request_reason: str | None
    error_type: str | None
    error_message: str | None
    result: Any
    late: bool
    events: int
    meaning: str

    @classmethod
    def of(
        cls, record: JobRecord, now: datetime, hide: Redaction = NOTHING, *, meaning: str | None = None, **more: Any
    ) -> Self:
        return cls(
            id=record.id,
            workflow=record.workflow,
            state=record.state,
            shown_state=shown_state(record, now),
            tenant=record.tenant,
            queue=record.queue,
            target=record.target,
            priority=record.priority,
            key=record.key,
            tags=tuple(record.tags),
            limit_key=record.limit_key,
            on_hold=record.on_hold,
            is_blocker=record.is_blocker,
            is_blocked=record.is_blocked,
            replay_of=record.replay_of,
            made_by=record.made_by,
            trace=_trace_id(record.trace),
            run=record.run,
            attempts=record.token,
            failures=record.failures,
            losses=record.losses,
            created_at=record.created_at,
            available_at=record.available_at,
            claimed_at=record.claimed_at,
            started_at=record.started_at,
            finished_at=record.finished_at,
            duration_ms=record.duration_ms,
            total_ms=_total_ms(record),
            worker=record.worker,
            heartbeat_at=record.heartbeat_at,
            lease_until=record.lease_until,
            request=record.request.value if record.request else None,
            requested_at=record.requested_at,
            request_reason=record.request_reason,
            error_type=record.error_type,
            error_message=record.error_message,
            result=shown("result", record.result, hide),
            late=record.late,
            events=record.events,
            meaning=meaning or explain(record, now),
            **more,
        )


def _trace_id(text: str | None) -> str | None:
    known = TraceContext.read(text)
    return None if known is None else known.trace_id


def _total_ms(record: JobRecord) -> int | None:
    if record.finished_at is None:
        return None
    return max(0, round((record.finished_at - record.created_at).total_seconds() * 1000))


class NewJobView(JobView, frozen=True, kw_only=True):
    """A job that was asked for. `created` False: its key led to one that was there already."""

    created: bool


class AwaitedView(View, frozen=True, kw_only=True):
    """A job that must end before another one may run; `state` None: it is forgotten."""

    job: str
    state: JobState | None

    @classmethod
    def of(cls, found: AwaitedJob) -> AwaitedView:
        return cls(job=found.job, state=found.state)


class AttemptView(View, frozen=True, kw_only=True):
    """One claim of a job and how it ended; `attempt` counts them from 1. `output` is what it printed and logged."""

    attempt: int
    run: int
    worker: str
    claimed_at: datetime
    code_version: str | None
    ended_at: datetime | None
    outcome: str | None
    error_type: str | None
    error_message: str | None
    duration_ms: int | None
    stack: str | None
    output: str | None

    @classmethod
    def of(cls, record: AttemptRecord, hide: Redaction = NOTHING) -> AttemptView:
        return cls(
            attempt=record.token,
            run=record.run,
            worker=record.worker,
            claimed_at=record.claimed_at,
            code_version=record.code_version,
            ended_at=record.ended_at,
            outcome=record.outcome,
            error_type=record.error_type,
            error_message=record.error_message,
            duration_ms=record.duration_ms,
            stack=record.stack,
            output=_said(record, hide),
        )


def _said(record: AttemptRecord, hide: Redaction) -> str | None:
    """What it printed and logged, without the fields that are hidden."""
    if not hide or record.framed is None:
        return record.output
    return "".join(each if isinstance(each, str) else logged(each, hide).text for each in split(record.framed))


def logged(record: LogRecord, hide: Redaction) -> LogRecord:
    return replace(record, fields=hide.value(record.fields)) if hide else record


class EventView(View, frozen=True, kw_only=True):
    """A line of a job's history, numbered from 1 without gaps; `attempt` None: before the first."""

    job: str
    number: int
    kind: str
    run: int
    attempt: int | None
    at: datetime
    data: dict[str, Any]

    @classmethod
    def of(cls, record: EventRecord, **more: Any) -> Self:
        return cls(
            job=record.job,
            number=record.number,
            kind=record.kind,
            run=record.run,
            attempt=record.token or None,
            at=record.at,
            data=record.data,
            **more,
        )


class EventWhole(EventView, frozen=True, kw_only=True):
    """With the attempt that it ended, if it did."""

    ended: AttemptView | None


class JobList(Page[JobView], frozen=True, kw_only=True):
    """A page of jobs. `looked`: at how many of them a search by argument looked; 0 of any other list."""

    looked: int = 0


class JobWhole(JobView, frozen=True, kw_only=True):
    """Everything about one job. `partials` is their number."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    policy: Policy
    progress: Any
    waits_for: tuple[AwaitedView, ...]
    attempt_list: tuple[AttemptView, ...]
    history: tuple[EventView, ...]
    steps: tuple[StepView, ...]
    waits: tuple[WaitView, ...]
    usage: UsageView
    children: tuple[ChildView, ...]
    parent: str | None
    partials: int
    #: Why it has a dead letter: the reason as `dead_letters` says it.
    dead_letter: str | None
    #: The job that blocks its target.
    blocked_by: str | None
    #: The id of the signing key that it is signed by; "?" if its signature cannot be read, None if there is none.
    signed_by: str | None


def signer_of(record: JobRecord) -> str | None:
    if record.signature is None:
        return None
    envelope = Envelope.of(record.signature)
    return "?" if envelope is None else envelope.key


def call_of(record: JobRecord, hide: Redaction) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Its arguments, positional and named. What cannot be read, because its row was damaged, is shown as it is,
    unless something of it is hidden."""
    payload = loads(record.payload)
    call = payload if isinstance(payload, dict) else {}
    args, kwargs = call.get("args", []), call.get("kwargs", {})
    if call is not payload or not isinstance(args, list) or not isinstance(kwargs, dict):
        return [REDACTED if hide else payload], {}
    return hide.call(args, kwargs)


class LogView(View, frozen=True, kw_only=True):
    """One record, or a stretch of printed text, which has neither time nor level. `text` is what a person reads."""

    attempt: int
    worker: str
    text: str
    at: datetime | None
    level: str | None
    logger: str | None
    message: str | None
    fields: dict[str, Any] | None

    @classmethod
    def of(cls, piece: LogPiece, hide: Redaction = NOTHING) -> LogView:
        record = None if piece.record is None else logged(piece.record, hide)
        return cls(
            attempt=piece.attempt,
            worker=piece.worker,
            text=record.text if record else piece.text,
            at=record.at if record else None,
            level=record.level if record else None,
            logger=record.logger if record else None,
            message=record.message if record else None,
            fields=record.fields if record else None,
        )


class StackView(View, frozen=True, kw_only=True):
    """Where a job is in its code, or was: "live" as its worker showed it just now, "stored" as an attempt left it.
    `since_at`: when that attempt began, of a live one."""

    job: str
    workflow: str
    state: JobState
    shown_state: ShownState
    source: Literal["live", "stored"]
    at: datetime
    attempt: int
    worker: str
    pid: int | None
    error_type: str | None
    error_message: str | None
    duration_ms: int | None
    stack: str
    since_at: datetime | None
    request: str | None
    requested_at: datetime | None

    def __str__(self) -> str:
        return self.stack
