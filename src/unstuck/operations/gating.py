"""What pausing and limiting mean for every noun that can be paused and limited; the nouns' modules offer it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.operations.kinds import Duration, seconds_or_none
from unstuck.operations.table import Caller
from unstuck.store.port import EVERY, Limit, LimitKind, PauseKind
from unstuck.views.gates import LimitChange, LimitView, PauseView, UnpauseView


def pause(
    caller: Caller, kind: PauseKind, name: str, seconds: Duration | None, until: datetime | None, reason: str | None
) -> PauseView:
    lasting = seconds_or_none(seconds, "seconds")
    return PauseView.of(
        caller.gates.pause(kind, name, tenant=caller.tenant, lasting=lasting, until=until, reason=reason)
    )


def unpause(caller: Caller, kind: PauseKind, name: str) -> UnpauseView:
    lifted = caller.gates.unpause(kind, name, tenant=caller.tenant)
    found = caller.gates.pauses(tenant=caller.tenant)
    left = tuple(PauseView.of(p) for p in found if (p.kind, p.name) == (kind, name))
    return UnpauseView(kind=kind, name=name, lifted=lifted, left=left)


def limit(caller: Caller, kind: LimitKind, name: str, **changes: Any) -> LimitChange:
    """What is not said stays as it stands; None lifts that part."""
    before = _standing(caller, kind, name)
    now = caller.gates.change_limit(kind, name, tenant=caller.tenant, **changes)
    return _change(kind, name, now, before)


def unlimit(caller: Caller, kind: LimitKind, name: str) -> LimitChange:
    before = _standing(caller, kind, name)
    caller.gates.unlimit(kind, name, tenant=caller.tenant)
    return _change(kind, name, _standing(caller, kind, name), before)


def _change(kind: LimitKind, name: str, now: Limit | None, before: Limit | None) -> LimitChange:
    view, earlier = (LimitView.of(limit) if limit else None for limit in (now, before))
    return LimitChange(kind=kind, name=name, limit=view, before=earlier)


def _standing(caller: Caller, kind: LimitKind, name: str) -> Limit | None:
    owner = name if kind == "tenant" else caller.one
    found = caller.gates.limits(tenant=EVERY)
    return next((x for x in found if (x.kind, x.name, x.tenant) == (kind, name, owner)), None)
