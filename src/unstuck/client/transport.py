"""Transport: sends one request and gives back what came. The only file that knows httpx2.

It never raises for the network: what went wrong there is an answer too, so that no exception of ours drags along a
request with its key. It follows no redirect, so the key goes nowhere but to the address that was given.
"""

from __future__ import annotations

import os
import ssl
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from unstuck import tracing
from unstuck.client.address import ApiKey
from unstuck.client.wire import Heard, NoAnswerHeard, Sending, ServerAnswer
from unstuck.model.errors import InvalidInput
from unstuck.version import __version__

#: Seconds in which a connection must stand.
CONNECT = 5.0
#: And in which a piece of a request must have gone: on a slow link a kernel keeps megabytes until it takes more.
WRITE = 30.0
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
    """To one server. A fork opens connections of its own and leaves its parent's alone. `ca`: a file of
    certificates to trust instead of the machine's own."""

    def __init__(self, address: str, key: ApiKey | None, ca: str | None = None) -> None:
        self.address = address
        self._key = key
        self._ca = ca
        #: By process. A parent's is kept and never touched: closing it would end the parent's connections.
        self._clients: dict[int, httpx2.Client] = {}
        # Programs rarely close what they ask with; this is also run at their end.
        self.close = weakref.finalize(self, _close, self._clients)

    def send(self, sending: Sending) -> Heard:
        try:
            with self._client().stream(**_request(self.address, self._key, sending)) as response:
                read = bytearray()
                for piece in response.iter_bytes():
                    _take(read, piece)
                return _answer(response, read)
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, _TooLarge) as problem:
            return _no_answer(problem)

    def _client(self) -> httpx2.Client:
        if (client := self._clients.get(os.getpid())) is not None:
            return client
        with _certificates_read(self._ca):
            made = httpx2.Client(**_options(self.address, self._ca))
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
            with _certificates_read():
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


def _options(address: str, ca: str | None = None) -> dict[str, Any]:
    return {
        **({} if ca is None else {"verify": ssl.create_default_context(cafile=ca)}),
        "limits": httpx2.Limits(
            max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_RESTING, keepalive_expiry=KEPT
        ),
        "follow_redirects": False,
        # By http:// a proxy that the environment names would read the key.
        "trust_env": address.startswith("https://"),
    }


@contextmanager
def _certificates_read(ca: str | None = None) -> Iterator[None]:
    """What the environment names instead of the machine's own may not be there, or not be certificates."""
    try:
        yield
    except OSError as problem:
        named = ca or " and ".join(name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name))
        raise InvalidInput(
            f"the certificates that {named or 'this machine'} names cannot be read: {problem}"
        ) from None


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
        "timeout": httpx2.Timeout(connect=CONNECT, write=WRITE, pool=POOL, read=sending.patience),
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


#: What OpenSSL calls the reasons that people can do something about; anything else is a CA that is not trusted.
_EXPIRED, _NOT_YET, _OTHER_NAME = {10}, {9}, {62, 64}


def _no_answer(problem: Exception) -> NoAnswerHeard:
    if (refused := _certificate_error(problem)) is not None:
        return NoAnswerHeard(_distrust(refused), was_sent=False, is_final=True)
    said = " ".join(str(problem).split())
    reason = f"{type(problem).__name__}: {said}" if said else type(problem).__name__
    return NoAnswerHeard(reason.lstrip("_"), was_sent=not isinstance(problem, _NOT_SENT))


def _certificate_error(problem: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while problem is not None and not isinstance(problem, ssl.SSLCertVerificationError):
        problem = problem.__cause__ or problem.__context__
    return problem


def _distrust(refused: ssl.SSLCertVerificationError) -> str:
    """Nothing was sent, not even the key."""
    code, said = refused.verify_code, refused.verify_message.rstrip(".")
    if code in _EXPIRED:
        return f"its certificate has expired: {said}; whoever runs the server must renew it"
    if code in _NOT_YET:
        return f"its certificate does not hold yet: {said}; is this machine's clock right?"
    if code in _OTHER_NAME:
        return f"its certificate is another server's: {said}; is the address right?"
    return (
        f"its certificate is not trusted: {said}; if it is from a CA of your own, SSL_CERT_FILE names that CA's file"
    )
