"""Which jobs are meant: the same words for a list, a count and a bulk."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from unstuck.model.call import check_argument
from unstuck.model.errors import NotPermitted
from unstuck.model.payload import check_instant, check_wording
from unstuck.observe.lookup import State, as_shown, each_state
from unstuck.operations.table import TENANT_ADMIN, Caller
from unstuck.store.port import JobFilter


def job_filter(
    caller: Caller,
    *,
    state: State | Iterable[State] = (),
    workflow: str | None = None,
    queue: str | None = None,
    error_type: str | None = None,
    target: str | None = None,
    tag: str | None = None,
    before: datetime | None = None,
    since: datetime | None = None,
    argument: tuple[str, Any] | None = None,
) -> JobFilter:
    """Checked; what is not said is not asked for. Who searched for the value of what is hidden would come to know
    it."""
    wanted = JobFilter(
        states=tuple(as_shown(name) for name in each_state(state)),
        workflow=check_wording(workflow, "workflow"),
        queue=check_wording(queue, "queue"),
        error_type=check_wording(error_type, "error_type"),
        target=check_wording(target, "target"),
        tag=check_wording(tag, "tag"),
        before=None if before is None else check_instant(before, "before"),
        since=None if since is None else check_instant(since, "since"),
        argument=None if argument is None else check_argument(argument),
    )
    if wanted.argument is not None and caller.redactions.covers(wanted.argument.name, wanted.workflow):
        raise NotPermitted(
            f"the argument {wanted.argument.name} is redacted: to search by it needs the role {TENANT_ADMIN}; "
            f"{caller.by} is {caller.role}"
        )
    return wanted
