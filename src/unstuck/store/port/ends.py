"""The ends' port: workflows whose jobs are made of the ends of others."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from unstuck.model.ends import EndedJob, Follows
from unstuck.model.job import NewJob
from unstuck.records import dataclass
from unstuck.store.port.read import FeedEvent


@dataclass(frozen=True, slots=True)
class Follower:
    """A workflow that follows ends, as the version that decides says it. `tenant`: whose jobs alone; None: all."""

    workflow: str
    follows: Follows
    tenant: str | None = None

    def meets(self, event: FeedEvent) -> bool:
        return self.tenant in (None, event.tenant) and self.follows.meets(event.kind, event.workflow)


@dataclass(frozen=True, slots=True)
class EndFacts:
    """What is told of an end besides its event. `is_made`: the job was itself made of an end, or is below one that
    was. `result`: JSON; None: there is none, or it is too large."""

    job: str
    run: int
    is_made: bool
    result: str | None = None
    is_large: bool = False


@dataclass(frozen=True, slots=True)
class EndsPage:
    """Events of ends in the order of the feed, from where the last page ended to `cursor`."""

    events: tuple[FeedEvent, ...]
    after: str
    cursor: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class FollowedEnd:
    """What is made of an end for one follower: a job, or nothing for a reason. `again`: in so many seconds it is
    tried again, with `ended`. `is_late`: it was put off before."""

    job: str
    run: int
    follower: str
    made: NewJob | None = None
    reason: str | None = None
    ended: EndedJob | None = None
    again: float | None = None
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class LateEnd:
    """One that was put off, for so many seconds by now. `ended`: JSON."""

    job: str
    run: int
    follower: str
    ended: str
    late: float

    @property
    def known(self) -> EndedJob:
        """ValueError, TypeError or KeyError, if its row was damaged."""
        return EndedJob.from_json(self.ended)


@dataclass(frozen=True, slots=True)
class WaitingEnd:
    """One that was put off: since when, and why."""

    job: str
    follower: str
    since_at: datetime
    reason: str


class EndsPort(Protocol):
    def followers(self) -> list[Follower]:
        """Those that hold: of which a live worker has the code, or whose app has no live worker at all."""
        ...

    def read_ends(self, holder: str, hold: float, kinds: Sequence[str], limit: int, kept: float) -> EndsPage | None:
        """What was told of ends since the last time, and from now on for so many seconds nobody else reads. None:
        there is nothing new, or another reads."""
        ...

    def end_facts(self, ends: Sequence[tuple[str, int]], most: int) -> list[EndFacts]:
        """Of these runs of jobs; those that were forgotten are left out. `most`: bytes of a result."""
        ...

    def follow_ends(self, followed: Sequence[FollowedEnd], *, is_part: bool = False) -> int:
        """Store what is made of ends, each once, in one transaction; how many were new. What a submit refuses is
        raised, and nothing is written. `is_part`: of a batch that failed; it waits for locks hardly at all."""
        ...

    def late_ends(self, most: int) -> list[LateEnd]:
        """Those that were put off and are due, the longest first; for whoever took them, until they are due again.
        Those that somebody holds are left."""
        ...

    def waiting_ends(self, limit: int = 100) -> list[WaitingEnd]:
        """Those that were put off, for people to see."""
        ...

    def ends_read(self, holder: str, page: EndsPage) -> bool:
        """All of the page was followed: the next begins behind it. False: another reads."""
        ...

    def stop_reading_ends(self) -> None:
        """If nobody follows any more: who does later begins with what ends then."""
        ...

    def forget_followed_ends(self, retention: float, batch: int = 1000, past: int = 0) -> int: ...
