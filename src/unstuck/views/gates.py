"""What shuts and what limits: pauses, limits, and the queues, tenants, targets and workflows they are about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self

from unstuck.model.guard import BreakerStand, Harm
from unstuck.model.job import WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy
from unstuck.model.redaction import Redactions
from unstuck.store.port import TARGET_CEILING, Limit, LimitKind, Pause, PauseKind, TargetRecord
from unstuck.views import View
from unstuck.views.jobs import JobView


class PauseView(View, frozen=True, kw_only=True):
    """Nothing new starts there until `until_at`, or until somebody lifts it. `tenant` "*": for every tenant."""

    kind: PauseKind
    name: str
    tenant: str
    by: str
    since_at: datetime | None
    until_at: datetime | None
    reason: str | None
    #: `until_at` is an instant of the database's clock; else it follows our time, which does not leap.
    is_appointed: bool

    @classmethod
    def of(cls, record: Pause) -> PauseView:
        return cls(
            kind=record.kind,
            name=record.name,
            tenant=record.tenant,
            by=record.by,
            since_at=record.since_at,
            until_at=record.until_at,
            reason=record.reason,
            is_appointed=record.is_appointed,
        )


class UnpauseView(View, frozen=True, kw_only=True):
    """`lifted` False: there was no such pause. `left` are those that shut the same thing all the same."""

    kind: PauseKind
    name: str
    lifted: bool
    left: tuple[PauseView, ...]


class LimitView(View, frozen=True, kw_only=True):
    """How many may run at once (`concurrency`), start in a time (`rate` per `per` seconds), wait (`max_queued`)."""

    kind: LimitKind
    name: str
    tenant: str
    concurrency: int | None
    rate: int | None
    per: float | None
    max_queued: int | None
    set_at: datetime | None
    set_by: str

    @classmethod
    def of(cls, record: Limit) -> LimitView:
        return cls(
            kind=record.kind,
            name=record.name,
            tenant=record.tenant,
            concurrency=record.concurrency,
            rate=record.rate,
            per=record.per,
            max_queued=record.max_queued,
            set_at=record.set_at,
            set_by=record.by,
        )


class LimitChange(View, frozen=True, kw_only=True):
    """What holds after a change: None if no limit does. `before`: what held until then."""

    kind: LimitKind
    name: str
    limit: LimitView | None
    before: LimitView | None


class QueueView(View, frozen=True, kw_only=True):
    """A queue of one tenant. Counts of states in `at_least` were not brought to their end. `oldest_due_at`: when the
    job fell due that has waited longest, of those next on their routes."""

    name: str
    waiting: int
    scheduled: int
    running: int
    at_least: tuple[str, ...]
    oldest_due_at: datetime | None
    workers: tuple[str, ...]
    pauses: tuple[PauseView, ...]
    limits: tuple[LimitView, ...]


class TargetView(View, frozen=True, kw_only=True):
    """A target as it stands. `state` is what matters most: FREE, PAUSED, HELD, BLOCKED, or the state of its head.
    `waiting_at_least`: the count was not brought to its end."""

    name: str
    tenant: str
    state: str
    head: str | None
    head_state: JobState | None
    blocked_by: str | None
    blocked_at: datetime | None
    waiting: int
    waiting_at_least: bool
    held: bool
    pause: PauseView | None

    @classmethod
    def of(cls, record: TargetRecord, **more: Any) -> Self:
        return cls(
            name=record.name,
            tenant=record.tenant,
            state=_state_of(record),
            head=record.head,
            head_state=record.head_state,
            blocked_by=record.blocked_by,
            blocked_at=record.blocked_at,
            waiting=record.waiting,
            waiting_at_least=record.waiting >= TARGET_CEILING,
            held=record.held,
            pause=PauseView.of(record.pause) if record.pause else None,
            **more,
        )


class TargetWhole(TargetView, frozen=True, kw_only=True):
    """With the job whose turn it is, and the first of those that wait for theirs."""

    turn: JobView | None
    line: tuple[JobView, ...]


def _state_of(target: TargetRecord) -> str:
    if target.blocked_by is not None:
        return "BLOCKED"
    if target.held:
        return "HELD"
    if target.pause is not None and target.head_state is not JobState.RUNNING:
        return "PAUSED"
    return target.head_state.value if target.head_state else "FREE"


class TenantView(View, frozen=True, kw_only=True):
    """A tenant, its share, and its jobs by state; counts of states in `at_least` were not brought to their end."""

    name: str
    weight: int
    states: dict[JobState, int]
    at_least: tuple[JobState, ...]
    scheduled: int
    blocked: int
    pauses: tuple[PauseView, ...]
    limits: tuple[LimitView, ...]


class TenantWhole(TenantView, frozen=True, kw_only=True):
    """With every pause and limit that touches it, and the targets that a job of it blocks."""

    blocked_targets: tuple[str, ...]


class WeightView(View, frozen=True, kw_only=True):
    name: str
    weight: int


class WorkflowView(View, frozen=True, kw_only=True):
    """A workflow as its workers registered it, with what shuts and limits it."""

    name: str
    code_version: str
    queue: str
    policy: Policy
    schema: dict[str, Any]
    target: str | None
    limit_key: str | None
    concurrency: int | None
    rate: str | None
    key_concurrency: int | None
    key_rate: str | None
    registered_at: datetime | None
    doc: str | None
    max_timeout: float | None
    pauses: tuple[PauseView, ...]
    limits: tuple[LimitView, ...]
    #: What only admins see of its jobs' data, as any of its versions says it.
    redact: tuple[str, ...]
    #: Whose jobs go by this: "*" all tenants', else those of the tenant whose own worker registered it.
    tenant: str

    @classmethod
    def of(
        cls,
        record: WorkflowRecord,
        pauses: Iterable[PauseView],
        limits: Iterable[LimitView],
        hidden: Redactions,
        **more: Any,
    ) -> Self:
        return cls(
            name=record.name,
            code_version=record.code_version,
            queue=record.queue,
            policy=record.policy,
            schema=record.schema,
            target=record.target,
            limit_key=record.limit_key,
            concurrency=record.concurrency,
            rate=record.rate,
            key_concurrency=record.key_concurrency,
            key_rate=record.key_rate,
            registered_at=record.registered_at,
            doc=record.doc,
            max_timeout=record.max_timeout,
            pauses=tuple(p for p in pauses if p.name == record.name),
            limits=tuple(x for x in limits if x.name == record.name),
            redact=tuple(sorted(hidden[record.name].names)),
            tenant=record.tenant,
            **more,
        )


class MarkView(View, frozen=True, kw_only=True):
    """An execution that got stuck (or froze, crashed, was lost), until it is out of the window."""

    at: datetime
    until_at: datetime
    harm: Harm
    job: str | None


class BreakerView(View, frozen=True, kw_only=True):
    """So many marks of the last `window` seconds count (`number`), and `threshold` of them shut the workflow out for
    its tenant; 0: never. `marks`: the newest."""

    number: int
    threshold: int
    window: float
    marks: tuple[MarkView, ...]

    @classmethod
    def of(cls, stand: BreakerStand) -> BreakerView:
        marks = tuple(
            MarkView(at=mark.at, until_at=mark.until_at, harm=mark.harm, job=mark.job) for mark in stand.marks
        )
        return cls(number=stand.number, threshold=stand.rules.threshold, window=stand.rules.window, marks=marks)


class WorkflowWhole(WorkflowView, frozen=True, kw_only=True):
    """With its breaker, of the tenant that is asked about."""

    breaker: BreakerView
