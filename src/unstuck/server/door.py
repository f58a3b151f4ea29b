"""The door: who asks. By a key; by a ticket for one stream that a key was given; by the cookie of a browser that has
shown a key; by what the program says in which we are mounted; or without any, from this machine. Of a key and a
cookie the key counts: no page of another site can add it.

A database without keys is open to this machine alone, as its command line is. A browser on this machine carries the
requests of any page, so what a page of another site could send is refused: a Host that is not this machine's (a name
that was rebound to it), an Origin or Sec-Fetch-Site of another, what a proxy forwards, a change that is not JSON.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from unstuck.clock import Clock
from unstuck.model.errors import Unauthenticated, WrongArguments
from unstuck.model.keys import KEY_BEGINNING
from unstuck.operations.keyring import Identity
from unstuck.operations.table import Caller
from unstuck.operations.tickets import Tickets
from unstuck.records import dataclass
from unstuck.server.browsers import Browsers
from unstuck.server.exchange import TICKET, Exchange, stream_of
from unstuck.server.local import check_local
from unstuck.server.problems import HttpProblem
from unstuck.server.who import Auth

#: Seconds for which it is remembered that there are keys, or none.
REMEMBERED = 5.0

#: Whoever asks, by a key and the address it is shown from; Unauthenticated, TooManyAttempts.
Authenticate = Callable[[str, str], Caller]


@dataclass(frozen=True, slots=True)
class Admitted:
    """Who asks, and as whom the rate is counted; None: it is not."""

    caller: Caller
    counted_as: str | None


class HttpDoor:
    """`local`: whoever asks from this machine while there are no keys; None: nobody does. `browsers`: who has logged
    in; None: the program in which we are mounted knows its own."""

    def __init__(
        self,
        authenticate: Authenticate,
        has_keys: Callable[[], bool],
        clock: Clock,
        *,
        base: Callable[[], Caller],
        local: Caller | None = None,
        auth: Auth | None = None,
        browsers: Browsers | None = None,
        tickets: Tickets,
    ) -> None:
        self._authenticate = authenticate
        self._has_keys = has_keys
        self._clock = clock
        self._base = base
        self._local = local
        self._auth = auth
        self.browsers = browsers
        self.tickets = tickets
        self._lock = threading.Lock()
        self._known: tuple[float, bool] | None = None

    def admit(self, exchange: Exchange, *, is_use: bool = True) -> Admitted:
        """Who asks. With `is_use` false it is only asked whether they still may: a stream that somebody left open
        keeps no browser logged in."""
        if exchange.ticketed is not None:
            return self._by_identity(self.tickets.still(exchange.ticketed), exchange)
        shown = exchange.headers.get("authorization")
        if shown is not None and (self._auth is None or is_key_of_ours(shown)):
            scheme, _, key = shown.partition(" ")
            if scheme.lower() != "bearer":
                raise Unauthenticated("show an API key: `Authorization: Bearer usk_…`")
            return self._by_key(key.strip(), exchange)
        if (ticket := exchange.ticket) is not None:
            return self._by_ticket(ticket, exchange)
        if self._auth is not None:
            if (who := self._auth(exchange.scope)) is None:
                raise Unauthenticated("you are not known here")
            return Admitted(_from(exchange, who.caller(self._base())), who.by)
        if self._local is not None and not self._are_there_keys():
            check_local(exchange)
            return Admitted(_from(exchange, self._local), None)
        browser = None if self.browsers is None else self.browsers.known(exchange, is_use=is_use)
        if browser is None:
            raise Unauthenticated("an API key is needed: `Authorization: Bearer usk_…`")
        exchange.browser = browser
        return self._by_identity(browser.identity, exchange)

    def admit_to_log_in(self, exchange: Exchange) -> Admitted:
        """Whose key stands in the body: never in an address, which is logged and remembered."""
        if self.browsers is None:
            raise HttpProblem("NotFound", "the program in which this runs knows by itself who its browsers are")
        self.browsers.check_log_in(exchange)
        return self._by_key(key_in(exchange.json), exchange)

    def _by_key(self, key: str, exchange: Exchange) -> Admitted:
        caller = self._authenticate(key, exchange.address or "")
        return Admitted(_from(exchange, caller), caller.key or caller.by)

    def _by_ticket(self, ticket: str, exchange: Exchange) -> Admitted:
        """Once; what is asked again later is whether its key still works."""
        if not exchange.wants_stream:
            raise Unauthenticated("a ticket opens a stream (Accept: text/event-stream), and nothing else")
        identity = self.tickets.use(ticket, stream_of(exchange.own_path, exchange.query))
        exchange.ticketed = identity.key
        exchange.query = [pair for pair in exchange.query if pair[0] != TICKET]
        return self._by_identity(identity, exchange)

    def _by_identity(self, identity: Identity, exchange: Exchange) -> Admitted:
        return Admitted(_from(exchange, identity.caller(self._base())), identity.key)

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


def _from(exchange: Exchange, caller: Caller) -> Caller:
    return replace(caller, address=exchange.address)


def is_key_of_ours(shown: str) -> bool:
    """Or whatever the program in which we are mounted knows its callers by, in the same header."""
    scheme, _, key = shown.partition(" ")
    return scheme.lower() == "bearer" and key.strip().startswith(KEY_BEGINNING)


def key_in(body: Any) -> str:
    """Of what is wrong with it nothing is repeated: it may be a key in the wrong place."""
    if not isinstance(body, dict) or set(body) != {"key"} or not isinstance(body["key"], str):
        raise WrongArguments([("body", "/key", 'it is not {"key": "usk_…"} and nothing else')])
    return body["key"].strip()
