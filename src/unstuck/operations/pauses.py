"""Pauses: everything that somebody paused, in one list. Set with their noun: queues, targets, tenants, workflows."""

from __future__ import annotations

from unstuck.operations.table import READER, Caller, operation
from unstuck.views import Page
from unstuck.views.gates import PauseView


@operation(role=READER, whose="any", command="pauses")
def list_(caller: Caller) -> Page[PauseView]:
    """Those in force that shut something of this tenant; with `tenant="*"` all there are."""
    return Page(items=tuple(PauseView.of(p) for p in caller.gates.pauses(tenant=caller.tenant)))
