"""Which jobs a PENDING job waits for, and what their ends mean for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from unstuck.model.job import AfterFailure
from unstuck.model.lifecycle import JobState
from unstuck.records import dataclass


class Fate(StrEnum):
    """What becomes of a job that waits for others."""

    WAIT = "wait"
    RUN = "run"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Dependency:
    """A job that another waits for. `state` is its end, None while it has not ended."""

    id: str
    state: JobState | None
    error_type: str | None = None


def fate(dependencies: Sequence[Dependency], after_failure: AfterFailure) -> Fate:
    """One dependency that did not complete is enough to fail; to run, all must have ended."""
    if after_failure == "fail" and any(not _is_good(other) for other in dependencies):
        return Fate.FAIL
    return Fate.WAIT if any(other.state is None for other in dependencies) else Fate.RUN


def reproach(dependencies: Sequence[Dependency], most: int = 3) -> str:
    """Whose end made it fail, for people."""
    bad = [other for other in dependencies if not _is_good(other)]
    named = [
        f"job {other.id} is {other.state}" + (f" ({other.error_type})" if other.error_type else "")
        for other in bad[:most]
    ]
    more = f" and {len(bad) - most} more did not complete" if len(bad) > most else ""
    return f"it waited for others to complete: {', '.join(named)}{more}"


def _is_good(other: Dependency) -> bool:
    return other.state in (None, JobState.COMPLETED)


def cycle(waits: Mapping[str, Sequence[str]]) -> list[str]:
    """Jobs that wait for each other in a circle, the first one named again at its end; empty if there is none."""
    settled: set[str] = set()
    for start in waits:
        if found := _circle_from(start, waits, settled):
            return found
    return []


def _circle_from(start: str, waits: Mapping[str, Sequence[str]], settled: set[str]) -> list[str]:
    """Depth first, with a stack of its own: a chain may be longer than Python's."""
    if start in settled:
        return []
    path: dict[str, Iterator[str]] = {start: iter(waits[start])}
    while path:
        job = next(reversed(path))
        other = next(path[job], None)
        if other is None:
            settled.add(job)
            del path[job]
        elif other in path:
            names = list(path)
            return [*names[names.index(other) :], other]
        elif other in waits and other not in settled:
            path[other] = iter(waits[other])
    return []
