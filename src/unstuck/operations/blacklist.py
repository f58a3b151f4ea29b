"""The blacklist: workflows of which nothing is accepted or started."""

from __future__ import annotations

from unstuck.model.errors import NotBlacklisted
from unstuck.operations.kinds import Cursor, number_of
from unstuck.operations.table import READER, TENANT_ADMIN, Caller, operation
from unstuck.views import Page
from unstuck.views.guard import BlacklistAdded, BlacklistRemoved, BlacklistView


@operation(role=READER, whose="own")
def list_(caller: Caller) -> Page[BlacklistView]:
    """What stands, the oldest first: why, by whom, since when."""
    return Page(items=tuple(BlacklistView.of(entry) for entry in caller.guard.entries()))


@operation(role=TENANT_ADMIN, effect="change", whose="own", repeat="same", audited="blacklist.add")
def add(caller: Caller, workflow: str, *, reason: str | None = None) -> BlacklistAdded:
    """Shut a workflow out on every path. What runs goes on; what waits fails, or is held by its own policy. One that
    is out already stays so, with the reason it had."""
    entry, is_new = caller.guard.add(workflow, reason)
    return BlacklistAdded.of(entry, created=is_new)


@operation(
    role=TENANT_ADMIN,
    effect="change",
    whose="own",
    repeat="refused",
    audited="blacklist.remove",
    errors=(NotBlacklisted,),
)
def remove(caller: Caller, workflow: str) -> BlacklistRemoved:
    """Let a workflow run again. Its stuck executions count from 0, and what was held goes on."""
    removed = caller.guard.remove(workflow)
    left = [entry for entry in caller.store.blacklist(caller.own) if entry.workflow == workflow]
    return BlacklistRemoved(
        workflow=workflow,
        removed=tuple(BlacklistView.of(entry) for entry in removed),
        left=tuple(BlacklistView.of(entry) for entry in left),
    )


@operation(role=READER, whose="own", paged="after")
def history(
    caller: Caller, workflow: str | None = None, *, after: Cursor | None = None, limit: int = 50
) -> Page[BlacklistView]:
    """Everything that ever was on it, the newest first: who, when, why, and who lifted it when."""
    found = caller.guard.history(workflow, before=number_of(after), limit=limit)
    items = tuple(BlacklistView.of(entry) for entry in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == limit else None)
