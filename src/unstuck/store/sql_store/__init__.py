"""SqlStore: the Store over any Database. A module per noun, as in `store/port/`; what a verb does is in its room."""

from __future__ import annotations

from unstuck import machine
from unstuck.store.drivers import migrations
from unstuck.store.hint import Hint
from unstuck.store.sql_store.alerts import SqlAlerts
from unstuck.store.sql_store.bulks import SqlBulks
from unstuck.store.sql_store.condition import SqlCondition
from unstuck.store.sql_store.dead_letters import SqlDeadLetters
from unstuck.store.sql_store.ends import SqlEnds
from unstuck.store.sql_store.flow import SqlFlow
from unstuck.store.sql_store.guard import SqlGuard
from unstuck.store.sql_store.hooks import SqlHooks
from unstuck.store.sql_store.jobs import SqlJobs
from unstuck.store.sql_store.keys import SqlKeys
from unstuck.store.sql_store.metrics import SqlMetrics
from unstuck.store.sql_store.order import SqlOrder
from unstuck.store.sql_store.read import SqlRead
from unstuck.store.sql_store.remote import SqlRemote
from unstuck.store.sql_store.schedules import SqlSchedules
from unstuck.store.sql_store.secrets import SqlSecrets
from unstuck.store.sql_store.series import SqlSeries
from unstuck.store.sql_store.signing import SqlSigning
from unstuck.store.sql_store.sweeps import SqlSweeps
from unstuck.store.sql_store.webhooks import SqlWebhooks
from unstuck.store.sql_store.worker import SqlWorker


class SqlStore(
    SqlWorker,
    SqlDeadLetters,
    SqlRemote,
    SqlJobs,
    SqlBulks,
    SqlFlow,
    SqlOrder,
    SqlGuard,
    SqlAlerts,
    SqlSigning,
    SqlKeys,
    SqlSweeps,
    SqlRead,
    SqlSeries,
    SqlMetrics,
    SqlSchedules,
    SqlSecrets,
    SqlWebhooks,
    SqlHooks,
    SqlEnds,
    SqlCondition,
):
    """Safe to share between threads; as safe across a fork as its database is."""

    def wait_for_work(self, timeout: float) -> Hint | None:
        return self._database.wait(timeout)

    def stay_awake(self) -> None:
        self._database.stay_awake()

    def recall_time(self) -> None:
        self._database.remember(machine.host(), machine.boot_id())

    def migrate(self) -> list[str]:
        return self._database.migrate()

    def probe(self) -> None:
        self._transactions.probe()

    def schema_version(self) -> int:
        return self._database.schema_version()

    def shipped_version(self) -> int:
        return self._database.shipped_version()

    def prepare_schema(self) -> bool:
        return migrations.prepare(self._database)

    def close(self) -> None:
        self._database.close()
