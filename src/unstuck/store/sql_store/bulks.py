"""The verbs of bulks: one verb over all the jobs that a filter wants."""

from __future__ import annotations

from unstuck.model.bulk import BulkState, Counted
from unstuck.store.life import bulks
from unstuck.store.port import BulkRecord, Enough, JobFilter, NewBulk, never
from unstuck.store.read import lookup
from unstuck.store.rows import span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlBulks(SqlVerbs):
    def count_matching(self, tenant: str, filter: JobFilter) -> Counted:
        if not lookup.can_match(tenant, filter):
            return Counted(0, is_exact=True)
        return self._database.read(lambda t: bulks.count(t, tenant, filter))

    def start_bulk(self, bulk: NewBulk) -> BulkRecord:
        self._database.read(lambda t: bulks.expect(t, bulk))
        return self._database.write(lambda t: bulks.start(t, bulk))

    def bulk(self, tenant: str, number: int) -> BulkRecord | None:
        return self._database.read(lambda t: bulks.one(t, tenant, number))

    def bulks(
        self,
        tenant: str | None = None,
        *,
        state: BulkState | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[BulkRecord]:
        return self._database.read(lambda t: bulks.page(t, tenant, state, before, limit))

    def cancel_bulk(self, tenant: str, number: int, by: str) -> BulkRecord:
        return self._database.write(lambda t: bulks.cancel(t, tenant, number, by))

    def carry_bulks(self, batch: int = 500, *, enough: Enough = never) -> int:
        return self._bulk_sweep.carry(batch, enough)

    def forget_bulks(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        return self._database.write(
            lambda t: t.run("forget_bulks", retention=span(retention), batch=batch, past=past)
        )
