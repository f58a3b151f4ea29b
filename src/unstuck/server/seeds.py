"""The paths and field names by which others know such things, beside our own: asked of the same operations."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from unstuck.model.errors import UnknownJob, WrongArguments
from unstuck.operations import jobs
from unstuck.operations.routes import PREFIX, HttpRoute, arguments, routes
from unstuck.operations.table import Caller
from unstuck.server.endpoints import Endpoint, call
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.views import rfc3339
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


def _asked(
    name: str, caller: Caller, exchange: Exchange, body: Any = None
) -> tuple[HttpRoute, tuple[Any, ...], dict[str, Any]]:
    route = routes()[name]
    route.operation.admitted(caller)
    return route, *arguments(route, exchange.path, exchange.query, body)


def status(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """Where a job stands, in one flat object."""
    route, args, kwargs = _asked("jobs.wait", caller, exchange)
    job = call(route, caller, args, {**kwargs, "timeout": 0})
    return HttpAnswer.of(
        {
            "id": job.id,
            "status": job.state,
            "worker_id": job.worker,
            "lease_owner": job.worker,
            "heartbeat_at": rfc3339(job.heartbeat_at),
            "lease_expires_at": rfc3339(job.lease_until),
            "cancel_requested": job.request is not None,
            "retry_count": job.failures,
            "error_type": job.error_type,
            "error_message": job.error_message,
            "duration_ms": job.duration_ms,
        }
    ).unless_known(exchange)


def entries(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """Everything that stands on the blacklist; no tenant named means all of them."""
    route, args, kwargs = _asked("blacklist.list", caller, exchange)
    page = call(route, caller, args, kwargs)
    return HttpAnswer.of([_entry(entry) for entry in page]).unless_known(exchange)


def _entry(entry: BlacklistView) -> dict[str, Any]:
    return {
        "id": entry.number,
        "workflow_id": entry.workflow,
        "reason": entry.reason,
        "blacklisted_at": rfc3339(entry.blacklisted_at),
        "blacklisted_by": None if entry.auto else entry.blacklisted_by,
        "stuck_count": entry.stuck_count,
        "removed_at": rfc3339(entry.removed_at),
        "removed_by": entry.removed_by,
        "tenant": entry.tenant,
    }


def shut_out(caller: Caller, exchange: Exchange) -> HttpAnswer:
    routes()["blacklist.add"].operation.admitted(caller)
    body = exchange.json
    if not isinstance(body, dict) or "workflow_id" not in body:
        raise WrongArguments([("body", "/workflow_id", "it is missing")])
    renamed = {("workflow" if name == "workflow_id" else name): value for name, value in body.items()}
    route, args, kwargs = _asked("blacklist.add", caller, exchange, renamed)
    call(route, caller, args, kwargs)
    return HttpAnswer.of({"success": True})


def let_in(caller: Caller, exchange: Exchange) -> HttpAnswer:
    route, args, kwargs = _asked("blacklist.remove", caller, exchange)
    call(route, caller, args, kwargs)
    return HttpAnswer.of({"success": True})


def resume(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """A job that is not on the target is not there."""
    route, args, kwargs = _asked("jobs.resume", caller, exchange, exchange.json)
    about = caller.about(kwargs.get("tenant"))
    found = jobs.wait(about, args[0], timeout=0)
    if found.target != unquote(exchange.path["target"]):
        raise UnknownJob(args[0])
    return HttpAnswer.of(call(route, caller, (found.id,), kwargs))
