"""Conditions: what alert rules look at. Each question is bounded and takes no lock that anybody waits for."""

from __future__ import annotations

from datetime import datetime

from unstuck.store.database import Database, Transaction
from unstuck.store.life import sweep
from unstuck.store.port import FIRST_ENDED, LetterStand, LongBlocked, Repeated, Resting, StuckRate
from unstuck.store.rows import instant, instant_or_none, span

#: Rows of narrow tables that one look counts.
LOOKED = 10_000
#: Tenants whose ends are counted for a rate: those with the most that got stuck.
_TENANTS = 100


def recoveries(t: Transaction, seconds: float, least: int, most: int) -> list[Repeated]:
    asked = {"span": span(seconds), "least": least, "most": most, "looked": LOOKED}
    return [
        *(
            Repeated(int(row["times"]), int(row["jobs"]), row["tenant"], row["workflow"])
            for row in t.all("recoveries_of_workflows", **asked)
        ),
        *(
            Repeated(int(row["times"]), int(row["jobs"]), worker=row["name"])
            for row in t.all("recoveries_of_workers", **asked)
        ),
    ]


def stuck_rates(t: Transaction, seconds: float) -> list[StuckRate]:
    """Where nothing got stuck nothing is counted."""
    rows = t.all("stucks_of_tenants", span=span(seconds), looked=LOOKED)
    stucks: dict[str, int] = {}
    first: dict[str, str] = {}
    for row in rows:
        stucks[row["tenant"]] = stucks.get(row["tenant"], 0) + int(row["stucks"])
        first.setdefault(row["tenant"], row["workflow"])
    found = []
    for tenant in sorted(stucks, key=lambda tenant: -stucks[tenant])[:_TENANTS]:
        ends = t.one("ends_of_tenant", tenant=tenant, span=span(seconds))
        assert ends is not None
        found.append(StuckRate(tenant, stucks[tenant], int(ends["ends"]), first[tenant]))
    return found


def resting_for(t: Transaction, state: str, seconds: float, after: str, looked: int) -> Resting | None:
    place = t.one("resting_after", tenant=after)
    if place is None:
        return None
    tenant = place["tenant"]
    rows = t.all("resting_longest", tenant=tenant, state=state, span=span(seconds), looked=looked)
    if not rows:
        return Resting(tenant, 0)
    first = rows[0]
    return Resting(tenant, len(rows), first["uid"], first["workflow"], instant(first["since_at"]))


def blocked_for(t: Transaction, seconds: float, after: str, looked: int) -> LongBlocked | None:
    place = t.one("blocking_tenant", after=after)
    if place is None or place["tenant"] is None:
        return None
    rows = t.all("blocked_longest", tenant=place["tenant"], span=span(seconds), looked=looked)
    if not rows:
        return LongBlocked(place["tenant"], 0)
    first, since = rows[0], instant_or_none(rows[0]["blocked_at"])
    return LongBlocked(place["tenant"], len(rows), first["name"], first["uid"], first["workflow"] or "", since)


def letters_of_next(t: Transaction, least: int, after: str, looked: int) -> tuple[str, list[LetterStand]]:
    place = t.one("buried_tenant", after=after)
    if place is None or place["tenant"] is None:
        return "", []
    tenant = place["tenant"]
    rows = t.all("buried_lately", tenant=tenant, least=least, looked=looked, most=looked)
    return tenant, [
        LetterStand(tenant, row["workflow"], row["reason"], int(row["letters"]), instant(row["since_at"]))
        for row in rows
    ]


def unforgotten(database: Database, retention: float, looked: int) -> tuple[int, datetime | None]:
    """By retention's own rule of what may go. It locks what it finds for a moment, as retention does, and only where
    there is something that should be gone."""
    old = database.read(lambda t: sweep.ended_before(t, retention, FIRST_ENDED, looked))
    if not old:
        return 0, None
    jobs = [place.job for place in old]
    rows = database.write(lambda t: t.all("forgettable", jobs=jobs, retention=span(retention)), patience=0.05)
    free = {row["job"] for row in rows}
    return len(free), next((instant(place.at) for place in old if place.job in free), None)


def feed_waits_since(database: Database) -> datetime | None:
    if database.dialect == "sqlite":
        return None
    row = database.read(lambda t: t.one("feed_waits"))
    return None if row is None else instant(row["since_at"])
