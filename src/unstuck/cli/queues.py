"""unstuck queues …: what waits where, who serves it, and what shuts or limits it."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.lifecycle import JobState
from unstuck.operations import queues
from unstuck.views.gates import QueueView

app = options.group("Queues: what waits where, and who serves it; pause and limit them.", default="list")

Name = Annotated[str, Argument(metavar="NAME", help="the queue's name")]


@app.command("list")
def list_(
    limit: Annotated[int, options.rows(1000)] = 50,
    after: Annotated[str, option("--after", metavar="NAME", help="go on where the last page ended")] = "",
    *,
    common: options.Common,
) -> None:
    """The queues of a tenant, and how each stands."""
    with opened(common) as session:
        page = queues.list_(session.caller, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_page(page)
    else:
        headers = ["QUEUE", "STATE", "WAITING", "RUNNING", "SCHEDULED", "WORKERS", "LIMIT", "PAUSED"]
        rows = [
            (
                queue.name,
                "PAUSED" if queue.pauses else "open",
                _counted(queue, queue.waiting, JobState.QUEUED),
                _counted(queue, queue.running, JobState.RUNNING),
                queue.scheduled,
                len(queue.workers),
                gates.limits_text(queue.limits),
                gates.pause_text(queue.pauses, now),
            )
            for queue in page
        ]
        output.table(headers, rows, empty="no queues yet: a worker or a job makes them")
        output.tell_next(page)


def _counted(queue: QueueView, number: int, state: JobState) -> str:
    return f"{number:,}" + ("+" if state in queue.at_least else "")


@app.command()
def pause(
    queue: Name,
    *,
    flags: gates.PauseFlags,
    all_tenants: gates.AllTenants = False,
    by: options.By = None,
    common: options.Common,
) -> None:
    """Start nothing new from a queue. What runs goes on, what comes waits."""
    gates.pause(queues.pause, queue, flags, Where(common, all_tenants), by)


@app.command()
def unpause(
    queue: Name, all_tenants: gates.AllTenants = False, by: options.By = None, *, common: options.Common
) -> None:
    """Lift the pause of a queue."""
    gates.unpause(queues.unpause, queue, Where(common, all_tenants), by)


@app.command()
def limit(
    queue: Name,
    *,
    flags: gates.QueueLimitFlags,
    all_tenants: gates.Together = False,
    by: options.By = None,
    common: options.Common,
) -> None:
    """Limit how much of a queue runs, starts or waits. What you do not name stays as it stands."""
    gates.limit(queues.limit, queues.unlimit, queue, flags, Where(common, all_tenants), by)
