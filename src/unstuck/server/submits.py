"""Submits, one in a request or many: each joins those of other requests, and has its own answer."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from unstuck.model.errors import WrongArguments
from unstuck.operations import submitting
from unstuck.operations.routes import PREFIX, HttpRoute, arguments, check_query, routes
from unstuck.operations.submitting import AskedJob
from unstuck.operations.table import Caller
from unstuck.operations.together import Together
from unstuck.server.endpoints import Endpoint, about, answer_of, asked_of, idempotency_key, with_key
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.problems import problem_of
from unstuck.views import View
from unstuck.views.jobs import NewJobView

MOST = 1000


class BatchItem(View, frozen=True, kw_only=True):
    """What one of many submits is answered with: its job, or its problem."""

    status: int
    job: NewJobView | None
    problem: dict[str, Any] | None


class BatchAnswer(View, frozen=True, kw_only=True):
    items: tuple[BatchItem, ...]


def documented() -> dict[tuple[str, str], HttpRoute]:
    """By path and operationId, as the route of ours that it asks, with what is told otherwise."""
    route = routes()["jobs.enqueue"]
    one: Any = route.body
    jobs = Annotated[list[one], Meta(max_length=MOST)]
    body = msgspec.defstruct("Batch", [("jobs", jobs)], forbid_unknown_fields=True)
    return {(f"{PREFIX}/jobs/batch", "jobs.batch"): replace(route, body=body, answer=BatchAnswer, status=200)}


class Submits:
    def __init__(self, together: Together) -> None:
        self._together = together

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("POST", f"{PREFIX}/jobs", self.enqueue),
            Endpoint("POST", f"{PREFIX}/jobs/batch", self.enqueue_all),
        ]

    def enqueue(self, caller: Caller, exchange: Exchange) -> Future[HttpAnswer]:
        route, answer = routes()["jobs.enqueue"], _begun()
        asked = _asked(caller, *asked_of(route, caller, exchange))

        def tell(outcome: NewJobView | Exception) -> None:
            try:
                if isinstance(outcome, Exception):
                    raise outcome
                answer.set_result(answer_of(route, exchange, outcome))
            except Exception as error:
                answer.set_exception(error)

        self._together.join([(asked, tell)])
        return answer

    def enqueue_all(self, caller: Caller, exchange: Exchange) -> Future[HttpAnswer]:
        """{"jobs": [{"workflow": …}, …]}: `items` answers each in its place, with its job or its problem."""
        route = routes()["jobs.enqueue"]
        route.operation.admitted(caller)
        body = exchange.json
        bodies = body.get("jobs") if isinstance(body, dict) else None
        if not isinstance(bodies, list) or set(body) - {"jobs"}:
            raise WrongArguments([("body", "/jobs", "it is not a list of submits, and nothing else is taken")])
        if len(bodies) > MOST:
            raise WrongArguments([("body", "/jobs", f"there are {len(bodies):,}; the limit is {MOST:,}")])
        check_query(route, exchange.query)
        key = idempotency_key(route, exchange)
        items, joined, ids = _Items(exchange, len(bodies)), [], set[str]()
        for number, one in enumerate(bodies):
            try:
                said = one if key is None else with_key(route, one, f"{key}#{number}")
                args, kwargs = arguments(route, {}, exchange.query, said)
                asked = _asked(caller, args, kwargs, ids)
            except Exception as error:
                items.put(number, error)
                continue
            joined.append((asked, partial(items.put, number)))
            if asked.options.id is not None:
                ids.add(asked.options.id)
        self._together.join(joined)
        return items.answer


def _asked(caller: Caller, args: tuple[Any, ...], kwargs: dict[str, Any], before: Collection[str] = ()) -> AskedJob:
    who = routes()["jobs.enqueue"].operation.admitted(about(caller, kwargs))
    return submitting.asked(who, *args, before=before, **kwargs)


def _begun() -> Future[HttpAnswer]:
    """Whoever waits for it may leave: it is not cancelled by that."""
    future: Future[HttpAnswer] = Future()
    future.set_running_or_notify_cancel()
    return future


class _Items:
    """The answers of one request, each in its place; `answer` is there once all are."""

    def __init__(self, exchange: Exchange, count: int) -> None:
        self.answer = _begun()
        self._exchange = exchange
        self._lock = threading.Lock()
        self._left = count
        self._items: list[dict[str, Any]] = [{}] * count
        if not count:
            self._finish()

    def put(self, number: int, outcome: NewJobView | Exception) -> None:
        try:
            self._items[number] = self._item(number, outcome)
        except Exception as error:
            self._items[number] = self._item(number, error)
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._finish()

    def _item(self, number: int, outcome: NewJobView | Exception) -> dict[str, Any]:
        if not isinstance(outcome, Exception):
            return {"status": 201 if outcome.created else 200, "job": outcome, "problem": None}
        place = f"/jobs/{number}"
        if isinstance(outcome, WrongArguments):
            said = outcome.problems
            outcome = WrongArguments(
                [(where, place + at if where == "body" else at, what) for where, at, what in said]
            )
        problem = problem_of(outcome, self._exchange.request_id, self._exchange.root)
        if problem.status == 500:
            logging.getLogger("unstuck").error(
                "request %s failed at %s", self._exchange.request_id, place, exc_info=outcome
            )
        return {"status": problem.status, "job": None, "problem": {**problem.body, "pointer": place}}

    def _finish(self) -> None:
        try:
            self.answer.set_result(HttpAnswer.of({"items": self._items}))
        except Exception as error:
            self.answer.set_exception(error)
