"""The nouns of an App: `app.queues.pause("io", seconds=600)`, in coroutines `await app.queues.apause(…)`.

Written by `docs/draw_faces.py` from the table of operations; a test compares the two. Change operations/ instead.
"""

from __future__ import annotations

from datetime import datetime

from unstuck.app.noun import Noun
from unstuck.operations import limits, pauses, queues, targets, tenants, workflows
from unstuck.operations.kinds import UNSAID, Duration, Unsaid
from unstuck.views import Page
from unstuck.views.gates import (
    LimitChange,
    LimitView,
    PauseView,
    QueueView,
    TargetView,
    TargetWhole,
    TenantView,
    TenantWhole,
    UnpauseView,
    WeightView,
    WorkflowView,
)


class Limits(Noun):
    """How many run at once, start in a time, or wait. Those of keys are set here, others with their noun."""

    __slots__ = ()

    def list(self, *, tenant: str | None = None) -> Page[LimitView]:
        """Every limit that counts something of this tenant; with `tenant="*"` all there are."""
        return self._ask(limits.list_, tenant, None)

    async def alist(self, *, tenant: str | None = None) -> Page[LimitView]:
        """`list` for coroutines."""
        return await self._aask(limits.list_, tenant, None)

    def key(
        self,
        name: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> LimitChange:
        """Limit the jobs of a key, with "family:*" of each key of it, with "*" of each key. Jobs get one by their
        workflow's limit_key="host:{host}" or when they are enqueued."""
        return self._ask(limits.key, tenant, by, name, concurrency=concurrency, rate=rate)

    async def akey(
        self,
        name: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> LimitChange:
        """`key` for coroutines."""
        return await self._aask(limits.key, tenant, by, name, concurrency=concurrency, rate=rate)

    def unlimit_key(self, name: str, *, tenant: str | None = None, by: str | None = None) -> LimitChange:
        """Lift the limit of a key."""
        return self._ask(limits.unlimit_key, tenant, by, name)

    async def aunlimit_key(self, name: str, *, tenant: str | None = None, by: str | None = None) -> LimitChange:
        """`unlimit_key` for coroutines."""
        return await self._aask(limits.unlimit_key, tenant, by, name)


class Pauses(Noun):
    """Everything that somebody paused, in one list. Set with their noun: queues, targets, tenants, workflows."""

    __slots__ = ()

    def list(self, *, tenant: str | None = None) -> Page[PauseView]:
        """Those in force that shut something of this tenant; with `tenant="*"` all there are."""
        return self._ask(pauses.list_, tenant, None)

    async def alist(self, *, tenant: str | None = None) -> Page[PauseView]:
        """`list` for coroutines."""
        return await self._aask(pauses.list_, tenant, None)


class Queues(Noun):
    """What waits where, who serves it, and what shuts or limits it."""

    __slots__ = ()

    def list(self, *, after: str = "", limit: int = 50, tenant: str | None = None) -> Page[QueueView]:
        """The queues of a tenant by name, above `after`: those with jobs, and those that workers or workflows
        name."""
        return self._ask(queues.list_, tenant, None, after=after, limit=limit)

    async def alist(self, *, after: str = "", limit: int = 50, tenant: str | None = None) -> Page[QueueView]:
        """`list` for coroutines."""
        return await self._aask(queues.list_, tenant, None, after=after, limit=limit)

    def pause(
        self,
        queue: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """Start nothing new from a queue: for so long, until that instant, or until somebody lifts it. What runs
        goes on, what comes waits."""
        return self._ask(queues.pause, tenant, by, queue, seconds=seconds, until=until, reason=reason)

    async def apause(
        self,
        queue: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """`pause` for coroutines."""
        return await self._aask(queues.pause, tenant, by, queue, seconds=seconds, until=until, reason=reason)

    def unpause(self, queue: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """Lift the pause of a queue."""
        return self._ask(queues.unpause, tenant, by, queue)

    async def aunpause(self, queue: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """`unpause` for coroutines."""
        return await self._aask(queues.unpause, tenant, by, queue)

    def limit(
        self,
        queue: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        max_queued: int | Unsaid | None = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> LimitChange:
        """Limit how much of a queue runs at once, starts in a time ("100/m") or waits. What is not named stays as
        it stands, None lifts it."""
        return self._ask(queues.limit, tenant, by, queue, concurrency=concurrency, rate=rate, max_queued=max_queued)

    async def alimit(
        self,
        queue: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        max_queued: int | Unsaid | None = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> LimitChange:
        """`limit` for coroutines."""
        return await self._aask(
            queues.limit, tenant, by, queue, concurrency=concurrency, rate=rate, max_queued=max_queued
        )

    def unlimit(self, queue: str, *, tenant: str | None = None, by: str | None = None) -> LimitChange:
        """Lift what was set. What the code says holds again at once."""
        return self._ask(queues.unlimit, tenant, by, queue)

    async def aunlimit(self, queue: str, *, tenant: str | None = None, by: str | None = None) -> LimitChange:
        """`unlimit` for coroutines."""
        return await self._aask(queues.unlimit, tenant, by, queue)


class Targets(Noun):
    """Where jobs run one at a time; whose turn it is, and what blocks."""

    __slots__ = ()

    def list(
        self, *, blocked: bool = False, after: str = "", limit: int = 50, tenant: str | None = None
    ) -> Page[TargetView]:
        """The targets by name, above `after`; with `blocked` only those that a job blocks, the longest blocked
        first."""
        return self._ask(targets.list_, tenant, None, blocked=blocked, after=after, limit=limit)

    async def alist(
        self, *, blocked: bool = False, after: str = "", limit: int = 50, tenant: str | None = None
    ) -> Page[TargetView]:
        """`list` for coroutines."""
        return await self._aask(targets.list_, tenant, None, blocked=blocked, after=after, limit=limit)

    def get(self, target: str, *, tenant: str | None = None) -> TargetWhole:
        """One target: whose turn it is, who blocks it since when, who waits, its pause."""
        return self._ask(targets.get, tenant, None, target)

    async def aget(self, target: str, *, tenant: str | None = None) -> TargetWhole:
        """`get` for coroutines."""
        return await self._aask(targets.get, tenant, None, target)

    def pause(
        self,
        target: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """Start nothing new on a target. What runs there goes on."""
        return self._ask(targets.pause, tenant, by, target, seconds=seconds, until=until, reason=reason)

    async def apause(
        self,
        target: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """`pause` for coroutines."""
        return await self._aask(targets.pause, tenant, by, target, seconds=seconds, until=until, reason=reason)

    def unpause(self, target: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """Lift the pause of a target."""
        return self._ask(targets.unpause, tenant, by, target)

    async def aunpause(self, target: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """`unpause` for coroutines."""
        return await self._aask(targets.unpause, tenant, by, target)


class Tenants(Noun):
    """Whose jobs; their shares, pauses and limits."""

    __slots__ = ()

    def list(self, *, after: str = "", limit: int = 20) -> Page[TenantView]:
        """The tenants by name, above `after`: all that have a weight of their own or ever had a job."""
        return self._ask(tenants.list_, None, None, after=after, limit=limit)

    async def alist(self, *, after: str = "", limit: int = 20) -> Page[TenantView]:
        """`list` for coroutines."""
        return await self._aask(tenants.list_, None, None, after=after, limit=limit)

    def get(self, name: str) -> TenantWhole:
        """One tenant: its jobs by state, its weight, and every pause and limit that touches it."""
        return self._ask(tenants.get, None, None, name)

    async def aget(self, name: str) -> TenantWhole:
        """`get` for coroutines."""
        return await self._aask(tenants.get, None, None, name)

    def pause(
        self,
        name: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """Start nothing new of a tenant. What runs goes on, what comes waits."""
        return self._ask(tenants.pause, None, by, name, seconds=seconds, until=until, reason=reason)

    async def apause(
        self,
        name: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """`pause` for coroutines."""
        return await self._aask(tenants.pause, None, by, name, seconds=seconds, until=until, reason=reason)

    def unpause(self, name: str, *, by: str | None = None) -> UnpauseView:
        """Lift the pause of a tenant."""
        return self._ask(tenants.unpause, None, by, name)

    async def aunpause(self, name: str, *, by: str | None = None) -> UnpauseView:
        """`unpause` for coroutines."""
        return await self._aask(tenants.unpause, None, by, name)

    def weigh(self, name: str, weight: int, *, by: str | None = None) -> WeightView:
        """How many turns a tenant gets for each turn of a tenant of weight 1. Workers take it up within some
        seconds."""
        return self._ask(tenants.weigh, None, by, name, weight)

    async def aweigh(self, name: str, weight: int, *, by: str | None = None) -> WeightView:
        """`weigh` for coroutines."""
        return await self._aask(tenants.weigh, None, by, name, weight)

    def limit(
        self,
        name: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        max_queued: int | Unsaid | None = UNSAID,
        by: str | None = None,
    ) -> LimitChange:
        """Limit how much of a tenant, with "*" of each tenant by itself, runs at once, starts in a time ("100/m")
        or waits. What is not named stays as it stands, None lifts it."""
        return self._ask(tenants.limit, None, by, name, concurrency=concurrency, rate=rate, max_queued=max_queued)

    async def alimit(
        self,
        name: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        max_queued: int | Unsaid | None = UNSAID,
        by: str | None = None,
    ) -> LimitChange:
        """`limit` for coroutines."""
        return await self._aask(
            tenants.limit, None, by, name, concurrency=concurrency, rate=rate, max_queued=max_queued
        )

    def unlimit(self, name: str, *, by: str | None = None) -> LimitChange:
        """Lift what was set."""
        return self._ask(tenants.unlimit, None, by, name)

    async def aunlimit(self, name: str, *, by: str | None = None) -> LimitChange:
        """`unlimit` for coroutines."""
        return await self._aask(tenants.unlimit, None, by, name)


class Workflows(Noun):
    """What can be run, as its workers registered it; pause and limit it."""

    __slots__ = ()

    def list(self, *, tenant: str | None = None) -> Page[WorkflowView]:
        """What workers have registered in this database, whoever's code it is."""
        return self._ask(workflows.list_, tenant, None)

    async def alist(self, *, tenant: str | None = None) -> Page[WorkflowView]:
        """`list` for coroutines."""
        return await self._aask(workflows.list_, tenant, None)

    def get(self, workflow: str, *, tenant: str | None = None) -> WorkflowView:
        """One workflow: its queue, its arguments, the policy of its jobs, what shuts and limits it."""
        return self._ask(workflows.get, tenant, None, workflow)

    async def aget(self, workflow: str, *, tenant: str | None = None) -> WorkflowView:
        """`get` for coroutines."""
        return await self._aask(workflows.get, tenant, None, workflow)

    def pause(
        self,
        workflow: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """Start nothing new of a workflow. What runs goes on, what comes waits."""
        return self._ask(workflows.pause, tenant, by, workflow, seconds=seconds, until=until, reason=reason)

    async def apause(
        self,
        workflow: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """`pause` for coroutines."""
        return await self._aask(workflows.pause, tenant, by, workflow, seconds=seconds, until=until, reason=reason)

    def unpause(self, workflow: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """Lift the pause of a workflow."""
        return self._ask(workflows.unpause, tenant, by, workflow)

    async def aunpause(self, workflow: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """`unpause` for coroutines."""
        return await self._aask(workflows.unpause, tenant, by, workflow)

    def limit(
        self,
        workflow: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        each_key: bool = False,
        tenant: str | None = None,
        by: str | None = None,
    ) -> LimitChange:
        """Limit how much of a workflow, or of each of its limit keys, runs at once or starts in a time ("100/m").
        What is not named stays as it stands, None lifts it."""
        return self._ask(workflows.limit, tenant, by, workflow, concurrency=concurrency, rate=rate, each_key=each_key)

    async def alimit(
        self,
        workflow: str,
        *,
        concurrency: int | Unsaid | None = UNSAID,
        rate: str | Unsaid | None = UNSAID,
        each_key: bool = False,
        tenant: str | None = None,
        by: str | None = None,
    ) -> LimitChange:
        """`limit` for coroutines."""
        return await self._aask(
            workflows.limit, tenant, by, workflow, concurrency=concurrency, rate=rate, each_key=each_key
        )

    def unlimit(
        self, workflow: str, *, each_key: bool = False, tenant: str | None = None, by: str | None = None
    ) -> LimitChange:
        """Lift what was set. What the code says holds again at once."""
        return self._ask(workflows.unlimit, tenant, by, workflow, each_key=each_key)

    async def aunlimit(
        self, workflow: str, *, each_key: bool = False, tenant: str | None = None, by: str | None = None
    ) -> LimitChange:
        """`unlimit` for coroutines."""
        return await self._aask(workflows.unlimit, tenant, by, workflow, each_key=each_key)
