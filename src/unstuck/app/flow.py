"""Flow: events that are sent and approvals that are decided, as a program does it."""

from __future__ import annotations

import builtins
from typing import Any

from unstuck.app.engine import Engine
from unstuck.app.job import Job
from unstuck.intake.flow import FlowVerbs
from unstuck.model.errors import InvalidInput
from unstuck.model.waits import Signalled, WaitRecord
from unstuck.observe.flow import Approval, approvals
from unstuck.store.port import EVERY


class Approvals:
    """`app.approvals`: the questions that jobs ask of people. In coroutines: `await app.in_thread(…)`."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def list(
        self, *, tenant: str | None = None, after: str | None = None, limit: int = 100
    ) -> builtins.list[Approval]:
        """Those that nobody has decided, the oldest first. `tenant="*"`: everybody's."""
        whose = None if tenant == EVERY else self._engine.whose(tenant)
        return approvals(self._engine.store, whose, after=after, limit=limit)

    def approve(
        self, approval: Approval | Job[Any] | str, *, by: str | None = None, comment: str | None = None
    ) -> WaitRecord:
        """Exactly this question; of a job or its id, the one that is open. NotWaiting if somebody was faster."""
        flow, job, key = self._meant(approval)
        return flow.approve(job, by=by, comment=comment, key=key)

    def reject(
        self, approval: Approval | Job[Any] | str, *, by: str | None = None, comment: str | None = None
    ) -> WaitRecord:
        flow, job, key = self._meant(approval)
        return flow.reject(job, by=by, comment=comment, key=key)

    def _meant(self, approval: Approval | Job[Any] | str) -> tuple[FlowVerbs, str, str | None]:
        if isinstance(approval, Approval):
            return self._engine.flow(approval.tenant), approval.job, approval.key
        tenant, job = named(self._engine, approval, None)
        return self._engine.flow(tenant), job, None


def signal(
    engine: Engine,
    job: Job[Any] | str | None,
    event: str | None,
    payload: Any,
    *,
    topic: str | None,
    tenant: str | None,
    by: str | None,
) -> Signalled:
    """What `app.signal` does."""
    if event is None:
        raise InvalidInput("an event needs a name: app.signal(job, event) or app.signal(topic=…, event=…)")
    if job is not None and topic is not None:
        raise InvalidInput("an event is sent to a job or to a topic, not to both")
    if job is None:
        return engine.flow(tenant).signal(event, payload, topic=topic, by=by)
    whose, ident = named(engine, job, tenant)
    return engine.flow(whose).signal(event, payload, job=ident, by=by)


def named(engine: Engine, job: Job[Any] | str, tenant: str | None) -> tuple[str, str]:
    """Tenant and whole id of a job that is given by handle, id, or enough of its beginning."""
    if isinstance(job, Job):
        if tenant is not None and tenant != job.tenant:
            raise InvalidInput(f"job {job.id} is of tenant {job.tenant}, not {tenant}")
        return job.tenant, job.id
    return engine.whose(tenant), engine.lookup(tenant).job_id(job)
