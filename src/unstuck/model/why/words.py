"""How times, counts and names are spelled in the sentences of `why`."""

from __future__ import annotations

from datetime import datetime, timedelta

from unstuck.model.why.facts import CEILING


def lasting(span: timedelta) -> str:
    """38s, 4m 10s, 2h 5m, 3d 4h."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < 60:
        return f"{seconds}s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    return f"{hours // 24}d {hours % 24}h"


def clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def since_when(at: datetime | None) -> str:
    return "" if at is None else f" since {clock(at)}"


def counted(number: int, noun: str) -> str:
    shown = f"{CEILING} or more" if number >= CEILING else str(number)
    return f"{shown} {noun}{'' if number == 1 else 's'}"


def how_often(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def workers_serving(count: int) -> str:
    return "the worker that serves it" if count == 1 else f"the {counted(count, 'worker')} that serve it"


def is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"


def first_line(text: str | None) -> str:
    line = (text or "").strip().splitlines()[0] if (text or "").strip() else ""
    return line if len(line) <= 200 else line[:199] + "…"
