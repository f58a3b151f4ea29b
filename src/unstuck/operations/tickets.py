"""Tickets: one stream, opened once by whoever has no other way to say who asks. An EventSource can send no header.

Theory of operation. Whoever shows a key gets a ticket for one stream: a secret of 256 random bits, whose digest is
stored together with that of the stream's address, so that it opens no other. It opens it once, within LASTING
seconds: using it takes its row away, on whichever server. From then on the stream is its key's: it may see what the
key may, and ends when the key does.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from unstuck.chance import unguessable
from unstuck.model.errors import Unauthenticated
from unstuck.model.keys import SECRETS, digest, is_ticket, spell_ticket
from unstuck.operations.keyring import Identity, Keyring
from unstuck.store.port import Store

#: Seconds in which a ticket must be used.
LASTING: Final = 60.0


class MadeTicket(NamedTuple):
    secret: str
    ends_at: datetime


class Tickets:
    """`store` and `keyring` are asked each time, as a program may open its own anew."""

    def __init__(self, store: Callable[[], Store], keyring: Callable[[], Keyring]) -> None:
        self._store = store
        self._keyring = keyring

    def make(self, key: str, stream: str) -> MadeTicket:
        """For a key that was just shown, by its id. `stream`: what it is for, spelled in one way only."""
        secret = spell_ticket(unguessable(SECRETS))
        return MadeTicket(secret, self._store().add_ticket(_stored(secret, stream), key, LASTING))

    def use(self, secret: str, stream: str) -> Identity:
        """Whose it is, once. Unauthenticated."""
        key = self._store().use_ticket(_stored(secret, stream)) if is_ticket(secret) else None
        if key is None:
            raise Unauthenticated(
                f"this ticket opens nothing: it was used, is older than {LASTING:g} s, or is for another stream; get "
                "another one with a key"
            )
        return self.still(key)

    def still(self, key: str) -> Identity:
        """Who has this key, for whom a stream was opened. Unauthenticated once it has ended."""
        return self._keyring().standing(key)


def _stored(secret: str, stream: str) -> str:
    return digest(f"{secret} {stream}")
