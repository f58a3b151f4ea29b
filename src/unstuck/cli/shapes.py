"""What --json prints: stable keys, UTC instants, states in upper case. Additions are fine, changes are not."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime
from typing import Any

from unstuck.cli.output import rfc3339
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, WorkerRecord, WorkflowRecord
from unstuck.model.lifecycle import JobState, RequestKind


def shown_state(record: JobRecord, now: datetime) -> str:
    """The stored state, said more precisely where that helps; these names are never stored."""
    match record.state:
        case JobState.QUEUED if record.available_at > now:
            return "RETRYING" if record.failures or record.losses else "SCHEDULED"
        case JobState.RUNNING if record.request is RequestKind.CANCEL:
            return "CANCELLING"
        case JobState.FAILED if record.held:
            return "STUCK"
        case stored:
            return stored.value


def job(record: JobRecord, now: datetime) -> dict[str, Any]:
    return {
        "id": record.id,
        "workflow": record.workflow,
        "state": record.state.value,
        "shown_state": shown_state(record, now),
        "tenant": record.tenant,
        "queue": record.queue,
        "target": record.target,
        "priority": record.priority,
        "key": record.key,
        "run": record.run,
        "attempts": record.token,
        "failures": record.failures,
        "losses": record.losses,
        "created_at": rfc3339(record.created_at),
        "available_at": rfc3339(record.available_at),
        "claimed_at": rfc3339(record.claimed_at),
        "started_at": rfc3339(record.started_at),
        "finished_at": rfc3339(record.finished_at),
        "duration_ms": record.duration_ms,
        "worker": record.worker,
        "token": record.token if record.state is JobState.RUNNING else None,
        "heartbeat_at": rfc3339(record.heartbeat_at),
        "lease_until": rfc3339(record.lease_until),
        "request": record.request.value if record.request else None,
        "requested_at": rfc3339(record.requested_at),
        "request_reason": record.request_reason,
        "error_type": record.error_type,
        "error_message": record.error_message,
        "result": loads(record.result),
        "late": record.late,
    }


def job_whole(
    record: JobRecord,
    now: datetime,
    attempts: list[AttemptRecord],
    history: list[EventRecord],
    progress: str | None,
) -> dict[str, Any]:
    """Everything about one job, for `jobs show --json`."""
    payload = loads(record.payload)
    call = payload if isinstance(payload, dict) else {}
    return job(record, now) | {
        "args": call.get("args", []),
        "kwargs": call.get("kwargs", {}),
        "policy": asdict(record.policy),
        "progress": loads(progress),
        "attempt_list": [attempt(a) for a in attempts],
        "history": [event(e) for e in history],
    }


def attempt(record: AttemptRecord) -> dict[str, Any]:
    return asdict(record) | {"claimed_at": rfc3339(record.claimed_at), "ended_at": rfc3339(record.ended_at)}


def event(record: EventRecord) -> dict[str, Any]:
    return asdict(record) | {"at": rfc3339(record.at)}


def workflow(record: WorkflowRecord) -> dict[str, Any]:
    return asdict(record) | {"registered_at": rfc3339(record.registered_at)}


def worker(record: WorkerRecord, state: str) -> dict[str, Any]:
    return {
        "name": record.name,
        "incarnation": record.incarnation,
        "state": state,
        "host": record.host,
        "pid": record.pid,
        "queues": list(record.queues),
        "code_version": record.code_version,
        "running": record.running,
        "started_at": rfc3339(record.started_at),
        "heartbeat_at": rfc3339(record.heartbeat_at),
        "lease_until": rfc3339(record.lease_until),
        "info": record.info,
    }


def loads(text: str | None) -> Any:
    return None if text is None else json.loads(text)
