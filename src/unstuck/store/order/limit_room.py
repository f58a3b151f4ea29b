"""Limit room: what the limits of some routes leave to them. Each limit is counted once for all its routes.

PostgreSQL does it in one function. SQLite, which has no plan for two lists that meet, answers the parts (which limits
a route has, on which routes something runs, how many) and they meet here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from unstuck.model.limits import LimitRoom
from unstuck.store.database import Row, Transaction
from unstuck.store.port import EVERY
from unstuck.store.rows import packed

#: Kind of a limit, whose, what it counts together, and of which workflow ("": of any).
_Place = tuple[str, str, str, str]


def limited(t: Transaction, routes: Sequence[int]) -> dict[int, bool]:
    """Those of these routes that have limits, and whether one of them leaves nothing."""
    if t.one_table_per_statement:
        found: dict[int, bool] = {}
        for room in rooms_of(t, routes):
            found[room.route] = found.get(room.route, False) or not room.left
        return found
    return {row["route"]: row["is_shut"] for row in t.all("limited_routes", routes=list(routes))}


def rooms_of(t: Transaction, routes: Sequence[int]) -> list[LimitRoom]:
    """What each limit of these routes leaves to them."""
    rows = t.all("limit_room", routes=list(routes))
    if t.one_table_per_statement:
        return _counted(t, rows)
    return [_room(row, row["running"], row["started"]) for row in rows]


def _room(row: Row, running: int, started: int) -> LimitRoom:
    bodies = None if row["concurrency"] is None else row["concurrency"] - running
    starts = None if row["rate"] is None else row["rate"] - started
    return LimitRoom(row["route"], row["limit_id"], row["bucket"], bodies, starts)


def _counted(t: Transaction, rows: Sequence[Row]) -> list[LimitRoom]:
    running = _running(t, {_place(row) for row in rows if row["concurrency"] is not None})
    rated = {(row["limit_id"], row["bucket"]): row["per_us"] for row in rows if row["rate"] is not None}
    asked = [{"limit_id": limit, "bucket": bucket, "per_us": per_us} for (limit, bucket), per_us in rated.items()]
    counts = t.all("started", rows=packed(asked)) if asked else []
    started = {(row["limit_id"], row["bucket"]): row["started"] for row in counts}
    return [_room(row, running[_place(row)], started.get((row["limit_id"], row["bucket"]), 0)) for row in rows]


def _place(row: Row) -> _Place:
    return row["kind"], row["tenant"], row["bucket"], row["name"] if row["kind"] == "workflow_key" else ""


def _running(t: Transaction, places: set[_Place]) -> Counter[_Place]:
    """Bodies: open attempts, and jobs under a body mark, whose old body may still live. Those of a route are counted
    only if one of the limits counts them."""
    running: Counter[_Place] = Counter()
    if not places:
        return running
    counting = [(route, [place for place in _places(route) if place in places]) for route in t.all("busy_routes")]
    counted = [route["route"] for route, found in counting if found]
    jobs = {row["route"]: row["jobs"] for row in t.all("running_on", routes=counted)}
    for route, found in counting:
        running.update(dict.fromkeys(found, route["held"] or jobs.get(route["route"], 0)))
    return running


def _places(route: Row) -> Iterable[_Place]:
    """All that could count what runs on a route. Which of them do depends on nothing but these: what has a row of its
    own is another bucket."""
    for tenant in (route["tenant"], EVERY):
        yield "queue", tenant, route["queue"], ""
        yield "workflow", tenant, route["workflow"], ""
        yield "workflow_key", tenant, route["limit_key"], route["workflow"]
        yield "tenant", tenant, route["tenant"], ""
        yield "key", tenant, route["limit_key"], ""
