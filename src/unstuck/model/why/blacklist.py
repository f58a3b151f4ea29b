"""Gate of a route: its workflow is on the blacklist."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.guard import how_to_lift
from unstuck.model.lifecycle import JobState
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import EVERY_TENANT, Shut
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import since_when


@rule(
    Code.BLACKLISTED,
    "its workflow is on the blacklist",
    Actor.OPERATOR,
    "unstuck blacklist remove WORKFLOW",
    of=[JobState.QUEUED, JobState.PENDING],
)
def blacklisted(view: WhyView) -> Iterator[Finding]:
    """A queued one waits only for the next sweep to fail or hold it; a held one is released when the entry goes."""
    for shut in entries(view):
        whose = " for every tenant" if shut.tenant == EVERY_TENANT else ""
        after = "it goes on when somebody lifts that"
        if view.job.state is JobState.QUEUED:
            then = "holds" if view.job.policy.on_blacklist == "hold" else "fails"
            after = f"the next sweep {then} it"
        yield Finding(
            f"workflow {shut.name} is blacklisted{whose} by {shut.by or '?'}{since_when(shut.since_at)} "
            f"({shut.reason}); {after}",
            shut.since_at,
            remedy=how_to_lift(shut.tenant, shut.name),
            details={"workflow": shut.name, "tenant": shut.tenant, "by": shut.by, "reason": shut.reason},
        )


def entries(view: WhyView) -> list[Shut]:
    return [shut for shut in view.facts.gates if shut.code is Code.BLACKLISTED]
