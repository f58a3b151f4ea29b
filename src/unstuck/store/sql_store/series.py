"""The verbs of the series."""

from __future__ import annotations

from datetime import datetime

from unstuck.model.series import HOUR, MINUTE
from unstuck.store.database import Transaction
from unstuck.store.port import SeriesPage, SeriesPer
from unstuck.store.read import lookup, series
from unstuck.store.rows import instant, microseconds, span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlSeries(SqlVerbs):
    def count_ends(self, settled_after: float, batch: int = 5000) -> int:
        return series.count_ends(self._database, settled_after, batch)

    def count_enqueued(self, settled_after: float, batch: int = 5000) -> int:
        return series.count_enqueued(self._database, settled_after, batch)

    def counted_until(self) -> datetime:
        (row,) = self._database.read(lambda t: t.all("counted"))
        return instant(row["until"])

    def forget_series(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(
            lambda t: t.run("forget_series", retention=span(retention), batch=batch, past=past)
        )

    def series(
        self,
        tenant: str | None,
        per: SeriesPer,
        since: datetime,
        until: datetime,
        step: float,
        *,
        queue: str | None = None,
        workflow: str | None = None,
        names: int = 20,
    ) -> SeriesPage:
        wanted = {"tenant": tenant, "per": per, "queue": queue, "workflow": workflow}
        when = {"since": microseconds(since), "until": microseconds(until), "step": span(step)}
        kept = HOUR if all(number % span(HOUR) == 0 for number in when.values()) else MINUTE
        can_exist = lookup.can_exist(tenant, queue, workflow)

        def look(t: Transaction) -> SeriesPage:
            # First how far it was counted: what is counted meanwhile may be in the points, but is never missing.
            (counted,) = t.all("counted")
            rows = t.all("series", **wanted, **when, kept=int(kept), most=names) if can_exist else []
            return SeriesPage(tuple(series.point_of(row) for row in rows), instant(counted["until"]))

        return self._database.read(look)
