"""Jobs, as every face shows them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Self

from unstuck.model.job import JobRecord, shown_state
from unstuck.model.lifecycle import JobState, Shown
from unstuck.views import View


class JobView(View, frozen=True, kw_only=True):
    """A job. `shown_state` says the stored state more precisely where that helps. `attempts` is their number;
    `duration_ms` is the last one's, `total_ms` all from the submission to the end."""

    id: str
    workflow: str
    state: JobState
    shown_state: JobState | Shown
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

    @classmethod
    def of(cls, record: JobRecord, now: datetime, **more: Any) -> Self:
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
            result=loads(record.result),
            late=record.late,
            **more,
        )


def loads(text: str | None) -> Any:
    """What cannot be read, because its row was damaged, is shown as it is."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _total_ms(record: JobRecord) -> int | None:
    if record.finished_at is None:
        return None
    return max(0, round((record.finished_at - record.created_at).total_seconds() * 1000))
