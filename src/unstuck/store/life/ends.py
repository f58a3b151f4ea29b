"""Ends: how jobs are made of the ends of others, each once.

Theory of operation. Whoever ends a job writes nothing for this: where nothing follows ends, nobody pays. The feed
tells every end once, in one order, after it is durable. One reader at a time goes through it, as long as its hold
lasts; its place is one row. What it makes of an end is a row under the key of (job, run, follower), written in one
transaction with the job. Only then the place moves on. So whoever dies leaves its page to the next, which finds there
what was made already. What a full queue refuses is put off: its row stands there with the end, and when to try again.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from unstuck.model.ends import Follows
from unstuck.model.errors import StaleCursor
from unstuck.model.job import WorkflowRecord
from unstuck.model.payload import clean_text
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.guard.isolation import IMPATIENCE
from unstuck.store.life import submit
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.order.name_ids import Numbers
from unstuck.store.port import EVERY, EndFacts, EndsPage, FeedFilter, FollowedEnd, Follower, LateEnd
from unstuck.store.read import feed
from unstuck.store.rows import microseconds, packed, span
from unstuck.telemetry import emit

_UNREADABLE = (ValueError, TypeError, KeyError)
#: Seconds until what was put off is tried again: as long as it has waited, and no less and no more than this.
SOONEST = 15.0
LATEST = 600.0


# --- who follows --------------------------------------------------------------------------------------------------


def lacking(t: Transaction, workflows: Sequence[WorkflowRecord], app: str | None) -> list[tuple[str, Any]]:
    """What is to be written of who follows, by workflow; nothing, most often."""
    names, versions = [w.name for w in workflows], sorted({w.code_version for w in workflows})
    if not names:
        return []
    tenant = workflows[0].tenant
    rows = t.all("registered_followers", names=names, versions=versions, tenant=tenant)
    known = {(row["workflow"], row["code_version"]): (row["app"], row["body"]) for row in rows}
    found: list[tuple[str, Any]] = []
    for each in workflows:
        place = (each.name, each.code_version, tenant)
        wanted = None if each.follows is None else (app or "", each.follows.to_json())
        if wanted != known.get(place[:2]):
            found.append((each.name, partial(_register, place=place, wanted=wanted)))
    return found


def _register(t: Transaction, place: tuple[str, str, str], wanted: tuple[str, str] | None) -> bool:
    named = dict(zip(("workflow", "code_version", "tenant"), place, strict=True))
    if wanted is None:
        t.run("drop_follower", **named)
        return True
    t.run("set_follower", **named, app=wanted[0], body=wanted[1])
    return True


def begin(t: Transaction) -> None:
    """What ends from now on is followed, unless somebody follows already. Where nobody read the feed for a while, its
    end lies behind: hence the time."""
    t.run("begin_reading_ends", cursor=feed.bounds(t).newest)


def stop(t: Transaction) -> None:
    """If nobody follows, seen behind the lock of the row, which whoever follows takes once that can be seen. Where
    somebody has it, the next turn will do."""
    if t.one("lock_ends") is not None and not followers(t):
        t.run("stop_reading_ends")


def followers(t: Transaction) -> list[Follower]:
    some = t.one("are_followers")
    if some is None or not some["are_some"]:
        return []
    found = []
    for row in t.all("followers"):
        if not _holds(row):
            continue
        try:
            tenant = None if row["tenant"] == EVERY else row["tenant"]
            found.append(Follower(row["workflow"], Follows.from_json(row["body"]), tenant))
        except _UNREADABLE as problem:
            emit("follower_unreadable", level=logging.WARNING, workflow=row["workflow"], problem=repr(problem))
    return found


def _holds(row: Row) -> bool:
    """Where no worker of its app lives, what the code says is as it was: its jobs wait for the next."""
    return bool(row["is_live"]) or (bool(row["app"]) and not row["is_app_live"])


# --- reading ------------------------------------------------------------------------------------------------------


def read(
    database: Database, holder: str, hold: float, kinds: Sequence[str], limit: int, kept: float
) -> EndsPage | None:
    feed.sequence(database, kept)
    row = database.read(lambda t: t.one("reading_ends"))
    if row is None:
        database.write(begin, patience=IMPATIENCE)
        return None
    if row["held_until"] > row["now"] and row["holder"] != holder:
        return None
    wanted = FeedFilter(kinds=tuple(kinds))
    try:
        page = database.read(lambda t: feed.page(t, row["cursor"], wanted, limit))
    except StaleCursor as stale:
        _go_on(database, holder, hold, row["cursor"], stale.go_on)
        return None
    if page.cursor == row["cursor"]:
        return None
    place = {"holder": holder, "hold": span(hold), "cursor": row["cursor"]}
    if not database.write(lambda t: t.run("hold_ends", **place), patience=IMPATIENCE):
        return None
    events = tuple(event for event in page.events if microseconds(event.at) >= row["since"])
    return EndsPage(events, row["cursor"], page.cursor, page.is_last)


def _go_on(database: Database, holder: str, hold: float, cursor: str, to: str) -> None:
    """The feed does not reach back as far as nobody read: what ended meanwhile is followed by nothing."""
    emit("ends_missed", level=logging.WARNING, cursor=cursor, go_on=to)

    def work(t: Transaction) -> None:
        if t.run("hold_ends", holder=holder, hold=span(hold), cursor=cursor):
            t.run("move_ends", holder=holder, after=cursor, cursor=to)

    database.write(work, patience=IMPATIENCE)


def facts(t: Transaction, ends: Sequence[tuple[str, int]], most: int) -> list[EndFacts]:
    rows = t.all("end_facts", rows=packed([{"uid": job, "run": run} for job, run in ends]), most=most)
    return [
        EndFacts(row["uid"], row["run"], bool(row["is_made"]), row["result"], bool(row["is_large"])) for row in rows
    ]


# --- what is made -------------------------------------------------------------------------------------------------


def follow(t: Transaction, followed: Sequence[FollowedEnd], numbers: Numbers | None, key_life: float) -> int:
    new = [each for each in followed if _note(t, each)]
    jobs = [each.made for each in new if each.made is not None]
    if jobs:
        assert numbers is not None
        submit.submit(t, jobs, numbers, key_life)
    return len(new)


def _note(t: Transaction, each: FollowedEnd) -> bool:
    facts: dict[str, Any] = {
        "job": each.job,
        "run": each.run,
        "follower": each.follower,
        "made": None if each.made is None else each.made.id,
        "reason": None if each.reason is None else clean_text(each.reason, MAX_MESSAGE),
    }
    if each.is_late:
        return t.run("follow_late_end", **facts) == 1
    ended, again = (None, None) if each.again is None else (each.ended, span(each.again))
    kept = None if ended is None else ended.to_json()
    return t.run("follow_end", **facts, ended=kept, again=again) == 1


def take_late(t: Transaction, most: int) -> list[LateEnd]:
    rows = t.all("take_late_ends", most=most, least=span(SOONEST), longest=span(LATEST))
    return [_late(row) for row in sorted(rows, key=lambda row: (int(row["at"]), row["job"], row["hook"]))]


def _late(row: Row) -> LateEnd:
    waited = (row["now"] - row["at"]) / 1_000_000
    return LateEnd(row["job"], row["run"], row["hook"], row["ended"] or "", waited)
