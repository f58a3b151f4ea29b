"""How numbers, durations, ages and sizes are said to people."""

from __future__ import annotations

from datetime import datetime


def count(number: int, noun: str) -> str:
    """1 job, 2 jobs, 1 process, 2 processes."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('s') else 's'}"


def duration(seconds: float | None) -> str:
    """Short and honest: 340 ms, 12.5 s, 3m 20s, 2h 5m, 3d 4h."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    minutes, rest = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest}s" if rest else f"{minutes}m"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h {minutes}m" if minutes else f"{hours}h"
    return f"{hours // 24}d {hours % 24}h"


def age(at: datetime | None, now: datetime) -> str:
    """How long ago, or how soon."""
    if at is None:
        return "-"
    seconds = (now - at).total_seconds()
    if -1 < seconds < 0:
        return "in a moment"
    if seconds < 0:
        return f"in {_coarse(-seconds)}"
    return f"{_coarse(seconds)} ago"


def _coarse(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 60 else duration(seconds)


def size(count: int | None) -> str:
    if not count:
        return "-"
    return f"{count / (1 << 20):.0f} MiB" if count < 1 << 30 else f"{count / (1 << 30):.1f} GiB"
