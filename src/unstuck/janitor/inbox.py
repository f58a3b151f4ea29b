"""The inbox from its beginning: entries get their numbers before they commit, so who reads on from the last number he
saw, as claimers do, passes by one that came late. And what could not be worked off earlier, and was set aside."""

from __future__ import annotations

from unstuck.model.times import Times
from unstuck.store.port import Store

BATCH = 1000
_ROUNDS = 50


class Inbox:
    name = "inbox"

    def __init__(self, store: Store, times: Times) -> None:
        self._store = store
        self._times = times

    @property
    def every(self) -> float:
        return self._times.sweep

    def tick(self, now: float) -> int:
        woken = 0
        for _ in range(_ROUNDS):
            found = self._store.ingest(0, BATCH)
            woken += found.woken
            if found.entries < BATCH:
                break
        return woken + self._store.ingest_again(BATCH)
