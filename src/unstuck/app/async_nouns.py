"""The nouns of an AsyncClient: `await client.queues.pause("io", seconds=600)`.

Written by `docs/draw_faces.py` from the table of operations; a test compares the two. Change operations/ instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from unstuck.app.noun import AsyncNoun
from unstuck.model.job import AfterFailure
from unstuck.observe.lookup import State
from unstuck.observe.stream import AsyncStream
from unstuck.operations import (
    alerts,
    approvals,
    audit,
    blacklist,
    bulks,
    dead_letters,
    deliveries,
    doctor,
    events,
    health,
    hooks,
    jobs,
    keys,
    limits,
    notifications,
    pauses,
    quarantine,
    queues,
    schedules,
    series,
    sessions,
    settings,
    signing,
    stats,
    targets,
    tenants,
    top,
    webhooks,
    workers,
    workflows,
)
from unstuck.operations.kinds import UNSAID, CatchUp, Cursor, Duration, HookOutcome, Overlap, Scheme, Unsaid
from unstuck.store.port import SeriesPer
from unstuck.views import Page
from unstuck.views.alerts import AlertRuleView, AlertView
from unstuck.views.bulks import BulkView, CountView
from unstuck.views.dead_letters import LetterStory, LetterView, LetterWhole
from unstuck.views.doctor import DoctorView
from unstuck.views.flow import (
    ApprovalView,
    BranchView,
    ChildView,
    FeedEventView,
    PartialView,
    PublishedView,
    SentView,
    StepView,
    UsageView,
    WaitView,
)
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
    WorkflowWhole,
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
from unstuck.views.hooks import HookDeliveryView, HookDryRunView, HookView, NewHookView
from unstuck.views.jobs import AttemptView, EventWhole, JobList, JobView, JobWhole, LogView, NewJobView, StackView
from unstuck.views.keys import KeyView, NewKeyView, SessionView
from unstuck.views.schedules import FiringView, ScheduleView, TicksView
from unstuck.views.series import SeriesView
from unstuck.views.signing import RevocationAdded, RevocationRemoved, RevocationView
from unstuck.views.stats import StatsView, TallyView
from unstuck.views.top import TopView
from unstuck.views.webhooks import DeliveryDetailsView, DeliveryView, NewWebhookView, ReplayView, WebhookView
from unstuck.views.why import WhyAnswer
from unstuck.views.workers import OrderView, WorkerView


class AsyncAlertsNoun(AsyncNoun):
    """What is wrong now, and what was; opened and closed by themselves, by rules whose numbers are settings."""

    __slots__ = ()

    async def list(
        self,
        *,
        closed: bool = False,
        rule: str | None = None,
        after: Cursor | None = None,
        limit: int = 50,
        tenant: str | None = None,
    ) -> Page[AlertView]:
        """The open alerts, with `closed` also those that are over; the newest first. Those of the platform are
        shown to who may see all tenants."""
        return await self._engine.aask(alerts.list_, tenant, None, closed=closed, rule=rule, after=after, limit=limit)

    async def get(self, number: int, *, tenant: str | None = None) -> AlertView:
        """One alert, open or over."""
        return await self._engine.aask(alerts.get, tenant, None, number)

    async def ack(self, number: int, *, tenant: str | None = None, by: str | None = None) -> AlertView:
        """Take note of one, and of its notification, so that others need not. The first to do so is kept; it stays
        open until its trouble is over."""
        return await self._engine.aask(alerts.ack, tenant, by, number)

    async def mute(
        self, number: int, *, lasts: Duration = 3600.0, tenant: str | None = None, by: str | None = None
    ) -> AlertView:
        """For so long nobody is told of this trouble: not by `health`, nor by a notification or an event if it
        ends and comes again. Others of its rule are told as ever."""
        return await self._engine.aask(alerts.mute, tenant, by, number, lasts=lasts)

    async def unmute(self, number: int, *, tenant: str | None = None, by: str | None = None) -> AlertView:
        """It is told again."""
        return await self._engine.aask(alerts.unmute, tenant, by, number)

    async def rules(self) -> Page[AlertRuleView]:
        """The rules, their numbers, how many alerts of each are open, and which of them fail."""
        return await self._engine.aask(alerts.rules, None, None)


class AsyncApprovalsNoun(AsyncNoun):
    """The questions that jobs ask of people, and the answers."""

    __slots__ = ()

    async def list(
        self, *, after: str | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[ApprovalView]:
        """What waits for a decision, the oldest first: who is asked, until when, and what happens then."""
        return await self._engine.aask(approvals.list_, tenant, None, after=after, limit=limit)

    async def approve(
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
        return await self._engine.aask(approvals.approve, tenant, by, job, comment=comment, key=key)

    async def reject(
        self,
        job: str,
        *,
        comment: str | None = None,
        key: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> WaitView:
        """Say no: the job hears of it, and fails unless it knows what to do then."""
        return await self._engine.aask(approvals.reject, tenant, by, job, comment=comment, key=key)


class AsyncAuditNoun(AsyncNoun):
    """Who did what, and when."""

    __slots__ = ()

    async def list(
        self,
        *,
        verb: str | None = None,
        subject: str | None = None,
        after: Cursor | None = None,
        limit: int = 50,
        tenant: str | None = None,
    ) -> Page[ActionView]:
        """What operators did, the newest first; over HTTP with the key and, for admins, the address. `verb`: one
        ("jobs.cancel"), or all of a noun ("jobs")."""
        return await self._engine.aask(
            audit.list_, tenant, None, verb=verb, subject=subject, after=after, limit=limit
        )


class AsyncBlacklistNoun(AsyncNoun):
    """Workflows of which nothing is accepted or started."""

    __slots__ = ()

    async def list(self, *, tenant: str | None = None) -> Page[BlacklistView]:
        """What stands, the oldest first: why, by whom, since when."""
        return await self._engine.aask(blacklist.list_, tenant, None)

    async def add(
        self, workflow: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> BlacklistAdded:
        """Shut a workflow out on every path. What runs goes on; what waits fails, or is held by its own policy.
        One that is out already stays so, with the reason it had."""
        return await self._engine.aask(blacklist.add, tenant, by, workflow, reason=reason)

    async def remove(self, workflow: str, *, tenant: str | None = None, by: str | None = None) -> BlacklistRemoved:
        """Let a workflow run again. Its stuck executions count from 0, and what was held goes on."""
        return await self._engine.aask(blacklist.remove, tenant, by, workflow)

    async def history(
        self, workflow: str | None = None, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[BlacklistView]:
        """Everything that ever was on it, the newest first: who, when, why, and who lifted it when."""
        return await self._engine.aask(blacklist.history, tenant, None, workflow, after=after, limit=limit)


class AsyncBulksNoun(AsyncNoun):
    """One verb over all the jobs that a filter wants, carried out by the workers."""

    __slots__ = ()

    async def count(
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
        argument: tuple[str, Any] | None = None,
        tenant: str | None = None,
    ) -> CountView:
        """How many jobs a filter wants, before a bulk of them is started. Counting ends somewhere: the number is
        exact, or there are at least so many."""
        return await self._engine.aask(
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
            argument=argument,
        )

    async def start(
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
        argument: tuple[str, Any] | None = None,
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
        return await self._engine.aask(
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
            argument=argument,
            reason=reason,
            from_start=from_start,
            force=force,
            expected=expected,
            everything=everything,
        )

    async def list(
        self, *, state: str | None = None, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[BulkView]:
        """The bulks of a tenant, the newest first."""
        return await self._engine.aask(bulks.list_, tenant, None, state=state, after=after, limit=limit)

    async def get(self, number: int, *, tenant: str | None = None) -> BulkView:
        """How far one is, and the first jobs that it was refused for."""
        return await self._engine.aask(bulks.get, tenant, None, number)

    async def cancel(self, number: int, *, tenant: str | None = None, by: str | None = None) -> BulkView:
        """It does nothing more; what it has done stays done."""
        return await self._engine.aask(bulks.cancel, tenant, by, number)


class AsyncDeadLettersNoun(AsyncNoun):
    """What never ran, or ran out of tries: look at it, sign it anew, let it go on, discard or export it."""

    __slots__ = ()

    async def list(
        self,
        *,
        reason: str | None = None,
        workflow: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        limit: int = 50,
        after: Cursor | None = None,
        tenant: str | None = None,
    ) -> Page[LetterView]:
        """The dead letters, the newest first, or those you ask for: of this reason, made `before` or `since`. What
        is in quarantine because its end could not be written comes before all others (reason "set_aside")."""
        return await self._engine.aask(
            dead_letters.list_,
            tenant,
            None,
            reason=reason,
            workflow=workflow,
            queue=queue,
            before=before,
            since=since,
            limit=limit,
            after=after,
        )

    async def get(self, job: str, *, tenant: str | None = None) -> LetterStory:
        """One dead letter with its whole envelope: signature, arguments, policy, and how its job came to be one.
        It goes by the id of its job."""
        return await self._engine.aask(dead_letters.get, tenant, None, job)

    async def export(
        self,
        *,
        reason: str | None = None,
        workflow: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        limit: int = 100,
        after: Cursor | None = None,
        tenant: str | None = None,
    ) -> Page[LetterWhole]:
        """The same as the list, each with its whole envelope. A page stops early where they are large; `next` goes
        on behind it. What is in quarantine has no envelope, and is not among them."""
        return await self._engine.aask(
            dead_letters.export,
            tenant,
            None,
            reason=reason,
            workflow=workflow,
            queue=queue,
            before=before,
            since=since,
            limit=limit,
            after=after,
        )

    async def count(
        self,
        *,
        reason: str | None = None,
        workflow: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        tenant: str | None = None,
    ) -> CountView:
        """How many dead letters these are, before they are redriven. Counting ends somewhere: the number is exact,
        or there are at least so many."""
        return await self._engine.aask(
            dead_letters.count,
            tenant,
            None,
            reason=reason,
            workflow=workflow,
            queue=queue,
            before=before,
            since=since,
        )

    async def resign(
        self,
        job: str,
        *,
        signature: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> JobView:
        """Sign a job that was never run anew, as it is stored, and let it run: a new run. By a key of the process
        that is asked, which only a platform-admin may use, or with a `signature` that was made elsewhere. Look
        at the letter first: whoever signs vouches for what it holds."""
        return await self._engine.aask(dead_letters.resign, tenant, by, job, signature=signature)

    async def redrive(
        self, job: str, *, force: bool = False, tenant: str | None = None, by: str | None = None
    ) -> JobView:
        """Let a dead letter go on. One that ran out of tries runs again from its start. One whose signature was
        refused would be refused again: `resign` it, or with `force` let the workers, whose keys or rules were
        mended since, verify it once more, which is for admins. What is in quarantine is tried first by the next
        sweep."""
        return await self._engine.aask(dead_letters.redrive, tenant, by, job, force=force)

    async def redrive_all(
        self,
        *,
        reason: str | None = None,
        workflow: str | None = None,
        queue: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        force: bool = False,
        canary: str | None = None,
        expected: int | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> BulkView:
        """Redrive all these dead letters: a bulk, which workers carry out. `canary`: a job that was redriven
        first, and unless it completed since, nothing is started. `expected`: how many were counted, and
        OtherCount if others match. Those that need a new signature are refused one by one, and named by the
        bulk."""
        return await self._engine.aask(
            dead_letters.redrive_all,
            tenant,
            by,
            reason=reason,
            workflow=workflow,
            queue=queue,
            before=before,
            since=since,
            force=force,
            canary=canary,
            expected=expected,
        )

    async def discard(self, job: str, *, tenant: str | None = None, by: str | None = None) -> LetterView:
        """Take a dead letter away. Its job stays as it is, and as long as others."""
        return await self._engine.aask(dead_letters.discard, tenant, by, job)


class AsyncDeliveriesNoun(AsyncNoun):
    """What is sent to webhooks, and what came of each try."""

    __slots__ = ()

    async def list(
        self,
        *,
        webhook: str | None = None,
        state: str | None = None,
        job: str | None = None,
        after: Cursor | None = None,
        limit: int = 50,
        tenant: str | None = None,
    ) -> Page[DeliveryView]:
        """What was sent, is to be sent, or was given up, the newest first; of one `webhook`, in one `state`, about
        one `job`."""
        return await self._engine.aask(
            deliveries.list_, tenant, None, webhook=webhook, state=state, job=job, after=after, limit=limit
        )

    async def get(self, number: int, *, tenant: str | None = None) -> DeliveryDetailsView:
        """One delivery: what is sent, and what came of each try."""
        return await self._engine.aask(deliveries.get, tenant, None, number)


class AsyncDoctorNoun(AsyncNoun):
    """What is wrong with this installation, why that matters, and what helps."""

    __slots__ = ()

    async def check(self, *, only: Iterable[str] = ()) -> DoctorView:
        """What is wrong, the worst first, each with its remedy. `only`: these checks, by their names. Each is
        bounded in time; what could not be checked is a finding too."""
        return await self._engine.aask(doctor.check, None, None, only=only)

    async def fix(self, *, only: Iterable[str] = (), by: str | None = None) -> DoctorView:
        """Mend what can be mended without a risk to anybody who works meanwhile, and say what was done: cut a long
        write-ahead log, let the planner look at tables anew, lift marks of bodies that are gone for certain.
        Then look once more."""
        return await self._engine.aask(doctor.fix, None, by, only=only)


class AsyncEventsNoun(AsyncNoun):
    """What happens, in the one order that every reader sees; what is published; and events sent to jobs."""

    __slots__ = ()

    async def list(
        self,
        *,
        after: str | None = None,
        kinds: str | Iterable[str] = (),
        job: str | None = None,
        workflow: str | None = None,
        target: str | None = None,
        topic: str | None = None,
        limit: int = 100,
        wait: Duration = 0.0,
        tenant: str | None = None,
    ) -> Page[FeedEventView]:
        """What is kept of the feed, the oldest first, from the beginning or behind a cursor. `next` is where to go
        on, also where nothing follows yet; a page of large events is short. `wait`: where nothing does, for so
        many seconds, 60 at most, until it does."""
        return await self._engine.aask(
            events.list_,
            tenant,
            None,
            after=after,
            kinds=kinds,
            job=job,
            workflow=workflow,
            target=target,
            topic=topic,
            limit=limit,
            wait=wait,
        )

    def follow(
        self,
        *,
        after: str | None = "now",
        kinds: str | Iterable[str] = (),
        job: str | None = None,
        workflow: str | None = None,
        target: str | None = None,
        topic: str | None = None,
        tenant: str | None = None,
    ) -> AsyncStream[FeedEventView]:
        """Every event as it is committed, once and in order: from now on, from "start" (all that is kept), or
        behind an earlier event's cursor."""
        return self._engine.afollow(
            events.follow, tenant, after=after, kinds=kinds, job=job, workflow=workflow, target=target, topic=topic
        )

    async def send(
        self,
        event: str,
        payload: Any = None,
        *,
        job: str | None = None,
        topic: str | None = None,
        id: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> SentView:
        """Send an event to a job, or to a job that waits on a topic. It answers one wait: one that is open, else
        the next that begins within 24 hours. The payload may be what a result may be. Sent again under the same
        `id` it counts once. NotWaiting for a job that has ended."""
        return await self._engine.aask(events.send, tenant, by, event, payload, job=job, topic=topic, id=id)

    async def publish(
        self,
        kind: str,
        data: Any = None,
        *,
        topic: str | None = None,
        job: str | None = None,
        ttl: Duration | None = None,
        id: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> PublishedView:
        """Tell everybody who follows the feed. `kind` is a word of yours, `data` an object of up to 16 KiB of
        JSON; both may be about a job. It is kept for `ttl`, or as long as the feed. Published again under the
        same `id` it counts once."""
        return await self._engine.aask(events.publish, tenant, by, kind, data, topic=topic, job=job, ttl=ttl, id=id)


class AsyncHealthNoun(AsyncNoun):
    """One look at everything, for people and for probes."""

    __slots__ = ()

    async def check(
        self, *, need_workers: bool = True, worker: str | None = None, tenant: str | None = None
    ) -> HealthView:
        """Database reachable, schema current, workers alive, nothing in trouble. With `worker` only: this one is
        active and ready. With `need_workers=False` a database without a worker is healthy, too."""
        return await self._engine.aask(health.check, tenant, None, need_workers=need_workers, worker=worker)


class AsyncHooksNoun(AsyncNoun):
    """Other systems' calls that start a workflow, signed by a secret that both sides know."""

    __slots__ = ()

    async def list(
        self, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[HookView]:
        """The hooks of a tenant, in the order in which they were made."""
        return await self._engine.aask(hooks.list_, tenant, None, after=after, limit=limit)

    async def get(self, hook: str, *, tenant: str | None = None) -> HookView:
        """One hook, by its name or id: its address, what it runs, how its deliveries are signed."""
        return await self._engine.aask(hooks.get, tenant, None, hook)

    async def create(
        self,
        name: str,
        workflow: str,
        *,
        scheme: Scheme = "standard",
        arguments: Mapping[str, Any] | None = None,
        signature: Mapping[str, Any] | None = None,
        secret: str | None = None,
        queue: str | None = None,
        priority: int = 0,
        target: str | None = None,
        tags: Sequence[str] = (),
        policy: Mapping[str, Any] | None = None,
        max_bytes: int = 1048576,
        tenant: str | None = None,
        by: str | None = None,
    ) -> NewHookView:
        """Let another system start a workflow by POST to the hook's `path`. `scheme`: how it signs; `arguments`:
        where each argument comes from, like {"repo": "body.repository.full_name"}; `secret`: left out, one is
        made. The secret is told this once. `signature`: of the scheme hmac, which header holds what."""
        return await self._engine.aask(
            hooks.create,
            tenant,
            by,
            name,
            workflow,
            scheme=scheme,
            arguments=arguments,
            signature=signature,
            secret=secret,
            queue=queue,
            priority=priority,
            target=target,
            tags=tags,
            policy=policy,
            max_bytes=max_bytes,
        )

    async def update(
        self,
        hook: str,
        *,
        workflow: str | Unsaid = UNSAID,
        arguments: Mapping[str, Any] | Unsaid | None = UNSAID,
        signature: Mapping[str, Any] | Unsaid | None = UNSAID,
        queue: str | Unsaid | None = UNSAID,
        priority: int | Unsaid = UNSAID,
        target: str | Unsaid | None = UNSAID,
        tags: Sequence[str] | Unsaid = UNSAID,
        policy: Mapping[str, Any] | Unsaid | None = UNSAID,
        max_bytes: int | Unsaid = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> HookView:
        """Change a hook; what is not named stays as it stands. Its address and its secret stay, too."""
        return await self._engine.aask(
            hooks.update,
            tenant,
            by,
            hook,
            workflow=workflow,
            arguments=arguments,
            signature=signature,
            queue=queue,
            priority=priority,
            target=target,
            tags=tags,
            policy=policy,
            max_bytes=max_bytes,
        )

    async def rotate(
        self,
        hook: str,
        *,
        secret: str | None = None,
        overlap: Duration = 86400.0,
        tenant: str | None = None,
        by: str | None = None,
    ) -> NewHookView:
        """Give it another secret. The one before it is accepted for `overlap` more, so that its sender has time."""
        return await self._engine.aask(hooks.rotate, tenant, by, hook, secret=secret, overlap=overlap)

    async def pause(
        self, hook: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> HookView:
        """Accept no delivery: its sender is told to come again later."""
        return await self._engine.aask(hooks.pause, tenant, by, hook, reason=reason)

    async def resume(self, hook: str, *, tenant: str | None = None, by: str | None = None) -> HookView:
        """Accept deliveries again."""
        return await self._engine.aask(hooks.resume, tenant, by, hook)

    async def delete(self, hook: str, *, tenant: str | None = None, by: str | None = None) -> HookView:
        """Answer at its address no more, and forget its secret. Its jobs stay as they are."""
        return await self._engine.aask(hooks.delete, tenant, by, hook)

    async def deliveries(
        self,
        hook: str,
        *,
        outcome: HookOutcome | None = None,
        after: Cursor | None = None,
        limit: int = 50,
        tenant: str | None = None,
    ) -> Page[HookDeliveryView]:
        """What was done about each delivery, the newest first: the job, or why there is none."""
        return await self._engine.aask(
            hooks.deliveries, tenant, None, hook, outcome=outcome, after=after, limit=limit
        )

    async def dry_run(
        self,
        hook: str,
        *,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> HookDryRunView:
        """What would become of such a delivery: its arguments, or why it is refused. Nothing is stored. A text is
        the body as it comes, anything else is written as JSON. A signature is verified if there is one."""
        return await self._engine.aask(hooks.dry_run, tenant, by, hook, body=body, headers=headers, query=query)


class AsyncJobsNoun(AsyncNoun):
    """List them, look into one, stop it, let it go on, run it again."""

    __slots__ = ()

    async def list(
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
        argument: tuple[str, Any] | None = None,
        newest_first: bool = True,
        limit: int = 50,
        after: str | None = None,
        tenant: str | None = None,
    ) -> JobList:
        """The newest jobs, or those you ask for: in these states, of this workflow, submitted `before` or `since`.
        A search by `argument` (its name and value) looks at a bounded number of jobs: `looked` says at how
        many, and `next` goes on behind them."""
        return await self._engine.aask(
            jobs.list_,
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
            argument=argument,
            newest_first=newest_first,
            limit=limit,
            after=after,
        )

    async def get(self, job: str, *, last: int | None = None, tenant: str | None = None) -> JobWhole:
        """Everything about one job: what its state means, its attempts, its history, what it waits for. `last`: of
        attempts and events only so many. It has the last 100 attempts and 1,000 events at most; `attempts` and
        `history` have all."""
        return await self._engine.aask(jobs.get, tenant, None, job, last=last)

    async def wait(self, job: str, *, timeout: Duration = 30.0, tenant: str | None = None) -> JobView:
        """A job once it has ended, or as it stands when the time is over: `state` says which. One call waits for
        at most 60 seconds; ask again."""
        return await self._engine.await_(jobs.wait, tenant, job, timeout=timeout)

    async def history(
        self, job: str, *, after: Cursor | None = None, limit: int = 1000, tenant: str | None = None
    ) -> Page[EventWhole]:
        """What happened to a job above this event's number, in order, each with the attempt that it ended."""
        return await self._engine.aask(jobs.history, tenant, None, job, after=after, limit=limit)

    async def attempts(
        self, job: str, *, after: Cursor | None = None, limit: int = 100, tenant: str | None = None
    ) -> Page[AttemptView]:
        """The attempts of a job above this one's number, with what they printed and the stacks that they left."""
        return await self._engine.aask(jobs.attempts, tenant, None, job, after=after, limit=limit)

    async def logs(
        self,
        job: str,
        *,
        attempt: int | None = None,
        level: str | None = None,
        after: Cursor | None = None,
        limit: int = 100,
        tenant: str | None = None,
    ) -> Page[LogView]:
        """What a job printed and logged so far: of all attempts above `after`, at most `limit` of them, or of one.
        With a `level` only records of this level and above."""
        return await self._engine.aask(
            jobs.logs, tenant, None, job, attempt=attempt, level=level, after=after, limit=limit
        )

    def follow_logs(
        self, job: str, *, attempt: int | None = None, level: str | None = None, tenant: str | None = None
    ) -> AsyncStream[LogView]:
        """What a job printed and logged, and what comes, until it has ended."""
        return self._engine.afollow(jobs.follow_logs, tenant, job, attempt=attempt, level=level)

    async def steps(
        self, job: str, *, after: Cursor | None = None, limit: int = 1000, tenant: str | None = None
    ) -> Page[StepView]:
        """The steps that a job has finished, in the order it did, behind the first `after` of them. Later attempts
        get their results instead of running them again."""
        return await self._engine.aask(jobs.steps, tenant, None, job, after=after, limit=limit)

    async def partials(
        self, job: str, *, after: Cursor | None = None, limit: int = 1000, tenant: str | None = None
    ) -> Page[PartialView]:
        """The parts of its result that a job has given before its end, above this number, in the order it gave
        them. A name that is given again has a new value."""
        return await self._engine.aask(jobs.partials, tenant, None, job, after=after, limit=limit)

    def follow_partials(
        self, job: str, *, after: Cursor | None = None, tenant: str | None = None
    ) -> AsyncStream[PartialView]:
        """The parts of its result that a job has given above this number, and those that come, until it has ended.
        A name that is given again comes again."""
        return self._engine.afollow(jobs.follow_partials, tenant, job, after=after)

    async def waits(
        self, job: str, *, after: Cursor | None = None, limit: int = 1000, tenant: str | None = None
    ) -> Page[WaitView]:
        """What a job ever waited for, the oldest first, behind the first `after` of them."""
        return await self._engine.aask(jobs.waits, tenant, None, job, after=after, limit=limit)

    async def usage(self, job: str, *, tenant: str | None = None) -> UsageView:
        """What a job has used of its budget in its present run."""
        return await self._engine.aask(jobs.usage, tenant, None, job)

    async def children(self, job: str, *, tenant: str | None = None) -> Page[ChildView]:
        """The jobs that a job spawned, as they stand."""
        return await self._engine.aask(jobs.children, tenant, None, job)

    async def tree(self, job: str, *, limit: int = 200, tenant: str | None = None) -> BranchView:
        """Parents and children, from the topmost parent down, at most `limit` jobs."""
        return await self._engine.aask(jobs.tree, tenant, None, job, limit=limit)

    async def why(self, job: str, *, tenant: str | None = None) -> WhyAnswer:
        """Why a job is not running: the verdict, every reason, who must act, and the command to type."""
        return await self._engine.aask(jobs.why, tenant, None, job)

    async def stack(
        self,
        job: str,
        *,
        attempt: int | None = None,
        timeout: Duration = 10.0,
        tenant: str | None = None,
        by: str | None = None,
    ) -> StackView:
        """Where a job is in its code: of a running one its worker is asked, which may take so long; else the stack
        is given that its last attempt left, or this `attempt`."""
        return await self._engine.aask(jobs.stack, tenant, by, job, attempt=attempt, timeout=timeout)

    async def enqueue(
        self,
        workflow: str,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        key: str | None = None,
        id: str | None = None,
        priority: int = 0,
        delay: Duration | None = None,
        at: datetime | None = None,
        queue: str | None = None,
        target: str | Unsaid | None = UNSAID,
        limit_key: str | Unsaid | None = UNSAID,
        tags: Sequence[str] = (),
        hold: bool = False,
        after: Sequence[str] = (),
        after_failure: AfterFailure = "fail",
        policy: Mapping[str, Any] | None = None,
        payload: str | None = None,
        signature: Mapping[str, Any] | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> NewJobView:
        """Accept a job of a workflow that workers have registered. The same `key`, or the same `id` (a UUID that
        you chose), is the same job. `policy`: where it is not to be its workflow's, {"timeout": 60, "retries":
        0}. A signed job has its arguments as the text `payload`, which is stored as it came, and a `signature`:
        docs/signing.md."""
        return await self._engine.aask(
            jobs.enqueue,
            tenant,
            by,
            workflow,
            args=args,
            kwargs=kwargs,
            key=key,
            id=id,
            priority=priority,
            delay=delay,
            at=at,
            queue=queue,
            target=target,
            limit_key=limit_key,
            tags=tags,
            hold=hold,
            after=after,
            after_failure=after_failure,
            policy=policy,
            payload=payload,
            signature=signature,
        )

    async def cancel(
        self, job: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> JobView:
        """Stop a job for good. At once if it has not started; else its handler is asked to stop."""
        return await self._engine.aask(jobs.cancel, tenant, by, job, reason=reason)

    async def interrupt(
        self, job: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> JobView:
        """Pause a job. Stopped like a cancel, but resumable."""
        return await self._engine.aask(jobs.interrupt, tenant, by, job, reason=reason)

    async def resume(
        self, job: str, *, from_start: bool = False, tenant: str | None = None, by: str | None = None
    ) -> JobView:
        """Let a stopped job go on: a new, clean run of a paused, failed, timed-out or cancelled one. `from_start`:
        its finished steps and partial results are forgotten."""
        return await self._engine.aask(jobs.resume, tenant, by, job, from_start=from_start)

    async def release(
        self, job: str, *, force: bool = False, tenant: str | None = None, by: str | None = None
    ) -> JobView:
        """Let go of a job that was enqueued with `hold`; with `force` it no longer waits for other jobs either."""
        return await self._engine.aask(jobs.release, tenant, by, job, force=force)

    async def skip(self, job: str, *, tenant: str | None = None, by: str | None = None) -> JobView:
        """Let the target that this job blocks move on. The job stays as it is."""
        return await self._engine.aask(jobs.skip, tenant, by, job)

    async def retry(self, job: str, *, tenant: str | None = None, by: str | None = None) -> JobView:
        """Run a job again from its start. One that waits for its next try is due now."""
        return await self._engine.aask(jobs.retry, tenant, by, job)

    async def run_now(self, job: str, *, tenant: str | None = None, by: str | None = None) -> JobView:
        """Let a job that waits for its time (`delay`, `at`, the next try) be due now. Nothing else is changed."""
        return await self._engine.aask(jobs.run_now, tenant, by, job)

    async def reprioritise(
        self, job: str, priority: int, *, tenant: str | None = None, by: str | None = None
    ) -> JobView:
        """Give a job that waits another priority; its age stays. IllegalMove if it runs or has ended."""
        return await self._engine.aask(jobs.reprioritise, tenant, by, job, priority)

    async def resolve(self, job: str, result: Any, *, tenant: str | None = None, by: str | None = None) -> JobView:
        """Complete a job by hand: a paused, failed or timed-out one ends COMPLETED with this result, without
        running."""
        return await self._engine.aask(jobs.resolve, tenant, by, job, result)

    async def replay(
        self, job: str, *, budget: Mapping[str, float] | None = None, tenant: str | None = None, by: str | None = None
    ) -> JobView:
        """Run an ended job once more, as a new job with the same workflow, arguments and policy. `budget`: the
        units in which that one may use more, or less."""
        return await self._engine.aask(jobs.replay, tenant, by, job, budget=budget)


class AsyncKeysNoun(AsyncNoun):
    """Who may ask over HTTP, about whose things, with which role, and for how long."""

    __slots__ = ()

    async def create(
        self,
        name: str,
        *,
        role: str,
        scopes: Collection[str] = (),
        queues: Collection[str] | None = None,
        workflows: Collection[str] | None = None,
        expires: Duration | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> NewKeyView:
        """Make a key of a tenant, or of the platform if no tenant is named. `name`: whose it is, as the audit will
        say. `queues`, `workflows`: all that it may touch. `expires`: in how many seconds, or "90d". It is told
        this once."""
        return await self._engine.aask(
            keys.create,
            tenant,
            by,
            name,
            role=role,
            scopes=scopes,
            queues=queues,
            workflows=workflows,
            expires=expires,
        )

    async def list(
        self, *, ended: bool = False, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[KeyView]:
        """The keys that work, with `ended` also those that were revoked or expired; the newest first."""
        return await self._engine.aask(keys.list_, tenant, None, ended=ended, after=after, limit=limit)

    async def get(self, key: str, *, tenant: str | None = None) -> KeyView:
        """One key, by its id (the 8 characters behind "usk_"): what it may do, who made it, when it was used last."""
        return await self._engine.aask(keys.get, tenant, None, key)

    async def revoke(self, key: str, *, tenant: str | None = None, by: str | None = None) -> KeyView:
        """End a key, and the browser sessions that were begun with it: everywhere within 5 seconds, and for good."""
        return await self._engine.aask(keys.revoke, tenant, by, key)

    async def rotate(
        self,
        key: str,
        *,
        overlap: Duration = 3600.0,
        expires: Duration | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> NewKeyView:
        """Make a key that takes the place of this one, with the same rights; the old one works for `overlap` more.
        `expires`: left out, the new one lasts as long as the old one was to last."""
        return await self._engine.aask(keys.rotate, tenant, by, key, overlap=overlap, expires=expires)


class AsyncLimitsNoun(AsyncNoun):
    """How many run at once, start in a time, or wait. Those of keys are set here, others with their noun."""

    __slots__ = ()

    async def list(self, *, tenant: str | None = None) -> Page[LimitView]:
        """Every limit that counts something of this tenant; with `tenant="*"` all there are."""
        return await self._engine.aask(limits.list_, tenant, None)

    async def key(
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
        return await self._engine.aask(limits.key, tenant, by, name, concurrency=concurrency, rate=rate)

    async def unlimit_key(self, name: str, *, tenant: str | None = None, by: str | None = None) -> LimitChange:
        """Lift the limit of a key."""
        return await self._engine.aask(limits.unlimit_key, tenant, by, name)


class AsyncNotificationsNoun(AsyncNoun):
    """News for the operators of the platform, until one of them takes note."""

    __slots__ = ()

    async def list(
        self, *, acked: bool = False, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[NotificationView]:
        """Those that nobody has taken note of, with `acked` all; the newest first."""
        return await self._engine.aask(notifications.list_, tenant, None, acked=acked, after=after, limit=limit)

    async def ack(self, number: int, *, tenant: str | None = None, by: str | None = None) -> NotificationView:
        """Take note of one, so that others need not. The first to do so is kept."""
        return await self._engine.aask(notifications.ack, tenant, by, number)


class AsyncPausesNoun(AsyncNoun):
    """Everything that somebody paused, in one list. Set with their noun: queues, targets, tenants, workflows."""

    __slots__ = ()

    async def list(self, *, tenant: str | None = None) -> Page[PauseView]:
        """Those in force that shut something of this tenant; with `tenant="*"` all there are."""
        return await self._engine.aask(pauses.list_, tenant, None)


class AsyncQuarantineNoun(AsyncNoun):
    """What the database refused to write, or somebody holds. Nothing else waits for it."""

    __slots__ = ()

    async def list(self, *, limit: int = 50, tenant: str | None = None) -> Page[QuarantineView]:
        """What is set aside: what could not be done, since when, how often it was tried, and why it fails."""
        return await self._engine.aask(quarantine.list_, tenant, None, limit=limit)

    async def retry(
        self, job: str | None = None, *, tenant: str | None = None, by: str | None = None
    ) -> QuarantineRetry:
        """Try what was set aside of this job, or all of it, before all others in the next sweep."""
        return await self._engine.aask(quarantine.retry, tenant, by, job)


class AsyncQueuesNoun(AsyncNoun):
    """What waits where, who serves it, and what shuts or limits it."""

    __slots__ = ()

    async def list(self, *, after: str = "", limit: int = 50, tenant: str | None = None) -> Page[QueueView]:
        """The queues of a tenant by name, above `after`: those with jobs, and those that workers or workflows
        name."""
        return await self._engine.aask(queues.list_, tenant, None, after=after, limit=limit)

    async def pause(
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
        return await self._engine.aask(queues.pause, tenant, by, queue, seconds=seconds, until=until, reason=reason)

    async def unpause(self, queue: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """Lift the pause of a queue."""
        return await self._engine.aask(queues.unpause, tenant, by, queue)

    async def limit(
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
        return await self._engine.aask(
            queues.limit, tenant, by, queue, concurrency=concurrency, rate=rate, max_queued=max_queued
        )

    async def unlimit(self, queue: str, *, tenant: str | None = None, by: str | None = None) -> LimitChange:
        """Lift what was set. What the code says holds again at once."""
        return await self._engine.aask(queues.unlimit, tenant, by, queue)


class AsyncSchedulesNoun(AsyncNoun):
    """Cron lines and intervals, when they fire next, and what came of each tick."""

    __slots__ = ()

    async def list(
        self, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[ScheduleView]:
        """The schedules of a tenant, in the order in which they were made."""
        return await self._engine.aask(schedules.list_, tenant, None, after=after, limit=limit)

    async def get(self, schedule: str, *, tenant: str | None = None) -> ScheduleView:
        """One schedule: its rule, what it runs, when next."""
        return await self._engine.aask(schedules.get, tenant, None, schedule)

    async def create(
        self,
        name: str,
        workflow: str,
        *,
        cron: str | None = None,
        every: Duration | None = None,
        zone: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        tick_as: str | None = None,
        queue: str | None = None,
        priority: int = 0,
        target: str | None = None,
        tags: Sequence[str] = (),
        policy: Mapping[str, Any] | None = None,
        overlap: Overlap = "allow",
        catch_up: CatchUp = "last",
        catch_up_most: int = 100,
        jitter: Duration = 0,
        begin_at: datetime | None = None,
        end_at: datetime | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> ScheduleView:
        """Run a workflow by the clock: by a `cron` line in a time `zone`, or `every` so many seconds. `overlap`:
        what happens while a job of an earlier tick has not ended. `catch_up`: which ticks are made up for after
        an outage. `tick_as`: the argument that gets the tick."""
        return await self._engine.aask(
            schedules.create,
            tenant,
            by,
            name,
            workflow,
            cron=cron,
            every=every,
            zone=zone,
            args=args,
            kwargs=kwargs,
            tick_as=tick_as,
            queue=queue,
            priority=priority,
            target=target,
            tags=tags,
            policy=policy,
            overlap=overlap,
            catch_up=catch_up,
            catch_up_most=catch_up_most,
            jitter=jitter,
            begin_at=begin_at,
            end_at=end_at,
        )

    async def update(
        self,
        schedule: str,
        *,
        workflow: str | Unsaid = UNSAID,
        cron: str | Unsaid | None = UNSAID,
        every: Duration | Unsaid | None = UNSAID,
        zone: str | Unsaid = UNSAID,
        args: Sequence[Any] | Unsaid = UNSAID,
        kwargs: Mapping[str, Any] | Unsaid | None = UNSAID,
        tick_as: str | Unsaid | None = UNSAID,
        queue: str | Unsaid | None = UNSAID,
        priority: int | Unsaid = UNSAID,
        target: str | Unsaid | None = UNSAID,
        tags: Sequence[str] | Unsaid = UNSAID,
        policy: Mapping[str, Any] | Unsaid | None = UNSAID,
        overlap: Overlap | Unsaid = UNSAID,
        catch_up: CatchUp | Unsaid = UNSAID,
        catch_up_most: int | Unsaid = UNSAID,
        jitter: Duration | Unsaid = UNSAID,
        begin_at: datetime | Unsaid | None = UNSAID,
        end_at: datetime | Unsaid | None = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> ScheduleView:
        """Change a schedule; what is not named stays as it stands. No tick fires twice by it. One that code
        declares is changed there."""
        return await self._engine.aask(
            schedules.update,
            tenant,
            by,
            schedule,
            workflow=workflow,
            cron=cron,
            every=every,
            zone=zone,
            args=args,
            kwargs=kwargs,
            tick_as=tick_as,
            queue=queue,
            priority=priority,
            target=target,
            tags=tags,
            policy=policy,
            overlap=overlap,
            catch_up=catch_up,
            catch_up_most=catch_up_most,
            jitter=jitter,
            begin_at=begin_at,
            end_at=end_at,
        )

    async def delete(self, schedule: str, *, tenant: str | None = None, by: str | None = None) -> ScheduleView:
        """Fire it no more, and forget it. Its jobs stay as they are. One that code declares is removed there."""
        return await self._engine.aask(schedules.delete, tenant, by, schedule)

    async def pause(
        self,
        schedule: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> ScheduleView:
        """Fire no tick: for so long, until that instant, or until somebody resumes it. The ticks of the pause are
        not made up for."""
        return await self._engine.aask(
            schedules.pause, tenant, by, schedule, seconds=seconds, until=until, reason=reason
        )

    async def resume(self, schedule: str, *, tenant: str | None = None, by: str | None = None) -> ScheduleView:
        """End the pause of a schedule: it goes on with its next tick."""
        return await self._engine.aask(schedules.resume, tenant, by, schedule)

    async def run_now(self, schedule: str, *, tenant: str | None = None, by: str | None = None) -> FiringView:
        """Make its job now, besides its ticks, also of a paused one. By its overlap rule it may be skipped."""
        return await self._engine.aask(schedules.run_now, tenant, by, schedule)

    async def backfill(
        self,
        schedule: str,
        since: datetime,
        until: datetime,
        *,
        overlap: Overlap | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> Page[FiringView]:
        """Make a job for each tick of a range of the past that made none, up to a thousand. They run one after the
        other unless the schedule, or `overlap`, lets them overlap."""
        return await self._engine.aask(schedules.backfill, tenant, by, schedule, since, until, overlap=overlap)

    async def next(self, schedule: str, *, count: int = 10, tenant: str | None = None) -> TicksView:
        """The ticks that come next."""
        return await self._engine.aask(schedules.next_, tenant, None, schedule, count=count)

    async def firings(
        self, schedule: str, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[FiringView]:
        """What was done about each tick, the newest first: the job, or why there is none."""
        return await self._engine.aask(schedules.firings, tenant, None, schedule, after=after, limit=limit)


class AsyncSeriesNoun(AsyncNoun):
    """How many runs ended in each minute, how, and how long they waited and ran. Kept for seven days."""

    __slots__ = ()

    async def get(
        self,
        *,
        per: SeriesPer = "total",
        since: datetime | None = None,
        until: datetime | None = None,
        step: Duration = 60.0,
        queue: str | None = None,
        workflow: str | None = None,
        limit: int = 10,
        tenant: str | None = None,
    ) -> SeriesView:
        """What ended, in steps of time: all together, or `per` "queue" or "workflow", and then the `limit` busiest
        of them. `since`: an hour ago, if nothing is said. Minutes are counted one or two minutes after they
        have passed."""
        return await self._engine.aask(
            series.get,
            tenant,
            None,
            per=per,
            since=since,
            until=until,
            step=step,
            queue=queue,
            workflow=workflow,
            limit=limit,
        )


class AsyncSessionsNoun(AsyncNoun):
    """The browsers that somebody has logged in with a key. They are begun over HTTP, by `server/sessions.py`;
    here admins see and end them."""

    __slots__ = ()

    async def list(
        self, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[SessionView]:
        """The browsers that are logged in, the newest first: with whose key, from where, until when."""
        return await self._engine.aask(sessions.list_, tenant, None, after=after, limit=limit)

    async def end(self, session: int, *, tenant: str | None = None, by: str | None = None) -> SessionView:
        """Log a browser out, by the number of its session: everywhere within 5 seconds. Its key goes on working."""
        return await self._engine.aask(sessions.end, tenant, by, session)


class AsyncSettingsNoun(AsyncNoun):
    """Kept in the database, in force everywhere from the moment they change."""

    __slots__ = ()

    async def list(self) -> Page[SettingView]:
        """All of them, with what they mean and who changed them."""
        return await self._engine.aask(settings.list_, None, None)

    async def get(self, name: str) -> SettingView:
        """One of them; `value` is what is in force."""
        return await self._engine.aask(settings.get, None, None, name)

    async def set(self, name: str, value: Any, *, by: str | None = None) -> SettingView:
        """Change one. Every worker goes by it at once."""
        return await self._engine.aask(settings.set_, None, by, name, value)

    async def reset(self, name: str, *, by: str | None = None) -> SettingView:
        """The default again."""
        return await self._engine.aask(settings.reset, None, by, name)


class AsyncSigningNoun(AsyncNoun):
    """By them nothing starts any more. The keys themselves are in no database."""

    __slots__ = ()

    async def revocations(self) -> Page[RevocationView]:
        """The signing keys that are revoked, the newest first: since when, by whom, why. What their file revokes
        is not among them."""
        return await self._engine.aask(signing.revocations, None, None)

    async def revoke(self, key: str, *, reason: str | None = None, by: str | None = None) -> RevocationAdded:
        """Revoke a signing key: whatever it signed and has not begun ends DEAD at its next claim, on every worker
        that holds keys. What runs goes on. One that is revoked already stays so, with the reason it had."""
        return await self._engine.aask(signing.revoke, None, by, key, reason=reason)

    async def unrevoke(self, key: str, *, by: str | None = None) -> RevocationRemoved:
        """Take that back: what it signed starts again. What is DEAD by it stays so: see its dead letter."""
        return await self._engine.aask(signing.unrevoke, None, by, key)


class AsyncStatsNoun(AsyncNoun):
    """How many jobs are in which state, together, or by tenant, queue or workflow."""

    __slots__ = ()

    async def get(self, *, tenant: str | None = None) -> StatsView:
        """Jobs by state, and the workers that serve them; with `tenant="*"` of all tenants together."""
        return await self._engine.aask(stats.get, tenant, None)

    async def by_tenant(self, *, after: str = "", limit: int = 20) -> Page[TallyView]:
        """Jobs by state for each tenant, by name above `after`."""
        return await self._engine.aask(stats.by_tenant, None, None, after=after, limit=limit)

    async def by_queue(self, *, after: str = "", limit: int = 20, tenant: str | None = None) -> Page[TallyView]:
        """Jobs by state for each queue of a tenant, by name above `after`."""
        return await self._engine.aask(stats.by_queue, tenant, None, after=after, limit=limit)

    async def by_workflow(self, *, after: str = "", limit: int = 20, tenant: str | None = None) -> Page[TallyView]:
        """Jobs by state for each workflow of a tenant, by name above `after`."""
        return await self._engine.aask(stats.by_workflow, tenant, None, after=after, limit=limit)


class AsyncTargetsNoun(AsyncNoun):
    """Where jobs run one at a time; whose turn it is, and what blocks."""

    __slots__ = ()

    async def list(
        self, *, blocked: bool = False, after: str = "", limit: int = 50, tenant: str | None = None
    ) -> Page[TargetView]:
        """The targets by name, above `after`; with `blocked` only those that a job blocks, the longest blocked
        first."""
        return await self._engine.aask(targets.list_, tenant, None, blocked=blocked, after=after, limit=limit)

    async def get(self, target: str, *, tenant: str | None = None) -> TargetWhole:
        """One target: whose turn it is, who blocks it since when, who waits, its pause."""
        return await self._engine.aask(targets.get, tenant, None, target)

    async def pause(
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
        return await self._engine.aask(targets.pause, tenant, by, target, seconds=seconds, until=until, reason=reason)

    async def unpause(self, target: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """Lift the pause of a target."""
        return await self._engine.aask(targets.unpause, tenant, by, target)


class AsyncTenantsNoun(AsyncNoun):
    """Whose jobs; their shares, pauses and limits."""

    __slots__ = ()

    async def list(self, *, after: str = "", limit: int = 20) -> Page[TenantView]:
        """The tenants by name, above `after`: all that have a weight of their own or ever had a job."""
        return await self._engine.aask(tenants.list_, None, None, after=after, limit=limit)

    async def get(self, name: str) -> TenantWhole:
        """One tenant: its jobs by state, its weight, and every pause and limit that touches it."""
        return await self._engine.aask(tenants.get, None, None, name)

    async def pause(
        self,
        name: str,
        *,
        seconds: Duration | None = None,
        until: datetime | None = None,
        reason: str | None = None,
        by: str | None = None,
    ) -> PauseView:
        """Start nothing new of a tenant. What runs goes on, what comes waits."""
        return await self._engine.aask(tenants.pause, None, by, name, seconds=seconds, until=until, reason=reason)

    async def unpause(self, name: str, *, by: str | None = None) -> UnpauseView:
        """Lift the pause of a tenant."""
        return await self._engine.aask(tenants.unpause, None, by, name)

    async def weigh(self, name: str, weight: int, *, by: str | None = None) -> WeightView:
        """How many turns a tenant gets for each turn of a tenant of weight 1. Workers take it up within some
        seconds."""
        return await self._engine.aask(tenants.weigh, None, by, name, weight)

    async def limit(
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
        return await self._engine.aask(
            tenants.limit, None, by, name, concurrency=concurrency, rate=rate, max_queued=max_queued
        )

    async def unlimit(self, name: str, *, by: str | None = None) -> LimitChange:
        """Lift what was set."""
        return await self._engine.aask(tenants.unlimit, None, by, name)


class AsyncTopNoun(AsyncNoun):
    """One bounded look at queues, running jobs, workers, and what needs somebody."""

    __slots__ = ()

    async def get(
        self,
        *,
        queue: str | None = None,
        workflow: str | None = None,
        limit: int = 50,
        health: bool = True,
        tenant: str | None = None,
    ) -> TopView:
        """Queues, the longest running jobs (`limit`; of this `queue` or `workflow`), workers with their processes,
        and what needs somebody; with `health` also what that says is wrong."""
        return await self._engine.aask(
            top.get, tenant, None, queue=queue, workflow=workflow, limit=limit, health=health
        )


class AsyncWebhooksNoun(AsyncNoun):
    """Events of the feed, sent to a URL as they happen, signed as Standard Webhooks says."""

    __slots__ = ()

    async def list(
        self, *, after: Cursor | None = None, limit: int = 50, tenant: str | None = None
    ) -> Page[WebhookView]:
        """The webhooks of a tenant, in the order in which they were made; of "*" everybody's."""
        return await self._engine.aask(webhooks.list_, tenant, None, after=after, limit=limit)

    async def get(self, webhook: str, *, tenant: str | None = None) -> WebhookView:
        """One webhook: where it goes, what is sent there, what waits, whether its receiver takes it."""
        return await self._engine.aask(webhooks.get, tenant, None, webhook)

    async def create(
        self,
        name: str,
        url: str,
        *,
        kinds: str | Iterable[str] = (),
        workflow: str | None = None,
        queue: str | None = None,
        target: str | None = None,
        topic: str | None = None,
        job: str | None = None,
        secret: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> NewWebhookView:
        """Send what happens from now on to a URL. `kinds` and what follows choose events, as `events.list` does;
        left out: all. Its `secret` is told this once; left out: a new one is made."""
        return await self._engine.aask(
            webhooks.create,
            tenant,
            by,
            name,
            url,
            kinds=kinds,
            workflow=workflow,
            queue=queue,
            target=target,
            topic=topic,
            job=job,
            secret=secret,
        )

    async def update(
        self,
        webhook: str,
        *,
        url: str | Unsaid = UNSAID,
        kinds: str | Iterable[str] | Unsaid = UNSAID,
        workflow: str | Unsaid | None = UNSAID,
        queue: str | Unsaid | None = UNSAID,
        target: str | Unsaid | None = UNSAID,
        topic: str | Unsaid | None = UNSAID,
        job: str | Unsaid | None = UNSAID,
        tenant: str | None = None,
        by: str | None = None,
    ) -> WebhookView:
        """Change where it goes, or what is sent; what is not named stays as it stands. What waits goes to the new
        URL."""
        return await self._engine.aask(
            webhooks.update,
            tenant,
            by,
            webhook,
            url=url,
            kinds=kinds,
            workflow=workflow,
            queue=queue,
            target=target,
            topic=topic,
            job=job,
        )

    async def rotate(
        self,
        webhook: str,
        *,
        overlap: Duration = 86400.0,
        secret: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> NewWebhookView:
        """A new secret; the old one signs beside it for `overlap` more, so that its receiver can change in peace.
        It is told this once."""
        return await self._engine.aask(webhooks.rotate, tenant, by, webhook, overlap=overlap, secret=secret)

    async def pause(
        self, webhook: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> WebhookView:
        """Send nothing for now. What happens meanwhile waits, and is sent once it is enabled."""
        return await self._engine.aask(webhooks.pause, tenant, by, webhook, reason=reason)

    async def enable(self, webhook: str, *, tenant: str | None = None, by: str | None = None) -> WebhookView:
        """Send again, and at once: what waits, and what happens from now on. What happened while it was disabled
        is sent by a replay."""
        return await self._engine.aask(webhooks.enable, tenant, by, webhook)

    async def disable(
        self, webhook: str, *, reason: str | None = None, tenant: str | None = None, by: str | None = None
    ) -> WebhookView:
        """Send nothing any more. What waits stays; what happens from now on is not kept for it."""
        return await self._engine.aask(webhooks.disable, tenant, by, webhook, reason=reason)

    async def test(self, webhook: str, *, tenant: str | None = None, by: str | None = None) -> DeliveryView:
        """Send a test, signed like all others, of the kind `webhook.test`. What came of it: `deliveries.get`."""
        return await self._engine.aask(webhooks.test, tenant, by, webhook)

    async def replay(
        self,
        webhook: str,
        *,
        since: datetime | None = None,
        after: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> ReplayView:
        """Send once more what happened since an instant, or behind a cursor of the feed: what was taken, what was
        given up, and what was never sent because it was disabled or its filter was another. Each under the id
        that it had. What is older than the feed is only what was sent before, 10,000 of it at a time."""
        return await self._engine.aask(webhooks.replay, tenant, by, webhook, since=since, after=after)

    async def delete(self, webhook: str, *, tenant: str | None = None, by: str | None = None) -> WebhookView:
        """Send nothing there any more, and forget it with all its deliveries."""
        return await self._engine.aask(webhooks.delete, tenant, by, webhook)


class AsyncWorkersNoun(AsyncNoun):
    """Who runs the jobs, in which processes, and what may be ordered of them."""

    __slots__ = ()

    async def list(self, *, ended: bool = False, after: Cursor | None = None, limit: int = 500) -> Page[WorkerView]:
        """The workers, each with its processes and the jobs in them; with `ended` also those that left, or fell
        silent more than an hour ago."""
        return await self._engine.aask(workers.list_, None, None, ended=ended, after=after, limit=limit)

    async def recycle(self, pid: int, *, worker: str | None = None, by: str | None = None) -> OrderView:
        """Replace a process. It takes no more jobs, those in it finish and are stored, then it ends; a new one
        starts. Name the worker where two hosts have that pid."""
        return await self._engine.aask(workers.recycle, None, by, pid, worker=worker)

    async def kill(self, pid: int, *, worker: str | None = None, by: str | None = None) -> OrderView:
        """End a process now. The jobs in it go back to the queue at no cost; a new one starts. Name the worker
        where two hosts have that pid."""
        return await self._engine.aask(workers.kill, None, by, pid, worker=worker)

    async def drain(
        self, worker: str | None = None, *, every: bool = False, by: str | None = None
    ) -> Page[OrderView]:
        """Stop a worker, or with `every` all there are, in order: it takes nothing new, what runs may finish, then
        it ends. An order for each."""
        return await self._engine.aask(workers.drain, None, by, worker, every=every)

    async def answer(self, order: int, *, timeout: Duration = 5.0) -> OrderView:
        """An order, by its number, with its worker's answer; NoAnswer when the time is over first. The order
        stands all the same."""
        return await self._engine.aask(workers.answer, None, None, order, timeout=timeout)


class AsyncWorkflowsNoun(AsyncNoun):
    """What can be run, as its workers registered it; pause and limit it."""

    __slots__ = ()

    async def list(self, *, tenant: str | None = None) -> Page[WorkflowView]:
        """What workers have registered in this database, whoever's code it is."""
        return await self._engine.aask(workflows.list_, tenant, None)

    async def get(self, workflow: str, *, tenant: str | None = None) -> WorkflowWhole:
        """One workflow: its queue, its arguments, the policy of its jobs, what shuts and limits it, and how far
        its breaker is from shutting it out."""
        return await self._engine.aask(workflows.get, tenant, None, workflow)

    async def pause(
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
        return await self._engine.aask(
            workflows.pause, tenant, by, workflow, seconds=seconds, until=until, reason=reason
        )

    async def unpause(self, workflow: str, *, tenant: str | None = None, by: str | None = None) -> UnpauseView:
        """Lift the pause of a workflow."""
        return await self._engine.aask(workflows.unpause, tenant, by, workflow)

    async def limit(
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
        return await self._engine.aask(
            workflows.limit, tenant, by, workflow, concurrency=concurrency, rate=rate, each_key=each_key
        )

    async def unlimit(
        self, workflow: str, *, each_key: bool = False, tenant: str | None = None, by: str | None = None
    ) -> LimitChange:
        """Lift what was set. What the code says holds again at once."""
        return await self._engine.aask(workflows.unlimit, tenant, by, workflow, each_key=each_key)
