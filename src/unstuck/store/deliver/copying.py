"""Copying: what webhooks want of the feed becomes deliveries, once for each webhook and event.

Theory of operation. Each webhook's row says how far the feed was copied out for it. Whoever copies locks the rows
that are behind, passing by those that somebody holds, reads the next places once for all that stand at the same one,
writes their deliveries and moves the rows: one transaction. So whoever dies leaves all of it or nothing, two that
copy at once do not meet, and a webhook that was left behind, because its row was held, or too much waits for it, or
somebody asked for a replay, catches up in pages of its own while the others go on at the front.

Deliveries about the same thing go one after the other: the first is *seated*, it has a time at which it is due, and
the others wait behind it without one. Whoever seats holds the webhook's row, so nobody is forgotten behind one that
ends at this moment.

The feed keeps what a webhook has not seen for three days beyond its own time. One that is behind by more has missed
events: it goes on with the oldest that is kept, and a notification says so.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from unstuck.model.errors import StoreError
from unstuck.model.guard import EVERY
from unstuck.model.payload import clean_text
from unstuck.model.spelling import screen
from unstuck.model.webhooks import WebhookFilter, about_of, message_id
from unstuck.store.database import Row, Transaction
from unstuck.store.deliver import webhooks
from unstuck.store.guard import audit
from unstuck.store.life.changes import MAX_MESSAGE
from unstuck.store.port import FeedEvent, FeedFilter
from unstuck.store.port.webhooks import Copied, MakeBody, WebhookName
from unstuck.store.read import feed
from unstuck.store.rows import microseconds, packed
from unstuck.telemetry import emit

#: Places in the feed from which one call copies: the front, and so many others of those that are behind it.
PLACES = 5
MOST_WEBHOOKS = 1000
MISSED = "Webhooks missed events"
NOT_COPIED = "An event cannot be sent by webhooks"
LINK = "/webhooks"


def behind(t: Transaction) -> int | None:
    row = t.one("copying")
    assert row is not None
    return None if not row["webhooks"] else max(0, int(feed.reach_of(t)["position"]) - int(row["position"]))


def copy(t: Transaction, body: MakeBody, limit: int, spared: Sequence[int] = (), only: int | None = None) -> Copied:
    places, has_more = _places(t, spared, only)
    passed = made = 0
    if limit == 1:  # one that failed is looked for: alone, it shows which
        has_more |= len(places) > 1
        places = dict(list(places.items())[:1])
    for place, group in places.items():
        events, through = feed.events_behind(t, place, limit)
        made += sum(_add(t, row, events, place, body) for row in group)
        t.run("move_webhooks", webhooks=[row["id"] for row in group], position=through)
        passed += through - place
        has_more |= through < feed.reach_of(t)["position"]
    return Copied(passed, made, has_more and passed > 0)


def names_behind(t: Transaction, spared: Sequence[int]) -> list[WebhookName]:
    reach = feed.reach_of(t)
    return webhooks.names_of(
        t.all("behind_webhooks", position=reach["position"], spared=list(spared), most=MOST_WEBHOOKS)
    )


def _places(t: Transaction, spared: Sequence[int] = (), only: int | None = None) -> tuple[dict[int, list[Row]], bool]:
    """The webhooks that are behind, by where they stand; those with too much to send yet stay there."""
    reach, most = feed.reach_of(t), webhooks.rules(t).most_waiting
    asked = {"position": reach["position"], "ceiling": most, "most": MOST_WEBHOOKS}
    rows = t.all("lock_copied_webhooks", **asked, spared=list(spared), only=only)
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["waiting"] < most:
            found[max(row["position"], reach["floor"])].append(row)
    _tell_missed(t, [row for row in rows if row["position"] < reach["floor"]], reach)
    order = sorted(found)
    chosen = order if len(order) <= PLACES else [*order[: PLACES - 1], order[-1]]
    return {place: found[place] for place in chosen}, len(order) > len(chosen)


def _tell_missed(t: Transaction, rows: Sequence[Row], reach: Row) -> None:
    for row in rows:
        if row["waiting"] > 0 and row["reached"] > row["position"]:
            continue  # a replay that the feed's own time has overtaken
        count = reach["floor"] - row["position"]
        said = (
            f"webhook {row['name']} of tenant {row['tenant']} was behind for so long that {count:,} places of the "
            "feed were forgotten before they were copied; it goes on with the oldest that is kept"
        )
        audit.notify(t, MISSED, said, screen("webhooks", row["name"]), "error", row["tenant"])


def _add(t: Transaction, row: Row, events: Sequence[tuple[int, FeedEvent]], place: int, body: MakeBody) -> int:
    wanted, since = webhooks.filter_of(row), row["since_at"] or 0
    found = [each for each in events if admits(row["tenant"], wanted, each[1]) and microseconds(each[1].at) >= since]
    if not found:
        return 0
    facts = [facts for position, event in found if (facts := _columns(t, row, position, event, body)) is not None]
    if not facts:
        return 0
    is_replay = place < row["reached"]
    if is_replay:
        known = {each["message"]: each for each in t.all("known_deliveries", messages=[f["message"] for f in facts])}
        ended = [each["id"] for each in known.values() if each["state"] != "WAITING"]
        t.run("reopen_deliveries", deliveries=ended)
    t.run("add_deliveries", rows=packed(facts))
    webhooks.seat(t, row["id"], {each["about"] for each in facts}, is_replay=is_replay)
    t.run("wake_webhook", webhooks=[row["id"]])
    return len(facts)


def admits(tenant: str, wanted: WebhookFilter, event: FeedEvent) -> bool:
    """As a reader of the feed would be shown it; a platform's webhook gets everybody's."""
    whose = None if tenant == EVERY else tenant
    read = FeedFilter(whose, wanted.kinds, wanted.job, wanted.workflow, wanted.target, wanted.topic)
    return read.admits(event) and wanted.queue in (None, event.queue)


def _columns(t: Transaction, row: Row, position: int, event: FeedEvent, body: MakeBody) -> Mapping[str, Any] | None:
    """None: it cannot be written down, whoever asks for it."""
    try:
        text = body(event)
    except StoreError:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        emit("event_not_copied", level=logging.ERROR, place=position, problem=problem)
        said = (
            f"{event.kind} of job {event.job}, at place {position} of the feed: {problem}; webhooks go on behind it"
        )
        audit.notify(t, NOT_COPIED, clean_text(said, MAX_MESSAGE), LINK, "warning", EVERY)
        return None
    about = about_of(
        job=event.job,
        target=event.target,
        worker=event.worker,
        topic=event.topic,
        workflow=event.workflow,
        queue=event.queue,
    )
    return {
        "webhook": row["id"],
        "tenant": row["tenant"],
        "message": message_id(row["id"], event.cursor),
        "place": position,
        "about": about,
        "kind": event.kind,
        "job": event.job,
        "happened_at": microseconds(event.at),
        "body": text,
    }
