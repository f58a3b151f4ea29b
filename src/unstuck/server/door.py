"""The door: who asks. By a key; by what the program says in which we are mounted; or without one, from this machine.

A database without keys is open to this machine alone, as its command line is. A browser on this machine carries the
requests of any page, so what a page of another site could send is refused: a Host that is not this machine's (a name
that was rebound to it), an Origin or Sec-Fetch-Site of another, what a proxy forwards, a change that is not JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from unstuck.clock import Clock
from unstuck.model.errors import Unauthenticated
from unstuck.operations.table import Caller
from unstuck.server.exchange import Exchange
from unstuck.server.problems import HttpProblem
from unstuck.server.who import Auth

#: Seconds for which it is remembered that there are keys, or none.
REMEMBERED = 5.0
_FORWARDED = (
    "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-real-ip",
    "via",
)  # fmt: skip

#: Whoever asks, by a key and the address it is shown from; Unauthenticated, TooManyAttempts.
Authenticate = Callable[[str, str], Caller]


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who asks, and as whom the rate is counted; None: it is not."""

    caller: Caller
    counted_as: str | None


class HttpDoor:
    """`local`: whoever asks from this machine while there are no keys; None: nobody does."""

    def __init__(
        self,
        authenticate: Authenticate,
        has_keys: Callable[[], bool],
        clock: Clock,
        *,
        base: Callable[[], Caller],
        local: Caller | None = None,
        auth: Auth | None = None,
    ) -> None:
        self._authenticate = authenticate
        self._has_keys = has_keys
        self._clock = clock
        self._base = base
        self._local = local
        self._auth = auth
        self._lock = threading.Lock()
        self._known: tuple[float, bool] | None = None

    def admit(self, exchange: Exchange) -> Admitted:
        shown = exchange.headers.get("authorization")
        if shown is not None:
            scheme, _, key = shown.partition(" ")
            if scheme.lower() != "bearer":
                raise Unauthenticated("show an API key: `Authorization: Bearer usk_…`")
            caller = self._authenticate(key.strip(), exchange.address or "")
            return Admitted(caller, caller.key or caller.by)
        if self._auth is not None:
            if (who := self._auth(exchange.scope)) is None:
                raise Unauthenticated("you are not known here")
            return Admitted(who.caller(self._base()), who.by)
        if self._local is None or self._are_there_keys():
            raise Unauthenticated("an API key is needed: `Authorization: Bearer usk_…`")
        check_local(exchange)
        return Admitted(self._local, None)

    def admit_probe(self, exchange: Exchange) -> None:
        """Who may know whether we are ready: this machine itself, and who shows a key that works."""
        if exchange.headers.get("authorization") is None:
            try:
                check_local(exchange)
            except HttpProblem:
                pass
            else:
                return
        self.admit(exchange)

    def _are_there_keys(self) -> bool:
        """Asked of the store, and remembered for some seconds; once there are keys, they are needed."""
        now = self._clock.boot()
        with self._lock:
            if self._known is not None and now - self._known[0] < REMEMBERED:
                return self._known[1]
        found = self._has_keys()
        with self._lock:
            self._known = (now, found)
        return found


def check_local(exchange: Exchange) -> None:
    """Whether it can only come from this machine, and from no page of another site."""
    if exchange.address is not None and not is_loopback(exchange.address):
        raise HttpProblem("Forbidden", "without keys only this machine itself may ask")
    host = exchange.headers.get("host", "")
    if not is_loopback(_name_in(host)):
        raise HttpProblem("Forbidden", "without keys the Host must be this machine: localhost, 127.0.0.1 or [::1]")
    for name in _FORWARDED:
        if name in exchange.headers:
            raise HttpProblem("Forbidden", f"without keys nothing is taken from a proxy ({name}): make a key")
    origin = exchange.headers.get("origin")
    if origin is not None and origin != f"{exchange.scheme}://{host}":
        raise HttpProblem("Forbidden", "it comes from a page of another site")
    if exchange.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HttpProblem("Forbidden", "it comes from a page of another site")


def _name_in(host: str) -> str:
    if not host.isprintable():
        return ""  # `urlsplit` leaves tabs out
    try:
        split = urlsplit(f"//{host}")
        _ = split.port
    except ValueError:
        return ""
    return "" if split.path or split.query or split.fragment or "@" in host else split.hostname or ""


def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
