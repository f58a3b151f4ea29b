"""What --json prints: stable keys, one name for one thing. Additions are fine, changes are not.

- A job's id is `id` where the object is a job (a job, a child, a branch of a tree) and `job` where it is about one (a
  wait, an event, a stack); where its part has a word of its own, that: `parent`, `replay_of`, `head`, `blocked_by`.
- Others go by their names: `name` where the object is the thing, else its noun (`workflow`, `queue`, `tenant`,
  `worker`, `target`). What is counted has a `number`; an attempt is called by its own, `attempt`, everywhere.
- Instants are UTC and end in `_at`: `at` when it happened, `since_at` and `until_at` from when to when; the end of
  something that is renewed ends in `_until` (`lease_until`).
- Who did it is `by`, beside `at` or `since_at`; where more than one thing is done to it, `set_by` beside `set_at`.
- Durations that were measured are whole milliseconds and end in `_ms`; those that were chosen are seconds.
- States are upper case, other closed sets lower case. What a job, an app or an operator chose (arguments, results,
  payloads, details) is given as it is. `null`: there is none; keys are never left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from unstuck.cli.output import rfc3339
from unstuck.model.guard import Action, BlacklistEntry, Notification, SettingRecord
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord, WorkflowRecord
from unstuck.model.job import shown_state as shown_state
from unstuck.model.parts import Part
from unstuck.model.waits import Child, Spent, StepRecord, WaitKind, WaitRecord
from unstuck.model.why.facts import AwaitedJob
from unstuck.observe.flow import Approval, Branch
from unstuck.observe.logs import LogPiece
from unstuck.store.port import Limit, Pause, Quarantined, TargetRecord


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
        "replay_of": record.replay_of,
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
        "total_ms": total_ms(record),
        "worker": record.worker,
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
    waits_for: Sequence[AwaitedJob] = (),
) -> dict[str, Any]:
    """Everything about one job, for `jobs show --json`."""
    payload = loads(record.payload)
    call = payload if isinstance(payload, dict) else {}
    return job(record, now) | {
        "args": call.get("args", []),
        "kwargs": call.get("kwargs", {}),
        "policy": asdict(record.policy),
        "progress": loads(progress),
        "waits_for": [{"job": d.job, "state": d.state.value if d.state else None} for d in waits_for],
        "attempt_list": [attempt(a) for a in attempts],
        "history": [event(e) for e in history],
    }


def attempt(record: AttemptRecord) -> dict[str, Any]:
    facts = asdict(record) | {"claimed_at": rfc3339(record.claimed_at), "ended_at": rfc3339(record.ended_at)}
    number, _ = facts.pop("token"), facts.pop("framed")
    return {"attempt": number} | facts | {"output": record.output}


def log_piece(piece: LogPiece) -> dict[str, Any]:
    """One record, or a stretch of printed text, which has neither time nor level."""
    record = piece.record
    return {
        "attempt": piece.attempt,
        "worker": piece.worker,
        "text": piece.text,
        "at": rfc3339(record.at) if record else None,
        "level": record.level if record else None,
        "logger": record.logger if record else None,
        "message": record.message if record else None,
        "fields": record.fields if record else None,
    }


def event(record: EventRecord) -> dict[str, Any]:
    """A line of a job's history; `attempt` is null before the first."""
    return {
        "job": record.job,
        "number": record.number,
        "kind": record.kind,
        "run": record.run,
        "attempt": record.token or None,
        "at": rfc3339(record.at),
        "data": record.data,
    }


def workflow(record: WorkflowRecord) -> dict[str, Any]:
    shape = asdict(record) | {"registered_at": rfc3339(record.registered_at)}
    del shape["said"]  # the row does not know
    return shape


def pause(record: Pause) -> dict[str, Any]:
    return asdict(record) | {"since_at": rfc3339(record.since_at), "until_at": rfc3339(record.until_at)}


def limit(record: Limit) -> dict[str, Any]:
    facts = asdict(record) | {"set_at": rfc3339(record.set_at)}
    by = facts.pop("by")
    return facts | {"set_by": by}


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


def entry(record: BlacklistEntry) -> dict[str, Any]:
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


def quarantined(record: Quarantined) -> dict[str, Any]:
    return {
        "duty": record.duty,
        "job": record.job,
        "workflow": record.workflow,
        "target": record.target,
        "tenant": record.tenant,
        "since_at": rfc3339(record.since_at),
        "by": record.by,
        "tried_at": rfc3339(record.tried_at),
        "tries": record.tries,
        "error": record.error,
    }


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


def part(record: Part) -> dict[str, Any]:
    return {
        "name": record.name,
        "value": loads(record.value),
        "number": record.number,
        "run": record.run,
        "attempt": record.token,
        "at": rfc3339(record.at),
    }


def wait(record: WaitRecord) -> dict[str, Any]:
    asked = record.wait
    return {
        "job": record.job,
        "run": record.run,
        "kind": asked.kind.value,
        "key": asked.key,
        "event": asked.name if asked.kind is WaitKind.EVENT else None,
        "question": asked.name if asked.kind is WaitKind.APPROVAL else None,
        "topic": asked.topic,
        "who": list(asked.who),
        "children": list(asked.children),
        "on_timeout": asked.on_timeout,
        "asked_at": rfc3339(record.asked_at),
        "until_at": rfc3339(record.until_at),
        "answer": record.answer.value if record.answer else None,
        "payload": loads(record.payload),
        "answered_at": rfc3339(record.answered_at),
        "answered_by": record.by,
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


def total_ms(record: JobRecord) -> int | None:
    """From when it was submitted to its end, with all that it waited for; `duration_ms` is its last attempt's."""
    if record.finished_at is None:
        return None
    return max(0, round((record.finished_at - record.created_at).total_seconds() * 1000))


def loads(text: str | None) -> Any:
    """What cannot be read, because its row was damaged, is shown as it is."""
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text
