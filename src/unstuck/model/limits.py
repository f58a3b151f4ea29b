"""Concurrency and rate limits: what they leave to a claim, and how a rate is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from unstuck.model.errors import InvalidInput, quoted
from unstuck.model.policy import LONGEST
from unstuck.records import dataclass

MOST_STARTS = 1_000_000_000
_RATE = re.compile(r"(\d{1,18})\s*(?:/|per)\s*(\d{1,9})?\s*([a-z]+)", re.ASCII)
#: Word by word: with a final "s" cut off, "ms" would be minutes.
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}


@dataclass(frozen=True, slots=True)
class LimitRoom:
    """What one limit leaves to one route; `bucket` is what it counts together. None: it does not limit that."""

    route: int
    limit: int
    bucket: str
    bodies: int | None = None
    starts: int | None = None

    @property
    def left(self) -> int:
        return max(0, min(room for room in (self.bodies, self.starts) if room is not None))


def cut(wanted: Mapping[int, int], rooms: Iterable[LimitRoom]) -> dict[int, int]:
    """What may be taken of each route so that no limit is passed, the first named first."""
    left: dict[tuple[int, str], int] = {}
    of_route: dict[int, list[tuple[int, str]]] = {}
    for room in rooms:
        name = (room.limit, room.bucket)
        left[name] = room.left
        of_route.setdefault(room.route, []).append(name)
    granted: dict[int, int] = {}
    for route, most in wanted.items():
        names = of_route.get(route, [])
        granted[route] = min([most, *(left[name] for name in names)])
        for name in names:
            left[name] -= granted[route]
    return {route: most for route, most in granted.items() if most > 0}


def parse_rate(text: str, what: str = "rate") -> tuple[int, float]:
    """How many, and per how many seconds: "100/m", "5/s", "1000/12h", "3 per day"."""
    found = _RATE.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    unit = _UNITS.get(found[3]) if found else None
    starts, per = (int(found[1]), int(found[2] or 1) * unit) if found and unit else (0, 0.0)
    if starts < 1 or per <= 0:
        raise InvalidInput(
            f'{what} {quoted(text)} is not a number of starts per time, like "100/m", "5/s" or "1000/12h"'
        )
    if starts > MOST_STARTS or per > LONGEST:
        raise InvalidInput(
            f"{what} {quoted(text)} is beyond reason: at most {MOST_STARTS:,} starts, "
            f"and in at most {LONGEST / 86400:.0f} days"
        )
    return starts, per


def spell_rate(starts: int, per: float) -> str:
    """As `parse_rate` reads it."""
    unit = next((unit for unit in ("d", "h", "m") if per % _UNITS[unit] == 0), "s")
    units = per / _UNITS[unit]
    return f"{starts}/{unit}" if units == 1 else f"{starts}/{units:.0f}{unit}"
