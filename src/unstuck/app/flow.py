"""Flow: events that are sent, approvals that are decided, and what a job has done so far, as a program sees them."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from unstuck.intake.arguments import decode_result
from unstuck.intake.flow import FlowVerbs
from unstuck.model.errors import InvalidInput
from unstuck.model.parts import Part
from unstuck.model.waits import Signalled, StepRecord, WaitRecord
from unstuck.observe.flow import Approval, approvals
from unstuck.store.port import EVERY

if TYPE_CHECKING:
    from unstuck.app import App
    from unstuck.app.job import Job


@dataclass(frozen=True, slots=True)
class Step:
    """A step that a job has finished. `result` is what every later attempt gets for it; `attempt` made it."""

    name: str
    ordinal: int
    result: Any
    run: int
    attempt: int
    at: datetime
    duration_ms: int

    @classmethod
    def of(cls, record: StepRecord) -> Step:
        result = decode_result(record.result)
        return cls(record.name, record.ordinal, result, record.run, record.token, record.at, record.duration_ms)


@dataclass(frozen=True, slots=True)
class Partial:
    """A part of a job's result, given before its end. `number` grows with each; `attempt` gave it."""

    name: str
    value: Any
    number: int
    run: int
    attempt: int
    at: datetime

    @classmethod
    def of(cls, part: Part) -> Partial:
        return cls(part.name, decode_result(part.value), part.number, part.run, part.token, part.at)


class Approvals:
    """`app.approvals`: the questions that jobs ask of people. In coroutines: `await app.in_thread(…)`."""

    __slots__ = ("_app",)

    def __init__(self, app: App) -> None:
        self._app = app

    def list(
        self, *, tenant: str | None = None, after: str | None = None, limit: int = 100
    ) -> builtins.list[Approval]:
        """Those that nobody has decided, the oldest first. `tenant="*"`: everybody's."""
        whose = None if tenant == EVERY else self._app.whose(tenant)
        return approvals(self._app.store, whose, after=after, limit=limit)

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
            return self._app.flow(approval.tenant), approval.job, approval.key
        tenant, job = named(self._app, approval, None)
        return self._app.flow(tenant), job, None


def signal(
    app: App,
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
        return app.flow(tenant).signal(event, payload, topic=topic, by=by)
    whose, ident = named(app, job, tenant)
    return app.flow(whose).signal(event, payload, job=ident, by=by)


def named(app: App, job: Job[Any] | str, tenant: str | None) -> tuple[str, str]:
    """Tenant and whole id of a job that is given by handle, id, or enough of its beginning."""
    from unstuck.app.job import Job

    if isinstance(job, Job):
        if tenant is not None and tenant != job.tenant:
            raise InvalidInput(f"job {job.id} is of tenant {job.tenant}, not {tenant}")
        return job.tenant, job.id
    return app.whose(tenant), app.lookup(tenant).job_id(job)
