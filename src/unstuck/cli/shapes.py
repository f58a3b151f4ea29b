"""What --json prints: stable keys, UTC instants, states in upper case. Additions are fine, changes are not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from unstuck.cli import anatomy
from unstuck.cli.output import rfc3339
from unstuck.model.guard import Action, Entry, Notification, SettingRecord
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, WorkerRecord, WorkflowRecord
from unstuck.model.job import shown_state as shown_state
from unstuck.model.lifecycle import JobState
from unstuck.model.standing import Dependency
from unstuck.model.waits import Child, Spent, StepRecord, WaitRecord
from unstuck.observe.flow import Approval, Branch
from unstuck.store.port import Limit, Order, Pause, TargetRecord


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
        "tags": list(record.tags),
        "limit_key": record.limit_key,
        "on_hold": record.on_hold,
        "is_blocker": record.is_blocker,
        "is_blocked": record.is_blocked,
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
    waits_for: Sequence[Dependency] = (),
) -> dict[str, Any]:
    """Everything about one job, for `jobs show --json`."""
    payload = loads(record.payload)
    call = payload if isinstance(payload, dict) else {}
    return job(record, now) | {
        "args": call.get("args", []),
        "kwargs": call.get("kwargs", {}),
        "policy": asdict(record.policy),
        "progress": loads(progress),
        "replay_of": record.replay_of,
        "waits_for": [{"job": d.job, "state": d.state.value if d.state else None} for d in waits_for],
        "attempt_list": [attempt(a) for a in attempts],
        "history": [event(e) for e in history],
    }


def attempt(record: AttemptRecord) -> dict[str, Any]:
    return asdict(record) | {"claimed_at": rfc3339(record.claimed_at), "ended_at": rfc3339(record.ended_at)}


def event(record: EventRecord) -> dict[str, Any]:
    return asdict(record) | {"at": rfc3339(record.at)}


def workflow(record: WorkflowRecord) -> dict[str, Any]:
    return asdict(record) | {"registered_at": rfc3339(record.registered_at)}


def pause(record: Pause) -> dict[str, Any]:
    return asdict(record) | {"since_at": rfc3339(record.since_at), "until_at": rfc3339(record.until_at)}


def limit(record: Limit) -> dict[str, Any]:
    return asdict(record) | {"set_at": rfc3339(record.set_at)}


def target(record: TargetRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "tenant": record.tenant,
        "head": record.head,
        "head_state": record.head_state.value if record.head_state else None,
        "blocked_by": record.blocked_by,
        "blocked_at": rfc3339(record.blocked_at),
        "waiting": record.waiting,
        "held": record.held,
        "pause": pause(record.pause) if record.pause else None,
    }


def worker(record: WorkerRecord, state: str, now: datetime) -> dict[str, Any]:
    """`processes` and `recycled` are ours to keep stable; `info` is what it said of itself, as it said it."""
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
        "ready": anatomy.is_ready(record, state),
        "processes": [process(each) for each in anatomy.processes(record, now)],
        "recycled": [recycled(each) for each in anatomy.recycled(record)],
        "info": record.info,
    }


def process(found: anatomy.Process) -> dict[str, Any]:
    return {
        "pid": found.pid,
        "state": found.state,
        "generation": found.generation,
        "alone": found.is_alone,
        "memory": found.memory,
        "jobs_done": found.jobs_done,
        "running": found.running,
        "reason": found.reason,
        "silent_ms": round(found.silent_for * 1000),
        "jobs": [body(each) for each in found.bodies],
    }


def body(found: anatomy.Body) -> dict[str, Any]:
    """A job in a process; the times are those of this moment, not of the last beat."""
    left = found.grace_left
    return {
        "job": found.job,
        "workflow": found.workflow,
        "elapsed_ms": round(found.seconds * 1000),
        "on": found.on,
        "asked": found.asked,
        "grace_left_ms": None if left is None else round(left * 1000),
        "stuck": found.is_stuck,
    }


def recycled(found: anatomy.Recycled) -> dict[str, Any]:
    return {
        "pid": found.pid,
        "generation": found.generation,
        "jobs_done": found.jobs_done,
        "reason": found.reason,
        "at": rfc3339(found.at),
    }


def order(record: Order, worker: str) -> dict[str, Any]:
    return {
        "order": record.number,
        "kind": record.kind,
        "worker": worker,
        "subject": record.subject,
        "by": record.by,
        "given_at": rfc3339(record.given_at),
        "done_at": rfc3339(record.done_at),
        "refused": record.is_refused,
        "answer": record.answer,
    }


def entry(record: Entry) -> dict[str, Any]:
    return {
        "number": record.number,
        "workflow": record.workflow,
        "tenant": record.tenant,
        "active": record.is_active,
        "reason": record.reason,
        "stuck_count": record.stuck_count,
        "blacklisted_at": rfc3339(record.blacklisted_at),
        "blacklisted_by": record.blacklisted_by,
        "renewed_at": rfc3339(record.renewed_at),
        "removed_at": rfc3339(record.removed_at),
        "removed_by": record.removed_by,
    }


def setting(record: SettingRecord) -> dict[str, Any]:
    return asdict(record) | {"set_at": rfc3339(record.set_at)}


def notification(record: Notification) -> dict[str, Any]:
    return asdict(record) | {"at": rfc3339(record.at), "acked_at": rfc3339(record.acked_at)}


def action(record: Action) -> dict[str, Any]:
    return asdict(record) | {"at": rfc3339(record.at)}


def step(record: StepRecord) -> dict[str, Any]:
    return {
        "name": record.name,
        "ordinal": record.ordinal,
        "result": loads(record.result),
        "run": record.run,
        "attempt": record.token,
        "at": rfc3339(record.at),
        "duration_ms": record.duration_ms,
    }


def wait(record: WaitRecord) -> dict[str, Any]:
    asked = record.wait
    return {
        "job": record.job,
        "run": record.run,
        "kind": asked.kind.value,
        "key": asked.key,
        "name": asked.name or None,
        "topic": asked.topic,
        "who": list(asked.who),
        "children": list(asked.children),
        "on_timeout": asked.on_timeout,
        "asked_at": rfc3339(record.asked_at),
        "until_at": rfc3339(record.until_at),
        "answer": record.answer.value if record.answer else None,
        "payload": loads(record.payload),
        "answered_at": rfc3339(record.answered_at),
        "by": record.by,
        "comment": record.comment,
    }


def approval(record: Approval) -> dict[str, Any]:
    return asdict(record) | {"asked_at": rfc3339(record.asked_at), "until_at": rfc3339(record.until_at)}


def usage(record: Spent) -> dict[str, Any]:
    return {"used": record.used, "budget": record.budget, "exceeded": record.exceeded}


def child(record: Child) -> dict[str, Any]:
    return {
        "id": record.id,
        "name": record.name,
        "ordinal": record.ordinal,
        "run": record.run,
        "workflow": record.workflow,
        "state": record.state,
    }


def branch(record: Branch) -> dict[str, Any]:
    return {
        "id": record.id,
        "workflow": record.workflow,
        "state": record.state.value,
        "name": record.name,
        "ordinal": record.ordinal,
        "error_type": record.error_type,
        "error_message": record.error_message,
        "left_out": record.left_out,
        "children": [branch(below) for below in record.children],
    }


def loads(text: str | None) -> Any:
    return None if text is None else json.loads(text)
