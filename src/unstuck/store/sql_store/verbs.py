"""What the verbs of every noun are made of."""

from __future__ import annotations

from collections.abc import Callable

from unstuck.chance import Chance, SystemChance
from unstuck.model.errors import UnknownJob
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.model.times import Times
from unstuck.store.calls import Calls
from unstuck.store.database import Database, T, Transaction
from unstuck.store.flow.tending import Tending
from unstuck.store.guard.tending import BlacklistDuty
from unstuck.store.life.beats import Beats
from unstuck.store.life.claim import Claims
from unstuck.store.life.inbox import Inbox
from unstuck.store.life.recovery import Recovery
from unstuck.store.life.reports import Reports
from unstuck.store.life.settle_tools import Settling
from unstuck.store.life.timers import Timers
from unstuck.store.order.dimensions import Dimensions
from unstuck.store.read import lookup


class SqlVerbs:
    def __init__(
        self, database: Database, chance: Chance | None = None, *, key_retention: float = Times().key_retention
    ) -> None:
        self._database = database
        self._key_life = key_retention
        self._dimensions = Dimensions()
        self._tools = Settling(self._dimensions, chance or SystemChance())
        self._calls = calls = Calls(database, self._tools)
        self._inbox = Inbox(database, self._tools)
        self._claims = Claims(database, self._dimensions)
        self._beats = Beats(calls)
        self._reports = Reports(calls)
        self._recovery = Recovery(calls)
        self._timers = Timers(calls)
        self._tending = Tending(calls)
        self._blacklist_duty = BlacklistDuty(calls)
        #: Of each worker, the code version that it registered last.
        self._versions: dict[int, str] = {}

    def _read_job(self, tenant: str, job: str, look: Callable[[Transaction], T]) -> T:
        if not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))
        return self._database.read(look)
