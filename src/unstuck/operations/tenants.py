"""Tenants: whose jobs; their shares, pauses and limits."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.errors import UnknownTenant
from unstuck.model.lifecycle import JobState
from unstuck.operations import gating
from unstuck.operations.kinds import UNSAID, Duration, Unsaid
from unstuck.operations.table import PLATFORM_ADMIN, Caller, operation
from unstuck.store.port import EVERY, TenantRecord
from unstuck.views import Page
from unstuck.views.gates import LimitChange, LimitView, PauseView, TenantView, TenantWhole, UnpauseView, WeightView

BLOCKED_SHOWN = 100


@operation(role=PLATFORM_ADMIN, whose="platform", paged="after")
def list_(caller: Caller, *, after: str = "", limit: int = 20) -> Page[TenantView]:
    """The tenants by name, above `after`: all that have a weight of their own or ever had a job."""
    found = caller.gates.tenants(after=after, limit=limit)
    items = tuple(TenantView(**_facts(caller, record)) for record in found)
    return Page(items=items, next=items[-1].name if len(items) == limit else None)


@operation(role=PLATFORM_ADMIN, whose="platform", errors=(UnknownTenant,), command="tenants show")
def get(caller: Caller, name: str) -> TenantWhole:
    """One tenant: its jobs by state, its weight, and every pause and limit that touches it."""
    facts = _facts(caller, caller.gates.tenant(name))
    facts["pauses"] = tuple(PauseView.of(p) for p in caller.gates.pauses(tenant=name))
    facts["limits"] = tuple(LimitView.of(x) for x in caller.gates.limits(tenant=name))
    blocked = caller.store.targets(name, blocked=True, limit=BLOCKED_SHOWN)
    return TenantWhole(**facts, blocked_targets=tuple(target.name for target in blocked))


@operation(
    role=PLATFORM_ADMIN,
    effect="change",
    whose="platform",
    repeat="same",
    audited="tenants.pause",
    errors=(UnknownTenant,),
)
def pause(
    caller: Caller,
    name: str,
    *,
    seconds: Duration | None = None,
    until: datetime | None = None,
    reason: str | None = None,
) -> PauseView:
    """Start nothing new of a tenant. What runs goes on, what comes waits."""
    return gating.pause(caller, "tenant", name, seconds, until, reason)


@operation(
    role=PLATFORM_ADMIN,
    effect="change",
    whose="platform",
    repeat="same",
    audited="tenants.unpause",
    errors=(UnknownTenant,),
)
def unpause(caller: Caller, name: str) -> UnpauseView:
    """Lift the pause of a tenant."""
    return gating.unpause(caller, "tenant", name)


@operation(
    role=PLATFORM_ADMIN, effect="change", whose="platform", repeat="same", audited="tenants.weight",
    command="tenants weight",
)  # fmt: skip
def weigh(caller: Caller, name: str, weight: int) -> WeightView:
    """How many turns a tenant gets for each turn of a tenant of weight 1. Workers take it up within some seconds."""
    record = caller.gates.weigh(name, weight)
    return WeightView(name=record.name, weight=record.weight)


@operation(role=PLATFORM_ADMIN, effect="change", whose="platform", repeat="same", audited="tenants.limit")
def limit(
    caller: Caller,
    name: str,
    *,
    concurrency: int | Unsaid | None = UNSAID,
    rate: str | Unsaid | None = UNSAID,
    max_queued: int | Unsaid | None = UNSAID,
) -> LimitChange:
    """Limit how much of a tenant, with "*" of each tenant by itself, runs at once, starts in a time ("100/m") or
    waits. What is not named stays as it stands, None lifts it."""
    return gating.limit(caller, "tenant", name, concurrency=concurrency, rate=rate, max_queued=max_queued)


@operation(
    role=PLATFORM_ADMIN, effect="change", whose="platform", repeat="same", audited="tenants.unlimit",
    command="tenants limit",
)  # fmt: skip
def unlimit(caller: Caller, name: str) -> LimitChange:
    """Lift what was set."""
    return gating.unlimit(caller, "tenant", name)


def _facts(caller: Caller, record: TenantRecord) -> dict[str, Any]:
    tally = caller.store.tally(record.name)
    pauses = caller.gates.pauses(tenant=record.name)
    limits = [x for x in caller.gates.limits(tenant=record.name) if x.kind == "tenant"]
    #: Its own, else those that hold for each tenant.
    holding = [x for x in limits if x.name == record.name] or [x for x in limits if x.name == EVERY]
    return {
        "name": record.name,
        "weight": record.weight,
        "states": {state: tally.states[state] for state in JobState},
        "at_least": tuple(state for state in JobState if state in tally.at_least),
        "scheduled": tally.scheduled,
        "blocked": tally.blocked,
        "pauses": tuple(PauseView.of(p) for p in pauses if p.kind == "tenant"),
        "limits": tuple(LimitView.of(x) for x in holding),
    }
