"""Tickets for streams: how one is asked for. No operation: it is HTTP's own."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from unstuck.model.errors import InvalidInput, NotPermitted, TooManyAttempts, Unauthenticated, WrongArguments
from unstuck.operations import events
from unstuck.operations.routes import PREFIX
from unstuck.operations.table import Caller
from unstuck.operations.tickets import LASTING, Tickets
from unstuck.server.endpoints import Endpoint
from unstuck.server.exchange import MOST_PARAMETERS, TICKET, Exchange, HttpAnswer, stream_of
from unstuck.views import View

PATH = f"{PREFIX}/tickets"
LONGEST_STREAM = 4096
_STREAMS = re.compile(rf"{PREFIX}/(events|jobs/[^/?#]+/(logs|partials))", re.ASCII)


class TicketView(View, frozen=True, kw_only=True):
    """Opens the stream at `url`, once, until `ends_at`."""

    ticket: str
    url: str
    ends_at: datetime


class StreamTickets:
    def __init__(self, tickets: Tickets) -> None:
        self._tickets = tickets

    def endpoints(self) -> list[Endpoint]:
        return [Endpoint("POST", PATH, self.make)]

    def make(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        events.follow.admitted(caller)
        if not caller.key or exchange.browser is not None:
            raise InvalidInput(
                "a ticket stands for an API key, and none was shown: a browser that is logged in, and whoever needs "
                "no key, opens streams without one"
            )
        path, query = _asked(exchange.json)
        made = self._tickets.make(caller.key, stream_of(path, query))
        url = f"{exchange.root}{path}?{urlencode([*query, (TICKET, made.secret)])}"
        return HttpAnswer.of(TicketView(ticket=made.secret, url=url, ends_at=made.ends_at), 201)


def _asked(body: Any) -> tuple[str, list[tuple[str, str]]]:
    if not isinstance(body, dict) or set(body) != {"path"} or not isinstance(body["path"], str):
        raise WrongArguments([("body", "/path", 'it is not {"path": "/api/v1/events?workflow=…"} and nothing else')])
    path, _, query = body["path"].partition("?")
    if len(body["path"]) > LONGEST_STREAM or not body["path"].isascii() or not _STREAMS.fullmatch(path):
        raise WrongArguments([("body", "/path", f"it is no stream: {PREFIX}/events, or logs or partials of a job")])
    try:
        found = parse_qsl(
            query, keep_blank_values=True, strict_parsing=bool(query), errors="strict", max_num_fields=MOST_PARAMETERS
        )
    except ValueError:
        raise WrongArguments([("body", "/path", "its query is not one that can be read")]) from None
    if any(name == TICKET for name, _ in found):
        raise WrongArguments([("body", "/path", "it has a ticket already")])
    return path, found


def documented(problem: Any) -> dict[str, Any]:
    """As OpenAPI tells it; `problem`: how a response with a problem is told, by its codes."""
    path = {"type": "string", "description": "the stream, with its filters: /api/v1/events?workflow=greet"}
    asked = {"type": "object", "properties": {"path": path}, "required": ["path"], "additionalProperties": False}
    told = {"schema": {"$ref": "#/components/schemas/TicketView"}}
    return {
        "post": {
            "operationId": "ticket.make",
            "tags": ["ticket"],
            "summary": "Get a ticket for one stream",
            "description": f"It opens that stream once, within {LASTING:g} s, without a header: for an EventSource."
            "\n\nNeeds the role reader.",
            "security": [{"key": []}],
            "requestBody": {"required": True, "content": {"application/json": {"schema": asked}}},
            "responses": {
                "201": {"description": "made", "content": {"application/json": told}},
                "400": problem("BadRequest", "NotJson"),
                "401": problem(Unauthenticated.__name__),
                "403": problem(NotPermitted.__name__, "Forbidden", "CrossSite"),
                "408": problem("TooSlow"),
                "413": problem("TooLarge"),
                "415": problem("NotAsJson"),
                "422": problem(WrongArguments.__name__, InvalidInput.__name__),
                "429": problem(TooManyAttempts.__name__, "TooManyRequests"),
                "500": problem("ServerError"),
                "503": problem("StoreError", "Overloaded"),
            },
        }
    }
