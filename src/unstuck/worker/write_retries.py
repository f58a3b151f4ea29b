"""How often, and how soon, the settler tries again to write one thing that the store could not take."""

from __future__ import annotations

from unstuck.model.errors import OutcomeUnknown, SchemaMismatch, StoreLocked, StoreUnavailable

TRIES = 3
#: Seconds until the next try: at first, and at the longest.
SOON = 0.02
_LATE = 2.0
#: Of these no single thing is to blame.
STORE_AWAY = (StoreUnavailable, StoreLocked, OutcomeUnknown, SchemaMismatch)


def pause_after(tries: int) -> float:
    return min(_LATE, SOON * 2.0 ** min(tries, 20))
