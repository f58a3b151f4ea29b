"""Metrics: everything that the server tells Prometheus, read from the database in one bounded set of questions.

Of one tenant, or of all together with the tenants beside each other; what belongs to the platform (its clock, its
inbox) is told to who may see the platform.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import islice

from unstuck import clock
from unstuck.model.alerts import RULES, SEVERITIES
from unstuck.model.dead_letters import REASONS
from unstuck.model.job import WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.metrics import (
    MOST_NAMES,
    MOST_SERVERS,
    MOST_TENANTS,
    MOST_WAITING,
    MOST_WORKERS,
    OTHER,
    Buckets,
    Measures,
)
from unstuck.model.offers import key_of
from unstuck.model.totals import EndTotal, NamedTotals
from unstuck.model.webhooks import WebhookState
from unstuck.observe.lookup import ALIVE
from unstuck.operations import checks
from unstuck.operations.table import Caller
from unstuck.store.port import JobStand, JobStands, Waiting
from unstuck.views.workers import polled_at

#: What may be late, as `health` judges it.
BOUNDS = ("lost", "limit", "start", "expire", "wait", "claim")
_QUEUED = frozenset({"READY", "LATER", "LINE"})
_STATES = (*(state.lower() for state in JobState if not state.is_final), "dead")
_WORKER_STATES = ("active", "draining", "fenced", "lost", "offline", "gone")
_LASTING = ("jobs_queued_total", "jobs_running_total", "unstuck_jobs", "unstuck_jobs_scheduled")
#: Workers that are looked at; a crash loop leaves thousands an hour.
_MOST_SEEN = 1000


class MetricsMemory:
    """What whoever asks again keeps between two readings, for each tenant and for all together."""

    def __init__(self) -> None:
        self.totals = NamedTotals(MOST_NAMES)
        #: Jobs that somebody should have claimed by now.
        self.unclaimed: frozenset[str] = frozenset()
        #: The labels that gauges of jobs were told with.
        self._told: dict[str, dict[tuple[str, ...], None]] = {name: {} for name in _LASTING}

    def keep(self, found: Measures) -> None:
        """Where there are no jobs any more it is told that there are none: a sample that vanished would say nothing.
        The last so many that were told are remembered."""
        for name, told in self._told.items():
            now = found.labels(name)
            for labels in now:
                told.pop(labels, None)
                told[labels] = None
            while len(told) > max(MOST_NAMES, len(now)):
                del told[next(iter(told))]
            for labels in told:
                if labels not in now:
                    found.put(name, 0, *labels)


def measure(caller: Caller, memory: MetricsMemory) -> Measures:
    """Of the tenant that the caller is about, or of all."""
    began = clock.boot()
    store, own = caller.store, caller.own
    found = Measures()
    now = store.now()
    _put_jobs(found, store.job_stands(own), own)
    memory.keep(found)
    waiting = store.longest_waiting(own)
    _put_waiting(found, waiting, now)
    workers = list(islice(caller.lookup.each_worker(), _MOST_SEEN))
    _put_workers(found, workers, now)
    _put_bounds(found, caller, memory, checks.unclaimed(caller, waiting, workers, now))
    _put_troubles(found, caller, now)
    _put_alerts(found, caller)
    _put_schedules(found, caller)
    _put_ends(found, caller, memory.totals)
    if own is None:
        _put_platform(found, caller)
    found.put("unstuck_metrics_read_timestamp_seconds", now.timestamp())
    found.put("unstuck_metrics_read_seconds", clock.boot() - began)
    return found


# --- jobs ---------------------------------------------------------------------------------------------------------


def _put_jobs(found: Measures, stands: JobStands, own: str | None) -> None:
    names: dict[tuple[str, str, str], int] = defaultdict(int)
    scheduled: dict[tuple[str, str], int] = defaultdict(int)
    fullest = _fullest(stands)
    listed: dict[str, int] = defaultdict(int)
    for stand in stands.names:
        if (stand.queue, stand.workflow) not in fullest:
            continue
        listed[stand.place] += stand.jobs
        names[_state(stand.place), stand.queue, stand.workflow] += stand.jobs
        if stand.place == "LATER":
            scheduled[stand.queue, stand.workflow] += stand.jobs
    for stand in stands.together:
        if rest := stand.jobs - listed[stand.place]:
            names[_state(stand.place), OTHER, OTHER] += rest
            if stand.place == "LATER":
                scheduled[OTHER, OTHER] += rest
    for labels, jobs in names.items():
        found.put("unstuck_jobs", jobs, *labels)
    for name, jobs in scheduled.items():
        found.put("unstuck_jobs_scheduled", jobs, *name)
    for place in stands.is_cut:
        found.put("unstuck_jobs_cut", 1, _state(place))
    found.fill("unstuck_jobs_cut", _STATES)
    _put_tenants(found, stands, own)


def _fullest(stands: JobStands) -> set[tuple[str, str]]:
    """Who has samples of its own: those with the most jobs."""
    jobs: dict[tuple[str, str], int] = defaultdict(int)
    for stand in stands.names:
        jobs[stand.queue, stand.workflow] += stand.jobs
    return set(sorted(jobs, key=lambda name: (-jobs[name], name))[:MOST_NAMES])


def _put_tenants(found: Measures, stands: JobStands, own: str | None) -> None:
    for metric, places in (("jobs_queued_total", _QUEUED), ("jobs_running_total", frozenset({"RUNNING"}))):
        whole = _sum(stands.together, places)
        if own is not None:
            found.put(metric, whole, own)
            continue
        jobs: dict[str, int] = defaultdict(int)
        for stand in stands.tenants:
            jobs[stand.tenant] += stand.jobs if stand.place in places else 0
        shown = sorted(jobs, key=lambda tenant: (-jobs[tenant], tenant))[:MOST_TENANTS]
        for tenant in shown:
            found.put(metric, jobs[tenant], tenant)
        if rest := whole - sum(jobs[tenant] for tenant in shown):
            found.put(metric, rest, OTHER)


def _sum(stands: Iterable[JobStand], places: frozenset[str]) -> int:
    return sum(stand.jobs for stand in stands if stand.place in places)


def _state(place: str) -> str:
    return "queued" if place in _QUEUED else place.lower()


def _put_waiting(found: Measures, waiting: list[Waiting], now: datetime) -> None:
    for job in waiting[:MOST_WAITING]:
        found.put("jobs_stuck_duration_seconds", _age(job.since, now), job.id)
    oldest: dict[str, datetime] = {}
    for job in waiting:  # the oldest first
        is_own = job.queue in oldest or len(oldest) < MOST_NAMES
        oldest.setdefault(job.queue if is_own else OTHER, job.since)
    for queue, since in oldest.items():
        found.put("unstuck_oldest_job_age_seconds", _age(since, now), "queued", queue)


def _age(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())


def _put_ends(found: Measures, caller: Caller, totals: NamedTotals) -> None:
    everything, names = caller.store.end_totals(caller.own)
    totals.update(names, everything)
    for (queue, workflow), total in totals:
        _put_total(found, queue, workflow, total)
    if any(totals.others.numbers):
        _put_total(found, OTHER, OTHER, totals.others)
    found.put("unstuck_counted_until_timestamp_seconds", caller.store.counted_until().timestamp())


def _put_total(found: Measures, queue: str, workflow: str, total: EndTotal) -> None:
    found.put("unstuck_jobs_enqueued_total", total.enqueued, queue, workflow)
    for state, number in total.ended.items():
        found.put("unstuck_jobs_finished_total", number, queue, workflow, state.lower())
    found.put("unstuck_jobs_stuck_total", total.stuck, queue, workflow)
    found.put("unstuck_job_wait_seconds", Buckets(list(total.waits), total.waited), queue, workflow)
    found.put("unstuck_job_run_seconds", Buckets(list(total.runs), total.ran), queue, workflow)


# --- bounds -------------------------------------------------------------------------------------------------------


def _put_bounds(found: Measures, caller: Caller, memory: MetricsMemory, unclaimed: frozenset[str]) -> None:
    times = caller.times
    late = caller.store.past_bound(caller.own, checks.late(times), times.kill_grace + times.lease)
    for bound, jobs in late.items():
        found.put("unstuck_jobs_past_bound", jobs, bound)
    # Twice: where jobs come and go at full speed, another one is first the next time.
    found.put("unstuck_jobs_past_bound", len(unclaimed & memory.unclaimed), "claim")
    memory.unclaimed = unclaimed
    found.fill("unstuck_jobs_past_bound", BOUNDS)


# --- what somebody should look at ---------------------------------------------------------------------------------


def _put_troubles(found: Measures, caller: Caller, now: datetime) -> None:
    named = {"notifications": "unstuck_notifications_open", "blacklist": "unstuck_blacklist_entries"}
    named |= {"targets": "unstuck_targets_blocked", "approvals": "unstuck_approvals_pending"}
    blocked, oldest = 0.0, now
    letters: dict[str, int] = defaultdict(int)
    for stand in caller.store.trouble_stands(caller.own):
        if stand.what == "quarantine":
            found.put("unstuck_quarantined", stand.number, stand.kind)
            continue
        if stand.what == "webhooks":
            found.put("unstuck_webhooks", stand.number, stand.kind.lower())
            continue
        if stand.what == "deliveries":
            found.put("unstuck_deliveries_waiting", stand.number)
            found.put("unstuck_delivery_oldest_seconds", _age(stand.since_at or now, now))
            continue
        if stand.what == "dead_letters":
            letters[stand.kind if stand.kind in REASONS else OTHER] += stand.number
            oldest = min(oldest, stand.since_at or now)
            continue
        found.put(named[stand.what], stand.number)
        if stand.since_at is not None:
            blocked = _age(stand.since_at, now)
    found.fill("unstuck_webhooks", [state.lower() for state in WebhookState])
    for webhook in caller.store.failing_webhooks(caller.own, MOST_NAMES):
        found.put("unstuck_webhook_failures", webhook.failures, str(webhook.number))
    found.fill("unstuck_quarantined", ("settle", "recover", "claim"))
    for reason, number in letters.items():
        found.put("unstuck_dead_letters", number, reason)
    found.fill("unstuck_dead_letters", REASONS)
    found.put("unstuck_dead_letter_oldest_seconds", _age(oldest, now))
    found.put("unstuck_target_blocked_longest_seconds", blocked)
    for (state, queue), since in caller.store.resting_since(caller.own, MOST_NAMES).items():
        found.put("unstuck_oldest_job_age_seconds", _age(since, now), state.lower(), queue)


def _put_alerts(found: Measures, caller: Caller) -> None:
    for rule in RULES:
        for severity in SEVERITIES:
            found.put("unstuck_alerts_open", 0, rule, severity)
    for stand in caller.store.alert_stands(caller.own):
        found.put("unstuck_alerts_open", stand.number - stand.muted, stand.rule, stand.severity)
    failing = [stand for stand in caller.store.alert_rules() if stand.failing_at is not None]
    found.put("unstuck_alert_rules_failing", len(failing))


def _put_schedules(found: Measures, caller: Caller) -> None:
    for state, number in caller.store.schedule_states(caller.own).items():
        found.put("unstuck_schedules", number, state.lower())
    found.fill("unstuck_schedules", ("active", "paused", "ended"))
    late = checks.late(caller.times)
    found.put("unstuck_schedules_silent", len(caller.store.silent_schedules(caller.own, late, limit=_MOST_SEEN)))


# --- the engine ---------------------------------------------------------------------------------------------------


def _put_workers(found: Measures, workers: list[WorkerRecord], now: datetime) -> None:
    states: dict[str, int] = defaultdict(int)
    beats: dict[str, datetime] = {}
    alive = {worker.name for worker in workers if worker.state in ALIVE}
    for worker in workers:
        if worker.state not in (*ALIVE, "gone") and worker.name in alive:
            continue  # it was started again
        states[worker.state] += 1
        if worker.state != "gone":  # one that left is silent on purpose
            beats[worker.name] = max(worker.heartbeat_at, beats.get(worker.name, worker.heartbeat_at))
    for state, number in states.items():
        found.put("unstuck_workers", number, state)
    found.fill("unstuck_workers", _WORKER_STATES)
    _put_remote(found, [worker for worker in workers if worker.state in ALIVE and key_of(worker.incarnation)])
    for name in sorted(beats, key=lambda name: beats[name], reverse=True)[:MOST_WORKERS]:
        found.put("worker_heartbeat_last_seconds", _age(beats[name], now), name)
        found.put("unstuck_worker_last_heartbeat_timestamp_seconds", beats[name].timestamp(), name)


def _put_remote(found: Measures, workers: list[WorkerRecord]) -> None:
    servers: dict[str, int] = defaultdict(int)
    for worker in workers:
        said = worker.info.get("remote")
        name = str(said.get("server") or OTHER) if isinstance(said, dict) else OTHER
        servers[name if name in servers or len(servers) < MOST_SERVERS else OTHER] += 1
    for server, number in servers.items():
        found.put("unstuck_remote_workers", number, server)
    for worker in workers[:MOST_WORKERS]:
        if (at := polled_at(worker)) is not None:
            found.put("unstuck_worker_last_poll_timestamp_seconds", at.timestamp(), worker.name)


def _put_platform(found: Measures, caller: Caller) -> None:
    stand = caller.store.clock_stand()
    found.put("unstuck_clock_leaps_total", stand.leaps)
    found.put("unstuck_clock_ahead_seconds", stand.ahead)
    found.put("unstuck_webhooks_behind", caller.store.copying() or 0)
    found.put("unstuck_inbox_entries", caller.store.inbox_stand(checks.FULL_INBOX).entries)
