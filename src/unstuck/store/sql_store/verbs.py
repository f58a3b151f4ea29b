"""What the verbs of every noun are made of."""

from __future__ import annotations

from collections.abc import Callable

from unstuck.chance import Chance, SystemChance
from unstuck.model.errors import UnknownJob
from unstuck.model.payload import MAX_NAME, clean_text
from unstuck.model.times import Times
from unstuck.store.database import Database, T, Transaction
from unstuck.store.flow.sweep import FlowSweep
from unstuck.store.guard.blacklist_duty import BlacklistDuty
from unstuck.store.life.beats import Beats
from unstuck.store.life.bulks import BulkSweep
from unstuck.store.life.claim import Claims
from unstuck.store.life.inbox import Inbox
from unstuck.store.life.recovery import Recovery
from unstuck.store.life.reports import Reports
from unstuck.store.life.settle_tools import Settling
from unstuck.store.life.timers import Timers
from unstuck.store.order.name_ids import NameIds
from unstuck.store.read import lookup
from unstuck.store.transactions import Transactions


class SqlVerbs:
    def __init__(
        self, database: Database, chance: Chance | None = None, *, key_retention: float = Times().key_retention
    ) -> None:
        self._database = database
        self._key_life = key_retention
        self._name_ids = NameIds()
        self._tools = Settling(self._name_ids, chance or SystemChance())
        self._transactions = transactions = Transactions(database, self._tools)
        self._inbox = Inbox(database, self._tools)
        self._claims = Claims(database, self._name_ids)
        self._beats = Beats(transactions)
        self._reports = Reports(transactions)
        self._recovery = Recovery(transactions)
        self._timers = Timers(transactions)
        self._flow_sweep = FlowSweep(transactions)
        self._blacklist_duty = BlacklistDuty(transactions)
        self._bulk_sweep = BulkSweep(transactions)
        #: Of each worker, the code version that it registered last.
        self._versions: dict[int, str] = {}

    def _read_job(self, tenant: str, job: str, look: Callable[[Transaction], T]) -> T:
        if not lookup.can_exist(tenant, job):
            raise UnknownJob(clean_text(job, MAX_NAME))
        return self._database.read(look)
