"""row <-> model, by column name. Instants are microseconds since the epoch on the database's side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from unstuck.model.job import (
    AttemptRecord,
    AttemptRef,
    ClaimedJob,
    EventRecord,
    JobRecord,
    WorkerRecord,
    WorkflowRecord,
)
from unstuck.model.keys import Within
from unstuck.model.lifecycle import EventKind, JobState, RequestKind
from unstuck.model.limits import spell_rate
from unstuck.model.policy import Policy
from unstuck.model.redaction import Redaction, Redactions
from unstuck.model.waits import Answer, Wait, WaitKind, WaitRecord
from unstuck.store.database import Row
from unstuck.store.port import Asked, LetterTerms, Route

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST_DAY, _LAST_DAY = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)


def text_of(stored: str | bytes | None) -> str | None:
    """Of a column that is read as bytes, because SQLite keeps any: what is no text becomes readable."""
    return stored.decode(errors="replace") if isinstance(stored, bytes) else stored


def instant(microseconds: int) -> datetime:
    """One that no calendar has, because its row was damaged, is its first or last day, but one."""
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return _LAST_DAY if microseconds > 0 else _FIRST_DAY


def instant_or_none(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else instant(microseconds)


def microseconds(at: datetime) -> int:
    """A naive instant is read as UTC: the only zone the store knows."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (aware - EPOCH) // _MICROSECOND


def span(seconds: float) -> int:
    return round(seconds * 1_000_000)


_encoder = msgspec.json.Encoder()


def terms_of(within: Within | None) -> dict[str, str | None]:
    """What the macro `within` asks for."""
    return {
        "in_queues": listed(within.queues if within else None),
        "in_workflows": listed(within.workflows if within else None),
    }


def listed(names: frozenset[str] | None) -> str | None:
    """As a JSON list; None: all of them."""
    return None if names is None else packed(sorted(names))


def letter_terms(terms: LetterTerms) -> dict[str, str | int | None]:
    return {
        "reason": terms.reason,
        "since": None if terms.since is None else microseconds(terms.since),
        "before": None if terms.before is None else microseconds(terms.before),
    }


def packed(rows: Any) -> str:
    """A list as one JSON parameter: a batch is one statement, whatever its length."""
    return _encoder.encode(rows).decode()


def ref_of(row: Row) -> AttemptRef:
    return AttemptRef(row["job"], row["token"], row["claim"])


def asked_of(row: Row) -> Asked:
    return Asked(ref_of(row), RequestKind(row["request"]), row["request_reason"])


def claimed_of(row: Row, claim: str, route: Route, policy: Policy) -> ClaimedJob:
    # By place: of each job that runs, and names cost as much as all the rest.
    return ClaimedJob(
        AttemptRef(row["id"], row["token"], claim),
        row["uid"],
        row["run"],
        route.tenant,
        route.queue,
        route.workflow,
        row["payload"],
        policy,
        row["attempt"],
        bool(row["alone"]),
        row["rank"],
        route.number,
        bool(row["has_target"]),
        row["trace"],
        row["span"],
    )


def _tags(text: str) -> tuple[str, ...]:
    """What cannot be read, because its row was damaged, is one tag as it stands."""
    try:
        return tuple(json.loads(text))
    except ValueError:
        return (text,)


def job_of(row: Row, policy: Policy) -> JobRecord:
    return JobRecord(
        number=row["number"],
        id=row["uid"],
        tenant=row["tenant"],
        queue=row["queue"],
        workflow=row["workflow"],
        target=row["target"],
        priority=row["priority"],
        state=JobState(row["state"]),
        run=row["run"],
        token=row["token"],
        payload=row["payload"],
        policy=policy,
        created_at=instant(row["created_at"]),
        available_at=instant(row["available_at"]),
        events=row["event_count"],
        failures=row["failures"],
        losses=row["losses"],
        suspects=row["suspects"],
        alone=bool(row["alone"]),
        key=row["key"],
        request=RequestKind(row["request"]) if row["request"] else None,
        requested_at=instant_or_none(row["requested_at"]),
        request_reason=row["request_reason"],
        claim=row["claim"],
        worker=row["worker"],
        claimed_at=instant_or_none(row["claimed_at"]),
        started_at=instant_or_none(row["started_at"]) or _began(row),
        heartbeat_at=instant_or_none(row["heartbeat_at"]),
        lease_until=instant_or_none(row["lease_until"]),
        finished_at=instant_or_none(row["finished_at"]),
        duration_ms=row["duration_ms"],
        result=row["result"],
        late=bool(row["late"]),
        error_type=row["error_type"],
        error_message=row["error_message"],
        held=bool(row["held"]),
        limit_key=row["limit_key"] or None,
        tags=_tags(row["tags"]) if row["tags"] else (),
        on_hold=bool(row["on_hold"]) and row["state"] == JobState.PENDING,
        started=bool(row["started"]),
        is_blocker=bool(row["is_blocker"]),
        is_blocked=bool(row["is_blocked"]),
        replay_of=row["replay_of"],
        made_by=row["made_by"],
        trace=row["trace"],
        span=row["span"],
        signature=text_of(row["signature"]),
    )


def _began(row: Row) -> datetime | None:
    """Of a job that has ended: its last attempt's beginning, from its end and how long it took."""
    if row["finished_at"] is None or row["duration_ms"] is None:
        return None
    return instant(row["finished_at"] - row["duration_ms"] * 1000)


def event_of(row: Row) -> EventRecord:
    return EventRecord(
        job=row["uid"],
        number=row["number"],
        kind=row["kind"],
        at=instant(row["at"]),
        run=row["run"],
        token=row["token"],
        data=facts_of(row["data"]),
    )


def facts_of(text: str) -> dict[str, Any]:
    """What an event says. What cannot be read, because its row was damaged, is not shown, as it may be what is hidden
    from who reads it; but everybody reads on behind it."""
    found = _read(text)
    return found if isinstance(found, dict) else {"unreadable": True}


def _read(text: str) -> Any:
    """None: it is no JSON, because its row was damaged."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _object(text: str) -> dict[str, Any]:
    found = _read(text)
    return found if isinstance(found, dict) else {}


def _texts(text: str) -> tuple[str, ...]:
    found = _read(text)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def worker_of(row: Row) -> WorkerRecord:
    return WorkerRecord(
        number=row["id"],
        incarnation=row["incarnation"],
        name=row["name"],
        host=row["host"],
        boot_id=row["boot_id"],
        pid_namespace=row["pid_namespace"],
        pid=row["pid"],
        pid_start=row["pid_start"],
        state=row["state"],
        queues=_texts(row["queues"]),
        code_version=row["code_version"],
        started_at=instant(row["started_at"]),
        heartbeat_at=instant(row["beat_at"]),
        lease_until=instant(row["lease_until"]),
        running=row["running"],
        info=_object(row["info"]),
        serves=_object(row["serves"]),
    )


def workflow_of(row: Row) -> WorkflowRecord:
    return WorkflowRecord(
        name=row["name"],
        code_version=row["code_version"],
        queue=row["queue"],
        policy=Policy.from_json(row["policy"]),
        schema=json.loads(row["schema"]),
        target=row["target"],
        limit_key=row["limit_key"],
        concurrency=row["concurrency"],
        rate=_rate_of(row["rate"], row["per_us"]),
        key_concurrency=row["key_concurrency"],
        key_rate=_rate_of(row["key_rate"], row["key_per_us"]),
        registered_at=instant(row["registered_at"]),
        doc=row["doc"],
        max_timeout=row["max_timeout"],
        redact=tuple(json.loads(row["redact"])),
        tenant=row["tenant"],
    )


def redactions_of(rows: Iterable[Row]) -> Redactions:
    """What any version hides is hidden."""
    found = Redactions()
    for row in rows:
        places = tuple(json.loads(row["schema"]).get("x-positional", ()))
        found.add(row["tenant"], row["name"], Redaction(frozenset(json.loads(row["redact"])), (places,)))
    return found


def _rate_of(starts: int | None, per_us: int | None) -> str | None:
    return None if starts is None or per_us is None else spell_rate(starts, per_us / 1_000_000)


_TOPIC = "topic:"


def address_of(uid: str, topic: str | None) -> str:
    """Where an event is sent to."""
    return f"job:{uid}" if topic is None else f"{_TOPIC}{topic}"


def wait_of(row: Row) -> WaitRecord:
    """From a row of waits, with its job's uid and workflow where the statement gives them."""
    spec, address, kind = json.loads(row["spec"]), row["address"] or "", WaitKind(row["kind"])
    wait = Wait(
        kind=kind,
        key=row["key"],
        name=row["name"],
        timeout=spec.get("timeout"),
        until=row["until_at"] if kind is WaitKind.TIME else None,
        topic=address.removeprefix(_TOPIC) if address.startswith(_TOPIC) else None,
        who=tuple(spec.get("who", ())),
        on_timeout=spec.get("on_timeout", "fail"),
        default=spec.get("default"),
        children=tuple(spec.get("children", ())),
        release_target=spec.get("release_target", False),
    )
    return WaitRecord(
        job=row.get("uid", ""),
        run=row["run"],
        wait=wait,
        asked_at=instant(row["asked_at"]),
        until_at=instant(row["until_at"]),
        answer=Answer(row["answer"]) if row["answer"] else None,
        payload=row.get("payload"),
        answered_at=instant_or_none(row["answered_at"]),
        by=row["by"],
        comment=row["comment"],
        tenant=row["tenant"],
        workflow=row.get("workflow", ""),
    )


def attempts_of(events: Sequence[EventRecord], outputs: Iterable[Row]) -> list[AttemptRecord]:
    """A claim opens an attempt; the next move under the same token ends it."""
    kept = {row["token"]: row for row in outputs}
    opened = [event for event in events if event.kind == EventKind.CLAIMED]
    ends: dict[int, EventRecord] = {}
    claimed_tokens = {event.token: event.number for event in opened}
    for event in events:
        if event.number > claimed_tokens.get(event.token, event.number) and event.kind != EventKind.REQUESTED:
            ends.setdefault(event.token, event)
    return [_attempt(event, ends.get(event.token), kept.get(event.token)) for event in opened]


def _attempt(opened: EventRecord, ended: EventRecord | None, kept: Row | None) -> AttemptRecord:
    facts = ended.data if ended else {}
    return AttemptRecord(
        token=opened.token,
        run=opened.run,
        worker=opened.data.get("by", ""),
        claimed_at=opened.at,
        code_version=opened.data.get("code_version"),
        ended_at=ended.at if ended else None,
        outcome=ended.kind if ended else None,
        error_type=facts.get("error_type"),
        error_message=facts.get("error_message"),
        duration_ms=facts.get("duration_ms"),
        stack=kept["stack"] if kept else None,
        framed=kept["output"] if kept else None,
    )
