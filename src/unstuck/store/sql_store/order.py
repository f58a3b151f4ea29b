"""The verbs of pauses, limits, tenants and targets."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from unstuck.model.job import JobRecord
from unstuck.store.database import Transaction
from unstuck.store.order import gates, targets
from unstuck.store.port import Limit, LimitKind, LimitPart, Pause, PauseKind, TargetRecord, TenantRecord
from unstuck.store.read import lookup
from unstuck.store.rows import job_of
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlOrder(SqlVerbs):
    def pause(self, pause: Pause) -> Pause:
        until = pause.until_at.isoformat() if pause.until_at else None
        detail = {"reason": pause.reason, "until": until}
        noted = (pause.by, f"{pause.kind}s.pause", pause.name, pause.tenant, detail)
        return self._transactions.audited(lambda t: gates.pause(t, pause), *noted)

    def unpause(self, kind: PauseKind, name: str, tenant: str, by: str = "") -> bool:
        noted = (by, f"{kind}s.unpause", name, tenant)
        return self._transactions.hinting(
            self._transactions.audited(lambda t: gates.unpause(t, kind, name, tenant, by), *noted)
        )

    def pauses(self, tenant: str | None = None) -> list[Pause]:
        return self._database.read(lambda t: gates.pauses(t, tenant)) if lookup.can_exist(tenant) else []

    def set_limit(self, limit: Limit) -> Limit:
        parts = {
            "concurrency": limit.concurrency,
            "rate": limit.rate,
            "per": limit.per,
            "max_queued": limit.max_queued,
        }
        noted = (limit.by, f"{limit.kind}s.limit", limit.name, limit.tenant, parts)
        return self._transactions.hinting(self._transactions.audited(lambda t: gates.set_limit(t, limit), *noted))

    def change_limit(self, limit: Limit, parts: Collection[LimitPart]) -> Limit | None:
        said: dict[str, Any] = {part: getattr(limit, part) for part in sorted(parts)}
        noted = (limit.by, f"{limit.kind}s.limit", limit.name, limit.tenant, said)
        changed = self._transactions.audited(lambda t: gates.change_limit(t, limit, parts), *noted)
        self._database.hint()  # also when it is gone
        return changed

    def remove_limit(self, kind: LimitKind, name: str, tenant: str, by: str = "") -> bool:
        noted = (by, f"{kind}s.unlimit", name, tenant)
        return self._transactions.hinting(
            self._transactions.audited(lambda t: gates.remove_limit(t, kind, name, tenant), *noted)
        )

    def limits(self, tenant: str | None = None) -> list[Limit]:
        return self._database.read(lambda t: gates.limits(t, tenant)) if lookup.can_exist(tenant) else []

    def set_tenant(self, name: str, weight: int, by: str) -> TenantRecord:
        noted = (by, "tenants.weight", name, name, {"weight": weight})
        return self._transactions.audited(lambda t: gates.set_tenant(t, name, weight, by), *noted)

    def tenants(self, after: str = "", limit: int = 100) -> list[TenantRecord]:
        return self._database.read(lambda t: gates.tenants(t, after, limit)) if lookup.can_exist(after) else []

    def tenant(self, name: str) -> TenantRecord | None:
        return self._database.read(lambda t: gates.tenant(t, name)) if lookup.can_exist(name) else None

    def target(self, tenant: str, name: str) -> TargetRecord | None:
        if not lookup.can_exist(tenant, name):
            return None
        return self._database.read(lambda t: targets.named(t, tenant, name))

    def targets(self, tenant: str, *, blocked: bool = False, after: str = "", limit: int = 100) -> list[TargetRecord]:
        if not lookup.can_exist(tenant, after):
            return []
        return self._database.read(lambda t: targets.page(t, tenant, blocked, after, limit))

    def line(self, tenant: str, target: str, limit: int = 20) -> list[JobRecord]:
        def work(t: Transaction) -> list[JobRecord]:
            rows = t.all("line_of", tenant=tenant, name=target, most=limit)
            return [job_of(row, self._name_ids.policy(t, row["policy"])) for row in rows]

        return self._database.read(work) if lookup.can_exist(tenant, target) else []
