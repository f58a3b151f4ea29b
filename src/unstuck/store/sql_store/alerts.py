"""The verbs of alerts, and what their rules look at."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from unstuck.model.alerts import RULES, AlertFinding, AlertNumbers, AlertRecord, RuleStand
from unstuck.store.guard import alerts, isolation
from unstuck.store.port import (
    AlertStand,
    AlertTurn,
    LetterStand,
    LongBlocked,
    Repeated,
    Resting,
    SeenAlerts,
    StuckRate,
)
from unstuck.store.read import conditions, lookup
from unstuck.store.rows import span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlAlerts(SqlVerbs):
    def alert_numbers(self) -> AlertNumbers:
        return self._database.read(alerts.numbers)

    def alert_rules(self) -> list[RuleStand]:
        return self._database.read(alerts.rules)

    def take_alert_turn(self, rule: str, by: str, every: float) -> AlertTurn | None:
        return self._database.write(lambda t: alerts.take_turn(t, rule, by, every), patience=isolation.IMPATIENCE)

    def add_alert_rules(self) -> None:
        self._database.write(lambda t: t.run("add_alert_rules", rules=list(RULES)), patience=isolation.PATIENCE)

    def end_alert_turn(self, turn: AlertTurn, place: str, error: str | None = None) -> bool:
        return self._database.write(lambda t: alerts.end_turn(t, turn, place, error), patience=isolation.PATIENCE)

    def see_alerts(self, rule: str, findings: Sequence[AlertFinding]) -> SeenAlerts:
        return alerts.see(self._database, rule, findings) if findings else SeenAlerts()

    def close_alerts(self, rule: str, began_at: datetime, after: float) -> list[AlertRecord]:
        return alerts.close(self._database, rule, began_at, after)

    def alerts(
        self,
        tenant: str | None = None,
        *,
        closed: bool = False,
        rule: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AlertRecord]:
        if not lookup.can_exist(tenant, rule):
            return []
        return self._database.read(lambda t: alerts.page(t, tenant, closed, rule, before, limit))

    def alert(self, number: int, tenant: str | None = None) -> AlertRecord:
        return self._database.read(lambda t: alerts.one(t, number, tenant))

    def ack_alert(self, number: int, by: str, tenant: str | None = None) -> AlertRecord:
        return self._database.write(lambda t: alerts.ack(t, number, by, tenant))

    def mute_alert(self, number: int, seconds: float | None, by: str, tenant: str | None = None) -> AlertRecord:
        return self._database.write(lambda t: alerts.mute(t, number, seconds, by, tenant))

    def alert_stands(self, tenant: str | None = None) -> list[AlertStand]:
        return self._database.read(lambda t: alerts.stands(t, tenant)) if lookup.can_exist(tenant) else []

    def forget_alerts(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        kept = span(retention)
        return self._database.write(lambda t: t.run("forget_alerts", retention=kept, batch=batch, past=past))

    def forget_recoveries(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        kept = span(retention)
        return self._database.write(lambda t: t.run("forget_recoveries", retention=kept, batch=batch, past=past))

    # --- what the rules look at -------------------------------------------------------------------------------
    def recoveries(self, seconds: float, least: int, most: int = 100) -> list[Repeated]:
        return self._database.read(lambda t: conditions.recoveries(t, seconds, least, most))

    def stuck_rates(self, seconds: float) -> list[StuckRate]:
        return self._database.read(lambda t: conditions.stuck_rates(t, seconds))

    def resting_for(self, state: str, seconds: float, after: str = "", looked: int = 1000) -> Resting | None:
        return self._database.read(lambda t: conditions.resting_for(t, state, seconds, after, looked))

    def blocked_for(self, seconds: float, after: str = "", looked: int = 100) -> LongBlocked | None:
        return self._database.read(lambda t: conditions.blocked_for(t, seconds, after, looked))

    def letters_of_next(self, least: int, after: str = "", looked: int = 1000) -> tuple[str, list[LetterStand]]:
        return self._database.read(lambda t: conditions.letters_of_next(t, least, after, looked))

    def unforgotten(self, retention: float, looked: int = 1000) -> tuple[int, datetime | None]:
        return conditions.unforgotten(self._database, retention, looked)

    def feed_waits_since(self) -> datetime | None:
        return conditions.feed_waits_since(self._database)
