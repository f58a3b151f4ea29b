"""News: what happens that is no job's move, and what programs publish. Their kinds, and how much of them is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Final

from unstuck.model.errors import InvalidInput, NotStorable, quoted
from unstuck.model.lifecycle import EventKind
from unstuck.model.payload import check_name, encode
from unstuck.records import dataclass


class NewsKind(StrEnum):
    """What we tell; what is published has a kind of its publisher's."""

    WORKER_JOINED = "worker.joined"
    WORKER_LEFT = "worker.left"
    WORKER_LOST = "worker.lost"
    TARGET_BLOCKED = "target.blocked"
    TARGET_FREED = "target.freed"
    PAUSE_BEGUN = "pause.begun"
    PAUSE_ENDED = "pause.ended"
    BLACKLIST_ADDED = "blacklist.added"
    BLACKLIST_REMOVED = "blacklist.removed"
    APPROVAL_ASKED = "approval.asked"
    APPROVAL_DECIDED = "approval.decided"
    NOTIFICATION = "notification.made"
    SIGNATURE_REFUSED = "security.signature_refused"
    DEAD_LETTER = "dead_letter.added"
    ALERT_OPENED = "alert.opened"
    ALERT_CLOSED = "alert.closed"
    SCHEDULE_FIRED = "schedule.fired"
    SCHEDULE_NOT_FIRED = "schedule.not_fired"
    SCHEDULE_SILENT = "schedule.silent"
    SCHEDULE_PAUSED = "schedule.paused"
    SCHEDULE_RESUMED = "schedule.resumed"


#: Every kind that we write into the feed.
OURS: Final[tuple[str, ...]] = (*(kind.value for kind in EventKind), *(kind.value for kind in NewsKind))
#: Kinds of ours that are still to come begin with one of these and a point, so nobody may publish under them.
NOUNS: Final = frozenset(
    {"alert", "api", "approval", "blacklist", "bulk", "dead_letter", "feed", "job", "key", "limit", "notification"}
    | {"pause", "queue", "schedule", "security", "server", "setting", "step", "stream", "target", "tenant"}
    | {"delivery", "unstuck", "webhook", "worker", "workflow"}
)
#: What a browser's EventSource, or our stream of events, says of the connection itself.
OF_THE_STREAM: Final = frozenset({"open", "error", "reset", "ping"})
LONGEST_KIND: Final = 64
_KIND = re.compile(rf"[A-Za-z][A-Za-z0-9_.:/-]{{0,{LONGEST_KIND - 1}}}", re.ASCII)
#: Bytes of JSON of what is published.
MAX_DATA: Final = 16 << 10
#: So much one attempt may publish; of what a tenant has published so much is kept, the newest.
MOST_OF_ATTEMPT: Final = 10_000
MOST_OF_TENANT: Final = 100_000
#: Seconds. The feed itself may forget it earlier.
LONGEST_TTL: Final = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class NewsItem:
    """Something to be told beside a fact of the same transaction. None: it is not about one.

    `job`: the store's number of the job that it is about; tenant, queue, workflow and target are then that job's.
    """

    kind: NewsKind
    data: Mapping[str, Any] = field(default_factory=dict)
    tenant: str | None = None
    queue: str | None = None
    workflow: str | None = None
    target: str | None = None
    worker: str | None = None
    job: int | None = None
    run: int = 0
    token: int = 0


@dataclass(frozen=True, slots=True)
class Publication:
    """What a program or a handler publishes: `data` is JSON text of an object. `ttl`: seconds; None: as long as the
    feed keeps it."""

    kind: str
    data: str
    topic: str | None = None
    ttl: float | None = None


def is_kind(kind: str) -> bool:
    """Whether an event may be of this kind, be it ours or a publisher's."""
    return _KIND.fullmatch(kind) is not None


def publication(kind: Any, data: Any, topic: Any, ttl: Any) -> Publication:
    """Checked, before anything is sent or written."""
    name = _check_published(kind)
    if not isinstance(data, Mapping):
        raise InvalidInput(f"the data of {name} is an object, a dict with names as keys, not {quoted(data)}")
    made = Publication(name, encode(dict(data), _data_of(name), MAX_DATA), topic, ttl)
    check_publication(made)
    return made


def check_publication(given: Publication) -> None:
    """Its data was written by `publication`, or is what an executor says it was."""
    name = _check_published(given.kind)
    if len(given.data) > MAX_DATA or len(given.data.encode()) > MAX_DATA:
        raise NotStorable(_data_of(name), f"it is more than {MAX_DATA:,} bytes of JSON")
    if not given.data.startswith("{"):
        raise NotStorable(_data_of(name), "it is no object")
    if given.topic is not None:
        check_name(given.topic, "topic")
    if given.ttl is not None and (
        isinstance(given.ttl, bool) or not isinstance(given.ttl, int | float) or not 0 < given.ttl <= LONGEST_TTL
    ):
        raise InvalidInput(f"ttl={quoted(given.ttl)} must be seconds above 0 and at most {LONGEST_TTL:g}")


def check_place(number: int) -> None:
    """Of its attempt the how-manieth it is."""
    if not 1 <= number <= MOST_OF_ATTEMPT:
        raise InvalidInput(
            f"an attempt publishes {MOST_OF_ATTEMPT:,} events at most, and this is one more: publish less often, or "
            "use ctx.progress where only the last value matters"
        )


def _check_published(kind: Any) -> str:
    """The kind of what is published: a word that a stream can carry, and none that we write ourselves."""
    if not isinstance(kind, str) or not is_kind(kind):
        raise InvalidInput(
            f"kind {quoted(kind)} is no word of at most {LONGEST_KIND} letters, digits and _ . : / - that begins "
            "with a letter"
        )
    noun = kind.partition(".")[0]
    if kind in OURS or kind in OF_THE_STREAM or (noun in NOUNS and noun != kind):
        raise InvalidInput(
            f"kind {kind} is one that unstuck tells itself, or may one day: publish under another name"
        )
    return kind


def _data_of(kind: str) -> str:
    return f"the data of {kind}"
