"""What limits leave to many routes at once: the same as to each by itself, and counted once."""

from __future__ import annotations

import random

import pytest

from bench import limits as growth
from bench.worlds import by_hand
from tests.support.builders import a_job, a_worker, all_routes, chance
from unstuck.model.limits import LimitRoom
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.database import Database
from unstuck.store.order.limit_room import limited, rooms_of
from unstuck.store.port import EVERY, Limit, LimitKind, Report, Share
from unstuck.store.sql_store import SqlStore


@pytest.mark.parametrize("kind", ["key", "workflow_key"])
def test_four_times_the_keys_beside_four_times_what_runs_cost_about_four_times_as_much(
    urls: tuple[str, str], kind: LimitKind
) -> None:
    """Not sixteen times: what is asked and what runs meet once, not each with each."""
    few, many = (growth.keyed(url, keys, kind) for url, keys in zip(urls, (100, 400), strict=True))
    try:
        assert growth.cost(many) <= 5 * growth.cost(few)
    finally:
        few.store.close()
        many.store.close()


LIMITS = [
    Limit("queue", "default", EVERY, "dana", concurrency=40),
    Limit("queue", "slow", "acme", "dana", concurrency=3),
    Limit("workflow", "w1", EVERY, "dana", concurrency=12, rate=200, per=60.0),
    Limit("workflow", "w2", "acme", "dana", rate=30, per=60.0),
    Limit("workflow_key", "w1", EVERY, "dana", concurrency=3, rate=40, per=60.0),
    Limit("workflow_key", "w3", "acme", "dana", concurrency=2),
    Limit("tenant", EVERY, EVERY, "dana", concurrency=50),
    Limit("tenant", "acme", "acme", "dana", concurrency=25),
    Limit("key", "host:*", EVERY, "dana", concurrency=4, rate=90, per=60.0),
    Limit("key", "host:1", EVERY, "dana", concurrency=2),
    Limit("key", "host:1", "acme", "dana", rate=7, per=60.0),
    Limit("key", EVERY, "acme", "dana", concurrency=9),
]


def test_asked_for_all_at_once_every_route_has_the_room_that_why_tells_of_it(
    store: SqlStore, database: Database, store_url: str
) -> None:
    """`why` reads a view, route by route. Some of what the limits count is running, some under a hold."""
    dice = random.Random(11)
    for limit in LIMITS:
        store.set_limit(limit)
    for _ in range(4):
        store.submit([
            a_job(
                tenant=dice.choice(["acme", "other"]),
                queue=dice.choice(["default", "slow"]),
                workflow=dice.choice(["w1", "w2", "w3"]),
                limit_key=dice.choice(["", "plain", "host:1", "host:2", "host:3"]),
            )
            for _ in range(60)
        ])  # fmt: skip
    worker = a_worker(store, lease=300.0)
    for _ in range(3):
        shares = [Share(f.route, 2, is_limited=f.is_limited) for f in store.open_routes()]
        jobs = store.claim(worker.number, chance.nonce(), shares)
        store.settle(
            worker.number, [Report(job.ref, Stuck(ErrorInfo("ExecutionStuck", "deaf"))) for job in jobs[::7]]
        )
    routes = [route.number for route in all_routes(store)]
    rooms = database.read(lambda t: rooms_of(t, routes))
    by_view = _told_by_the_view(store_url)
    assert sorted(map(_key, rooms)) == sorted(map(_key, by_view))
    assert {room.left == 0 for room in rooms} == {True, False}
    shut = {room.route for room in by_view if not room.left}
    told = database.read(lambda t: limited(t, routes))
    assert told == {room.route: room.route in shut for room in by_view}


def _key(room: LimitRoom) -> tuple[int, int, str, int, int]:
    return (
        room.route,
        room.limit,
        room.bucket,
        -1 if room.bodies is None else room.bodies,
        -1 if room.starts is None else room.starts,
    )


def _told_by_the_view(url: str) -> list[LimitRoom]:
    with by_hand(url) as execute:
        rows = execute(
            "SELECT route, limit_id, bucket, concurrency - running, rate - started FROM unstuck_limit_room ORDER BY 1"
        )
    return [LimitRoom(route, limit, str(bucket), bodies, starts) for route, limit, bucket, bodies, starts in rows]
