"""The paths and field names by which others know such things, beside our own: asked of the same operations."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import msgspec

from unstuck.model.errors import UnknownJob, WrongArguments
from unstuck.model.lifecycle import JobState
from unstuck.operations import jobs
from unstuck.operations.routes import PREFIX, HttpRoute, arguments, routes
from unstuck.operations.table import Caller
from unstuck.server.endpoints import Endpoint, about, call
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.views import View
from unstuck.views.guard import BlacklistView

BLACKLIST = "/api/platform/blacklist"


def endpoints() -> list[Endpoint]:
    return [
        Endpoint("GET", f"{PREFIX}/jobs/{{job}}/status", status),
        Endpoint("GET", BLACKLIST, entries),
        Endpoint("POST", BLACKLIST, shut_out),
        Endpoint("DELETE", f"{BLACKLIST}/{{workflow}}", let_in),
        Endpoint("POST", "/targets/{target}/jobs/{job}/resume/", resume),
    ]


def documented() -> dict[tuple[str, str], HttpRoute]:
    """By path and operationId, each as the route of ours that it asks, with what is told otherwise."""
    known = routes()
    added = known["blacklist.add"].body
    assert added is not None
    fields = msgspec.structs.fields(added)
    renamed: list[Any] = [
        ("workflow_id", str),
        *((f.name, f.type, f.default) for f in fields if f.name != "workflow"),
    ]
    body = msgspec.defstruct("BlacklistedWorkflow", renamed, kw_only=True, forbid_unknown_fields=True)
    resumed = known["jobs.resume"]
    return {
        (f"{PREFIX}/jobs/{{job}}/status", "jobs.status"): replace(known["jobs.wait"], answer=JobStatus),
        (BLACKLIST, "platform.blacklist.list"): replace(known["blacklist.list"], answer=list[ListedWorkflow]),
        (BLACKLIST, "platform.blacklist.add"): replace(known["blacklist.add"], body=body, answer=Success, status=200),
        (f"{BLACKLIST}/{{workflow}}", "platform.blacklist.remove"): replace(
            known["blacklist.remove"], answer=Success
        ),
        ("/targets/{target}/jobs/{job}/resume/", "targets.resume"): replace(
            resumed, names={"target": str, **resumed.names}
        ),
    }


def _asked(
    name: str, caller: Caller, exchange: Exchange, body: Any = None
) -> tuple[HttpRoute, tuple[Any, ...], dict[str, Any]]:
    route = routes()[name]
    route.operation.admitted(caller)
    return route, *arguments(route, exchange.path, exchange.query, body)


class JobStatus(View, frozen=True, kw_only=True):
    """Where a job stands, in one flat object."""

    id: str
    status: JobState
    worker_id: str | None
    lease_owner: str | None
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    retry_count: int
    error_type: str | None
    error_message: str | None
    duration_ms: int | None


class ListedWorkflow(View, frozen=True, kw_only=True):
    """An entry of the blacklist; `blacklisted_by` None: the breaker made it."""

    id: int
    workflow_id: str
    reason: str
    blacklisted_at: datetime
    blacklisted_by: str | None
    stuck_count: int | None
    removed_at: datetime | None
    removed_by: str | None
    tenant: str


class Success(View, frozen=True, kw_only=True):
    success: bool = True


def status(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """One question to the database: it is what is asked most, again and again."""
    route, args, kwargs = _asked("jobs.wait", caller, exchange)
    who = route.operation.asking(about(caller, kwargs), *args)
    job = who.lookup.job(args[0])
    view = JobStatus(
        id=job.id,
        status=job.state,
        worker_id=job.worker,
        lease_owner=job.worker,
        heartbeat_at=job.heartbeat_at,
        lease_expires_at=job.lease_until,
        cancel_requested=job.request is not None,
        retry_count=job.failures,
        error_type=job.error_type,
        error_message=job.error_message,
        duration_ms=job.duration_ms,
    )
    return HttpAnswer.of(view).unless_known(exchange)


def entries(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """Everything that stands on the blacklist; no tenant named means all of them."""
    route, args, kwargs = _asked("blacklist.list", caller, exchange)
    page = call(route, caller, args, kwargs)
    return HttpAnswer.of([_entry(entry) for entry in page]).unless_known(exchange)


def _entry(entry: BlacklistView) -> ListedWorkflow:
    return ListedWorkflow(
        id=entry.number,
        workflow_id=entry.workflow,
        reason=entry.reason,
        blacklisted_at=entry.blacklisted_at,
        blacklisted_by=None if entry.auto else entry.blacklisted_by,
        stuck_count=entry.stuck_count,
        removed_at=entry.removed_at,
        removed_by=entry.removed_by,
        tenant=entry.tenant,
    )


def shut_out(caller: Caller, exchange: Exchange) -> HttpAnswer:
    routes()["blacklist.add"].operation.admitted(caller)
    body = exchange.json
    if not isinstance(body, dict) or "workflow_id" not in body:
        raise WrongArguments([("body", "/workflow_id", "it is missing")])
    renamed = {("workflow" if name == "workflow_id" else name): value for name, value in body.items()}
    route, args, kwargs = _asked("blacklist.add", caller, exchange, renamed)
    call(route, caller, args, kwargs)
    return HttpAnswer.of(Success())


def let_in(caller: Caller, exchange: Exchange) -> HttpAnswer:
    route, args, kwargs = _asked("blacklist.remove", caller, exchange)
    call(route, caller, args, kwargs)
    return HttpAnswer.of(Success())


def resume(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """A job that is not on the target is not there."""
    route, args, kwargs = _asked("jobs.resume", caller, exchange, exchange.json)
    about = caller.about(kwargs.get("tenant"))
    found = jobs.wait(about, args[0], timeout=0)
    if found.target != unquote(exchange.path["target"]):
        raise UnknownJob(args[0])
    return HttpAnswer.of(call(route, caller, (found.id,), kwargs))
