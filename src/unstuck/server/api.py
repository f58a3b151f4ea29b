"""The API: an ASGI application made from the table of operations. It only finds the endpoint, reads the body and
answers; everything else happens on the threads of a lane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection
from concurrent.futures import Future
from contextlib import aclosing, suppress
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from unstuck.clock import Clock
from unstuck.model.errors import UnstuckError
from unstuck.operations.together import Together
from unstuck.server import bodies, endpoints, openapi, seeds, sse
from unstuck.server.connections import LONGEST_ANSWER
from unstuck.server.control_desk import ControlDesk
from unstuck.server.door import Admitted, HttpDoor
from unstuck.server.endpoints import Endpoint, Endpoints
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.guests import GONE, MOST_GUESTS, Guest, Guests
from unstuck.server.hooks import HookDoor
from unstuck.server.hub import Hub
from unstuck.server.lanes import Lane
from unstuck.server.live import RETRY, Live
from unstuck.server.metrics import ServerMetrics
from unstuck.server.page import WebPage
from unstuck.server.problems import MEDIA_TYPE, HttpProblem, page_of, problem_of
from unstuck.server.rates import Rates
from unstuck.server.remote_workers import RemoteWorkers
from unstuck.server.sessions import Sessions
from unstuck.server.stay import Pieces, Stay
from unstuck.server.submits import Submits
from unstuck.server.tickets import StreamTickets
from unstuck.server.work_desk import WorkDesk

#: Threads for what waits for more than the database. Nothing stands in line for one: it would wait twice.
PATIENT = 32
#: Threads on which those who stay ask the database, one after the other.
LIVE = 4
#: Seconds in which a piece of a stream must have been taken where connections are not ours to cut.
LONGEST_PIECE = LONGEST_ANSWER + 15

_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"vary", b"Authorization, Cookie"),
]


def all_endpoints(together: Together, live: Live, door: HttpDoor, remote: RemoteWorkers) -> list[Endpoint]:
    others = (Submits(together), live, Sessions(door.browsers), StreamTickets(door.tickets), remote)
    return [*endpoints.of_routes(), *(each for some in others for each in some.endpoints()), *seeds.endpoints()]


class Api:
    """`is_ready`: asks the database; it runs on a thread. `look_again`: as `Guests` has it."""

    def __init__(
        self,
        door: HttpDoor,
        hub: Hub,
        metrics: ServerMetrics,
        *,
        work: WorkDesk,
        control: ControlDesk,
        rates: Rates | None,
        hooks: HookDoor,
        clock: Clock,
        is_ready: Callable[[], bool],
        look_again: Callable[[Collection[str]], None] = lambda keys: None,
    ) -> None:
        self._door = door
        self._hub = hub
        self._metrics = metrics
        self._rates = rates
        self._hooks = hooks
        self._is_ready = is_ready
        self._together = Together()
        self._lane = Lane("http")
        self._patient = Lane("http-waits", PATIENT, waiting=0)
        self._live = Lane("http-live", LIVE, waiting=2 * MOST_GUESTS)
        self._guests = Guests(partial(door.admit, is_use=False), self._live, clock, look_again)
        self._remote = RemoteWorkers(work, control, self._live, clock)
        self._endpoints = Endpoints(all_endpoints(self._together, Live(hub, self._live), door, self._remote))
        self._page = WebPage()
        self._large = bodies.LargeBodies()
        self._is_leaving = False

    def when_parked(self, call: Callable[[float], None]) -> None:
        """Called when a worker at a distance parks a job, with the seconds until its wait ends; on any thread."""
        self._remote.parked = call

    def leave(self) -> None:
        """Send away those who stay, so that they go to another server; what else was asked is answered. From any
        thread, and from a signal's handler."""
        self._is_leaving = True
        self._guests.leave()

    def close(self) -> None:
        """What runs is finished."""
        self.leave()
        self._lane.close()
        self._patient.close()
        self._live.close()
        self._remote.close()
        self._metrics.close()
        self._together.close()
        self._hub.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "http":
            await self._serve(Exchange(scope), receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def _serve(self, exchange: Exchange, receive: Receive, send: Send) -> None:
        try:
            answer = await self._answer(exchange, receive, send)
        except ClientDisconnect:
            return
        except Exception as error:
            answer = _refusal(error, exchange)
        finally:
            self._large.leave(exchange)
        if answer is None:
            return
        if exchange.has_body and not exchange.is_read:
            answer.headers["Connection"] = "close"  # else its sender could go on for ever
        if exchange.is_to_stay and answer.status in (429, 503):
            # Else ten thousand who want a stream and get none would hold every connection there may be.
            answer.headers["Connection"] = "close"
        kept = "private, no-cache" if exchange.method in ("GET", "HEAD") else "no-store"
        headers = answer.raw_headers(_SAFE, ("Cache-Control", kept), ("X-Request-Id", exchange.request_id))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, exchange: Exchange, receive: Receive, send: Send) -> HttpAnswer | None:
        """None: it was given bit by bit."""
        exchange.check()
        if exchange.method in ("GET", "HEAD") and (own := await self._own(exchange)) is not None:
            return own
        if (hook := self._hooks.uid_of(exchange)) is not None:
            return await self._deliver(hook, exchange, receive)
        endpoint = self._endpoints.find(exchange)
        if endpoint.takes_body:
            if exchange.has_body or exchange.headers.get("authorization") is None:
                exchange.check_media_type()
            await self._read(endpoint, exchange, receive)
        elif exchange.has_body:
            raise HttpProblem("BadRequest", f"{exchange.method} takes no body here")
        if endpoint.stays is not None and (stay := endpoint.stays(exchange)) is not None:
            exchange.is_to_stay = True
            return await self._stay(stay, exchange, receive, send)
        lane = self._patient if endpoint.waits else self._lane
        answer = await lane.run(lambda: self._ask(endpoint, exchange))
        if exchange.method not in ("GET", "HEAD"):
            self._hub.hurry()
        return answer

    async def _read(self, endpoint: Endpoint, exchange: Exchange, receive: Receive) -> None:
        declared, admitted = exchange.headers.get("content-length"), None
        if endpoint.most_bytes > bodies.MOST_BYTES and bodies.may_be_large(declared):
            admitted = await self._lane.run(partial(self._admit_large, exchange))
            self._large.enter(exchange, admitted.counted_as)
        try:
            exchange.body = await bodies.read(_chunks(receive), declared, endpoint.most_bytes)
        except HttpProblem as problem:
            if problem.code == "TooLarge" and self._remote.is_asked(exchange):
                await self._lane.run(partial(self._tell_too_large, exchange, admitted, problem))
            raise
        exchange.is_read = True

    def _tell_too_large(self, exchange: Exchange, admitted: Admitted | None, problem: HttpProblem) -> None:
        """Whoever is not known is told of by the door alone."""
        with suppress(UnstuckError, HttpProblem):
            self._remote.tell_refused((admitted or self._door.admit(exchange)).caller, exchange, problem)

    def _admit_large(self, exchange: Exchange) -> Admitted:
        """Before any of it is read: only workers may send so much."""
        admitted = self._door.admit(exchange)
        self._remote.check_sends(admitted.caller)
        return admitted

    async def _deliver(self, hook: str, exchange: Exchange, receive: Receive) -> HttpAnswer:
        """A delivery of another system. Threads are asked when all of it is there, and not to wait for it."""
        if not self._hooks.book.is_fresh:
            await self._lane.run(self._hooks.book.read)
        declared, most = exchange.headers.get("content-length"), self._hooks.most_bytes(hook)
        try:
            exchange.body = await bodies.read(_chunks(receive), declared, most)
        except HttpProblem as error:
            refused = partial(self._hooks.refused_body, hook, exchange, error)
            await self._lane.run(refused)
            raise
        exchange.is_read = True
        answer = await self._lane.run(lambda: self._hooks.answer(hook, exchange))
        self._hub.hurry()
        return answer

    def _ask(self, endpoint: Endpoint, exchange: Exchange) -> HttpAnswer | Future[HttpAnswer]:
        return endpoint.ask(self._admitted(exchange, logs_in=endpoint.logs_in).caller, exchange)

    def _admitted(self, exchange: Exchange, *, logs_in: bool = False) -> Admitted:
        admitted = self._door.admit_to_log_in(exchange) if logs_in else self._door.admit(exchange)
        if self._rates is not None and admitted.counted_as is not None:
            try:
                self._rates.take(admitted.counted_as)
            except HttpProblem as problem:
                self._remote.tell_refused(admitted.caller, exchange, problem)
                raise
        return admitted

    # --- those who stay -----------------------------------------------------------------------------------------

    async def _stay(self, stay: Stay, exchange: Exchange, receive: Receive, send: Send) -> HttpAnswer | None:
        def opened() -> Admitted:
            admitted = self._admitted(exchange)
            stay.open(admitted.caller)
            exchange.body = b""  # else thousands who wait would hold theirs
            return admitted

        with self._guests.place():
            admitted = await self._live.run(opened)
            async with self._guests.welcome(exchange, admitted, receive) as guest:
                answer = await stay.serve(guest)
                if isinstance(answer, HttpAnswer):
                    return answer
                await self._flow(answer, exchange, guest, send)
                return None

    async def _flow(self, answer: Pieces, exchange: Exchange, guest: Guest, send: Send) -> None:
        raw = [
            *_SAFE,
            (b"cache-control", b"no-store"),
            (b"x-request-id", exchange.request_id.encode()),
            (b"x-accel-buffering", b"no"),
            (b"content-type", f"{answer.media_type}; charset=utf-8".encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        last = b""
        try:
            async with aclosing(answer.pieces) as pieces:
                async for piece in pieces:
                    async with asyncio.timeout(LONGEST_PIECE):
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                    if guest.reason == GONE:
                        return
        except Exception as error:  # its answer has begun: no other can be given any more
            _refusal(error, exchange)
            last = sse.end("failed", RETRY)
        await send({"type": "http.response.body", "body": last, "more_body": False})

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
            return HttpAnswer(200, text.encode(), "text/plain; charset=utf-8")
        return self._page.answer(exchange)

    def _can_serve(self, exchange: Exchange) -> bool:
        self._door.admit_probe(exchange)
        return not self._is_leaving and self._is_ready()

    def _document(self, exchange: Exchange) -> HttpAnswer:
        role = self._door.admit(exchange).caller.role
        return HttpAnswer(200, openapi.text(role).encode()).unless_known(exchange)


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
