"""Dialler: asks a URL that somebody else chose, and nobody but whom it has checked.

The name is resolved once; every address that comes back is judged (`model/destination.py`), and the connection is
made to one of exactly these, as numbers: no second look-up stands between the check and the call, so a name that
means something else a moment later changes nothing. TLS and the header Host go by the name. No redirect is followed,
no proxy is asked, whatever the environment says. One deadline holds for all of it: the name, the connection, TLS, and
the answer, of which 64 KiB are read at most.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from unstuck.clock import Clock, MachineClock, wall
from unstuck.deliver.resolver import NoAddress, Resolver, SystemResolver
from unstuck.model.destination import Address, AllowList, Destination, check_addresses, destination
from unstuck.model.errors import AddressRefused, InvalidInput
from unstuck.model.webhooks import EXCERPT, TryOutcome, retry_after_of
from unstuck.version import __version__

MOST_READ: Final = 64 << 10
#: Of the addresses of one name so many are tried.
MOST_TRIED: Final = 3
#: Seconds for the rest of an answer whose status is known: it decides nothing any more.
BODY_WITHIN: Final = 2.0
#: The same for all: which ports are open inside a network is nobody's business.
NOT_REACHED: Final = "nobody answered there"
NOT_IN_TIME: Final = "it did not answer in time"
CUT: Final = "the connection was cut before it answered"
NO_HTTP: Final = "what it answered is not HTTP"
NO_TLS: Final = "its certificate does not hold, or it does not speak TLS"


class Connect(Protocol):
    """How a socket is connected to an address; the one place where anybody is dialled."""

    def __call__(self, address: Address, port: int, within: float) -> socket.socket: ...


def connect(address: Address, port: int, within: float) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    dialled = socket.socket(family, socket.SOCK_STREAM)
    try:
        dialled.settimeout(within)
        dialled.connect((str(address), port))
    except BaseException:
        dialled.close()
        raise
    return dialled


class WebhookDialler:
    def __init__(
        self,
        resolver: Resolver | None = None,
        clock: Clock | None = None,
        *,
        connect: Connect = connect,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._resolver = resolver or SystemResolver()
        self._clock = clock or MachineClock()
        self._connect = connect
        self._context = context

    def check(self, url: Any, allow: Sequence[str], within: float) -> Destination:
        """Whether this URL may be asked, as far as can be told now. InvalidInput, AddressRefused."""
        where = destination(url)
        try:
            self._checked(where, AllowList(allow), self._clock.boot() + within)
        except NoAddress as problem:
            raise InvalidInput(f"host {where.host} cannot be found: {problem}") from None
        return where

    def post(
        self, url: str, headers: Mapping[str, str], body: bytes, *, allow: Sequence[str], within: float
    ) -> TryOutcome:
        """One try, over within so many seconds, however the other side behaves."""
        began = self._clock.boot()
        deadline = began + within
        try:
            where = destination(url)
            addresses = self._checked(where, AllowList(allow), deadline)
        except (InvalidInput, NoAddress) as problem:
            return TryOutcome(error=str(problem) if not isinstance(problem, AddressRefused) else _refused(problem))
        try:
            reached = self._reach(where, addresses, deadline)
        except ssl.SSLError:
            return TryOutcome(error=NO_TLS)
        except OSError:
            return TryOutcome(error=NOT_REACHED)
        with reached:
            outcome = _Exchange(reached, deadline, self._clock).ask(where, headers, body)
        took = round((self._clock.boot() - began) * 1000)
        return replace(outcome, took_ms=took)

    def _checked(self, where: Destination, allow: AllowList, deadline: float) -> tuple[Address, ...]:
        literal = where.literal
        found: Sequence[Address] = (
            [literal]
            if literal is not None
            else self._resolver.addresses(where.host, where.port, deadline - self._clock.boot())
        )
        return check_addresses(where, found, allow)

    def _reach(self, where: Destination, addresses: Sequence[Address], deadline: float) -> socket.socket:
        tried = addresses[:MOST_TRIED]
        for place, address in enumerate(tried, 1):
            left = deadline - self._clock.boot()
            if left <= 0:
                raise TimeoutError
            try:
                dialled = self._connect(address, where.port, left / (len(tried) - place + 1))
            except OSError:
                if place == len(tried):
                    raise
            else:
                return self._secured(dialled, where, deadline) if where.is_secure else dialled
        raise TimeoutError

    def _secured(self, dialled: socket.socket, where: Destination, deadline: float) -> socket.socket:
        try:
            dialled.settimeout(max(0.001, deadline - self._clock.boot()))
            # Of a handshake this is the limit of the whole, and not of each of its packets.
            return self._tls().wrap_socket(dialled, server_hostname=where.host)
        except BaseException:
            dialled.close()
            raise

    def _tls(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context


def _refused(problem: AddressRefused) -> str:
    return f"host {problem.host} is not asked: {problem.problem}"


class _Exchange:
    """One request and its answer, on a socket that is connected."""

    def __init__(self, reached: socket.socket, deadline: float, clock: Clock) -> None:
        self._socket = reached
        self._reader = _BoundedReader(reached, deadline, clock)
        self._deadline = deadline
        self._clock = clock

    def ask(self, where: Destination, headers: Mapping[str, str], body: bytes) -> TryOutcome:
        try:
            self._send(_request(where, headers, body))
            answer = http.client.HTTPResponse(self._reader, method="POST")  # type: ignore[arg-type]
            answer.begin()
        except TimeoutError:
            return TryOutcome(error=NOT_IN_TIME)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError, EOFError):
            return TryOutcome(error=CUT)
        except (http.client.HTTPException, ValueError, _TooMuch):
            return TryOutcome(error=NO_HTTP)
        except OSError:
            return TryOutcome(error=CUT)
        asked = retry_after_of(answer.status, answer.getheader("Retry-After"), wall())
        return TryOutcome(answer.status, _told(answer.status), self._excerpt(answer), retry_after=asked)

    def _send(self, request: bytes) -> None:
        left = memoryview(request)
        while left:
            self._socket.settimeout(_left(self._deadline, self._clock))
            left = left[self._socket.send(left) :]

    def _excerpt(self, answer: http.client.HTTPResponse) -> str:
        """The status has said what there is to say: that the rest is slow, endless or cut changes nothing."""
        self._reader.hurry(BODY_WITHIN)
        found = b""
        try:
            while len(found) < EXCERPT and (part := answer.read1(EXCERPT - len(found))):
                found += part
        except (OSError, http.client.HTTPException, ValueError, _TooMuch):
            pass
        return found[:EXCERPT].decode("utf-8", "replace")


def _told(status: int) -> str | None:
    if 200 <= status < 300:
        return None
    if 300 <= status < 400:
        return f"it answered {status}: redirects are not followed, give the URL itself"
    return f"it answered {status}"


def _request(where: Destination, headers: Mapping[str, str], body: bytes) -> bytes:
    said = {
        "Host": where.authority,
        "User-Agent": f"unstuck/{__version__}",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "Connection": "close",
        **headers,
    }
    lines = [f"POST {where.path} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + body


def _left(deadline: float, clock: Clock) -> float:
    left = deadline - clock.boot()
    if left <= 0:
        raise TimeoutError
    return left


class _TooMuch(Exception):
    pass


class _BoundedReader(io.RawIOBase):
    """A socket as http.client reads it: never past the deadline, never more than MOST_READ bytes. A limit for each
    packet would let a receiver that sends a byte now and then keep us for ever."""

    def __init__(self, reached: socket.socket, deadline: float, clock: Clock) -> None:
        self._socket = reached
        self._deadline = deadline
        self._clock = clock
        self._room = MOST_READ

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self, 4096)

    def hurry(self, seconds: float) -> None:
        self._deadline = min(self._deadline, self._clock.boot() + seconds)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._room <= 0:
            raise _TooMuch
        self._socket.settimeout(_left(self._deadline, self._clock))
        count = self._socket.recv_into(memoryview(buffer)[: self._room])
        self._room -= count
        return count
