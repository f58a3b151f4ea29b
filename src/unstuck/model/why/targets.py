"""Gates of a target: blocked by a failed or paused job, paused by an operator, or another job's turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unstuck.model.lifecycle import JobState
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import Facts, TargetFacts
from unstuck.model.why.pauses import pause_in_force
from unstuck.model.why.remedies import how_to_unpause
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import counted, since_when


@rule(
    Code.TARGET_BLOCKED, "a job that failed or paused blocks its target", Actor.OWNER, "unstuck jobs resume BLOCKER"
)
def target_blocked(view: WhyView) -> Iterator[Finding]:
    target = view.facts.target
    if target is None or target.blocked_by is None or target.blocked_by == view.job.id:
        return
    error = f" ({target.blocker_error})" if target.blocker_error else ""
    yield Finding(
        f"target {target.name} is blocked by {target.head_state} job {target.blocked_by}{error}"
        f"{since_when(target.blocked_at)}; {counted(target.waiting, 'job')} behind it. "
        "Resume, resolve or skip that one",
        target.blocked_at,
        remedy=view.command(f"unstuck jobs resume {target.blocked_by}"),
        details={
            "target": target.name,
            "blocked_by": target.blocked_by,
            "waiting": target.waiting,
            "other_remedies": [
                # RESULT is a word to replace: pasted as it stands it is refused.
                view.command(f"unstuck jobs resolve {target.blocked_by} RESULT"),
                view.command(f"unstuck jobs skip {target.blocked_by}"),
            ],
        },
    )


@rule(Code.TARGET_PAUSED, "an operator paused its target", Actor.OPERATOR, "unstuck targets unpause TARGET")
def target_paused(view: WhyView) -> Iterator[Finding]:
    target = view.facts.target
    if target is None or target.pause is None or view.facts.is_ready:
        return
    until = target.pause.until_at
    if until is None or until > view.now:
        yield pause_in_force(view, target.pause, "target")
    elif not target.is_expected:
        sentence = f"the pause of target {target.name} ended{view.ago(until)}; the next sweep lets its jobs go on"
        yield Finding(sentence, target.pause.since_at, until, how_to_unpause(target.pause, "target"), Actor.ENGINE)


@rule(Code.TARGET_BUSY, "it is another job's turn on its target", Actor.ENGINE, "unstuck why OTHER")
def target_busy(view: WhyView) -> Iterator[Finding]:
    target = view.facts.target
    if target is None or target.blocked_by is not None or _is_its_turn(view.facts, target):
        return
    other = _whose_turn(view.facts, target)
    if other is None:
        return
    doing = _doing(view, target) if other == target.head else "is next"
    ahead = target.ahead - (other == target.first and other != target.head)
    behind = f", {counted(ahead, 'other job')} before this one" if ahead > 0 else ""
    yield Finding(
        f"target {target.name} runs one job at a time; job {other} {doing}{behind}",
        target.head_since,
        remedy=view.command(f"unstuck why {other}"),
        details={"target": target.name, "job": other, "ahead": max(0, ahead)},
    )


def _doing(view: WhyView, target: TargetFacts) -> str:
    """What the head does with its turn."""
    match target.head_state:
        case JobState.RUNNING:
            return f"is running, begun{view.ago(target.head_since)}"
        case JobState.QUEUED if target.head_due_at and target.head_due_at > view.now:
            return f"keeps its turn until its next try {view.soon(target.head_due_at)}"
        case JobState.WAITING:
            return "is parked and keeps its turn"
        case _:
            return "is next"


def _is_its_turn(facts: Facts, target: TargetFacts) -> bool:
    """As it will be after the next ingest: an unclaimed head yields to a newcomer with a higher priority."""
    if facts.due_at is not None or (facts.place is None and not facts.is_ready):
        return True  # not in the line yet: that is another gate's story
    if facts.is_ready:
        can_be_taken_away = _head_yields(target) and not any(lock.what == "target" for lock in facts.locks)
        return not can_be_taken_away
    if target.first != facts.job.id:
        return False
    return target.head in (None, facts.job.id) or _head_yields(target)


def _head_yields(target: TargetFacts) -> bool:
    return (
        target.head_is_ready
        and target.first_place is not None
        and target.head_place is not None
        and target.first_place < target.head_place
    )


def _whose_turn(facts: Facts, target: TargetFacts) -> str | None:
    if facts.is_ready or _head_yields(target):
        return target.first
    return target.head if target.head not in (None, facts.job.id) else target.first


def blocks(view: WhyView) -> str:
    target = view.facts.target
    if target is None or not view.job.is_blocker:
        return ""
    return f"; until then target {target.name} is blocked, {counted(target.waiting, 'job')} behind it"


def blocking(view: WhyView) -> dict[str, Any]:
    target = view.facts.target
    return {"blocks": target.name, "waiting": target.waiting} if target and view.job.is_blocker else {}
