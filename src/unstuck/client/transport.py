"""Transport: sends one request and gives back what came. The only file that knows httpx2.

It never raises for the network: what went wrong is an answer too, so that no exception of ours drags along a request
with its key. It follows no redirect, so the key goes nowhere but to the address that was given.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any

import httpx2

from unstuck import tracing
from unstuck.client.address import ApiKey
from unstuck.client.wire import Heard, NoAnswerHeard, Sending, ServerAnswer
from unstuck.version import __version__

#: Seconds in which a connection must stand, and in which a piece of a request must have gone.
CONNECT = 5.0
#: Seconds for which a call waits for one of the connections to be free.
POOL = 10.0
MOST_CONNECTIONS = 100
MOST_RESTING = 20
#: Seconds for which a connection rests. Servers keep them for longer: none is used that the other side just closes.
KEPT = 4.0
#: An answer that is larger is not read to its end.
LARGEST_ANSWER = 256 * 1024 * 1024

_USER_AGENT = f"unstuck/{__version__} Python/{sys.version_info[0]}.{sys.version_info[1]}"


class Transport:
    """To one server. A fork opens connections of its own and leaves its parent's alone."""

    def __init__(self, address: str, key: ApiKey | None) -> None:
        self._address = address
        self._key = key
        #: By process. A parent's is kept and never touched: closing it would end the parent's connections.
        self._clients: dict[int, httpx2.Client] = {}
        # Programs rarely close what they ask with; this is also run at their end.
        self.close = weakref.finalize(self, _close, self._clients)

    def send(self, sending: Sending) -> Heard:
        try:
            with self._client().stream(**_request(self._address, self._key, sending)) as response:
                read = bytearray()
                for piece in response.iter_bytes():
                    _take(read, piece)
                return _answer(response, read)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, _TooLarge) as problem:
            return _no_answer(problem)

    def _client(self) -> httpx2.Client:
        if (client := self._clients.get(os.getpid())) is not None:
            return client
        made = httpx2.Client(**_options(self._address))
        kept = self._clients.setdefault(os.getpid(), made)
        if kept is not made:  # another thread was faster
            made.close()
        return kept


def _close(clients: dict[int, httpx2.Client]) -> None:
    if (client := clients.pop(os.getpid(), None)) is not None:
        client.close()


class AsyncTransport:
    """To one server, for the coroutines of one event loop."""

    def __init__(self, address: str, key: ApiKey | None) -> None:
        self._address = address
        self._key = key
        self._client: httpx2.AsyncClient | None = None

    async def asend(self, sending: Sending) -> Heard:
        if self._client is None:
            self._client = httpx2.AsyncClient(**_options(self._address))
        try:
            async with self._client.stream(**_request(self._address, self._key, sending)) as response:
                read = bytearray()
                async for piece in response.aiter_bytes():
                    _take(read, piece)
                return _answer(response, read)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, _TooLarge) as problem:
            return _no_answer(problem)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


class _TooLarge(Exception):
    pass


def _options(address: str) -> dict[str, Any]:
    return {
        "limits": httpx2.Limits(
            max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_RESTING, keepalive_expiry=KEPT
        ),
        "follow_redirects": False,
        # By http:// a proxy that the environment names would read the key.
        "trust_env": address.startswith("https://"),
    }


def _request(address: str, key: ApiKey | None, sending: Sending) -> dict[str, Any]:
    headers = {"User-Agent": _USER_AGENT, "Accept": "application/json, application/problem+json"}
    if sending.body is not None:
        headers["Content-Type"] = "application/json"
    if key is not None:
        headers["Authorization"] = key.authorization
    if (trace := tracing.current()) is not None:
        headers |= trace.headers
    return {
        "method": sending.method,
        "url": address + sending.path,
        "content": sending.body,
        "headers": headers,
        "timeout": httpx2.Timeout(connect=CONNECT, write=CONNECT, pool=POOL, read=sending.patience),
    }


def _take(read: bytearray, piece: bytes) -> None:
    read += piece
    if len(read) > LARGEST_ANSWER:
        raise _TooLarge(f"its answer is larger than {LARGEST_ANSWER >> 20} MiB")


def _answer(response: httpx2.Response, body: bytearray) -> ServerAnswer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return ServerAnswer(response.status_code, headers, bytes(body))


#: What is raised before the first byte of a request goes out.
_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
    httpx2.InvalidURL,
)


def _no_answer(problem: Exception) -> NoAnswerHeard:
    said = " ".join(str(problem).split())
    reason = f"{type(problem).__name__}: {said}" if said else type(problem).__name__
    return NoAnswerHeard(reason.lstrip("_"), was_sent=not isinstance(problem, _NOT_SENT))
