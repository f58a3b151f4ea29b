"""The session of a browser: logging in with a key, who one is, and logging out. No operation: it is HTTP's own."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from unstuck.model.errors import TooManyAttempts, Unauthenticated, WrongArguments
from unstuck.operations.browser_sessions import IDLE, KnownBrowser
from unstuck.operations.routes import PREFIX
from unstuck.operations.table import Caller
from unstuck.server.browsers import CSRF_HEADER, Browsers
from unstuck.server.endpoints import Endpoint
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.problems import HttpProblem
from unstuck.views import View

PATH = f"{PREFIX}/session"


class AskerView(View, frozen=True, kw_only=True):
    """Who asks, by what, and what they may. `key` null: by no key of ours. `session`, `csrf`, `idle` (seconds) and
    `ends_at` are of a browser that has logged in: `csrf` goes with its changes, as X-CSRF-Token."""

    by: str
    key: str | None
    role: str
    tenant: str | None
    scopes: tuple[str, ...]
    queues: tuple[str, ...] | None
    workflows: tuple[str, ...] | None
    session: int | None = None
    csrf: str | None = None
    idle: float | None = None
    ends_at: datetime | None = None

    @classmethod
    def of(cls, caller: Caller, browser: KnownBrowser | None) -> AskerView:
        view = cls(
            by=caller.by,
            key=caller.key or None,
            role=caller.role,
            tenant=caller.bound,
            scopes=tuple(sorted(caller.scopes)),
            queues=None if caller.queues is None else tuple(sorted(caller.queues)),
            workflows=None if caller.workflows is None else tuple(sorted(caller.workflows)),
        )
        if browser is None:
            return view
        return msgspec.structs.replace(
            view, session=browser.number, csrf=browser.csrf, idle=IDLE, ends_at=browser.ends_at
        )


class Sessions:
    def __init__(self, browsers: Browsers | None) -> None:
        self._browsers = browsers

    def endpoints(self) -> list[Endpoint]:
        return [
            Endpoint("POST", PATH, self.log_in, logs_in=True),
            Endpoint("GET", PATH, self.get),
            Endpoint("DELETE", PATH, self.log_out),
        ]

    def log_in(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        assert self._browsers is not None, "else the door has refused it"
        assert caller.key is not None
        browser, cookie = self._browsers.log_in(exchange, caller.key, caller.by)
        return HttpAnswer.of(AskerView.of(caller, browser), 201, Set_Cookie=cookie)

    def get(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        """Kept by no cache: it holds the token."""
        return HttpAnswer.of(AskerView.of(caller, exchange.browser), Cache_Control="no-store")

    def log_out(self, caller: Caller, exchange: Exchange) -> HttpAnswer:
        if self._browsers is None or exchange.browser is None:
            raise HttpProblem("NotFound", "there is no session to end: whoever asks has not logged in by a cookie")
        return HttpAnswer.of({"ended": True}, Set_Cookie=self._browsers.log_out(exchange, exchange.browser))


def documented(problem: Any) -> dict[str, Any]:
    """The three methods, as OpenAPI tells them; `problem`: how a response with a problem is told, by its codes."""
    told = {"schema": {"$ref": "#/components/schemas/AskerView"}}
    asker = {"description": "who asks", "content": {"application/json": told}}
    token = {"name": CSRF_HEADER, "in": "header", "required": True, "schema": {"type": "string"}}
    cookie = {"Set-Cookie": {"schema": {"type": "string"}}}
    key = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
    ended = {"type": "object", "properties": {"ended": {"const": True}}, "required": ["ended"]}
    refused = {
        "400": problem("BadRequest"),
        "401": problem(Unauthenticated.__name__),
        "403": problem("Forbidden", "CrossSite"),
        "429": problem(TooManyAttempts.__name__, "TooManyRequests"),
        "500": problem("ServerError"),
        "503": problem("StoreError", "Overloaded"),
    }
    return {
        "post": {
            "operationId": "session.begin",
            "tags": ["session"],
            "summary": "Log a browser in with an API key",
            "description": "The key stands in the body. The answer sets the cookie by which the browser is known.",
            "security": [],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {**key, "additionalProperties": False}}},
            },
            "responses": {
                "201": {**asker, "headers": cookie},
                **refused,
                "403": problem("Forbidden", "CrossSite", "NotSecure"),
                "404": problem("NotFound"),
                "408": problem("TooSlow"),
                "413": problem("TooLarge"),
                "415": problem("NotAsJson"),
                "422": problem(WrongArguments.__name__),
            },
        },
        "get": {
            "operationId": "session.get",
            "tags": ["session"],
            "summary": "Who asks: by key or by cookie",
            "responses": {"200": asker, **refused},
        },
        "delete": {
            "operationId": "session.end",
            "tags": ["session"],
            "summary": "Log this browser out",
            "parameters": [token],
            "security": [{"cookie": []}],
            "responses": {
                "200": {
                    "description": "logged out",
                    "content": {"application/json": {"schema": ended}},
                    "headers": cookie,
                },
                **refused,
                "404": problem("NotFound"),
            },
        },
    }
