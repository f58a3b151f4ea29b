"""Gates of workers: none serves the job, none has its code, or those that should act cannot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import given
from unstuck.model.why.codes import Actor, Code
from unstuck.model.why.facts import Facts, FailingRole, WorkerFacts
from unstuck.model.why.locks import is_needed
from unstuck.model.why.quarantine import set_aside
from unstuck.model.why.rule import Finding, WhyView, rule
from unstuck.model.why.words import counted, how_often, is_or_are, lasting, workers_serving


@rule(Code.NO_WORKER, "no live worker serves its queue", Actor.OPERATOR, "unstuck worker MODULE:APP")
def no_worker(view: WhyView) -> Iterator[Finding]:
    if view.facts.is_served or view.facts.is_ungranted or _draining(view) or _lacking(view) or _loading(view):
        return
    seen = max((w.beat_at for w in view.facts.workers), default=None)
    last = f"the last one was seen{view.ago(seen)}" if seen else "none ever did"
    yield Finding(
        f"no live worker serves queue {view.job.queue}; {last}",
        seen,
        remedy=f"unstuck worker MODULE:APP {given('--queues', view.job.queue)}",
        details={"queue": view.job.queue, "last_seen_at": seen},
    )


@rule(
    Code.NOT_GRANTED,
    "only workers at a distance live, and no key of theirs grants its queue and workflow",
    Actor.ADMIN,
    "unstuck keys create NAME --role worker",
)
def not_granted(view: WhyView) -> Iterator[Finding]:
    if not view.facts.is_ungranted:
        return
    job = view.job
    options = f"{given('--queue', job.queue)} {given('--workflow', job.workflow)}"
    yield Finding(
        f"only workers at a distance live, and no key of theirs grants {_ungranted(view)}",
        remedy=view.command(f"unstuck keys create NAME --role worker {options}"),
        details={"tenant": job.tenant, "queue": job.queue, "workflow": job.workflow},
    )


def _ungranted(view: WhyView) -> str:
    """The first that none of them has; each may be granted by some key, but all by none."""
    job, grants = view.job, view.facts.grants
    grants_tenant = [grant for grant in grants if grant.tenant]
    if not grants_tenant:
        return f"tenant {job.tenant}"
    if not any(grant.queue for grant in grants_tenant):
        return f"queue {job.queue}"
    if not any(grant.workflow for grant in grants_tenant):
        return f"workflow {job.workflow}"
    return f"queue {job.queue} and workflow {job.workflow} together"


@rule(
    Code.WORKER_LACKS_CODE,
    "live workers serve its queue, but none has its workflow",
    Actor.OPERATOR,
    "unstuck workers",
)
def worker_lacks_code(view: WhyView) -> Iterator[Finding]:
    lacking = _lacking(view)
    if not lacking or view.facts.is_served or view.facts.is_ungranted:
        return
    facts, job = view.facts, view.job
    versions = sorted({w.code_version for w in lacking})
    known = (
        f"; code {facts.known_version} had it, last registered{view.ago(facts.known_at)}"
        if facts.known_version
        else ""
    )
    yield Finding(
        f"{counted(len(lacking), 'live worker')} on queue {job.queue}, none has workflow {job.workflow} "
        f"(code {', '.join(versions)}){known}",
        facts.known_at,
        details={"workflow": job.workflow, "versions": versions, "known_version": facts.known_version},
    )


@rule(
    Code.APP_NOT_LOADED,
    "the workers that may serve it have not imported their app",
    Actor.OPERATOR,
    "unstuck workers",
)
def app_not_loaded(view: WhyView) -> Iterator[Finding]:
    loading = _loading(view)
    if not loading or view.facts.is_served or view.facts.is_ungranted:
        return
    failed = next((w for w in loading if w.problem), None)
    if failed is None:
        who = (
            "a worker that may serve it imports its" if len(loading) == 1 else f"{len(loading)} workers import their"
        )
        yield Finding(f"{who} app; what they serve is known after that", actor=Actor.ENGINE)
        return
    last_line = (failed.problem or "").strip().splitlines()[-1][:200]
    yield Finding(
        f"worker {failed.name} cannot import its app, and tries again: {last_line}",
        details={"worker": failed.name, "problem": failed.problem},
    )


@rule(Code.WORKERS_DRAINING, "the workers that serve it are shutting down", Actor.OPERATOR, "unstuck workers")
def workers_draining(view: WhyView) -> Iterator[Finding]:
    draining = _draining(view)
    if draining and not view.facts.is_served:
        names = ", ".join(w.name for w in draining[:3])
        yield Finding(
            f"{workers_serving(len(draining))} {is_or_are(len(draining))} shutting down ({names})",
            details={"workers": [w.name for w in draining]},
        )


@rule(
    Code.WORKER_FAILING,
    "the worker that runs it cannot write results, or those that serve it cannot claim",
    Actor.OPERATOR,
    "unstuck workers",
    of=[JobState.QUEUED, JobState.RUNNING],
)
def worker_failing(view: WhyView) -> Iterator[Finding]:
    if view.job.state is JobState.RUNNING:
        for role in view.facts.worker_roles:
            if role.name == _SETTLE and view.has_lease:
                yield _failing(view, role, f"worker {view.job.worker} cannot write what becomes of its jobs")
        return
    serving = [worker for worker in view.facts.workers if worker.serves]
    failing = [[role for role in worker.roles if role.name in (_CLAIM, _SETTLE)] for worker in serving]
    if failing and all(failing):
        yield _failing(view, failing[0][0], f"{workers_serving(len(serving))} cannot take it")


#: Roles of a worker without which it runs nothing: a worker that cannot write results takes no new jobs.
_SETTLE, _CLAIM = "settle", "claim"


def _failing(view: WhyView, role: FailingRole, what: str) -> Finding:
    span = timedelta(seconds=role.failing_for)
    return Finding(
        f"{what}: {role.name} has failed there for {lasting(span)} ({how_often(role.failures)}): {role.error}",
        view.now - span,
        details={"role": role.name, "failures": role.failures, "error": role.error},
    )


@rule(
    Code.ENGINE_STALLED,
    "it is the engine's turn, but no worker is alive or none sweeps",
    Actor.OPERATOR,
    "unstuck health",
    of=[JobState.QUEUED, JobState.PENDING, JobState.WAITING, JobState.RUNNING],
)
def engine_stalled(view: WhyView) -> Iterator[Finding]:
    """Timers, lost workers and dependants need a worker that sweeps; one of them is late by three sweeps."""
    facts, job = view.facts, view.job
    late_after = timedelta(seconds=3 * view.times.sweep + view.times.lost_grace)
    lease = job.lease_until if job.state is JobState.RUNNING else None
    overdue = facts.due_at if job.state is JobState.QUEUED else _wake_due(facts) or lease
    pending = job.state is JobState.PENDING and bool(facts.dependencies) and not facts.sweepers
    if not pending and (overdue is None or overdue + late_after > view.now):
        return
    if facts.sweepers and (set_aside(view) or any(is_needed(view, lock) for lock in facts.locks)):
        return  # every sweep passes over it: sweepers are not what is missing
    alive = (
        "no worker is alive" if not facts.sweepers else f"{counted(facts.sweepers, 'worker')} alive, but none sweeps"
    )
    yield Finding(
        f"{alive}: timers, lost workers and dependants are looked after by workers, and one is needed",
        overdue,
        remedy=None if facts.sweepers else "unstuck worker MODULE:APP",
        details={"live_workers": facts.sweepers},
    )


def _wake_due(facts: Facts) -> datetime | None:
    """When it should have been woken: once it was answered, or its time came."""
    record = facts.wait if facts.job.state is JobState.WAITING else None
    return None if record is None else record.answered_at or record.until_at


def _draining(view: WhyView) -> list[WorkerFacts]:
    return [w for w in view.facts.workers if w.is_live and w.state == "draining" and w.is_loaded and w.knows_workflow]


def _lacking(view: WhyView) -> list[WorkerFacts]:
    return [
        w for w in view.facts.workers if w.is_live and w.state == "active" and w.is_loaded and not w.knows_workflow
    ]


def _loading(view: WhyView) -> list[WorkerFacts]:
    return [w for w in view.facts.workers if w.is_live and w.state == "active" and not w.is_loaded]
