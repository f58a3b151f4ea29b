"""The API: an ASGI application made from the table of operations. It only finds the endpoint, reads the body and
answers; everything else happens on the threads of a lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from unstuck.operations.together import Together
from unstuck.server import bodies, endpoints, openapi, seeds
from unstuck.server.door import HttpDoor
from unstuck.server.endpoints import Endpoint, Endpoints
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.lanes import Lane
from unstuck.server.metrics import ServerMetrics
from unstuck.server.problems import MEDIA_TYPE, HttpProblem, page_of, problem_of
from unstuck.server.rates import Rates
from unstuck.server.submits import Submits

#: Threads for what waits for more than the database. Nothing stands in line for one: it would wait twice.
PATIENT = 32

_SAFE = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Vary": "Authorization",
}


def all_endpoints(together: Together) -> list[Endpoint]:
    return [*endpoints.of_routes(), *Submits(together).endpoints(), *seeds.endpoints()]


class Api:
    """`is_ready`: asks the database; it runs on a thread."""

    def __init__(
        self, door: HttpDoor, metrics: ServerMetrics, *, rates: Rates | None, is_ready: Callable[[], bool]
    ) -> None:
        self._door = door
        self._metrics = metrics
        self._rates = rates
        self._is_ready = is_ready
        self._together = Together()
        self._endpoints = Endpoints(all_endpoints(self._together))
        self._lane = Lane("http")
        self._patient = Lane("http-waits", PATIENT, waiting=0)
        self.is_leaving = False

    def close(self) -> None:
        """What runs is finished."""
        self.is_leaving = True
        self._lane.close()
        self._patient.close()
        self._metrics.close()
        self._together.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope)
        try:
            answer = await self._answer(exchange, receive)
        except ClientDisconnect:
            return
        except Exception as error:
            answer = _refusal(error, exchange)
        if exchange.has_body and not exchange.is_read:
            answer.headers["Connection"] = "close"  # else its sender could go on for ever
        kept = "private, no-cache" if exchange.method in ("GET", "HEAD") else "no-store"
        headers = {**_SAFE, "Cache-Control": kept, "X-Request-Id": exchange.request_id, **answer.headers}
        await Response(answer.body, answer.status, headers, answer.media_type)(scope, receive, send)

    async def _answer(self, exchange: Exchange, receive: Receive) -> HttpAnswer:
        exchange.check()
        if exchange.method in ("GET", "HEAD") and (own := await self._own(exchange)) is not None:
            return own
        endpoint = self._endpoints.find(exchange)
        if endpoint.takes_body:
            if exchange.has_body or exchange.headers.get("authorization") is None:
                exchange.check_media_type()
            exchange.body = await bodies.read(_chunks(receive), exchange.headers.get("content-length"))
            exchange.is_read = True
        elif exchange.has_body:
            raise HttpProblem("BadRequest", f"{exchange.method} takes no body here")
        lane = self._patient if endpoint.waits else self._lane
        answer = await lane.run(lambda: self._ask(endpoint, exchange))
        return answer if isinstance(answer, HttpAnswer) else await asyncio.wrap_future(answer)

    def _ask(self, endpoint: Endpoint, exchange: Exchange) -> HttpAnswer | Future[HttpAnswer]:
        admitted = self._door.admit(exchange)
        if self._rates is not None and admitted.counted_as is not None:
            self._rates.take(admitted.counted_as)
        return endpoint.ask(admitted.caller, exchange)

    async def _own(self, exchange: Exchange) -> HttpAnswer | None:
        """What is about the server itself."""
        path = exchange.own_path
        if path == "/healthz":
            return HttpAnswer.of({"alive": True})
        if path == "/metrics":
            return await self._metrics.answer((await self._lane.run(lambda: self._door.admit(exchange))).caller)
        if path == "/readyz":
            if not await self._lane.run(lambda: self._can_serve(exchange)):
                raise HttpProblem("NotReady", "it is leaving, or the database cannot be used now")
            return HttpAnswer.of({"ready": True})
        if path == "/openapi.json":
            return await self._lane.run(lambda: self._document(exchange))
        if path.startswith("/problems/") and (text := page_of(path.removeprefix("/problems/"))) is not None:
            return HttpAnswer(200, text.encode(), "text/plain")
        return None

    def _can_serve(self, exchange: Exchange) -> bool:
        self._door.admit_probe(exchange)
        return not self.is_leaving and self._is_ready()

    def _document(self, exchange: Exchange) -> HttpAnswer:
        self._door.admit(exchange)
        return HttpAnswer(200, openapi.text().encode()).unless_known(exchange)


def _refusal(error: Exception, exchange: Exchange) -> HttpAnswer:
    problem = problem_of(error, exchange.request_id, exchange.root)
    if problem.status == 500:
        logging.getLogger("unstuck").error("request %s failed", exchange.request_id, exc_info=error)
    return HttpAnswer(problem.status, problem.encoded(), MEDIA_TYPE, dict(problem.headers))


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        message: Any = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


async def _live(receive: Receive, send: Send) -> None:
    """There is nothing to start, and what was started ends with its owner."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
