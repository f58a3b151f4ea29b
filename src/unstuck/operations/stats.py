"""Stats: how many jobs are in which state, together, or by tenant, queue or workflow."""

from __future__ import annotations

from unstuck.observe.lookup import ALIVE, CEILING
from unstuck.operations.kinds import whole_number
from unstuck.operations.table import PLATFORM_ADMIN, READER, Caller, operation
from unstuck.store.port import TallyBy
from unstuck.views import Page
from unstuck.views.stats import StatsView, TallyView, WorkersCount, counts_of

MOST_TALLIES = 1000


@operation(role=READER, whose="any", command="stats")
def get(caller: Caller) -> StatsView:
    """Jobs by state, and the workers that serve them; with `tenant="*"` of all tenants together."""
    seen = caller.lookup.workers()
    alive = [worker for worker in seen if worker.state in ALIVE]
    offline = sum(worker.state == "offline" for worker in seen)
    return StatsView(
        tenant=caller.listed,
        **counts_of(caller.store.tally(caller.listed, CEILING)),
        workers=WorkersCount(alive=len(alive), running=sum(one.running for one in alive), offline=offline),
        at=caller.store.now(),
    )


@operation(role=PLATFORM_ADMIN, whose="platform", paged="after", command="stats")
def by_tenant(caller: Caller, *, after: str = "", limit: int = 20) -> Page[TallyView]:
    """Jobs by state for each tenant, by name above `after`."""
    return _tallies(caller, "tenant", after, limit)


@operation(role=READER, paged="after", command="stats")
def by_queue(caller: Caller, *, after: str = "", limit: int = 20) -> Page[TallyView]:
    """Jobs by state for each queue of a tenant, by name above `after`."""
    return _tallies(caller, "queue", after, limit)


@operation(role=READER, paged="after", command="stats")
def by_workflow(caller: Caller, *, after: str = "", limit: int = 20) -> Page[TallyView]:
    """Jobs by state for each workflow of a tenant, by name above `after`."""
    return _tallies(caller, "workflow", after, limit)


def _tallies(caller: Caller, by: TallyBy, after: str, limit: int) -> Page[TallyView]:
    most = whole_number(limit, "limit", 1, MOST_TALLIES)
    found = caller.lookup.tallies(by, after=after, limit=most)
    items = tuple(TallyView(kind=by, name=tally.name, **counts_of(tally)) for tally in found)
    return Page(items=items, next=items[-1].name if len(items) == most else None)
