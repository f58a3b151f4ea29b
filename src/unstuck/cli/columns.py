"""How wide each column of a table may be in a terminal: everything is shown, whatever the window's width.

Texts give way first, then names, then the tails of ids (what is left still names the job); numbers, states and times
never do. Where that is not enough no column is dropped: each row is written as lines of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

GAP = 2
#: Prose: goes on in the next line of its cell.
PROSE = {"SUMMARY", "INFO", "WORKFLOWS", "MESSAGE", "REASON", "MEANING", "DETAIL", "LIMIT"}
#: What another command shows whole: cut to one line per row.
CUT = {"ERROR", "RESULT", "VALUE"}
#: Ids: shortened they still name a job, unless dozens of thousands were made in the same millisecond.
IDS = {"JOB", "HEAD", "BLOCKED BY"}
_SHORT_ID = 23
_LEAST_NAME = 12

#: Which columns give way, and down to which width, one stage after the other.
_STAGES: list[list[tuple[set[str] | None, int]]] = [
    [(PROSE, 40), (CUT, 30)],
    [(None, 24)],
    [(IDS, _SHORT_ID)],
    [(PROSE, 20), (CUT, 12)],
    [(None, _LEAST_NAME)],
]


def fitted(headers: Sequence[str], natural: Sequence[int], room: int) -> list[int] | None:
    """The width of each column; None if they do not fit side by side."""
    widths = list(natural)
    over = sum(widths) + GAP * (len(widths) - 1) - room
    for stage in _STAGES:
        for kind, least in stage:
            over = _narrow(widths, [at for at, header in enumerate(headers) if _is(header, kind)], least, over)
    return None if over > 0 else widths


def _is(header: str, kind: set[str] | None) -> bool:
    """None: a name, or a number that is too short to matter."""
    return header in kind if kind is not None else header not in PROSE | CUT | IDS


def _narrow(widths: list[int], places: list[int], least: int, over: int) -> int:
    """Take from the widest of these until it fits or all are down to the least; what is still over."""
    while over > 0 and (wide := [at for at in places if widths[at] > least]):
        widest = max(wide, key=lambda at: widths[at])
        widths[widest] -= 1
        over -= 1
    return over
