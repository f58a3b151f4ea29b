"""Why: how one job stands towards every gate of the claim, read in one statement; and on PostgreSQL, in a second one,
which sessions hold what it needs."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from unstuck.model.lifecycle import FINAL, JobState
from unstuck.model.signing import Envelope
from unstuck.model.target import FIRST
from unstuck.model.waits import WaitRecord
from unstuck.model.why.codes import Code
from unstuck.model.why.facts import (
    CEILING,
    AwaitedJob,
    BodyMark,
    Facts,
    FailingRole,
    GrantFacts,
    LetterFacts,
    SetAside,
    Shut,
    TargetFacts,
    WorkerFacts,
    failing_roles,
    grace_left,
    settle_of,
    slots_of,
)
from unstuck.store.database import Row, Transaction
from unstuck.store.guard import dead_letters
from unstuck.store.order.name_ids import NameIds
from unstuck.store.read.locks import locks_on
from unstuck.store.rows import instant, instant_or_none, job_of, wait_of

_WITH_LETTERS = frozenset({JobState.DEAD, JobState.FAILED, JobState.TIMEOUT})


def gate_facts(t: Transaction, name_ids: NameIds, tenant: str, job: str) -> Facts | None:
    # SQLite reads one snapshot, and needs to be told whom to look for inside its views.
    whom = t.one("gate_facts_of", tenant=tenant, uid=job) if t.one_table_per_statement else {}
    row = whom is not None and t.one("gate_facts", tenant=tenant, uid=job, first=FIRST, ceiling=CEILING, **whom)
    if not row:
        return None
    roles = failing_roles(_said(row["worker_roles"]))
    others = tuple(AwaitedJob(d["uid"], JobState(d["state"])) for d in _list(row["dependencies"]))
    return Facts(
        at=instant(row["at"]),
        job=job_of(row, name_ids.policy(t, row["policy"])),
        route=row["route"],
        rank=row["rank"],
        due_at=instant_or_none(row["due_at"]),
        is_ready=bool(row["is_ready"]),
        place=row["place"],
        request_by=row["request_by"],
        body_mark=_body_mark(row),
        target=_target(row),
        gates=tuple(_shut(gate) for gate in _list(row["gates"])),
        dependencies=others,
        workers=tuple(_worker(worker) for worker in _list(row["workers"])),
        sweepers=row["sweepers"],
        beside=row["beside"],
        grants=tuple(_granted(grant) for grant in _list(row["grants"])),
        known_version=row["known_version"],
        known_at=instant_or_none(row["known_at"]),
        before=row["before"],
        before_by_priority=row["before_by_priority"],
        wait=_wait(row, job),
        children_open=sum(other.state not in FINAL for other in others) if row["state"] == JobState.WAITING else 0,
        quarantine=(*(_set_aside(found) for found in _list(row["quarantine"])), *_kept_by_worker(row, roles)),
        worker_roles=roles,
        grace_left=grace_left(_said(row["worker_executors"]), job),
        locks=() if t.one_table_per_statement or row["state"] in FINAL else locks_on(t, row["number"]),
        letter=_letter(t, tenant, job) if row["state"] in _WITH_LETTERS else None,
    )


def _letter(t: Transaction, tenant: str, uid: str) -> LetterFacts | None:
    found = dead_letters.one(t, tenant, uid)
    if found is None:
        return None
    envelope = Envelope.of(found.signature) if found.signature else None
    return LetterFacts(found.reason, found.message, found.created_at, envelope.key if envelope else None)


def _list(found: Any) -> list[dict[str, Any]]:
    """PostgreSQL's driver has read the JSON, SQLite's has not; nothing at all is NULL on one and [] on the other."""
    return (json.loads(found) if isinstance(found, str) else found) or []


def _set_aside(found: dict[str, Any]) -> SetAside:
    return SetAside(found["duty"], instant(found["since_at"]), found["tries"], found["error"])


def _kept_by_worker(row: Row, roles: tuple[FailingRole, ...]) -> list[SetAside]:
    """What could not even be entered into the quarantine."""
    return [
        SetAside("settle", instant(row["at"]) - timedelta(seconds=role.failing_for), role.failures, role.error)
        for role in roles
        if role.name == settle_of(row["number"])
    ]


def _said(by_worker: Any) -> Any:
    """As a worker says it, which may be anything."""
    try:
        return json.loads(by_worker) if isinstance(by_worker, str) else by_worker
    except (ValueError, RecursionError):
        return None


def _wait(row: Row, uid: str) -> WaitRecord | None:
    found = json.loads(row["wait"]) if isinstance(row["wait"], str) else row["wait"]
    return wait_of({**found, "uid": uid, "workflow": row["workflow"]}) if found else None


def _body_mark(row: Row) -> BodyMark | None:
    if row["body_uid"] is None:
        return None
    return BodyMark(
        job=row["body_uid"],
        worker=row["body_worker"],
        since_at=instant(row["body_since"]),
        pid=row["body_pid"],
        lease_until=instant_or_none(row["body_lease_until"]),
    )


def _target(row: Row) -> TargetFacts | None:
    if row["target"] is None:
        return None
    return TargetFacts(
        name=row["target"],
        head=row["head_uid"],
        head_state=JobState(row["head_state"]) if row["head_state"] else None,
        head_since=instant_or_none(row["head_since"]),
        head_due_at=instant_or_none(row["head_due_at"]),
        head_place=row["head_place"],
        head_is_ready=bool(row["head_is_ready"]),
        first=row["first_uid"],
        first_place=row["first_place"],
        blocked_by=row["blocked_uid"],
        blocked_at=instant_or_none(row["blocked_at"]),
        blocker_error=row["head_error"],
        ahead=row["ahead"],
        waiting=row["waiting"],
        pause=_target_pause(row),
        is_expected=bool(row["is_expected"]),
    )


def _target_pause(row: Row) -> Shut | None:
    if row["paused_at"] is None:
        return None
    return Shut(
        code=Code.TARGET_PAUSED,
        kind="target",
        name=row["target"],
        tenant=row["tenant"],
        since_at=instant(row["paused_at"]),
        until_at=instant_or_none(row["paused_until"]),
        by=row["paused_by"],
        reason=row["pause_reason"],
    )


def _shut(gate: dict[str, Any]) -> Shut:
    return Shut(
        code=Code(gate["code"]),
        kind=gate["kind"],
        name=gate["name"],
        tenant=gate["tenant"],
        since_at=instant_or_none(gate["since_at"]),
        until_at=instant_or_none(gate["until_at"]),
        by=gate["by"],
        reason=gate["reason"],
        used=gate["used"],
        most=gate["most"],
        free_at=instant_or_none(gate["free_at"]),
    )


def _granted(grant: dict[str, Any]) -> GrantFacts:
    return GrantFacts(bool(grant["tenant"]), bool(grant["queue"]), bool(grant["workflow"]))


def _worker(worker: dict[str, Any]) -> WorkerFacts:
    return WorkerFacts(
        name=worker["name"],
        state=worker["state"],
        is_live=bool(worker["is_live"]),
        beat_at=instant(worker["beat_at"]),
        lease_until=instant(worker["lease_until"]),
        code_version=worker["code_version"],
        is_loaded=bool(worker["is_loaded"]),
        knows_workflow=bool(worker["knows_workflow"]),
        running=worker["running"],
        slots=slots_of(_said(worker["slots"])),
        problem=worker["problem"],
        roles=failing_roles(_said(worker["roles"])),
    )
