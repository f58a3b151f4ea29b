"""Claim: ready -> running, one attempt per row, never more than each share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from unstuck.model.job import ClaimedJob
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.dimensions import Dimensions
from unstuck.store.port import Share
from unstuck.store.rows import claimed_of, packed


def claim(
    database: Database, worker: int, claim: str, shares: Sequence[Share], data: str, dimensions: Dimensions
) -> list[ClaimedJob]:
    limits: Counter[int] = Counter()
    for share in shares:
        limits[share.route] += max(share.limit, 0)
    wanted = {route: most for route, most in limits.items() if most > 0}
    if database.dialect == "sqlite":
        rows = database.write(lambda t: _open_by_steps(t, worker, claim, wanted, data))
    else:
        rows = _open_at_once(database, worker, claim, wanted, data)
    # Nothing new: there was nothing, the gates were shut, or this claim id had its answer before.
    rows = rows or database.read(lambda t: t.all("claimed_jobs", worker=worker, claim=claim))
    policies = dimensions.policies(database, {row["policy"] for row in rows})
    return [claimed_of(row, claim, policies[row["policy"]]) for row in rows]


def _open_at_once(database: Database, worker: int, claim: str, wanted: dict[int, int], data: str) -> list[Row]:
    if not wanted:
        return []
    shares = [{"route": route, "most": most} for route, most in wanted.items()]
    return database.once("claim", worker=worker, claim=claim, shares=packed(shares), data=data)


def _open_by_steps(t: Transaction, worker: int, claim: str, wanted: dict[int, int], data: str) -> list[Row]:
    """SQLite has one writer and no writing CTEs: several statements, as safe as one."""
    now = t.one("now")
    if now is None or t.one("may_claim", worker=worker, claim=claim) is None:
        return []
    picked = [row["job"] for route, most in wanted.items() for row in t.all("pick_ready", route=route, most=most)]
    if not picked:
        return []
    jobs = packed(picked)
    t.run("open_attempts", jobs=jobs, worker=worker, claim=claim, now=now["now"])
    t.run("claimed_events", jobs=jobs, data=data)
    t.run("leave_ready", jobs=jobs)
    return t.all("claimed_jobs", worker=worker, claim=claim)
