"""Metrics: what a scrape asks. Counts stop at a ceiling and lists at a number, so that it costs the same whatever the
database holds."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.model.totals import COLUMNS, EndName, EndTotal
from unstuck.store.database import Row, Transaction
from unstuck.store.life.changes import moment
from unstuck.store.order.gates import waiting_of
from unstuck.store.port import JobFilter, JobStand, JobStands, TroubleStand, Waiting
from unstuck.store.read.sources import ASKED_ROUTES, routes_of
from unstuck.store.rows import instant_or_none

#: Narrow rows, of which a database counts millions a second; and wide ones.
CEILING = 1_000_000
FEW = 100_000
#: Things that somebody should look at one by one.
MOST_TROUBLES = 1_000
LOOKED = 1_000
#: Routes whose first jobs are looked at, beside the very first of each.
LONGEST = 100
_WIDE = ("PENDING", "WAITING", "PAUSED", "DEAD")
_NARROW = ("READY", "LATER", "LINE", "RUNNING")


def job_stands(t: Transaction, tenant: str | None, names: int) -> JobStands:
    asked = {"ceiling": CEILING, "few": FEW, "most": names}
    has_more = False
    if tenant is None:
        rows = t.all("standing", **asked)
    else:
        routes = routes_of(t, tenant, JobFilter(), ASKED_ROUTES + 1)
        has_more = len(routes) > ASKED_ROUTES
        rows = t.all("standing_of", tenant=tenant, routes=routes[:ASKED_ROUTES], **asked)
    together = _stands(rows, "all")
    counted = {stand.place: stand.jobs for stand in together}
    cut = {place for place in _NARROW if has_more or counted.get(place, 0) >= CEILING}
    if sum(counted.get(place, 0) for place in _WIDE[:-1]) >= FEW:
        cut |= set(_WIDE[:-1])  # they were looked at together
    if has_more or counted.get("DEAD", 0) >= FEW:
        cut.add("DEAD")
    return JobStands(together, _stands(rows, "name"), _stands(rows, "tenant"), frozenset(cut))


def _stands(rows: Sequence[Row], per: str) -> tuple[JobStand, ...]:
    return tuple(
        JobStand(row["place"], int(row["jobs"]), row["queue"], row["workflow"], row["tenant"])
        for row in rows
        if row["per"] == per
    )


def longest_waiting(t: Transaction, tenant: str | None, routes: int, each: int) -> list[Waiting]:
    if tenant is None:
        now = moment(t)
        rows = [row for row in t.all("waits", after=0, most=routes) if row["uid"] is not None]
        firsts = [waiting_of(row) for row in rows if row["available_at"] <= now]
    else:
        firsts = _waiting_on(t, routes_of(t, tenant, JobFilter(), routes), 1, routes)
    firsts.sort(key=lambda first: first.since)
    longest = list(dict.fromkeys(first.route for first in firsts))[:LONGEST]
    jobs = {job.id: job for job in [*_waiting_on(t, longest, each, each), *firsts]}
    return sorted(jobs.values(), key=lambda job: (job.since, job.id))


def _waiting_on(t: Transaction, routes: Sequence[int], each: int, most: int) -> list[Waiting]:
    asked = {"each": each, "most": most}
    if t.one_table_per_statement:  # a question costs no round trip, and only so each route has its limit
        rows = [row for route in routes for row in t.all("waiting_on", route=route, **asked)]
    else:
        rows = t.all("waiting_on", routes=list(routes), **asked)
    return [waiting_of(row) for row in rows]


def trouble_stands(t: Transaction, tenant: str | None) -> list[TroubleStand]:
    rows = t.all("standing_troubles", tenant=tenant, ceiling=MOST_TROUBLES, few=FEW)
    return [
        TroubleStand(row["what"], row["kind"], int(row["number"]), instant_or_none(row["since_at"])) for row in rows
    ]


def end_totals(t: Transaction, tenant: str | None, most: int) -> tuple[EndTotal, dict[EndName, EndTotal]]:
    rows = t.all("totals", tenant=tenant or "", most=most)
    found = {(row["queue"], row["workflow"]): EndTotal(tuple(int(row[name]) for name in COLUMNS)) for row in rows}
    return found.pop(("", ""), EndTotal()), found
