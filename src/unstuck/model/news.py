"""News: what happens that is no job's move, and what programs publish. Their kinds, and how much of them is kept."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, Final

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.lifecycle import EventKind


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


#: Every kind that we write into the feed.
OURS: Final[tuple[str, ...]] = (*(kind.value for kind in EventKind), *(kind.value for kind in NewsKind))
#: Kinds of ours that are still to come begin with one of these and a point, so nobody may publish under them.
NOUNS: Final = frozenset(
    "api approval blacklist bulk dlq feed job key limit notification pause queue schedule server setting step stream "
    "target tenant unstuck worker workflow".split()
)
#: What a browser's EventSource, or our stream of events, says of the connection itself.
OF_THE_STREAM: Final = frozenset({"open", "error", "reset", "ping"})
LONGEST_KIND: Final = 64
_KIND = re.compile(rf"[A-Za-z][A-Za-z0-9_.:/-]{{0,{LONGEST_KIND - 1}}}", re.ASCII)


def is_kind(kind: str) -> bool:
    """Whether an event may be of this kind, be it ours or a publisher's."""
    return _KIND.fullmatch(kind) is not None


def check_published(kind: Any) -> str:
    """The kind of what is published: a word that a stream can carry, and none that we write ourselves."""
    if not isinstance(kind, str) or not is_kind(kind):
        raise InvalidInput(
            f"kind {quoted(kind)} must begin with a letter and have {LONGEST_KIND} letters, digits and _ . : / - at most"
        )
    noun = kind.partition(".")[0]
    if kind in OURS or kind in OF_THE_STREAM or (noun in NOUNS and noun != kind):
        raise InvalidInput(
            f"kind {kind} is one that unstuck tells itself, or may one day: publish under another name"
        )
    return kind
