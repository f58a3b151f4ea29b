"""Workflows: what can be run, as its workers registered it; pause and limit it."""

from __future__ import annotations

from datetime import datetime

from unstuck.model.errors import UnknownWorkflowName
from unstuck.model.job import WorkflowRecord
from unstuck.model.redaction import Redactions
from unstuck.operations import gating
from unstuck.operations.kinds import UNSAID, Duration, Unsaid
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.store.port import LimitKind
from unstuck.views import Page
from unstuck.views.gates import (
    BreakerView,
    LimitChange,
    LimitView,
    PauseView,
    UnpauseView,
    WorkflowView,
    WorkflowWhole,
)


@operation(role=READER, limited="kept")
def list_(caller: Caller) -> Page[WorkflowView]:
    """What workers have registered in this database, whoever's code it is."""
    pauses, limits, hidden = _about(caller)
    return Page(items=tuple(WorkflowView.of(record, pauses, limits, hidden) for record in _known(caller)))


@operation(role=READER, limited="kept", errors=(UnknownWorkflowName,), command="workflows list")
def get(caller: Caller, workflow: str) -> WorkflowWhole:
    """One workflow: its queue, its arguments, the policy of its jobs, what shuts and limits it, and how far its
    breaker is from shutting it out."""
    found = caller.store.workflow(workflow, caller.one)
    if found is None or not _sees(caller, found):
        raise UnknownWorkflowName(workflow, (known.name for known in _known(caller)))
    breaker = BreakerView.of(caller.store.breaker_stand(caller.one, found.name))
    return WorkflowWhole.of(found, *_about(caller), breaker=breaker)


@operation(role=OPERATOR, limited="workflow", effect="change", whose="any", repeat="same", audited="workflows.pause")
def pause(
    caller: Caller,
    workflow: str,
    *,
    seconds: Duration | None = None,
    until: datetime | None = None,
    reason: str | None = None,
) -> PauseView:
    """Start nothing new of a workflow. What runs goes on, what comes waits."""
    return gating.pause(caller, "workflow", workflow, seconds, until, reason)


@operation(
    role=OPERATOR, limited="workflow", effect="change", whose="any", repeat="same", audited="workflows.unpause"
)
def unpause(caller: Caller, workflow: str) -> UnpauseView:
    """Lift the pause of a workflow."""
    return gating.unpause(caller, "workflow", workflow)


@operation(role=OPERATOR, limited="workflow", effect="change", whose="any", repeat="same", audited="workflows.limit")
def limit(
    caller: Caller,
    workflow: str,
    *,
    concurrency: int | Unsaid | None = UNSAID,
    rate: str | Unsaid | None = UNSAID,
    each_key: bool = False,
) -> LimitChange:
    """Limit how much of a workflow, or of each of its limit keys, runs at once or starts in a time ("100/m"). What is
    not named stays as it stands, None lifts it."""
    return gating.limit(caller, _kind(each_key), workflow, concurrency=concurrency, rate=rate)


@operation(
    role=OPERATOR,
    limited="workflow",
    effect="change",
    whose="any",
    repeat="same",
    audited="workflows.unlimit",
    command="workflows limit",
)
def unlimit(caller: Caller, workflow: str, *, each_key: bool = False) -> LimitChange:
    """Lift what was set. What the code says holds again at once."""
    return gating.unlimit(caller, _kind(each_key), workflow)


def _known(caller: Caller) -> list[WorkflowRecord]:
    return [record for record in caller.store.workflows(caller.one) if _sees(caller, record)]


def _sees(caller: Caller, record: WorkflowRecord) -> bool:
    return caller.workflows is None or record.name in caller.workflows


def _kind(each_key: bool) -> LimitKind:
    return "workflow_key" if each_key else "workflow"


def _about(caller: Caller) -> tuple[list[PauseView], list[LimitView], Redactions]:
    """What shuts workflows, what limits them, and what is hidden of their jobs."""
    pauses = [PauseView.of(p) for p in caller.gates.pauses() if p.kind == "workflow"]
    limits = [LimitView.of(x) for x in caller.gates.limits() if x.kind in ("workflow", "workflow_key")]
    return pauses, limits, caller.store.redactions(caller.one)  # the names that it hides are no secret
