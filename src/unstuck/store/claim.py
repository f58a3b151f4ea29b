"""Claim: ready -> running, one attempt per row, never more than each share, never past a gate that is shut.

Theory of operation. Shares of routes that no limit counts are claimed first, by one statement that waits for nobody;
it looks at pauses and at the blacklist itself and leaves alone every route that has a limit, so that one set a moment
ago is not overlooked. Shares of limited routes are counted, in a transaction of their own: lock the limits that apply
(before all other locks), count what runs in a second statement, because the first took its snapshot before it locked,
cut the shares to what is left, then claim. Nobody waits for a limit: a route any of whose limits somebody else holds
gets no room, and the answer says so. Who claims next from these limits counts what this one opened.

Both answer before they commit, and a worker that has stopped reading would keep what it was about to get from
everybody. So an answer carries no more bytes than fit into a socket's buffers; if it would, it comes without its
texts, and those are read once the claim is committed, chunk by chunk, for as long as one call may take and up to so
much. What does not come by then was claimed in vain: it goes back, and the claimer asks for fewer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from unstuck.clock import boot
from unstuck.model.errors import StoreError
from unstuck.model.job import AttemptRef
from unstuck.model.limits import Room, cut
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.dimensions import Dimensions
from unstuck.store.gates import of_routes, rooms_of
from unstuck.store.line import Stay, end_stays, stays_of
from unstuck.store.port import Claimed, Share
from unstuck.store.rows import claimed_of, packed
from unstuck.telemetry import emit

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
    ask = _Ask(worker, claim, data)
    wanted = _together(shares)
    limited = [share for share in wanted if share.is_limited]
    rows = _open(database, ask, [share for share in wanted if not share.is_limited])
    held: frozenset[int] = frozenset()
    if limited:
        ask = replace(ask, opened=len(rows))
        try:
            counted, held = database.write(lambda t: _counted(t, ask, limited))
        except Exception as error:
            if not rows:
                raise
            # What no limit counts is open already, and must reach its worker. If the rest was opened unbeknown to us,
            # a beat finds it and gives it back.
            emit("limited_claim_failed", level=logging.WARNING, claim=claim, error=str(error))
            held = frozenset(share.route for share in limited)
        else:
            rows = sorted([*rows, *counted], key=_place)
    whole, rest = _read_on(database, worker, claim, rows)
    policies = dimensions.policies(database, {row["policy"] for row in whole})
    jobs = [claimed_of(row, claim, policies[row["policy"]]) for row in whole]
    return Claimed(jobs, held, [AttemptRef(row["id"], row["token"], claim) for row in rest])


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


@dataclass(frozen=True, slots=True)
class _Ask:
    """Who claims. `opened`: attempts that this very call has opened under this id; more than those, and the id had
    its answer before."""

    worker: int
    claim: str
    data: str
    opened: int = 0


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


def _open(database: Database, ask: _Ask, shares: list[Share]) -> list[Row]:
    if not shares:
        return []
    if database.dialect == "postgres":
        rows = database.once("claim", **_question(ask, shares))
        _end_stays(database, rows)
        return rows
    return database.write(lambda t: _open_by_steps(t, ask, shares))


def _end_stays(database: Database, rows: list[Row]) -> None:
    """A statement by itself, for those who need it: inside the claim it would cost everybody. What it misses goes
    when it comes due."""
    if stays := stays_of(_stays(rows)):
        try:
            database.once("end_stays", rows=stays)
        except StoreError as problem:  # the claim stands
            emit("store.stays_left", level=logging.DEBUG, problem=str(problem)[:200])


def _stays(rows: Iterable[Row]) -> Iterable[Stay]:
    return ((row["expires_at"], row["id"]) for row in rows)


def _counted(t: Transaction, ask: _Ask, shares: list[Share]) -> tuple[list[Row], frozenset[int]]:
    """What was opened, and the routes that got no room because somebody else holds one of their limits."""
    routes = sorted(share.route for share in shares)
    locked = {row["id"] for row in of_routes(t, "lock_limits", routes)}
    rooms = rooms_of(t, routes)
    # One that was set after we locked is not ours either.
    held = frozenset(room.route for room in rooms if room.limit not in locked)
    shares = [share for share in shares if share.route not in held]
    step = _open_by_steps if t.split else _open_at_once
    for _ in range(_CUTS):
        left = cut({share.route: share.limit for share in shares}, rooms)
        granted = [Share(s.route, left[s.route], s.floor, s.is_limited) for s in shares if s.route in left]
        if not granted:
            break
        if rows := step(t, ask, granted):
            _note_starts(t, rows, rooms)
            return rows, held
        # All the room went to routes that had nothing to give, such as a job under a hold: to the others, then.
        shares = [share for share in shares if share.route not in left]
    return [], held


def _note_starts(t: Transaction, rows: Iterable[Row], rooms: Iterable[Room]) -> None:
    opened = Counter(row["route"] for row in rows)
    starts: Counter[tuple[int, str]] = Counter()
    for room in rooms:
        if room.starts is not None:
            starts[room.limit, room.bucket] += opened[room.route]
    noted = [{"limit_id": limit, "bucket": bucket, "starts": n} for (limit, bucket), n in starts.items() if n]
    if noted:
        t.run("add_starts", rows=packed(noted))


def _question(ask: _Ask, shares: Iterable[Share]) -> dict[str, Any]:
    rows = [
        {"route": s.route, "most": s.limit, "rank": rank, "job": job, "counted": s.is_limited}
        for s in shares
        for rank, job in [s.floor or _BEGINNING]
    ]
    return {**asdict(ask), "shares": packed(rows), "room": ANSWER_BYTES}


def _open_at_once(t: Transaction, ask: _Ask, shares: list[Share]) -> list[Row]:
    rows = t.all("claim", **_question(ask, shares))
    end_stays(t, _stays(rows))
    return rows


def _open_by_steps(t: Transaction, ask: _Ask, shares: list[Share]) -> list[Row]:
    """SQLite has one writer and no writing CTEs: several statements, as safe as one."""
    now = t.one("now")
    if now is None or t.one("may_claim", worker=ask.worker, claim=ask.claim, opened=ask.opened) is None:
        return []
    picked = [job for share, only in _past_open_gates(t, shares) for job in _pick(t, share, only)]
    if not picked:
        return []
    jobs = packed(picked)
    t.run("open_attempts", jobs=jobs, worker=ask.worker, claim=ask.claim, now=now["now"])
    t.run("claimed_events", jobs=jobs, data=ask.data)
    t.run("leave_ready", jobs=jobs)
    opened = set(picked)
    # There is no socket here, only memory.
    rows = t.all("opened_jobs", worker=ask.worker, claim=ask.claim, most=CLAIM_BYTES // len(picked))
    rows = [row for row in rows if row["id"] in opened]
    end_stays(t, _stays(rows))
    return rows


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
