"""Many submits in one request, each with its own answer."""

from __future__ import annotations

from typing import Any

from unstuck.model.errors import UnstuckError, WrongArguments
from unstuck.operations.routes import PREFIX, arguments, routes
from unstuck.operations.table import Caller
from unstuck.server.endpoints import Endpoint, call, idempotency_key, with_key
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.problems import problem_of
from unstuck.views import plain

MOST = 1000


def endpoints() -> list[Endpoint]:
    return [Endpoint("POST", f"{PREFIX}/jobs/batch", enqueue)]


def enqueue(caller: Caller, exchange: Exchange) -> HttpAnswer:
    """{"jobs": [{"workflow": …}, …]}: `items` answers each in its place, with its job or its problem."""
    route = routes()["jobs.enqueue"]
    route.operation.admitted(caller)
    body = exchange.json
    asked = body.get("jobs") if isinstance(body, dict) else None
    if not isinstance(asked, list) or set(body) - {"jobs"}:
        raise WrongArguments([("body", "/jobs", "it is not a list of submits, and nothing else is taken")])
    if len(asked) > MOST:
        raise WrongArguments([("body", "/jobs", f"there are {len(asked):,}; the limit is {MOST:,}")])
    key = idempotency_key(route, exchange)
    return HttpAnswer.of({"items": [_one(caller, exchange, one, key, number) for number, one in enumerate(asked)]})


def _one(caller: Caller, exchange: Exchange, asked: Any, key: str | None, number: int) -> dict[str, Any]:
    route = routes()["jobs.enqueue"]
    try:
        body = asked if key is None else with_key(route, asked, f"{key}#{number}")
        args, kwargs = arguments(route, {}, exchange.query, {} if body is None else body)
        view = call(route, caller, args, kwargs)
    except UnstuckError as error:
        problem = problem_of(error, exchange.request_id, exchange.root)
        return {"status": problem.status, "job": None, "problem": problem.body}
    return {"status": 201 if view.created else 200, "job": plain(view), "problem": None}
