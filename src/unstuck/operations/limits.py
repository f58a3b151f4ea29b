"""Limits: how many run at once, start in a time, or wait. Those of keys are set here, others with their noun."""

from __future__ import annotations

from unstuck.operations import gating
from unstuck.operations.kinds import UNSAID, Unsaid
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.gates import LimitChange, LimitView


@operation(role=READER, whose="any")
def list_(caller: Caller) -> Page[LimitView]:
    """Every limit that counts something of this tenant; with `tenant="*"` all there are."""
    return Page(items=tuple(LimitView.of(x) for x in caller.gates.limits(tenant=caller.tenant)))


@operation(
    role=OPERATOR, effect="change", whose="any", repeat="same", audited="keys.limit", command="limits key",
    route="POST /limits/keys/{name}",
)  # fmt: skip
def key(
    caller: Caller,
    name: str,
    *,
    concurrency: int | Unsaid | None = UNSAID,
    rate: str | Unsaid | None = UNSAID,
) -> LimitChange:
    """Limit the jobs of a key, with "family:*" of each key of it, with "*" of each key. Jobs get one by their
    workflow's limit_key="host:{host}" or when they are enqueued."""
    return gating.limit(caller, "key", name, concurrency=concurrency, rate=rate)


@operation(
    role=OPERATOR, effect="change", whose="any", repeat="same", audited="keys.unlimit", command="limits key",
    route="DELETE /limits/keys/{name}",
)  # fmt: skip
def unlimit_key(caller: Caller, name: str) -> LimitChange:
    """Lift the limit of a key."""
    return gating.unlimit(caller, "key", name)
