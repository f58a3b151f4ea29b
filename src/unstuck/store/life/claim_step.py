"""A claim inside its transaction: what limits and gates leave of its shares, and the move from ready to running."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from unstuck.model.errors import StoreError
from unstuck.model.limits import LimitRoom, cut
from unstuck.records import dataclass
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.order.gates import of_routes
from unstuck.store.order.limit_room import rooms_of
from unstuck.store.order.line import Stay, end_stays, stays_of
from unstuck.store.port import QuarantineDuty, Share
from unstuck.store.rows import packed
from unstuck.telemetry import emit

#: How often the room of shared limits is dealt out anew when it brought nothing.
_CUTS = 20


#: Below every rank there is: from the beginning.
_BEGINNING = (-(1 << 62), 0)


_END = (1 << 62, 1 << 62)


#: What an answer may carry before its commit: Linux gives a unix socket 208 KiB by default, into which 190 KB of rows
#: were seen to fit, TCP more. Four hundred jobs with small payloads stay below this.
ANSWER_BYTES = 128 << 10


#: In all, for one claim: what a worker has to keep in its memory.
CLAIM_BYTES = 16 << 20


#: The quarantine duty under which jobs that cannot be claimed are listed.
DUTY: QuarantineDuty = "claim"


@dataclass(frozen=True, slots=True)
class ClaimAsk:
    """The worker that claims, and the id of its claim. `opened`: attempts that this very call has opened under that
    id; if the database has more, the id had its answer before."""

    worker: int
    claim: str
    data: str
    opened: int = 0
    #: What is set aside under this duty is left out.
    without: str = DUTY


def end_stays_alone(database: Database, rows: list[Row]) -> None:
    """A statement of its own, sent only if there are such timers: inside the claim every claim would pay for it. A
    timer that it misses goes when it comes due."""
    if stays := stays_of(_stays(rows)):
        try:
            database.once("end_stays", rows=stays)
        except StoreError as problem:  # the claim stands
            emit("store.stays_left", level=logging.DEBUG, problem=str(problem)[:200])


def _stays(rows: Iterable[Row]) -> Iterable[Stay]:
    return ((row["expires_at"], row["id"]) for row in rows)


def open_counted(t: Transaction, ask: ClaimAsk, shares: list[Share]) -> tuple[list[Row], frozenset[int]]:
    """What was opened, and the routes that got no room because another transaction holds one of their limits."""
    routes = sorted(share.route for share in shares)
    # SQLite has a single writer, so no other session can hold the row of a limit.
    locked = None if t.one_table_per_statement else {row["id"] for row in t.all("lock_limits", routes=routes)}
    rooms = rooms_of(t, routes)
    # A limit that was set after we locked is not ours either.
    held = frozenset(room.route for room in rooms if locked is not None and room.limit not in locked)
    shares = [share for share in shares if share.route not in held]
    for _ in range(_CUTS):
        left = cut({share.route: share.limit for share in shares}, rooms)
        granted = [replace(s, limit=left[s.route]) for s in shares if s.route in left]
        if not granted:
            break
        if rows := open_some(t, ask, granted):
            _note_starts(t, rows, rooms)
            return rows, held
        # All the room went to routes that had nothing to give, such as a job under a body mark: to the others, then.
        shares = [share for share in shares if share.route not in left]
    return [], held


def _note_starts(t: Transaction, rows: Iterable[Row], rooms: Iterable[LimitRoom]) -> None:
    opened = Counter(row["route"] for row in rows)
    starts: Counter[tuple[int, str]] = Counter()
    for room in rooms:
        if room.starts is not None:
            starts[room.limit, room.bucket] += opened[room.route]
    noted = [{"limit_id": limit, "bucket": bucket, "starts": n} for (limit, bucket), n in starts.items() if n]
    if noted:
        t.run("add_starts", rows=packed(noted))


def _span(share: Share) -> dict[str, int]:
    (rank, job), (last_rank, last_job) = share.floor or _BEGINNING, share.last or _END
    return {"rank": rank, "job": job, "last_rank": last_rank, "last_job": last_job}


def question(ask: ClaimAsk, shares: Iterable[Share]) -> dict[str, Any]:
    rows = [{"route": s.route, "most": s.limit, **_span(s), "counted": s.is_limited} for s in shares]
    return {**asdict(ask), "shares": packed(rows), "room": ANSWER_BYTES}


def open_some(t: Transaction, ask: ClaimAsk, shares: Sequence[Share]) -> list[Row]:
    return _open_by_steps(t, ask, shares) if t.one_table_per_statement else _open_at_once(t, ask, shares)


def _open_at_once(t: Transaction, ask: ClaimAsk, shares: Sequence[Share]) -> list[Row]:
    rows = t.all("claim", **question(ask, shares))
    end_stays(t, _stays(rows))
    return rows


def _open_by_steps(t: Transaction, ask: ClaimAsk, shares: Sequence[Share]) -> list[Row]:
    """SQLite has one writer and no writing CTEs: several statements, as safe as one."""
    now = t.one("now")
    if now is None or t.one("may_claim", worker=ask.worker, claim=ask.claim, opened=ask.opened) is None:
        return []
    picked = [job for share, only in _past_open_gates(t, shares) for job in _pick(t, ask, share, only)]
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


def _past_open_gates(t: Transaction, shares: Sequence[Share]) -> list[tuple[Share, int | None]]:
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
        shut |= {row["route"] for row in t.all("routes_to_count", routes=uncounted)}
    return [(share, only.get(share.route)) for share in shares if share.route not in shut]


def _pick(t: Transaction, ask: ClaimAsk, share: Share, only: int | None) -> list[int]:
    facts = {"route": share.route, **_span(share), "most": share.limit, "only": only, "without": ask.without}
    return [row["job"] for row in t.all("pick_ready", **facts)]
