"""Exchange: one request as endpoints see it, and what they answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.types import Scope

from unstuck import tracing
from unstuck.chance import Labels
from unstuck.model.trace import HEADERS, TraceContext
from unstuck.operations.browser_sessions import KnownBrowser
from unstuck.records import dataclass
from unstuck.server import bodies, sse
from unstuck.server.problems import HttpProblem
from unstuck.views import as_json

MOST_HEADERS = 100
MOST_HEADER_BYTES = 32 << 10
MOST_PARAMETERS = 200
MOST_PATH = 4096
#: What a query calls a ticket.
TICKET = "ticket"
#: Headers that are said once at most: of two, a proxy or a check of ours might believe the other one.
_ONCE = frozenset(
    {"host", "content-length", "content-type", "authorization", "idempotency-key", "origin", "sec-fetch-site"}
    | {"x-csrf-token"}
)
_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}", re.ASCII)
_LABELS = Labels()
#: A target as proxies write it.
_ABSOLUTE = re.compile(r"https?://([^/?#]*)(/.*)?", re.IGNORECASE)


class Exchange:
    """Nothing of it is trusted: what cannot be read is refused where it is asked for."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        #: The first of each name, which is in lower case.
        self.headers: dict[str, str] = {}
        self._repeated: set[str] = set()
        for name, value in scope["headers"]:
            if (key := name.decode("latin-1")) in self.headers:
                self._repeated.add(key)
            else:
                self.headers[key] = value.decode("latin-1")
        client = scope.get("client")
        self.address: str | None = client[0] if client else None
        self.scheme: str = scope.get("scheme", "http")
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        self.raw_path, self._authority = raw.decode("latin-1").partition("?")[0], None
        if not self.raw_path.startswith("/") and (absolute := _ABSOLUTE.fullmatch(self.raw_path)):
            self._authority, self.raw_path = absolute[1], absolute[2] or "/"
        #: What stands before our own paths where we are mounted, and our own path.
        self.root, self.own_path = _split(scope.get("root_path", "").rstrip("/"), self.raw_path)
        self._query: bytes = scope.get("query_string", b"")
        asked = self.headers.get("x-request-id", "")
        self.request_id = asked if asked and _SANE_ID.fullmatch(asked) else _LABELS.next()
        #: The names in the path, still quoted.
        self.path: Mapping[str, str] = {}
        self.body = b""
        self.is_read = False
        #: It is answered when something happens, or bit by bit.
        self.is_to_stay = False
        #: The browser that asks, if it is known by its cookie.
        self.browser: KnownBrowser | None = None
        #: The id of the key whose ticket has opened it.
        self.ticketed: str | None = None
        #: Where we are mounted into a program that traces its requests, its own span.
        self._around = tracing.current()

    @cached_property
    def trace(self) -> str | None:
        """The trace that it is asked in, as `model.trace` writes it."""
        if "traceparent" not in self.headers:
            return None if self._around is None else self._around.text
        parents, states, baggage = (self.all_of(name) for name in HEADERS)
        asked = TraceContext.of(parents[0], ",".join(states), ",".join(baggage)) if len(parents) == 1 else None
        known = self._around or asked
        return None if known is None else known.text

    @property
    def has_body(self) -> bool:
        return "transfer-encoding" in self.headers or self.headers.get("content-length", "0") != "0"

    @property
    def wants_stream(self) -> bool:
        """Whether it accepts nothing but a stream, as browsers' EventSource does."""
        kinds = [kind.partition(";")[0].strip().lower() for kind in self.headers.get("accept", "").split(",")]
        return self.method == "GET" and kinds == [sse.MEDIA_TYPE]

    @property
    def ticket(self) -> str | None:
        return next((text for name, text in self.query if name == TICKET), None)

    def check(self) -> None:
        """What no request of a decent client has."""
        raw = self.scope["headers"]
        if len(raw) > MOST_HEADERS or sum(len(k) + len(v) for k, v in raw) > MOST_HEADER_BYTES:
            limit = f"the limit is {MOST_HEADERS} headers, {MOST_HEADER_BYTES:,} bytes in all"
            raise HttpProblem("TooManyHeaders", limit, Connection="close")
        if "transfer-encoding" in self.headers and "content-length" in self.headers:
            raise HttpProblem("BadRequest", "its length is told in two ways", Connection="close")
        if self._authority is not None and self._authority.lower() != self.headers.get("host", "").lower():
            raise HttpProblem("BadRequest", "for which host it is, is told in two ways", Connection="close")
        if twice := sorted(self._repeated & _ONCE):
            raise HttpProblem("BadRequest", f"there is more than one {twice[0]} header", Connection="close")
        if len(self.raw_path) > MOST_PATH or not self.raw_path.isascii() or "\0" in unquote(self.raw_path):
            raise HttpProblem("BadRequest", "the path is not one that can be read")

    def all_of(self, name: str) -> list[str]:
        """Every header of this name, in lower case."""
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == name.encode()]

    @cached_property
    def query(self) -> Sequence[tuple[str, str]]:
        try:
            found = parse_qsl(
                self._query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS
            )
        except ValueError:
            raise HttpProblem("BadRequest", "the query is not one that can be read") from None
        if any("\0" in text for pair in found for text in pair):
            raise HttpProblem("BadRequest", "the query has a NUL character")
        return found

    @cached_property
    def json(self) -> Any:
        """Its body; where there is none, an object without anything."""
        return bodies.parse(self.body) if self.body.strip() else {}

    def check_media_type(self) -> None:
        """A page of another site can send a form, or plain text, but no JSON without being asked first."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise HttpProblem("NotAsJson", "a change needs Content-Type: application/json")


def stream_of(path: str, query: Iterable[tuple[str, str]]) -> str:
    """One spelling of the stream that is asked for. Where it begins is not part of it: a reader goes on from where it
    was cut."""
    return f"{path}?{urlencode(sorted(pair for pair in query if pair[0] not in (TICKET, 'after')))}"


def _split(root: str, raw_path: str) -> tuple[str, str]:
    """As it is quoted in the path itself. A server that took the root off, as some do, has left ours alone."""
    if not root:
        return "", raw_path
    parts = raw_path.split("/")
    length = root.count("/") + 1
    begin = "/".join(parts[:length])
    if unquote(begin) != root:
        return quote(root), raw_path
    return begin, raw_path[len(begin) :] or "/"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int = 200
    body: bytes = b""
    media_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, status: int = 200, **headers: str) -> HttpAnswer:
        """A view, or what JSON can say."""
        told = {name.replace("_", "-"): text for name, text in headers.items()} if headers else {}
        return cls(status, as_json(value).encode(errors="replace"), headers=told)

    def raw_headers(self, always: Sequence[tuple[bytes, bytes]], *more: tuple[str, str]) -> list[tuple[bytes, bytes]]:
        """As ASGI sends them; what this answer says itself counts more than what `always` is said."""
        said = {
            name.lower().encode("latin-1"): text.encode("latin-1") for name, text in (*more, *self.headers.items())
        }
        found = [pair for pair in always if pair[0] not in said]
        found += said.items()
        if self.status not in (204, 304):
            found.append((b"content-length", b"%d" % len(self.body)))
        found.append((b"content-type", self.media_type.encode("latin-1")))
        return found

    def unless_known(self, exchange: Exchange) -> HttpAnswer:
        """With its tag; without its body for whoever has it already."""
        tag = f'"{blake2b(self.body, digest_size=16).hexdigest()}"'
        headers = {**self.headers, "ETag": tag}
        known = [text.strip().removeprefix("W/") for text in exchange.headers.get("if-none-match", "").split(",")]
        if tag in known or known == ["*"]:
            return HttpAnswer(304, b"", self.media_type, headers)
        return HttpAnswer(self.status, self.body, self.media_type, headers)
