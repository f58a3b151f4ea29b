"""Gates of a route: a limit on running jobs, or on starts per time, is used up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import EVERY_TENANT, Shut
from unstuck.model.why.remedies import how_to_change_limit
from unstuck.model.why.rule import Finding, WhyView, rule


@rule(Code.CONCURRENCY_LIMIT, "as many run already as a limit allows", Actor.ENGINE)
def concurrency_limit(view: WhyView) -> Iterator[Finding]:
    for shut in _limits(view, Code.CONCURRENCY_LIMIT):
        used = f"{shut.used} of {shut.most}" if shut.used is not None else f"all {shut.most}"
        yield Finding(
            f"{_limited(shut, view)} has {used} running; it starts when one of them ends",
            remedy=how_to_change_limit(shut, "--concurrency N"),
            details=_limit_details(shut),
        )


@rule(Code.RATE_LIMITED, "as many started lately as a limit allows", Actor.ENGINE)
def rate_limited(view: WhyView) -> Iterator[Finding]:
    for shut in _limits(view, Code.RATE_LIMITED):
        free = f"; the next may start {view.soon(shut.free_at)}" if shut.free_at else ""
        yield Finding(
            f"{_limited(shut, view)} has used {shut.used} of the {shut.most} starts that its rate allows{free}",
            until=shut.free_at,
            remedy=how_to_change_limit(shut, "--rate N/PERIOD"),
            details=_limit_details(shut),
        )


def _limits(view: WhyView, code: Code) -> Iterator[Shut]:
    return (shut for shut in view.facts.gates if shut.code is code)


def _limited(shut: Shut, view: WhyView) -> str:
    together = " (all tenants together)" if shut.tenant == EVERY_TENANT and shut.kind != "tenant" else ""
    if shut.kind == "workflow_key":
        return f"key {view.job.limit_key} of workflow {shut.name}{together}"
    return f"{shut.kind} {shut.name}{together}"


def _limit_details(shut: Shut) -> dict[str, Any]:
    return {"kind": shut.kind, "name": shut.name, "tenant": shut.tenant, "used": shut.used, "most": shut.most}
