"""Gates before a job is in the queue: start time, retry backoff, a person's hold, dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.why.blacklist import entries
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.quarantine import set_aside
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import clock, lasting


def _is_retry(job: JobRecord) -> bool:
    return bool(job.failures or job.losses or job.suspects)


@rule(Code.SCHEDULED, "its start time has not come, or was not noticed yet", Actor.ENGINE, "unstuck jobs retry JOB")
def scheduled(view: WhyView) -> Iterator[Finding]:
    due = view.facts.due_at
    if due is not None and not _is_retry(view.job):
        yield Finding(_due(view, due, "it starts"), view.job.created_at, due)


@rule(Code.RETRY_BACKOFF, "an attempt failed or was lost; the next one waits", Actor.ENGINE, "unstuck jobs retry JOB")
def retry_backoff(view: WhyView) -> Iterator[Finding]:
    due, job = view.facts.due_at, view.job
    if due is None or not _is_retry(job):
        return
    what = f"failed with {job.error_type}" if job.error_type else "was lost" if job.losses else "failed"
    budget = f"{job.failures} of {job.policy.retries + 1} tries used" if job.failures else f"{job.losses} lost"
    details = {"failures": job.failures, "losses": job.losses, "retries": job.policy.retries, "error": job.error_type}
    yield Finding(
        f"attempt {job.token} {what} ({budget}); {_due(view, due, 'the next try')}", None, due, details=details
    )


def _due(view: WhyView, due: datetime, what: str) -> str:
    if due > view.now:
        verb = "starts " if what == "it starts" else "is "
        subject = "it" if what == "it starts" else what
        return f"{subject} {verb}in {lasting(due - view.now)}, at {clock(due)}"
    came = f"{'its time' if what == 'it starts' else what} came{view.ago(due)}"
    return came if set_aside(view, "start") else f"{came}; the next sweep brings it into the queue"


@rule(
    Code.HELD,
    "it was submitted on hold, and nobody has released it",
    Actor.OWNER,
    "unstuck jobs release JOB",
    of=[JobState.PENDING],
)
def held(view: WhyView) -> Iterator[Finding]:
    if view.job.on_hold and not entries(view):
        yield Finding("it is held until somebody releases it", view.job.created_at)


@rule(
    Code.WAITING_DEPENDENCIES,
    "jobs that it comes after have not ended",
    Actor.ENGINE,
    "unstuck jobs release JOB --force",
    of=[JobState.PENDING],
)
def waiting_dependencies(view: WhyView) -> Iterator[Finding]:
    waited_for = view.facts.dependencies
    if not waited_for:
        return
    unfinished = [d for d in waited_for if d.state is None or not d.state.is_final]
    details = {"after": [{"job": d.job, "state": d.state} for d in waited_for]}
    if unfinished:
        some = ", ".join(f"{d.job} ({d.state or 'unknown'})" for d in unfinished[:3])
        more = " …" if len(unfinished) > 3 else ""
        yield Finding(f"{_unfinished(len(unfinished), len(waited_for))} not ended: {some}{more}", details=details)
    else:
        yield Finding("the jobs that it comes after have ended; the next look releases or fails it", details=details)


def _unfinished(some: int, all_: int) -> str:
    if all_ == 1:
        return "the job that it comes after has"
    return f"{some} of {all_} jobs that it comes after {'has' if some == 1 else 'have'}"


@rule(Code.UNPLACED, "it is between two places, or something is wrong with the database", Actor.OPERATOR)
def unplaced(view: WhyView) -> Iterator[Finding]:
    facts = view.facts
    if not facts.is_ready and facts.place is None and facts.due_at is None:
        yield Finding(
            "it is QUEUED, but neither ready, nor in a line, nor on a timer; ask again, and report it if it stays so",
            remedy=view.command(f"unstuck jobs show {view.job.id}"),
        )
