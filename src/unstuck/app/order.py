"""Order: who runs next, as a program sees and changes it: targets, pauses, limits, tenants' weights."""

from __future__ import annotations

from datetime import datetime

from unstuck.app.engine import Engine
from unstuck.intake.gates import Gates
from unstuck.intake.submit import UNSAID, Unsaid
from unstuck.store.port import Limit, LimitKind, Pause, PauseKind, TargetRecord, TenantRecord


class Order:
    """`app.order`. Everything is about the app's own tenant unless `tenant` names another; "*" is every tenant, for
    pauses and limits of a queue or workflow and limits of a key. In coroutines: `await app.in_thread(…)`."""

    __slots__ = ("_engine",)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # --- pauses -----------------------------------------------------------------------------------------------

    def pause(
        self,
        kind: PauseKind,
        name: str,
        *,
        for_: float | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> Pause:
        """Nothing new starts in that queue, workflow or tenant or on that target: for `for_` seconds, until that
        instant, or until a person lifts it. What runs goes on."""
        return self._gates.pause(kind, name, lasting=for_, until=until, reason=reason, tenant=tenant, by=by)

    def unpause(self, kind: PauseKind, name: str, *, tenant: str | None = None) -> bool:
        """False when it was not paused."""
        return self._gates.unpause(kind, name, tenant=tenant)

    def pauses(self, *, tenant: str | None = None) -> list[Pause]:
        """Those in force that shut something of this tenant; "*": all there are."""
        return self._gates.pauses(tenant=tenant)

    # --- limits -----------------------------------------------------------------------------------------------

    def limit(
        self,
        kind: LimitKind,
        name: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        max_queued: int | Unsaid | None = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> Limit | None:
        """How many run at once, start in a time ("100/m"), wait. What is not named stays as it stands, None lifts it;
        with nothing left it is lifted. Answers what holds now: None, or what the code says."""
        return self._gates.change_limit(
            kind, name, concurrency=concurrency, rate=rate, max_queued=max_queued, tenant=tenant, by=by
        )

    def unlimit(self, kind: LimitKind, name: str, *, tenant: str | None = None) -> bool:
        """False when nobody had set one. What the code says holds again at once."""
        return self._gates.unlimit(kind, name, tenant=tenant)

    def limits(self, *, tenant: str | None = None) -> list[Limit]:
        """Those that count something of this tenant; "*": all there are."""
        return self._gates.limits(tenant=tenant)

    # --- tenants ----------------------------------------------------------------------------------------------

    def weigh(self, tenant: str, weight: int, *, by: str | None = None) -> TenantRecord:
        """How many turns it gets for each turn of a tenant of weight 1."""
        return self._gates.weigh(tenant, weight, by=by)

    def tenants(self, *, after: str = "", limit: int = 100) -> list[TenantRecord]:
        """By name, above `after`: all that have a weight of their own or ever had a job."""
        return self._gates.tenants(after=after, limit=limit)

    # --- targets ----------------------------------------------------------------------------------------------

    def target(self, name: str, *, tenant: str | None = None) -> TargetRecord:
        """Whose turn it is there, what blocks it, how many wait. UnknownTarget if no job ever named it."""
        return self._engine.lookup(tenant).target(name)

    def targets(
        self, *, blocked: bool = False, after: str = "", limit: int = 100, tenant: str | None = None
    ) -> list[TargetRecord]:
        """By name, above `after`; with `blocked` only what a job blocks, the longest blocked first."""
        return self._engine.lookup(tenant).targets(blocked=blocked, after=after, limit=limit)

    @property
    def _gates(self) -> Gates:
        return Gates(self._engine.store, tenant=self._engine.settings.tenant, by=self._engine.name)
