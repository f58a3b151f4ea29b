"""Claim: ready -> running, one attempt per row, never more than each share, never past a gate that is shut.

Theory of operation. Shares of routes that no limit counts are claimed by one statement that waits for nobody; it
looks at pauses and at the blacklist itself and leaves alone every route that has a limit, so that one set a moment
ago is not overlooked. A share of a limited route is counted: lock the limits that apply (sorted, before all other
locks), count what runs in a second statement, because the first took its snapshot before it waited, cut the shares to
what is left, then claim, all in one transaction. Who claims next from these limits waits for its end, and counts what
it opened.

Both answer before they commit, and a worker that has stopped reading would keep what it was about to get from
everybody. So an answer carries no more bytes than fit into a socket's buffers; if it would, it comes without its
texts, and those are read once the claim is committed, chunk by chunk, for as long as one call may take and up to so
much. What does not come by then was claimed in vain: it goes back, and the claimer asks for fewer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from unstuck.clock import boot
from unstuck.model.errors import StoreError
from unstuck.model.job import AttemptRef
from unstuck.model.limits import Room, cut
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.dimensions import Dimensions
from unstuck.store.gates import of_routes
from unstuck.store.port import Claimed, Share
from unstuck.store.rows import claimed_of, packed

#: How often the room of shared limits is dealt out anew when it brought nothing.
_CUTS = 20
#: Below every rank there is: from the beginning.
_BEGINNING = (-(1 << 62), 0)
#: What an answer may carry before its commit: Linux gives a unix socket 208 KiB by default, into which 190 KB of rows
#: were seen to fit, TCP more. Four hundred jobs with small payloads stay below this.
ANSWER_BYTES = 128 << 10
#: Read in one call after the commit, a single larger payload aside: a link with 1 MB/s manages it in time.
CHUNK_BYTES = 512 << 10
#: In all, for one claim: what a worker has to keep in its memory.
CLAIM_BYTES = 16 << 20
NOT_READ = "its payload could not be read in time"


def claim(
    database: Database, worker: int, claim: str, shares: Sequence[Share], data: str, dimensions: Dimensions
) -> Claimed:
    wanted = _together(shares)
    rows = _open(database, worker, claim, wanted, data) if wanted else []
    whole, rest = _read_on(database, worker, claim, rows)
    policies = dimensions.policies(database, {row["policy"] for row in whole})
    jobs = [claimed_of(row, claim, policies[row["policy"]]) for row in whole]
    return Claimed(jobs, [AttemptRef(row["id"], row["token"], claim) for row in rest])


def _read_on(database: Database, worker: int, claim: str, rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """The rows with their texts, and those whose texts did not come in time."""
    until = boot() + database.store_call
    # Nothing new: there was nothing, the gates were shut, or this claim id had its answer before.
    whole, rest = _parted(rows or _chunk(database, worker, claim, _BEGINNING))
    while rest and boot() < until and sum(len(row["payload"]) for row in whole) < CLAIM_BYTES:
        try:
            more, rest = _parted(_chunk(database, worker, claim, _place(whole[-1]) if whole else _BEGINNING))
        except StoreError:
            if not whole:
                raise
            break
        whole += more
    return whole, rest


def _parted(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Up to the first that came without its texts, and from there on."""
    whole = next((place for place, row in enumerate(rows) if row["payload"] is None), len(rows))
    return rows[:whole], rows[whole:]


def _place(row: Row) -> tuple[int, int]:
    return row["rank"], row["id"]


def _chunk(database: Database, worker: int, claim: str, after: tuple[int, int]) -> list[Row]:
    rank, job = after
    facts = {"worker": worker, "claim": claim, "rank": rank, "job": job, "room": CHUNK_BYTES}
    return database.read(lambda t: t.all("claimed_jobs", **facts))


def _together(shares: Iterable[Share]) -> list[Share]:
    """One share per route: what several allow is added up, from the lowest floor on."""
    found: dict[int, Share] = {}
    for share in shares:
        if share.limit <= 0:
            continue
        other = found.get(share.route)
        found[share.route] = share if other is None else _sum(share, other)
    return list(found.values())


def _sum(one: Share, other: Share) -> Share:
    floor = None if one.floor is None or other.floor is None else min(one.floor, other.floor)
    return Share(one.route, one.limit + other.limit, floor, one.is_limited or other.is_limited)


def _open(database: Database, worker: int, claim: str, shares: list[Share], data: str) -> list[Row]:
    if database.dialect == "postgres" and not any(share.is_limited for share in shares):
        return database.once("claim", **_question(worker, claim, shares, data))
    return database.write(lambda t: _counted(t, worker, claim, shares, data))


def _counted(t: Transaction, worker: int, claim: str, shares: list[Share], data: str) -> list[Row]:
    limited = sorted(share.route for share in shares if share.is_limited)
    rooms = _rooms(t, limited) if limited else []
    step = _open_by_steps if t.split else _open_at_once
    for _ in range(_CUTS):
        left = cut({share.route: share.limit for share in shares}, rooms)
        granted = [Share(s.route, left[s.route], s.floor, s.is_limited) for s in shares if s.route in left]
        if not granted:
            break
        if rows := step(t, worker, claim, granted, data):
            _note_starts(t, rows, rooms)
            return rows
        # All the room went to routes that had nothing to give, such as a job under a hold: to the others, then.
        shares = [share for share in shares if share.route not in left]
    return []


def _rooms(t: Transaction, routes: list[int]) -> list[Room]:
    """Under the limits' locks. One that was set after we locked leaves nothing: we do not hold it."""
    locked = {row["id"] for row in of_routes(t, "lock_limits", routes)}
    return [_room(row, row["limit_id"] in locked) for row in of_routes(t, "limit_room", routes)]


def _room(row: Row, is_locked: bool) -> Room:
    bodies = None if row["concurrency"] is None else row["concurrency"] - row["running"]
    starts = None if row["rate"] is None else row["rate"] - row["started"]
    return Room(row["route"], row["limit_id"], row["bucket"], bodies if is_locked else 0, starts)


def _note_starts(t: Transaction, rows: Iterable[Row], rooms: Iterable[Room]) -> None:
    rates: dict[int, list[Room]] = {}
    for room in rooms:
        if room.starts is not None:
            rates.setdefault(room.route, []).append(room)
    starts = [
        {"limit_id": room.limit, "bucket": room.bucket, "job": row["id"]}
        for row in rows
        for room in rates.get(row["route"], ())
    ]
    if starts:
        t.run("add_starts", rows=packed(starts))


def _question(worker: int, claim: str, shares: Iterable[Share], data: str) -> dict[str, Any]:
    rows = [
        {"route": s.route, "most": s.limit, "rank": rank, "job": job, "counted": s.is_limited}
        for s in shares
        for rank, job in [s.floor or _BEGINNING]
    ]
    return {"worker": worker, "claim": claim, "shares": packed(rows), "data": data, "room": ANSWER_BYTES}


def _open_at_once(t: Transaction, worker: int, claim: str, shares: list[Share], data: str) -> list[Row]:
    return t.all("claim", **_question(worker, claim, shares, data))


def _open_by_steps(t: Transaction, worker: int, claim: str, shares: list[Share], data: str) -> list[Row]:
    """SQLite has one writer and no writing CTEs: several statements, as safe as one."""
    now = t.one("now")
    if now is None or t.one("may_claim", worker=worker, claim=claim) is None:
        return []
    picked = [job for share, only in _past_open_gates(t, shares) for job in _pick(t, share, only)]
    if not picked:
        return []
    jobs = packed(picked)
    t.run("open_attempts", jobs=jobs, worker=worker, claim=claim, now=now["now"])
    t.run("claimed_events", jobs=jobs, data=data)
    t.run("leave_ready", jobs=jobs)
    # There is no socket here, only memory.
    return t.all("opened_jobs", worker=worker, claim=claim, most=CLAIM_BYTES // len(picked))


def _past_open_gates(t: Transaction, shares: list[Share]) -> list[tuple[Share, int | None]]:
    """The shares that may be taken, each with the one job that it is about, if its gate lets only that through."""
    use = t.one("gates_in_use")
    assert use is not None
    shut: set[int] = set()
    only: dict[int, int] = {}
    if use["has_pauses"]:
        for row in of_routes(t, "paused_routes", [share.route for share in shares]):
            route, probe = row["route"], row["probe"]
            if probe is None or only.setdefault(route, probe) != probe:
                shut.add(route)
    if use["has_limits"]:
        uncounted = [share.route for share in shares if not share.is_limited]
        shut |= {row["route"] for row in of_routes(t, "limited_routes", uncounted)}
    return [(share, only.get(share.route)) for share in shares if share.route not in shut]


def _pick(t: Transaction, share: Share, only: int | None) -> list[int]:
    rank, job = share.floor or _BEGINNING
    rows = t.all("pick_ready", route=share.route, rank=rank, job=job, most=share.limit, only=only)
    return [row["job"] for row in rows]
