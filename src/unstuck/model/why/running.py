"""RUNNING jobs: on which worker, whether a stop was requested, and whether the lease still holds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.quarantine import set_aside
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import lasting

_RUNNING = [JobState.RUNNING]
#: Seconds. A worker describes its jobs twice a second.
_SOON_TOLD = 1.0


@rule(Code.RUNNING, "it is running", Actor.NOBODY, of=_RUNNING)
def running(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if not view.has_lease or job.request is not None or set_aside(view, "settle"):
        return
    timeout, started = job.policy.timeout, job.started_at
    until = started + timedelta(seconds=float(timeout)) if started and timeout != "unlimited" else None
    doing = f"runs on worker {job.worker}, begun" if started else f"was claimed by worker {job.worker}"
    yield Finding(
        f"attempt {job.token} {doing}{view.ago(started or job.claimed_at)}; last beat{view.ago(job.heartbeat_at)}"
        f"{_if_it_stays_silent(view)}",
        started or job.claimed_at,
        until,
        details={"worker": job.worker, "attempt": job.token, "heartbeat_at": job.heartbeat_at},
    )


@rule(Code.CANCELLING, "its handler was asked to stop and has not stopped yet", Actor.ENGINE, of=_RUNNING)
def cancelling(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if not view.has_lease or job.request is None or set_aside(view, "settle"):
        return
    until = None if job.request is RequestKind.DRAIN else _end_of_grace(view)
    by = f" by {view.facts.request_by}" if view.facts.request_by else ""
    why = f' ("{job.request_reason}")' if job.request_reason else ""
    yield Finding(
        f"its handler was asked to stop ({job.request}){by}{view.ago(job.requested_at)}{why}, and has not yet"
        f"{_grace_left(view, until)}{_if_it_stays_silent(view)}",
        job.requested_at,
        until,
        details={
            "worker": job.worker,
            "request": job.request,
            "by": view.facts.request_by,
            "grace": job.policy.grace,
            "grace_left": None if until is None else max(0.0, (until - view.now).total_seconds()),
            "grace_uncounted": None if until is None else _uncounted(view, until).total_seconds(),
        },
    )


def _end_of_grace(view: WhyView) -> datetime | None:
    """Its worker knows best: the grace stands still while something else keeps the job from obeying."""
    left, beat, plain = view.facts.grace_left, view.job.heartbeat_at, _plain_end(view)
    if plain is None or left is None or beat is None:
        return plain
    return max(plain, beat + timedelta(seconds=left))


def _plain_end(view: WhyView) -> datetime | None:
    """As if all of it counted, from the request on."""
    asked = view.job.requested_at
    return asked + timedelta(seconds=view.job.policy.grace) if asked else None


def _uncounted(view: WhyView, until: datetime) -> timedelta:
    """Beyond what passes at most until the handler hears of its request, and until its worker's next word."""
    plain = _plain_end(view)
    late = timedelta() if plain is None else until - plain
    return late if late > timedelta(seconds=view.times.cancel_poll + _SOON_TOLD) else timedelta()


def _grace_left(view: WhyView, until: datetime | None) -> str:
    if until is None:
        return ""
    if until > view.now:
        uncounted = _uncounted(view, until)
        aside = f" ({lasting(uncounted)} did not count: something kept it from running)" if uncounted else ""
        return f"; {lasting(until - view.now)} of its grace left{aside}, then it is stuck"
    # The judge is its worker. Should that one fail to judge, any other does, and counts all of it.
    times = view.times
    backstop = (_plain_end(view) or until) + timedelta(seconds=times.kill_grace + times.lease + times.sweep)
    return f"; its grace is over, and its worker ends it now, or any other {view.soon(backstop)} at the latest"


def _if_it_stays_silent(view: WhyView) -> str:
    """Two beats that did not come: its worker may be frozen or cut off, although its lease still holds."""
    job, times = view.job, view.times
    if job.heartbeat_at is None or job.lease_until is None:
        return ""
    if not times.is_silent(job.heartbeat_at, job.lease_until, view.now):
        return ""
    return (
        f"; if worker {job.worker} stays silent, any other recovers the job {_at_the_latest(view, job.lease_until)}"
    )


@rule(Code.LEASE_EXPIRED, "its worker fell silent; any other recovers it", Actor.ENGINE, of=_RUNNING)
def lease_expired(view: WhyView) -> Iterator[Finding]:
    job = view.job
    if view.has_lease:
        return
    lease = job.lease_until
    until = None if lease is None else _recovery(view, lease)
    yield Finding(
        f"worker {job.worker} has been silent since its beat{view.ago(job.heartbeat_at)}, and its lease ended"
        f"{view.ago(lease)}; {_recovered(view, until)}",
        lease,
        until,
        details={"worker": job.worker, "heartbeat_at": job.heartbeat_at},
    )


def _recovered(view: WhyView, until: datetime | None) -> str:
    if not view.facts.sweepers:
        return "a worker must live to recover the job, and none does"
    if set_aside(view, "recover", "overdue"):
        return "it has not been recovered"
    if until is None or until <= view.now:
        return "any other recovers the job with its next sweep"
    return f"any other recovers the job {view.soon(until)} at the latest"


def _recovery(view: WhyView, lease: datetime) -> datetime:
    return lease + timedelta(seconds=view.times.lost_grace + view.times.sweep + view.times.store_call)


def _at_the_latest(view: WhyView, lease: datetime) -> str:
    return f"{view.soon(_recovery(view, lease))} at the latest"
