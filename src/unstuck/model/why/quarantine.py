"""Gate: something about this job, or its target, cannot be written although the database answers."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.lifecycle import JobState
from unstuck.model.why.blacklist import entries
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import SetAside
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import first_line, how_often, since_when

#: Of each duty: what could not be done.
_SET_ASIDE = {
    "claim": "a worker has a slot for it, and that it takes it cannot be written",
    "settle": "its attempt has ended, and its end cannot be written",
    "recover": "its worker was lost, and it cannot be taken back",
    "overdue": "it ran beyond its time, and the verdict cannot be written",
    "start": "its time has come, and it cannot be brought into the queue",
    "expire": "it stayed for too long, and its end cannot be written",
    "wait": "its time to go on has come, and it cannot be woken",
    "orphan": "no worker knows its workflow, and its end cannot be written",
    "blacklist": "its workflow is blacklisted, and it can be neither failed nor held",
    "children": "what the end of its parent means for it cannot be written",
    "dependants": "what it came after has ended, and what that means cannot be written",
    "target": "the turn on its target cannot be given to anybody",
    "body_mark": "its old body is gone, and that cannot be noted",
}
_OF_ATTEMPTS = {"settle", "recover", "overdue"}


@rule(
    Code.QUARANTINED,
    "something about it, or its target, cannot be written; it was set aside and is tried again alone",
    Actor.OPERATOR,
    "unstuck quarantine retry JOB",
    of=[JobState.QUEUED, JobState.PENDING, JobState.WAITING, JobState.PAUSED, JobState.RUNNING],
)
def quarantined(view: WhyView) -> Iterator[Finding]:
    for aside in set_aside(view):
        again = "its worker tries again" if aside.duty == "settle" else "every sweep tries it again, alone"
        yield Finding(
            f"{_SET_ASIDE[aside.duty]}{since_when(aside.since_at)} (tried {how_often(aside.tries)}): "
            f"{first_line(aside.error)}; {again}",
            aside.since_at,
            details={"duty": aside.duty, "tries": aside.tries, "error": aside.error},
            is_detail=not _keeps(view, aside),
        )


def set_aside(view: WhyView, *duties: str) -> list[SetAside]:
    """Of these duties, or of all that can concern it now: what was about another attempt is over."""
    is_running = view.job.state is JobState.RUNNING
    return [
        aside
        for aside in view.facts.quarantine
        if aside.duty in (duties or _SET_ASIDE) and (aside.duty in _OF_ATTEMPTS) == is_running
    ]


def _keeps(view: WhyView, aside: SetAside) -> bool:
    """A queued job can be claimed all the same, unless this is what must bring it into the queue."""
    facts = view.facts
    match aside.duty:
        case "start":
            return facts.due_at is not None
        case "target":
            return not facts.is_ready
        case "claim":
            return facts.is_ready
        case "blacklist":
            return bool(entries(view))
        case _:
            return view.job.state is not JobState.QUEUED
