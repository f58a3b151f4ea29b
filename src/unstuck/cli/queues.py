"""unstuck queues …: what waits where, who serves it, and what shuts or limits it."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import gates, options, output, shapes
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.cli.stats import count_text
from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import given
from unstuck.store.port import Tally

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
        found = _tallies(session, after, limit)
        servers = _servers(session)
        pauses = [p for p in session.gates.pauses() if p.kind == "queue"]
        limits = [x for x in session.gates.limits() if x.kind == "queue"]
        now = session.now()
    rows = []
    for tally in found:
        shut = [p for p in pauses if p.name == tally.name]
        limited = [x for x in limits if x.name == tally.name]
        served = servers.get(tally.name, [])
        if common.json:
            output.emit_json(
                {
                    "name": tally.name,
                    "waiting": tally.states[JobState.QUEUED] - tally.scheduled,
                    "scheduled": tally.scheduled,
                    "running": tally.states[JobState.RUNNING],
                    "at_least": [state.value for state in JobState if state in tally.at_least],
                    "workers": served,
                    "pauses": [shapes.pause(p) for p in shut],
                    "limits": [shapes.limit(x) for x in limited],
                }
            )
        rows.append(
            (
                tally.name,
                "PAUSED" if shut else "open",
                waiting(tally),
                count_text(tally, JobState.RUNNING),
                tally.scheduled,
                len(served),
                gates.limits_text(limited),
                gates.pause_text(shut, now),
            )
        )
    if not common.json:
        headers = ["QUEUE", "STATE", "WAITING", "RUNNING", "SCHEDULED", "WORKERS", "LIMIT", "PAUSED"]
        output.table(headers, rows, empty="no queues yet: a worker or a job makes them")
    if len(found) == limit:
        output.note(f"there may be more: {given('--after', found[-1].name)}")


def waiting(tally: Tally) -> str:
    number = max(0, tally.states[JobState.QUEUED] - tally.scheduled)
    return f"{number:,}" + ("+" if JobState.QUEUED in tally.at_least else "")


def _tallies(session: Session, after: str, limit: int) -> list[Tally]:
    """Queues with jobs, and those that workers or workflows name although no job of this tenant was ever there."""
    found = session.lookup.tallies("queue", after=after, limit=limit)
    counted = {tally.name for tally in found}
    last = found[-1].name if len(found) == limit else None
    empty = [
        Tally(name, dict.fromkeys(JobState, 0))
        for name in gates.queue_names(session) - counted
        if name > after and (last is None or name < last)
    ]
    return sorted([*found, *empty], key=lambda tally: tally.name)[:limit]


def _servers(session: Session) -> dict[str, list[str]]:
    """By queue: the names of the live workers that claim from it."""
    served: dict[str, list[str]] = {}
    for worker, state in session.workers():
        if state == "active":
            for queue in worker.serves.get("queues") or worker.queues:
                served.setdefault(queue, []).append(worker.name)
    return served


@app.command()
def pause(
    queue: Name,
    *,
    flags: gates.PauseFlags,
    all_tenants: gates.AllTenants = False,
    common: options.Common,
) -> None:
    """Start nothing new from a queue. What runs goes on, what comes waits."""
    gates.pause("queue", queue, flags, Where(common, all_tenants))


@app.command()
def unpause(queue: Name, all_tenants: gates.AllTenants = False, *, common: options.Common) -> None:
    """Lift the pause of a queue."""
    gates.unpause("queue", queue, Where(common, all_tenants))


@app.command()
def limit(
    queue: Name,
    *,
    flags: gates.QueueLimitFlags,
    all_tenants: gates.Together = False,
    common: options.Common,
) -> None:
    """Limit how much of a queue runs, starts or waits. What you do not name stays as it stands."""
    gates.limit("queue", queue, flags, Where(common, all_tenants))
