"""WAITING jobs: the event, decision, children or time that a parked job waits for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from unstuck.model.lifecycle import JobState
from unstuck.model.waits import Answer, OnTimeout, WaitKind, WaitRecord
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.remedies import how_to_decide, how_to_send
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import clock, counted, first_line


def _open_wait(view: WhyView, kind: WaitKind) -> WaitRecord | None:
    record = view.facts.wait
    return record if record is not None and record.answer is None and record.wait.kind is kind else None


@rule(
    Code.WAITING_EVENT,
    "it waits for an event that nobody has sent",
    Actor.SENDER,
    "unstuck events send JOB EVENT",
    of=[JobState.WAITING],
)
def waiting_event(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.EVENT)
    if record is None:
        return
    wait = record.wait
    where = "" if wait.topic is None else f" on topic {wait.topic}"
    yield Finding(
        f"it waits for event {wait.name}{where}; {_unanswered(view, record)}",
        record.asked_at,
        record.until_at,
        how_to_send(view.job.id, wait.name, wait.topic, view.job.tenant),
        details=_waited(record) | {"event": wait.name, "topic": wait.topic},
    )


@rule(
    Code.WAITING_APPROVAL,
    "it asks a question that nobody has decided",
    Actor.APPROVER,
    "unstuck approvals approve JOB",
    of=[JobState.WAITING],
)
def waiting_approval(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.APPROVAL)
    if record is None:
        return
    wait = record.wait
    who = ", ".join(wait.who) or "somebody"
    yield Finding(
        f'it waits for {who} to decide "{first_line(wait.name)}"; {_unanswered(view, record)}',
        record.asked_at,
        record.until_at,
        how_to_decide("approve", view.job.id, wait.key, view.job.tenant),
        details=_waited(record)
        | {
            "question": wait.name,
            "who": list(wait.who),
            "other_remedies": [how_to_decide("reject", view.job.id, wait.key, view.job.tenant)],
        },
    )


@rule(
    Code.WAITING_CHILDREN,
    "jobs that it spawned, and waits for, have not ended",
    Actor.ENGINE,
    "unstuck jobs tree JOB",
    of=[JobState.WAITING],
)
def waiting_children(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.CHILDREN)
    if record is None:
        return
    left, all_ = view.facts.children_open, len(record.wait.children)
    unfinished = [d for d in view.facts.dependencies if d.state is None or not d.state.is_final]
    some = ", ".join(f"{d.job} ({d.state or 'unknown'})" for d in unfinished[:3])
    named = f": {some}{' …' if len(unfinished) > 3 else ''}" if some else ""
    stand = f"{left} of {counted(all_, 'child job')} {'has' if left == 1 else 'have'} not ended{named}"
    if not left:
        stand = "all of its children have ended, and the next look wakes it"
    yield Finding(
        f"{stand}; {_unanswered(view, record)}",
        record.asked_at,
        record.until_at,
        details=_waited(record) | {"open": left, "children": list(record.wait.children)},
    )


@rule(Code.WAITING_TIME, "it parked itself until a time that has not come", Actor.ENGINE, of=[JobState.WAITING])
def waiting_time(view: WhyView) -> Iterator[Finding]:
    record = _open_wait(view, WaitKind.TIME)
    if record is None:
        return
    until = record.until_at
    when = (
        f"{view.soon(until)}, at {clock(until)}" if until > view.now else f"with the next sweep: {_came(view, until)}"
    )
    yield Finding(f"it parked itself and goes on {when}", record.asked_at, until, details=_waited(record))


@rule(Code.WAITING, "what it waited for has come; it is being woken", Actor.ENGINE, of=[JobState.WAITING])
def waiting(view: WhyView) -> Iterator[Finding]:
    record = view.facts.wait
    if record is None:
        yield Finding("it is parked: it holds no slot and wakes by itself", until=view.facts.due_at)
    elif record.answer is not None:
        by = f" by {record.by}" if record.by else ""
        yield Finding(
            f"{_answered(record)}{by}{view.ago(record.answered_at)}; the next look wakes it",
            record.answered_at,
            details=_waited(record) | {"answer": record.answer, "by": record.by},
        )


def _unanswered(view: WhyView, record: WaitRecord) -> str:
    """What becomes of it when nobody answers."""
    then = what_then(record.wait.on_timeout)
    if record.until_at > view.now:
        return f"if not {view.soon(record.until_at)}, {then}"
    return f"{_came(view, record.until_at)}: with the next sweep {then}"


def _came(view: WhyView, until: datetime) -> str:
    return f"its time came{view.ago(until)}"


def what_then(on_timeout: OnTimeout) -> str:
    """What its deadline does to a wait."""
    match on_timeout:
        case "reject":
            return "it counts as rejected"
        case "approve":
            return "it counts as approved"
        case "default":
            return "it goes on with the default that it named"
        case _:
            return "it fails"


def _answered(record: WaitRecord) -> str:
    match record.answer:
        case Answer.EVENT:
            return f"event {record.wait.name} was sent"
        case Answer.APPROVED | Answer.REJECTED:
            return f'"{first_line(record.wait.name)}" was {record.answer}'
        case Answer.ENDED:
            return "its children have ended"
        case _:
            return "its time came"


def _waited(record: WaitRecord) -> dict[str, Any]:
    return {"kind": record.wait.kind, "key": record.wait.key, "on_timeout": record.wait.on_timeout}
