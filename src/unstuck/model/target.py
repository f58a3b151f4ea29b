"""Which job may run next on a serialized target, and what blocks it.

Theory of operation. A target has at most one *head*: the job whose turn it is. Everybody else stands in its line,
higher priority first, then age. The head keeps its turn while it is ready, runs, waits or backs off for a retry;
what becomes of the turn when the head moves is decided here, from where it went and whether a handler of it had ever
begun: half-done work on a target must be looked at by a person, work that never began must not.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from unstuck.model.lifecycle import JobState
from unstuck.model.policy import Policy

#: Before every place that a priority can give: the head's own, when it comes back to its turn.
FIRST: Final = -(1 << 62)


class Turn(StrEnum):
    """What becomes of a target's turn."""

    KEEP = "keep"
    STEP_BACK = "step back"
    BLOCK = "block"
    PASS = "pass"


def place_of(priority: int) -> int:
    """Where a job stands in the line of its target; among equals the older goes first."""
    return -priority


def turn_after(state: JobState, *, started: bool, policy: Policy) -> Turn:
    """The head went to this state; `started`: a handler of it has begun at some time."""
    match state:
        case JobState.QUEUED:
            return Turn.KEEP if started else Turn.STEP_BACK
        case JobState.RUNNING | JobState.WAITING:
            return Turn.KEEP
        case JobState.PAUSED:
            return Turn.BLOCK if started else Turn.PASS
        case JobState.FAILED | JobState.TIMEOUT:
            return Turn.BLOCK if started and policy.on_failure == "block" else Turn.PASS
        case _:
            return Turn.PASS
