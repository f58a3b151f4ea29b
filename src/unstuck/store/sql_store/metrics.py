"""The verbs of the metrics."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from unstuck.model.totals import EndName, EndTotal
from unstuck.store.port import JobStands, TroubleStand, Waiting
from unstuck.store.read import metrics
from unstuck.store.rows import instant, span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlMetrics(SqlVerbs):
    def job_stands(self, tenant: str | None, names: int = 1000) -> JobStands:
        return self._database.read(lambda t: metrics.job_stands(t, tenant, names))

    def longest_waiting(self, tenant: str | None, routes: int = 1000, each: int = 100) -> list[Waiting]:
        return self._database.read(lambda t: metrics.longest_waiting(t, tenant, routes, each))

    def past_bound(self, tenant: str | None, late: float, backstop: float) -> dict[str, int]:
        asked = {"tenant": tenant, "late": span(late), "backstop": span(backstop), "looked": metrics.LOOKED}
        return {row["bound"]: int(row["jobs"]) for row in self._database.read(lambda t: t.all("past_bound", **asked))}

    def resting_since(self, tenant: str | None, most: int = 100) -> dict[tuple[str, str], datetime]:
        asked = {"tenant": tenant, "looked": metrics.LOOKED, "most": 3 * most}
        rows = self._database.read(lambda t: t.all("resting_since", **asked))
        return {(row["state"], row["queue"]): instant(row["since_at"]) for row in rows}

    def trouble_stands(self, tenant: str | None) -> list[TroubleStand]:
        return self._database.read(lambda t: metrics.trouble_stands(t, tenant))

    def end_totals(self, tenant: str | None, most: int = 1000) -> tuple[EndTotal, Mapping[EndName, EndTotal]]:
        return self._database.read(lambda t: metrics.end_totals(t, tenant, most))

    def forget_totals(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(
            lambda t: t.run("forget_totals", retention=span(retention), batch=batch, past=past)
        )
