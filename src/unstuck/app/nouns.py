"""The nouns of an App: `app.queues.pause("io", seconds=600)`, in coroutines `await app.queues.apause(…)`.

Written by `docs/draw_faces.py` from the table of operations; a test compares the two. Change operations/ instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from unstuck.app.noun import Noun
from unstuck.observe.lookup import State
from unstuck.observe.stream import AsyncStream, Stream
from unstuck.operations import (
    approvals,
    audit,
    blacklist,
    bulks,
    events,
    health,
    limits,
    notifications,
    pauses,
    quarantine,
    queues,
    settings,
    targets,
    tenants,
    workers,
    workflows,
)
from unstuck.operations.kinds import UNSAID, Cursor, Duration, Unsaid
from unstuck.views import Page
from unstuck.views.bulks import BulkView, CountView
from unstuck.views.flow import ApprovalView, FeedEventView, SentView, WaitView
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
from unstuck.views.guard import (
    ActionView,
    BlacklistAdded,
    BlacklistRemoved,
    BlacklistView,
    NotificationView,
    QuarantineRetry,
    QuarantineView,
    SettingView,
)
from unstuck.views.health import HealthView
from unstuck.views.workers import OrderView, WorkerView


class ApprovalsNoun(Noun):
    """The questions that jobs ask of people, and the answers."""

    __slots__ = ()

    def list(self, *, after: str | None = None, limit: int = 50, tenant: str | None = None) -> Page[ApprovalView]:
        """What waits for a decision, the oldest first: who is asked, until when, and what happens then."""
        return self._ask(approvals.list_, tenant, None, after=after, limit=limit)

    async def alist(
        self, *, after: str | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[ApprovalView]:
        """`list` for coroutines."""
        return await self._aask(approvals.list_, tenant, None, after=after, limit=limit)

    def approve(
        self,
        job: str,
        *,
        comment: str | None = None,
        key: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> WaitView:
        """Say yes to the question that a job asks (`key`: to this one): the job goes on. NotWaiting if none is
        open or somebody was faster, NotAsked if the question is for others."""
        return self._ask(approvals.approve, tenant, by, job, comment=comment, key=key)

    async def aapprove(
        self,
        job: str,
        *,
        comment: str | None = None,
        key: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> WaitView:
        """`approve` for coroutines."""
        return await self._aask(approvals.approve, tenant, by, job, comment=comment, key=key)

    def reject(
        self,
        job: str,
        *,
        comment: str | None = None,
        key: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> WaitView:
        """Say no: the job hears of it, and fails unless it knows what to do then."""
        return self._ask(approvals.reject, tenant, by, job, comment=comment, key=key)

    async def areject(
        self,
        job: str,
        *,
        comment: str | None = None,
        key: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> WaitView:
        """`reject` for coroutines."""
        return await self._aask(approvals.reject, tenant, by, job, comment=comment, key=key)


class AuditNoun(Noun):
    """Who did what, and when."""

    __slots__ = ()

    def list(
        self,
        *,
        verb: str | None = None,
        subject: str | None = None,
        after: Cursor | None = None,
        limit: int = 50,
        tenant: str | None = None,
    ) -> Page[ActionView]:
        """What operators did, the newest first. `verb`: one ("jobs.cancel"), or all of a noun ("jobs")."""
        return self._ask(audit.list_, tenant, None, verb=verb, subject=subject, after=after, limit=limit)

    async def alist(
        self,
        *,
        verb: str | None = None,
        subject: str | None = None,
        after: Cursor | None = None,
        limit: int = 50,
        tenant: str | None = None,
    ) -> Page[ActionView]:
        """`list` for coroutines."""
        return await self._aask(audit.list_, tenant, None, verb=verb, subject=subject, after=after, limit=limit)


class BlacklistNoun(Noun):
    """Workflows of which nothing is accepted or started."""

    __slots__ = ()

    def list(self, *, tenant: str | None = None) -> Page[BlacklistView]:
        """What stands, the oldest first: why, by whom, since when."""
        return self._ask(blacklist.list_, tenant, None)

    async def alist(self, *, tenant: str | None = None) -> Page[BlacklistView]:
        """`list` for coroutines."""
        return await self._aask(blacklist.list_, tenant, None)

    def add(
        self, workflow: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> BlacklistAdded:
        """Shut a workflow out on every path. What runs goes on; what waits fails, or is held by its own policy.
        One that is out already stays so, with the reason it had."""
        return self._ask(blacklist.add, tenant, by, workflow, reason=reason)

    async def aadd(
        self, workflow: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> BlacklistAdded:
        """`add` for coroutines."""
        return await self._aask(blacklist.add, tenant, by, workflow, reason=reason)

    def remove(self, workflow: str, *, tenant: str | None = None, by: str | None = None) -> BlacklistRemoved:
        """Let a workflow run again. Its stuck executions count from 0, and what was held goes on."""
        return self._ask(blacklist.remove, tenant, by, workflow)

    async def aremove(self, workflow: str, *, tenant: str | None = None, by: str | None = None) -> BlacklistRemoved:
        """`remove` for coroutines."""
        return await self._aask(blacklist.remove, tenant, by, workflow)

    def history(
        self, workflow: str | None = None, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[BlacklistView]:
        """Everything that ever was on it, the newest first: who, when, why, and who lifted it when."""
        return self._ask(blacklist.history, tenant, None, workflow, after=after, limit=limit)

    async def ahistory(
        self, workflow: str | None = None, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[BlacklistView]:
        """`history` for coroutines."""
        return await self._aask(blacklist.history, tenant, None, workflow, after=after, limit=limit)


class BulksNoun(Noun):
    """One verb over all the jobs that a filter wants, carried out by the workers."""

    __slots__ = ()

    def count(
        self,
        *,
        state: State | Iterable[State] = (),
        workflow: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        target: str | None = None,
        tag: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        tenant: str | None = None,
    ) -> CountView:
        """How many jobs a filter wants, before a bulk of them is started. Counting ends somewhere: the number is
        exact, or there are at least so many."""
        return self._ask(
            bulks.count,
            tenant,
            None,
            state=state,
            workflow=workflow,
            queue=queue,
            error_type=error_type,
            target=target,
            tag=tag,
            before=before,
            since=since,
        )

    async def acount(
        self,
        *,
        state: State | Iterable[State] = (),
        workflow: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        target: str | None = None,
        tag: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        tenant: str | None = None,
    ) -> CountView:
        """`count` for coroutines."""
        return await self._aask(
            bulks.count,
            tenant,
            None,
            state=state,
            workflow=workflow,
            queue=queue,
            error_type=error_type,
            target=target,
            tag=tag,
            before=before,
            since=since,
        )

    def start(
        self,
        verb: str,
        *,
        state: State | Iterable[State] = (),
        workflow: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        target: str | None = None,
        tag: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        reason: str | None = None,
        from_start: bool = False,
        force: bool = False,
        expected: int | None = None,
        everything: bool = False,
        tenant: str | None = None,
        by: str | None = None,
    ) -> BulkView:
        """Cancel, interrupt, resume, retry, release or skip all the jobs that a filter wants. It is durable when
        this returns, and workers carry it out; jobs submitted from now on do not count. `expected`: how many
        were counted, and OtherCount if others match. A filter that wants every job is refused unless
        `everything` is said."""
        return self._ask(
            bulks.start,
            tenant,
            by,
            verb,
            state=state,
            workflow=workflow,
            queue=queue,
            error_type=error_type,
            target=target,
            tag=tag,
            before=before,
            since=since,
            reason=reason,
            from_start=from_start,
            force=force,
            expected=expected,
            everything=everything,
        )

    async def astart(
        self,
        verb: str,
        *,
        state: State | Iterable[State] = (),
        workflow: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        target: str | None = None,
        tag: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        reason: str | None = None,
        from_start: bool = False,
        force: bool = False,
        expected: int | None = None,
        everything: bool = False,
        tenant: str | None = None,
        by: str | None = None,
    ) -> BulkView:
        """`start` for coroutines."""
        return await self._aask(
            bulks.start,
            tenant,
            by,
            verb,
            state=state,
            workflow=workflow,
            queue=queue,
            error_type=error_type,
            target=target,
            tag=tag,
            before=before,
            since=since,
            reason=reason,
            from_start=from_start,
            force=force,
            expected=expected,
            everything=everything,
        )

    def list(
        self, *, state: str | None = None, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[BulkView]:
        """The bulks of a tenant, the newest first."""
        return self._ask(bulks.list_, tenant, None, state=state, after=after, limit=limit)

    async def alist(
        self, *, state: str | None = None, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[BulkView]:
        """`list` for coroutines."""
        return await self._aask(bulks.list_, tenant, None, state=state, after=after, limit=limit)

    def get(self, number: int, *, tenant: str | None = None) -> BulkView:
        """How far one is, and the first jobs that it was refused for."""
        return self._ask(bulks.get, tenant, None, number)

    async def aget(self, number: int, *, tenant: str | None = None) -> BulkView:
        """`get` for coroutines."""
        return await self._aask(bulks.get, tenant, None, number)

    def cancel(self, number: int, *, tenant: str | None = None, by: str | None = None) -> BulkView:
        """It does nothing more; what it has done stays done."""
        return self._ask(bulks.cancel, tenant, by, number)

    async def acancel(self, number: int, *, tenant: str | None = None, by: str | None = None) -> BulkView:
        """`cancel` for coroutines."""
        return await self._aask(bulks.cancel, tenant, by, number)


class EventsNoun(Noun):
    """What happens to all jobs, in the one order that every reader sees; and events that are sent to jobs."""

    __slots__ = ()

    def list(
        self,
        *,
        after: str | None = None,
        kinds: str | Iterable[str] = (),
        job: str | None = None,
        workflow: str | None = None,
        limit: int = 100,
        tenant: str | None = None,
    ) -> Page[FeedEventView]:
        """What is kept of the feed, the oldest first, from the beginning or behind a cursor. `next` is where to go
        on, also where nothing follows yet."""
        return self._ask(
            events.list_, tenant, None, after=after, kinds=kinds, job=job, workflow=workflow, limit=limit
        )

    async def alist(
        self,
        *,
        after: str | None = None,
        kinds: str | Iterable[str] = (),
        job: str | None = None,
        workflow: str | None = None,
        limit: int = 100,
        tenant: str | None = None,
    ) -> Page[FeedEventView]:
        """`list` for coroutines."""
        return await self._aask(
            events.list_, tenant, None, after=after, kinds=kinds, job=job, workflow=workflow, limit=limit
        )

    def follow(
        self,
        *,
        after: str | None = "now",
        kinds: str | Iterable[str] = (),
        job: str | None = None,
        workflow: str | None = None,
        tenant: str | None = None,
    ) -> Stream[FeedEventView]:
        """Every event as it is committed, once and in order: from now on, from "start" (all that is kept), or
        behind an earlier event's cursor."""
        return self._follow(events.follow, tenant, after=after, kinds=kinds, job=job, workflow=workflow)

    def afollow(
        self,
        *,
        after: str | None = "now",
        kinds: str | Iterable[str] = (),
        job: str | None = None,
        workflow: str | None = None,
        tenant: str | None = None,
    ) -> AsyncStream[FeedEventView]:
        """`follow` for coroutines."""
        return self._afollow(events.follow, tenant, after=after, kinds=kinds, job=job, workflow=workflow)

    def send(
        self,
        event: str,
        payload: Any = None,
        *,
        job: str | None = None,
        topic: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> SentView:
        """Send an event to a job, or to a job that waits on a topic. It answers one wait: one that is open, else
        the next that begins within 24 hours. The payload may be what a result may be. NotWaiting for a job that
        has ended."""
        return self._ask(events.send, tenant, by, event, payload, job=job, topic=topic)

    async def asend(
        self,
        event: str,
        payload: Any = None,
        *,
        job: str | None = None,
        topic: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> SentView:
        """`send` for coroutines."""
        return await self._aask(events.send, tenant, by, event, payload, job=job, topic=topic)


class HealthNoun(Noun):
    """One look at everything, for people and for probes."""

    __slots__ = ()

    def check(self, *, need_workers: bool = True, worker: str | None = None, tenant: str | None = None) -> HealthView:
        """Database reachable, schema current, workers alive, nothing in trouble. With `worker` only: this one is
        active and ready. With `need_workers=False` a database without a worker is healthy, too."""
        return self._ask(health.check, tenant, None, need_workers=need_workers, worker=worker)

    async def acheck(
        self, *, need_workers: bool = True, worker: str | None = None, tenant: str | None = None
    ) -> HealthView:
        """`check` for coroutines."""
        return await self._aask(health.check, tenant, None, need_workers=need_workers, worker=worker)


class LimitsNoun(Noun):
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


class NotificationsNoun(Noun):
    """News for the operators of the platform, until one of them takes note."""

    __slots__ = ()

    def list(
        self, *, acked: bool = False, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[NotificationView]:
        """Those that nobody has taken note of, with `acked` all; the newest first."""
        return self._ask(notifications.list_, tenant, None, acked=acked, after=after, limit=limit)

    async def alist(
        self, *, acked: bool = False, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[NotificationView]:
        """`list` for coroutines."""
        return await self._aask(notifications.list_, tenant, None, acked=acked, after=after, limit=limit)

    def ack(self, number: int, *, tenant: str | None = None, by: str | None = None) -> NotificationView:
        """Take note of one, so that others need not. The first to do so is kept."""
        return self._ask(notifications.ack, tenant, by, number)

    async def aack(self, number: int, *, tenant: str | None = None, by: str | None = None) -> NotificationView:
        """`ack` for coroutines."""
        return await self._aask(notifications.ack, tenant, by, number)


class PausesNoun(Noun):
    """Everything that somebody paused, in one list. Set with their noun: queues, targets, tenants, workflows."""

    __slots__ = ()

    def list(self, *, tenant: str | None = None) -> Page[PauseView]:
        """Those in force that shut something of this tenant; with `tenant="*"` all there are."""
        return self._ask(pauses.list_, tenant, None)

    async def alist(self, *, tenant: str | None = None) -> Page[PauseView]:
        """`list` for coroutines."""
        return await self._aask(pauses.list_, tenant, None)


class QuarantineNoun(Noun):
    """What the database refused to write, or somebody holds. Nothing else waits for it."""

    __slots__ = ()

    def list(self, *, limit: int = 50, tenant: str | None = None) -> Page[QuarantineView]:
        """What is set aside: what could not be done, since when, how often it was tried, and why it fails."""
        return self._ask(quarantine.list_, tenant, None, limit=limit)

    async def alist(self, *, limit: int = 50, tenant: str | None = None) -> Page[QuarantineView]:
        """`list` for coroutines."""
        return await self._aask(quarantine.list_, tenant, None, limit=limit)

    def retry(self, job: str | None = None, *, tenant: str | None = None, by: str | None = None) -> QuarantineRetry:
        """Try what was set aside of this job, or all of it, before all others in the next sweep."""
        return self._ask(quarantine.retry, tenant, by, job)

    async def aretry(
        self, job: str | None = None, *, tenant: str | None = None, by: str | None = None
    ) -> QuarantineRetry:
        """`retry` for coroutines."""
        return await self._aask(quarantine.retry, tenant, by, job)


class QueuesNoun(Noun):
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


class SettingsNoun(Noun):
    """Kept in the database, in force everywhere from the moment they change."""

    __slots__ = ()

    def list(self) -> Page[SettingView]:
        """All of them, with what they mean and who changed them."""
        return self._ask(settings.list_, None, None)

    async def alist(self) -> Page[SettingView]:
        """`list` for coroutines."""
        return await self._aask(settings.list_, None, None)

    def get(self, name: str) -> SettingView:
        """One of them; `value` is what is in force."""
        return self._ask(settings.get, None, None, name)

    async def aget(self, name: str) -> SettingView:
        """`get` for coroutines."""
        return await self._aask(settings.get, None, None, name)

    def set(self, name: str, value: Any, *, by: str | None = None) -> SettingView:
        """Change one. Every worker goes by it at once."""
        return self._ask(settings.set_, None, by, name, value)

    async def aset(self, name: str, value: Any, *, by: str | None = None) -> SettingView:
        """`set` for coroutines."""
        return await self._aask(settings.set_, None, by, name, value)

    def reset(self, name: str, *, by: str | None = None) -> SettingView:
        """The default again."""
        return self._ask(settings.reset, None, by, name)

    async def areset(self, name: str, *, by: str | None = None) -> SettingView:
        """`reset` for coroutines."""
        return await self._aask(settings.reset, None, by, name)


class TargetsNoun(Noun):
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


class TenantsNoun(Noun):
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


class WorkersNoun(Noun):
    """Who runs the jobs, in which processes, and what may be ordered of them."""

    __slots__ = ()

    def list(self, *, ended: bool = False, after: Cursor | None = None, limit: int = 500) -> Page[WorkerView]:
        """The workers, each with its processes and the jobs in them; with `ended` also those that left, or fell
        silent more than an hour ago."""
        return self._ask(workers.list_, None, None, ended=ended, after=after, limit=limit)

    async def alist(self, *, ended: bool = False, after: Cursor | None = None, limit: int = 500) -> Page[WorkerView]:
        """`list` for coroutines."""
        return await self._aask(workers.list_, None, None, ended=ended, after=after, limit=limit)

    def recycle(self, pid: int, *, worker: str | None = None, by: str | None = None) -> OrderView:
        """Replace a process. It takes no more jobs, those in it finish and are stored, then it ends; a new one
        starts. Name the worker where two hosts have that pid."""
        return self._ask(workers.recycle, None, by, pid, worker=worker)

    async def arecycle(self, pid: int, *, worker: str | None = None, by: str | None = None) -> OrderView:
        """`recycle` for coroutines."""
        return await self._aask(workers.recycle, None, by, pid, worker=worker)

    def kill(self, pid: int, *, worker: str | None = None, by: str | None = None) -> OrderView:
        """End a process now. The jobs in it go back to the queue at no cost; a new one starts. Name the worker
        where two hosts have that pid."""
        return self._ask(workers.kill, None, by, pid, worker=worker)

    async def akill(self, pid: int, *, worker: str | None = None, by: str | None = None) -> OrderView:
        """`kill` for coroutines."""
        return await self._aask(workers.kill, None, by, pid, worker=worker)

    def drain(self, worker: str | None = None, *, every: bool = False, by: str | None = None) -> Page[OrderView]:
        """Stop a worker, or with `every` all there are, in order: it takes nothing new, what runs may finish, then
        it ends. An order for each."""
        return self._ask(workers.drain, None, by, worker, every=every)

    async def adrain(
        self, worker: str | None = None, *, every: bool = False, by: str | None = None
    ) -> Page[OrderView]:
        """`drain` for coroutines."""
        return await self._aask(workers.drain, None, by, worker, every=every)

    def answer(self, order: int, *, timeout: Duration = 5.0) -> OrderView:
        """An order, by its number, with its worker's answer; NoAnswer when the time is over first. The order
        stands all the same."""
        return self._ask(workers.answer, None, None, order, timeout=timeout)

    async def aanswer(self, order: int, *, timeout: Duration = 5.0) -> OrderView:
        """`answer` for coroutines."""
        return await self._aask(workers.answer, None, None, order, timeout=timeout)


class WorkflowsNoun(Noun):
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
