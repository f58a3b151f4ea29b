"""Top: one bounded look at queues, running jobs, workers, and what needs somebody."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from msgspec.structs import replace

from unstuck.model.guard import how_to_lift
from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import about
from unstuck.observe.flow import approvals
from unstuck.observe.lookup import CEILING
from unstuck.operations import health as health_checks
from unstuck.operations import queues as queue_lists
from unstuck.operations.filters import job_filter
from unstuck.operations.kinds import whole_number
from unstuck.operations.table import READER, Caller, operation
from unstuck.store.port import JobFilter
from unstuck.views.stats import counts_of
from unstuck.views.top import NeedKind, NeedView, RunningView, TopView
from unstuck.views.workers import WorkerView

MOST_RUNNING = 500
QUEUES = 50
WORKERS = 100
#: So many of each kind of need.
NEEDS = 20
#: Characters of a progress that fit into a list.
LONGEST_PROGRESS = 2000
#: Counts stop here: it is asked every second.
FEW = 1000


@operation(role=READER, command="top", route="GET /top")
def get(
    caller: Caller, *, queue: str | None = None, workflow: str | None = None, limit: int = 50, health: bool = True
) -> TopView:
    """Queues, the longest running jobs (`limit`; of this `queue` or `workflow`), workers with their processes, and
    what needs somebody; with `health` also what that says is wrong."""
    most = whole_number(limit, "limit", 1, MOST_RUNNING)
    now = caller.store.now()
    workers = tuple(islice(_workers(caller, now), WORKERS))
    healthy, sick = _sick(caller, now) if health else (None, [])
    counted = counts_of(caller.store.tally(caller.one, min(CEILING, 10 * FEW)))
    del counted["ceiling"]
    return TopView(
        tenant=caller.one,
        at=now,
        **counted,
        queues=queue_lists.list_(caller, limit=QUEUES).items,
        running=_running(caller, queue, workflow, most, now),
        workers=workers,
        needs=(*_stuck(workers), *_needs(caller), *sick),
        healthy=healthy,
    )


def _running(
    caller: Caller, queue: str | None, workflow: str | None, most: int, now: datetime
) -> tuple[RunningView, ...]:
    asked = job_filter(caller, state=JobState.RUNNING, queue=queue, workflow=workflow)
    wanted = JobFilter(states=asked.states, queue=asked.queue, workflow=asked.workflow, newest_first=False)
    found, hidden = caller.lookup.jobs(wanted, most).jobs, caller.redactions
    said = caller.store.progress_of_jobs(caller.one, [job.id for job in found], LONGEST_PROGRESS)
    seen = (RunningView.seen(job, said.get(job.id), now, hidden[job.workflow]) for job in found)
    return tuple(sorted(seen, key=lambda job: job.started_at or job.claimed_at or now))


def _workers(caller: Caller, now: datetime) -> Iterator[WorkerView]:
    """Without all that they say of themselves besides: it is long, and told by `workers`. Of the jobs in a process
    those that are stuck; which others run stands beside."""
    for worker in caller.lookup.each_worker():
        seen = WorkerView.of(worker, now, whole=caller.bound is None)
        if seen.is_news(now):
            processes = (
                replace(each, jobs=tuple(body for body in each.jobs if body.stuck)) for each in seen.processes
            )
            yield replace(seen, info={}, processes=tuple(processes))


# --- what needs somebody ------------------------------------------------------------------------------------------


def _stuck(workers: tuple[WorkerView, ...]) -> Iterator[NeedView]:
    """Whose process drains around it: it has ended for everybody, but its stack is worth a look."""
    for worker in workers:
        for process in worker.processes:
            for body in process.jobs:
                if body.stuck:
                    yield _need(
                        "stuck",
                        body.workflow,
                        f"stuck in process {process.pid} of {worker.name}, which drains around it",
                        job=body.job,
                        command=f"unstuck stack {body.job}",
                    )


def _needs(caller: Caller) -> Iterator[NeedView]:
    for asked in approvals(caller.store, caller.one, limit=NEEDS):
        who = f", asked of {', '.join(asked.who)}" if asked.who else ""
        yield _need(
            "approval",
            asked.workflow,
            f"{asked.question}{who}",
            since_at=asked.asked_at,
            until_at=asked.until_at,
            job=asked.job,
            key=asked.key,
            command=f"unstuck approvals approve {asked.job}",
        )
    for target in caller.lookup.targets(blocked=True, limit=NEEDS):
        yield _need(
            "target",
            target.name,
            f"target blocked by job {target.blocked_by}, {target.waiting} wait behind it",
            since_at=target.blocked_at,
            job=target.blocked_by,
            command=about("unstuck targets show", target.name),
            urgent=True,
        )
    for entry in islice(caller.store.blacklist(caller.one), NEEDS):
        yield _need(
            "blacklist",
            entry.workflow,
            f"blacklisted by {entry.blacklisted_by}: {entry.reason}",
            since_at=entry.blacklisted_at,
            command=how_to_lift(entry.tenant, entry.workflow),
            urgent=True,
        )


def _sick(caller: Caller, now: datetime) -> tuple[bool, list[NeedView]]:
    """What `health` says, but for what stands above already."""
    found = health_checks.check(caller)
    told = [check for check in found.checks if not check.ok and check.name != "targets"]
    return found.healthy, [
        _need("health", check.name, check.detail, command=check.remedy, urgent=check.fatal) for check in told
    ]


def _need(
    kind: NeedKind,
    subject: str,
    text: str,
    *,
    since_at: datetime | None = None,
    until_at: datetime | None = None,
    job: str | None = None,
    key: str | None = None,
    command: str | None = None,
    urgent: bool = False,
) -> NeedView:
    return NeedView(
        kind=kind,
        about=subject,
        text=text,
        since_at=since_at,
        until_at=until_at,
        job=job,
        key=key,
        command=command,
        urgent=urgent,
    )
