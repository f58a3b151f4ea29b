"""Browser sessions: whose browser is this? Asked for every request that shows a cookie instead of a key.

Theory of operation. Whoever shows a key that works gets a session: a secret of 256 random bits that its browser
keeps, made anew each time and never taken from the browser, so nobody can plant one. Only its SHA-256 is stored. A
session that was found to go on is known for FRESH seconds without a question to the database, as keys are: what ends
it, or its key, takes effect within that time on every process, and at once on the one that was asked to log it out.
That it was used is written in the background, once a minute, so its idle time ends up to a minute early or late.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import field
from datetime import datetime
from typing import Final

from unstuck.chance import unguessable
from unstuck.clock import Clock
from unstuck.model.errors import OutcomeUnknown, Unauthenticated
from unstuck.model.keys import (
    SECRETS,
    NewBrowserSession,
    csrf_token,
    digest,
    is_session,
    spell_session,
)
from unstuck.operations.keyring import FRESH, REMEMBERED, USES_EVERY, Identity, Keyring
from unstuck.records import dataclass
from unstuck.store.port import Store, asking_from

#: Seconds after which a session that nobody uses ends, and after which every one does.
IDLE: Final = 3600.0
LASTING: Final = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class KnownBrowser:
    """A session that goes on. `secret`: what the browser keeps; it is told to nobody else."""

    secret: str = field(repr=False)
    number: int
    identity: Identity
    began_at: datetime
    ends_at: datetime

    @property
    def csrf(self) -> str:
        return csrf_token(self.secret)


@dataclass(slots=True)
class _Seen:
    browser: KnownBrowser
    fresh_until: float
    noted_at: float


class BrowserSessions:
    """Safe to share between threads."""

    def __init__(self, store: Store, keyring: Keyring, clock: Clock) -> None:
        self._store = store
        self._keyring = keyring
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, _Seen] = OrderedDict()

    def begin(self, key: str, by: str, address: str | None) -> KnownBrowser:
        """Of whoever has just shown this key; by its id."""
        secret = spell_session(unguessable(SECRETS))
        new = NewBrowserSession(digest(secret), key, idle=IDLE, lasting=LASTING, address=address)
        with asking_from(key, address):
            try:
                self._store.open_browser_session(new, by)
            except OutcomeUnknown:
                if self._store.browser_session(new.digest) is None:
                    self._store.open_browser_session(new, by)
        return self.known(secret)

    def known(self, secret: str, *, is_use: bool = True) -> KnownBrowser:
        """Whose it is. Unauthenticated: it is none, or has ended. Without `is_use` its idle time goes on."""
        if not is_session(secret):
            raise Unauthenticated(_ENDED)
        name, now = digest(secret), self._clock.boot()
        with self._lock:
            seen = self._seen.get(name)
        if seen is None or now >= seen.fresh_until:
            seen = self._look_up(secret, name, seen)
        if is_use and (not seen.noted_at or now - seen.noted_at >= USES_EVERY):
            seen.noted_at = now
            self._keyring.note_session(seen.browser.identity.key, name)
        return seen.browser

    def end(self, browser: KnownBrowser, by: str, address: str | None) -> None:
        """Log it out."""
        name = digest(browser.secret)
        with asking_from(browser.identity.key, address):
            self._store.end_browser_session(by, digest=name)
        self._forget(name)

    def _look_up(self, secret: str, name: str, before: _Seen | None) -> _Seen:
        """Fresh from before the question on: what is ended while it is answered is known in time."""
        asked = self._clock.boot()
        found = self._store.browser_session(name)
        identity = None if found is None else Identity.of(found.key)
        if found is None or identity is None:
            self._forget(name)
            raise Unauthenticated(_ENDED)
        browser = KnownBrowser(secret, found.number, identity, found.created_at, found.ends_at)
        left = (found.ends_at - found.at).total_seconds()
        seen = _Seen(browser, asked + min(FRESH, left), before.noted_at if before else 0.0)
        with self._lock:
            self._seen.pop(name, None)
            self._seen[name] = seen
            while len(self._seen) > REMEMBERED:
                self._seen.popitem(last=False)
        return seen

    def _forget(self, name: str) -> None:
        with self._lock:
            self._seen.pop(name, None)


_ENDED: Final = "this browser is not logged in, or its session has ended: log in with an API key"
