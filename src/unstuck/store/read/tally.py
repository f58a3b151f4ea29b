"""Tally: how many jobs are where, counted at every look up to a ceiling: no move of a job keeps a counter."""

from __future__ import annotations

from unstuck.model.lifecycle import JobState
from unstuck.store.database import Row, Transaction
from unstuck.store.port import JobFilter, Tally, TallyBy
from unstuck.store.read.sources import ASKED_ROUTES, routes_of
from unstuck.store.rows import instant_or_none

#: The tables in which QUEUED jobs wait: for a worker, for a time, for their turn on a target.
_QUEUED = ("READY", "LATER", "LINE")
_RESTING = frozenset({JobState.PENDING, JobState.WAITING, JobState.PAUSED})


def tally(t: Transaction, tenant: str | None, ceiling: int) -> Tally:
    if tenant is None:
        return _tally_of("", t.all("counts_everywhere", ceiling=ceiling), ceiling)
    return _tally_on_routes(t, tenant, tenant, ceiling)


def tally_by(t: Transaction, by: TallyBy, tenant: str, name: str, ceiling: int) -> Tally:
    match by:
        case "tenant":
            return _tally_on_routes(t, name, name, ceiling)
        case "queue":
            return _tally_on_routes(t, name, tenant, ceiling, queue=name)
        case "workflow":
            return _tally_on_routes(t, name, tenant, ceiling, workflow=name)


def names(t: Transaction, by: TallyBy, tenant: str, after: str, limit: int) -> list[str]:
    of_tenant = {} if by == "tenant" else {"tenant": tenant}
    return [row["name"] for row in t.all(f"{by}_names", after=after, most=limit, **of_tenant)]


def _tally_on_routes(
    t: Transaction, name: str, tenant: str, ceiling: int, *, queue: str | None = None, workflow: str | None = None
) -> Tally:
    routes = routes_of(t, tenant, JobFilter(queue=queue, workflow=workflow), ASKED_ROUTES + 1)
    asked = {"tenant": tenant, "queue": queue, "workflow": workflow, "ceiling": ceiling}
    rows = t.all("counts", routes=routes[:ASKED_ROUTES], **asked)
    return _tally_of(name, rows, ceiling, all_routes=len(routes) <= ASKED_ROUTES)


def _tally_of(name: str, rows: list[Row], ceiling: int, *, all_routes: bool = True) -> Tally:
    found = {row["name"]: row["jobs"] for row in rows}
    states = {state: min(ceiling, found.get(state, 0)) for state in JobState}
    states[JobState.QUEUED] = min(ceiling, sum(found[place] for place in _QUEUED))
    cut = {row["name"] for row in rows if row["is_cut"]}
    if not all_routes:
        cut |= set(JobState) - _RESTING
    if cut & _RESTING and name == "":
        cut |= _RESTING  # they were looked at together
    return Tally(
        name=name,
        states=states,
        scheduled=found["LATER"],
        blocked=found["BLOCKED"],
        oldest_due_at=instant_or_none(found.get("OLDEST")),
        at_least=frozenset(state for state in JobState if state in cut or states[state] >= ceiling),
        ceiling=ceiling,
    )
