"""Stay: a request that is answered when something happens, or bit by bit. `live` has those there are."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from unstuck.operations.table import Caller
from unstuck.records import dataclass
from unstuck.server import sse
from unstuck.server.exchange import HttpAnswer
from unstuck.server.guests import Guest


@dataclass(frozen=True, slots=True)
class Pieces:
    """An answer that comes bit by bit."""

    pieces: AsyncGenerator[bytes, None]
    media_type: str = sse.MEDIA_TYPE


class Stay(Protocol):
    """One request that stays."""

    def open(self, caller: Caller) -> None:
        """On a thread: what is asked, and whether this caller may."""
        ...

    async def serve(self, guest: Guest) -> HttpAnswer | Pieces: ...
