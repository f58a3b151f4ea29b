"""Our sessions that a database server keeps because nobody reads their answer -> ended.

A frozen process, or a host that is gone, may leave a session behind in the middle of its answer, with all the locks
it holds. A client that lives gives up after one store call. So a session that has waited for several, and is seen
twice with the same answer, has no client any more.
"""

from __future__ import annotations

from unstuck.janitor.budget import Budget
from unstuck.janitor.sweep_duty import SweepDuty
from unstuck.model.times import Times
from unstuck.store.port import ServerSession, Store

#: In store calls: workers may be set up differently, and a migration takes longer.
PATIENCE = 4


class UnreadDuty(SweepDuty):
    name = "unread"

    def __init__(self, store: Store, times: Times) -> None:
        super().__init__(store, times)
        self._seen: set[ServerSession] = set()

    def tick(self, now: float, budget: Budget) -> int:
        unread = set(self._store.unread_sessions(PATIENCE * self._times.store_call))
        ended = {session for session in unread & self._seen if self._store.end_unread_session(session)}
        self._seen = unread - ended
        return len(ended)
