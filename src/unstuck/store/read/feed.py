"""Feed: every committed event once, in one order.

Theory of operation. A position is a number in that order; a cursor is a position with the name of its feed. SQLite
has one writer at a time, so the ids of events are in the order of the commits and serve as positions. PostgreSQL
commits side by side: there a reader gives the new events their positions first (`sequence`), a batch in one
statement, under the lock of one row that nobody waits for. Writers know nothing of all this.
"""

from __future__ import annotations

import re
from typing import Any

from unstuck.model.errors import InvalidInput, StaleCursor, StoreBusy, StoreError, quoted
from unstuck.store.database import Database, Row, Transaction
from unstuck.store.guard.quarantine import reason
from unstuck.store.port import FeedBounds, FeedEvent, FeedFilter, FeedPage
from unstuck.store.port.webhooks import HELD
from unstuck.store.rows import facts_of, instant, span, terms_of

#: About the number of events that get positions in one transaction; it takes some tens of milliseconds.
PASS = 5000
_CURSOR = re.compile(r"([0-9a-f]{8})-([0-9]{1,18})", re.ASCII)


def sequence(database: Database, kept: float) -> int:
    """How many events got their positions now; -1: another reader is just giving them."""
    if database.dialect == "sqlite":
        return 0
    try:
        [row] = database.once("sequence", most=PASS, kept=span(kept), held=span(HELD))
    except StoreError:
        raise
    except Exception as error:  # a trigger that refuses its rows, say: the reader is told, and comes again
        raise StoreBusy(f"the feed takes no new events: {reason(error)}") from error
    return int(row["taken"])


def bounds(t: Transaction) -> FeedBounds:
    reach = reach_of(t, after=0, most=1)
    return FeedBounds(_cursor(reach, reach["floor"]), _cursor(reach, reach["position"]))


def page(t: Transaction, after: str, wanted: FeedFilter, limit: int) -> FeedPage:
    """Positions that are forgotten while we read are noticed, because their floor is read last."""
    era, position = parsed(after)
    reach = reach_of(t, position, limit)
    check(after, era, position, reach)
    rows = t.all("feed_page", after=position, through=reach["through"], most=limit, **_terms(wanted))
    floor = _only(t.one("feed_floor"))["floor"]
    if position < floor:
        raise StaleCursor.expired(after, _cursor(reach, floor))
    return FeedPage(
        tuple(_event(reach, row) for row in rows),
        cursor=_cursor(reach, max(position, reach["through"])),
        is_last=reach["through"] >= reach["position"],
    )


def events_behind(t: Transaction, position: int, most: int) -> tuple[list[tuple[int, FeedEvent]], int]:
    """Everybody's events at the next places, and how far that goes. Nothing of them is forgotten meanwhile if the
    caller holds what the feed waits for."""
    reach = reach_of(t, position, most)
    rows = t.all("feed_page", after=position, through=reach["through"], most=most, **_terms(FeedFilter()))
    return [(row["position"], _event(reach, row)) for row in rows], max(position, reach["through"])


def forget(database: Database, kept: float, batch: int, past: int) -> int:
    """How many entries of the feed went; events stay with their jobs."""
    facts: dict[str, Any] = {"kept": span(kept), "held": span(HELD), "batch": batch, "past": past}
    if database.dialect == "sqlite":
        return database.write(lambda t: _raise_floor(t, facts))
    # A database that was restored from a dump counts its transactions anew: sequencing notices it, but only as long
    # as they are below those of the old one. So somebody must look even if nobody reads; it costs next to nothing.
    if _only(database.read(lambda t: t.one("feed_is_restored")))["is_restored"]:
        sequence(database, kept)
    return sum(row["gone"] for row in database.once("forget_feed", **facts))


def _raise_floor(t: Transaction, facts: dict[str, int]) -> int:
    found = _only(t.one("feed_old", **facts))
    if found["last"] is not None:
        t.run("raise_feed_floor", floor=found["last"])
    return int(found["old"])


def reach_of(t: Transaction, after: int = 0, most: int = 1) -> Row:
    """How far the feed goes, and how far a page behind `after`."""
    return _only(t.one("feed_reach", after=after, most=most))


def parsed(cursor: str) -> tuple[str, int]:
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInput(f"{quoted(cursor)} is not a cursor that a feed gave out")
    return found[1], int(found[2])


def check(cursor: str, era: str, position: int, reach: Row) -> None:
    if era != reach["era"]:
        raise StaleCursor.foreign(cursor, _cursor(reach, reach["floor"]))
    if position < reach["floor"]:
        raise StaleCursor.expired(cursor, _cursor(reach, reach["floor"]))
    if position > reach["position"]:
        raise StaleCursor.ahead(cursor, _cursor(reach, reach["position"]))


def _cursor(reach: Row, position: int) -> str:
    return f"{reach['era']}-{position}"


def _terms(wanted: FeedFilter) -> dict[str, str | None]:
    return {
        "tenant": wanted.tenant,
        "job": wanted.job,
        "workflow": wanted.workflow,
        "target": wanted.target,
        "topic": wanted.topic,
        "kinds": f",{','.join(wanted.kinds)}," if wanted.kinds else None,
        **terms_of(wanted.within),
    }


def _event(reach: Row, row: Row) -> FeedEvent:
    return FeedEvent(
        cursor=_cursor(reach, row["position"]),
        kind=row["kind"],
        at=instant(row["at"]),
        data=facts_of(row["data"]),
        tenant=row["tenant"],
        job=row["uid"],
        queue=row["queue"],
        workflow=row["workflow"],
        target=row["target"],
        topic=row["topic"],
        worker=row["worker"],
        by=row["by"],
        number=row["number"],
        run=row["run"],
        token=row["token"],
    )


def _only(row: Row | None) -> Row:
    assert row is not None
    return row
