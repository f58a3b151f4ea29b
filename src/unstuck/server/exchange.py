"""Exchange: one request as endpoints see it, and what they answer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from starlette.datastructures import Headers
from starlette.types import Scope

from unstuck import tracing
from unstuck.chance import SystemChance
from unstuck.model.trace import HEADERS, TraceContext
from unstuck.server import bodies
from unstuck.server.problems import HttpProblem
from unstuck.views import plain

MOST_HEADERS = 100
MOST_HEADER_BYTES = 32 << 10
MOST_PARAMETERS = 200
MOST_PATH = 4096
#: Headers that are said once at most: of two, a proxy or a check of ours might believe the other one.
_ONCE = (
    "host", "content-length", "content-type", "authorization", "idempotency-key", "origin", "sec-fetch-site",
)  # fmt: skip
_SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}", re.ASCII)
_CHANCE = SystemChance()


class Exchange:
    """Nothing of it is trusted: what cannot be read is refused where it is asked for."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.headers = Headers(scope=scope)
        client = scope.get("client")
        self.address: str | None = client[0] if client else None
        self.scheme: str = scope.get("scheme", "http")
        #: What stands before our own paths where we are mounted.
        self.root = quote(scope.get("root_path", ""))
        raw = scope.get("raw_path") or quote(scope["path"]).encode()
        self.raw_path = raw.decode("latin-1").partition("?")[0]
        self._query: bytes = scope.get("query_string", b"")
        asked = self.headers.get("x-request-id", "")
        self.request_id = asked if _SANE_ID.fullmatch(asked) else _CHANCE.nonce()
        #: The names in the path, still quoted.
        self.path: Mapping[str, str] = {}
        self.body = b""
        self.is_read = False
        #: Where we are mounted into a program that traces its requests, its own span.
        self._around = tracing.current()

    @cached_property
    def trace(self) -> str | None:
        """The trace that it is asked in, as `model.trace` writes it."""
        parents, states, baggage = (self.headers.getlist(name) for name in HEADERS)
        asked = TraceContext.of(parents[0], ",".join(states), ",".join(baggage)) if len(parents) == 1 else None
        known = self._around or asked
        return None if known is None else known.text

    @property
    def own_path(self) -> str:
        """Behind the place where we are mounted."""
        return self.raw_path.removeprefix(self.root) if self.root else self.raw_path

    @property
    def has_body(self) -> bool:
        return "transfer-encoding" in self.headers or self.headers.get("content-length", "0") != "0"

    def check(self) -> None:
        """What no request of a decent client has."""
        if len(self.headers) > MOST_HEADERS or sum(len(k) + len(v) for k, v in self.headers.raw) > MOST_HEADER_BYTES:
            limit = f"the limit is {MOST_HEADERS} headers, {MOST_HEADER_BYTES:,} bytes in all"
            raise HttpProblem("TooManyHeaders", limit, Connection="close")
        if "transfer-encoding" in self.headers and "content-length" in self.headers:
            raise HttpProblem("BadRequest", "its length is told in two ways", Connection="close")
        for name in _ONCE:
            if len(self.headers.getlist(name)) > 1:
                raise HttpProblem("BadRequest", f"there is more than one {name} header", Connection="close")
        if len(self.raw_path) > MOST_PATH or not self.raw_path.isascii() or "\0" in unquote(self.raw_path):
            raise HttpProblem("BadRequest", "the path is not one that can be read")

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


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int = 200
    body: bytes = b""
    media_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, value: Any, status: int = 200, **headers: str) -> HttpAnswer:
        """A view, or what JSON can say."""
        text = json.dumps(plain(value), ensure_ascii=False, separators=(",", ":"))
        return cls(
            status, text.encode(errors="replace"), headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    def unless_known(self, exchange: Exchange) -> HttpAnswer:
        """With its tag; without its body for whoever has it already."""
        tag = f'"{blake2b(self.body, digest_size=16).hexdigest()}"'
        headers = {**self.headers, "ETag": tag}
        known = [text.strip().removeprefix("W/") for text in exchange.headers.get("if-none-match", "").split(",")]
        if tag in known or known == ["*"]:
            return HttpAnswer(304, b"", self.media_type, headers)
        return HttpAnswer(self.status, self.body, self.media_type, headers)
