"""The series' port: how many runs ended in each minute, how, and how long they took."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, Protocol

from unstuck.model.lifecycle import JobState
from unstuck.records import dataclass

#: What the points of a series are told apart by, besides their time.
SeriesPer = Literal["total", "queue", "workflow"]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """What ended within a step that began `at`. `name`: of the queue or workflow; "": of all. `wait` and `run`: how
    many there are in each bucket of `model/series.py`. What no worker ever claimed is in neither."""

    at: datetime
    name: str
    ended: dict[JobState, int]
    wait: tuple[int, ...]
    run: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SeriesPage:
    """The points by name, then by time; a step in which nothing ended has none. What ended after `counted_until` has
    not been counted yet."""

    points: tuple[SeriesPoint, ...]
    counted_until: datetime


class SeriesPort(Protocol):
    """Nothing is counted when a job ends: a janitor's duty reads what has ended."""

    def count_ends(self, settled_after: float, batch: int = 5000) -> int:
        """Count the next runs that ended, up to the last whole minute that is at least so many seconds old, each of
        them once; how many of a batch there were. Those that ended in the same instant as its last come with it. 0,
        too, where another worker is counting."""
        ...

    def count_enqueued(self, settled_after: float, batch: int = 5000) -> int:
        """Count the next jobs that were stored at least so many seconds ago, each of them once; how many there were.
        0, too, where another worker is counting."""
        ...

    def counted_until(self) -> datetime:
        """What ended before has been counted."""
        ...

    def forget_series(self, retention: float, batch: int = 1000, past: int = 0) -> int: ...

    def series(
        self,
        tenant: str | None,
        per: SeriesPer,
        since: datetime,
        until: datetime,
        step: float,
        *,
        queue: str | None = None,
        workflow: str | None = None,
        names: int = 20,
    ) -> SeriesPage:
        """From `since` up to `until`, in steps of so many seconds, of the busiest names. None: of all tenants. A step
        is whole minutes; where it is whole hours, and they begin with one, that is read from the hours."""
        ...
