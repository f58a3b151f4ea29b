"""Endpoints: what answers at a path. One for each route of the table; `submits` and `seeds` are beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from unstuck.model.errors import InvalidInput, WrongArguments
from unstuck.operations.kinds import patience
from unstuck.operations.routes import PREFIX, HttpRoute, arguments, routes
from unstuck.operations.table import Caller
from unstuck.records import dataclass
from unstuck.server.bodies import MOST_BYTES
from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.server.problems import HttpProblem
from unstuck.server.stay import Stay
from unstuck.views import Page

#: What `submits` and `live` answer.
_ELSEWHERE = ("jobs.enqueue", "jobs.wait", "jobs.logs", "jobs.partials", "events.list")
#: The argument that Idempotency-Key stands for.
_KEYS = {"jobs.enqueue": "key", "events.send": "id"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`ask` runs on a thread, and may leave the answer to others. `waits`: for more than the database. `stays`: how
    a request is served that stays without a thread; None: this one does not."""

    method: str
    #: With the prefix: "/api/v1/jobs/{job}".
    path: str
    ask: Callable[[Caller, Exchange], HttpAnswer | Future[HttpAnswer]]
    waits: bool = False
    stays: Callable[[Exchange], Stay | None] | None = None
    #: Who asks is not known before: the body says it.
    logs_in: bool = False
    #: As large a body it takes.
    most_bytes: int = MOST_BYTES

    @property
    def takes_body(self) -> bool:
        return self.method in ("POST", "PUT", "PATCH")


class Endpoints:
    """Finds the endpoint of a raw path: a name in it may hold anything, quoted, also a slash."""

    def __init__(self, endpoints: Iterable[Endpoint]) -> None:
        self._by_length: dict[int, list[tuple[list[str], Endpoint]]] = {}
        #: Those without a name in their path: what is asked most is found at once.
        self._by_words: dict[tuple[str, str], Endpoint] = {}
        for endpoint in endpoints:
            if "{" not in endpoint.path:
                self._by_words[endpoint.method, endpoint.path] = endpoint
            parts = endpoint.path.split("/")
            self._by_length.setdefault(len(parts), []).append((parts, endpoint))
        for found in self._by_length.values():
            found.sort(key=lambda each: [part.startswith("{") for part in each[0]])  # words before names

    def __iter__(self) -> Iterator[Endpoint]:
        return (endpoint for several in self._by_length.values() for _, endpoint in several)

    def find(self, exchange: Exchange) -> Endpoint:
        """And tells the exchange the names in its path. NotFound, MethodNotAllowed."""
        said = exchange.own_path.split("/")
        wanted = "GET" if exchange.method == "HEAD" else exchange.method
        if (known := self._by_words.get((wanted, exchange.own_path))) is not None:
            return known
        allowed: dict[str, None] = {}
        for parts, endpoint in self._by_length.get(len(said), ()):
            if all(part == word or part.startswith("{") for part, word in zip(parts, said, strict=True)):
                if endpoint.method == wanted:
                    names = zip(parts, said, strict=True)
                    exchange.path = {part[1:-1]: word for part, word in names if part.startswith("{")}
                    return endpoint
                allowed[endpoint.method] = None
        if not allowed:
            raise HttpProblem("NotFound", "there is nothing at this path")
        methods = ", ".join([*allowed, *(["HEAD"] if "GET" in allowed else [])])
        raise HttpProblem("MethodNotAllowed", f"this path takes {methods}", Allow=methods)


def of_routes() -> list[Endpoint]:
    return [
        Endpoint(route.method, PREFIX + route.path, asker(route), waits=_may_wait(route))
        for route in routes().values()
        if route.name not in _ELSEWHERE
    ]


def asker(route: HttpRoute) -> Callable[[Caller, Exchange], HttpAnswer]:
    def ask(caller: Caller, exchange: Exchange) -> HttpAnswer:
        return answer(route, caller if exchange.trace is None else replace(caller, trace=exchange.trace), exchange)

    return ask


def answer(route: HttpRoute, caller: Caller, exchange: Exchange) -> HttpAnswer:
    return answer_of(route, exchange, call(route, caller, *asked_of(route, caller, exchange)))


def asked_of(route: HttpRoute, caller: Caller, exchange: Exchange) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, with `tenant` and `by` if they were said."""
    route.operation.admitted(caller)  # who may not ask learns nothing of what would fit
    body = exchange.json if route.body is not None else None
    key = idempotency_key(route, exchange)
    if key is not None:
        body = with_key(route, body, key)
    return arguments(route, exchange.path, exchange.query, body)


def answer_of(route: HttpRoute, exchange: Exchange, view: Any) -> HttpAnswer:
    found = HttpAnswer.of(view, _status(route, view), **_headers(route, exchange, view))
    return found.unless_known(exchange) if route.method == "GET" else found


def call(route: HttpRoute, caller: Caller, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The operation, asked by whoever the caller is, about the tenant that was named. Over HTTP nothing waits long: a
    few who are very patient would take every thread."""
    if _may_wait(route):
        patience(kwargs.get("timeout", 0))
    return route.operation(about(caller, kwargs), *args, **kwargs)


def about(caller: Caller, kwargs: dict[str, Any]) -> Caller:
    """With what of the arguments is not the operation's; it is taken out of them."""
    return caller.about(kwargs.pop("tenant", None), kwargs.pop("by", None))


def idempotency_key(route: HttpRoute, exchange: Exchange) -> str | None:
    key = exchange.headers.get("idempotency-key")
    if key is None or route.method == "GET":
        return None
    if route.name in _KEYS:
        return key[1:-1] if len(key) > 2 and key[0] == key[-1] == '"' else key
    if route.operation.entry.repeat == "again":
        raise InvalidInput(f"{route.name} acts again each time it is asked: it takes no Idempotency-Key")
    return None


def with_key(route: HttpRoute, body: Any, key: str) -> Any:
    name = _KEYS[route.name]
    if not isinstance(body, dict):
        return body
    if body.get(name) not in (None, key):
        raise WrongArguments([("body", f"/{name}", "the header Idempotency-Key says another one")])
    return {**body, name: key}


def _may_wait(route: HttpRoute) -> bool:
    """For more than the database: for a worker's answer, or for the end of a job."""
    return "timeout" in route.query.__struct_fields__ + (route.body.__struct_fields__ if route.body else ())


def _status(route: HttpRoute, view: Any) -> int:
    """What was there already was not created."""
    return 200 if getattr(view, "created", True) is False else route.status


def _headers(route: HttpRoute, exchange: Exchange, view: Any) -> dict[str, str]:
    if route.status in (201, 202):
        ident = getattr(view, "id", None) or getattr(view, "number", None)
        place = f"{exchange.root}{PREFIX}/{route.operation.noun.replace('_', '-')}/{quote(str(ident), safe='')}"
        return {"Location": place} if ident is not None else {}
    cursor = route.operation.entry.paged
    if cursor is not None and isinstance(view, Page) and view.next is not None:
        query = [(name, text) for name, text in exchange.query if name != cursor] + [(cursor, view.next)]
        return {"Link": f'<{exchange.root}{exchange.own_path}?{urlencode(query)}>; rel="next"'}
    return {}
