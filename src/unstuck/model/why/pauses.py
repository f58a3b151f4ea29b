"""Gates of a route: an operator paused its queue, tenant or workflow."""

from __future__ import annotations

from collections.abc import Iterator

from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import EVERY_TENANT, Shut
from unstuck.model.why.remedies import how_to_unpause
from unstuck.model.why.rule import Finding, Rule, WhyView, rule
from unstuck.model.why.words import clock, since_when


def pause_in_force(view: WhyView, shut: Shut, kind: str) -> Finding:
    """Sentence and remedy of any pause."""
    everywhere = " for every tenant" if shut.tenant == EVERY_TENANT and kind != "tenant" else ""
    until = f", until {clock(shut.until_at)}" if shut.until_at else ", until somebody lifts it"
    reason = f' ("{shut.reason}")' if shut.reason else ""
    sentence = (
        f"{kind} {shut.name} is paused{everywhere} by {shut.by or '?'}{since_when(shut.since_at)}{reason}{until}"
    )
    details = {"kind": kind, "name": shut.name, "tenant": shut.tenant, "by": shut.by, "reason": shut.reason}
    return Finding(sentence, shut.since_at, shut.until_at, how_to_unpause(shut, kind), details=details)


def _pause_of(code: Code, kind: str) -> Rule:
    @rule(code, f"an operator paused its {kind}", Actor.OPERATOR, f"unstuck {kind}s unpause {kind.upper()}")
    def find(view: WhyView) -> Iterator[Finding]:
        return (pause_in_force(view, shut, kind) for shut in view.facts.gates if shut.code is code)

    return find


queue_paused = _pause_of(Code.QUEUE_PAUSED, "queue")
tenant_paused = _pause_of(Code.TENANT_PAUSED, "tenant")
workflow_paused = _pause_of(Code.WORKFLOW_PAUSED, "workflow")
