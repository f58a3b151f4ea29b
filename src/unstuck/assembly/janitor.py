"""The duties that every worker and server does, and what they may not import themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from unstuck.model.times import Times
from unstuck.signing import NO_KEYS, SigningKeys

if TYPE_CHECKING:
    from datetime import datetime

    from unstuck.janitor.janitor import Duty, Janitor
    from unstuck.model.alerts import RuleFindings, RuleLook
    from unstuck.model.ends import EndedJob
    from unstuck.model.job import NewJob, WorkerRecord
    from unstuck.store.port import FeedEvent, ScheduleRecord, Store


def build_janitor(
    store: Store,
    times: Times,
    me: WorkerRecord | None = None,
    signing: Callable[[], SigningKeys] = lambda: NO_KEYS,
    wake: Callable[[], None] = lambda: None,
) -> Janitor:
    """The duties that every worker and server does; `me` knows its host, so it may look after its neighbours. `wake`:
    called when there is something to send to webhooks."""
    from unstuck import machine
    from unstuck.chance import SystemChance
    from unstuck.clock import MachineClock
    from unstuck.janitor.alerts import AlertsDuty
    from unstuck.janitor.body_marks import BodyMarksDuty
    from unstuck.janitor.bulks import BulksDuty
    from unstuck.janitor.children import ChildrenDuty
    from unstuck.janitor.ends import EndsDuty
    from unstuck.janitor.guard import GuardDuty
    from unstuck.janitor.inbox import InboxDuty
    from unstuck.janitor.janitor import Janitor
    from unstuck.janitor.limits import LimitsDuty
    from unstuck.janitor.neighbours import NeighboursDuty
    from unstuck.janitor.offers import OffersDuty
    from unstuck.janitor.orphans import OrphansDuty
    from unstuck.janitor.overdue import OverdueDuty
    from unstuck.janitor.pauses import PausesDuty
    from unstuck.janitor.retention import retention
    from unstuck.janitor.schedules import SchedulesDuty
    from unstuck.janitor.series import EnqueuedDuty, SeriesDuty
    from unstuck.janitor.timers import TimersDuty
    from unstuck.janitor.unread import UnreadDuty
    from unstuck.janitor.waits import WaitsDuty
    from unstuck.janitor.webhooks import WebhooksDuty
    from unstuck.janitor.zombies import ZombiesDuty

    clock = MachineClock()
    zombies = ZombiesDuty(store, times)
    sweeps: list[Duty] = [zombies, OverdueDuty(store, times)]
    if me is not None:
        sweeps.insert(0, NeighboursDuty(store, times, me, recover=zombies.tick))
    keeping: list[Duty] = [UnreadDuty(store, times)]
    keeping += [
        TimersDuty(store, times),
        PausesDuty(store, times),
        WaitsDuty(store, times),
        InboxDuty(store, times),
        ChildrenDuty(store, times),
        BulksDuty(store, times),
        SchedulesDuty(store, times, jobs_of_ticks(store, times, signing)),
        EndsDuty(store, times, jobs_of_ends(store, times, signing), SystemChance().nonce()),
        OffersDuty(store, times),
        WebhooksDuty(store, times, lambda: event_bodies(store), wake),
    ]
    keeping += [BodyMarksDuty(store, times), *retention(store, times, clock)]
    keeping += [
        GuardDuty(store, times),
        LimitsDuty(store, times),
        OrphansDuty(store, times),
        SeriesDuty(store, times),
        EnqueuedDuty(store, times),
    ]
    told_by = f"server on {machine.host()}" if me is None else me.name
    keeping.append(AlertsDuty(store, times, alert_looks(store, times), told_by))
    chance, idle = SystemChance(), store.idle_duties
    return Janitor(store.probe, times, clock, chance, sweeps=sweeps, keeping=keeping, idle_duties=idle)


def jobs_of_ticks(
    store: Store, times: Times, signing: Callable[[], SigningKeys]
) -> Callable[[ScheduleRecord, datetime], NewJob]:
    """The job of a tick, for the janitor, which must not import `intake`; signed, if there is a key for what the
    engine makes."""
    from unstuck.intake.schedules import job_of
    from unstuck.intake.signing import SigningDoor

    def make(schedule: ScheduleRecord, tick: datetime) -> NewJob:
        job = job_of(store, schedule.tenant, schedule.name, schedule.spec, tick, times.max_timeout)
        return SigningDoor(signing(), store).made(job, "schedule")

    return make


def jobs_of_ends(store: Store, times: Times, signing: Callable[[], SigningKeys]) -> Callable[[str, EndedJob], NewJob]:
    """The job of what follows an end, for the janitor; signed, if there is a key for what the engine makes."""
    from unstuck.intake.ends import job_of
    from unstuck.intake.signing import SigningDoor

    def make(follower: str, ended: EndedJob) -> NewJob:
        job = job_of(store, follower, ended, times.max_timeout)
        return SigningDoor(signing(), store).made(job, "end")

    return make


def event_bodies(store: Store) -> Callable[[FeedEvent], str]:
    """How an event is written for webhooks, for the janitor, which must not import `views`. What is hidden of a job's
    data from others than admins is hidden there: who reads it in the end is not known."""
    from unstuck.model.webhooks import body_of
    from unstuck.views import plain, rfc3339
    from unstuck.views.flow import FeedEventView

    hidden = store.redactions()

    def body(event: FeedEvent) -> str:
        return body_of(event.kind, rfc3339(event.at) or "", plain(FeedEventView.of(event, hidden)))

    return body


def alert_looks(store: Store, times: Times) -> dict[str, Callable[[RuleLook], RuleFindings]]:
    """How alert rules look, for the janitor, which must not import `observe`."""
    from unstuck.observe.conditions import LOOKS, Condition, ConditionLook

    def by(condition: Condition) -> Callable[[RuleLook], RuleFindings]:
        return lambda asked: condition(ConditionLook.at(asked, store, times))

    return {rule: by(condition) for rule, condition in LOOKS.items()}
