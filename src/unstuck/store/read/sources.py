"""Sources: where the jobs of a list are looked for. Each gives numbers in the list's order, and the list merges them.

Theory of operation. A state says in which table its jobs are, a target, tag, route or error has an index of its own;
whichever promises the fewest is asked for candidates, and the list drops those that its filter does not want. What a
source gives out may be too much, never too little. A job that moves on while its list is read is met again in the
table it moves to: sources of states are asked in the order in which jobs travel.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from unstuck.model.lifecycle import FINAL, JobState, Shown
from unstuck.records import dataclass
from unstuck.store.database import Transaction
from unstuck.store.port import JobFilter
from unstuck.store.rows import terms_of

#: As many are gathered and sorted; a place that holds more is walked in order instead.
GATHERED = 10_000
#: More routes than these are not asked one by one.
MERGED_ROUTES = 16
ASKED_ROUTES = 1000
FIRST_CHUNK = 200
CHUNK = 2000

#: The order in which jobs travel: one that moves on meanwhile is met where it arrives.
_TRAVEL: tuple[JobState | Shown, ...] = (
    JobState.PENDING, Shown.SCHEDULED, Shown.RETRYING, Shown.BLOCKED, JobState.QUEUED, JobState.RUNNING,
    Shown.CANCELLING, JobState.WAITING, JobState.PAUSED, Shown.STUCK, *FINAL,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Walk:
    """A statement that answers with the next numbers after one, in either direction."""

    statement: str
    values: dict[str, Any]
    #: Its index is of all tenants: others may have far more in it.
    is_shared: bool = False

    def numbers(self, t: Transaction, after: int, newest_first: bool) -> Iterator[int]:
        chunk = FIRST_CHUNK
        while True:
            asked = {"newest": chunk, "oldest": 0} if newest_first else {"newest": 0, "oldest": chunk}
            rows = t.all(self.statement, after=after, **asked, **self.values)
            found = sorted((row["number"] for row in rows), reverse=newest_first)
            yield from found
            if len(found) < chunk:
                return
            after, chunk = found[-1], CHUNK


@dataclass(frozen=True, slots=True)
class Gathered:
    """Few enough to be held."""

    found: Sequence[int]

    def numbers(self, t: Transaction, after: int, newest_first: bool) -> Iterator[int]:
        beyond = (n for n in self.found if (n < after if newest_first else n > after))
        yield from sorted(beyond, reverse=newest_first)


Source = Walk | Gathered


def merged(t: Transaction, sources: Sequence[Source], after: int, newest_first: bool) -> Iterator[int]:
    """Every number once, in order."""
    streams = [source.numbers(t, after, newest_first) for source in sources]
    for number, _ in groupby(heapq.merge(*streams, reverse=newest_first)):
        yield number


class Search:
    """Chooses the sources of one list, of a tenant or with None of all: then an index that is shared is just right,
    and one that begins with the tenant of no use."""

    def __init__(self, t: Transaction, tenant: str | None, filter: JobFilter) -> None:
        self._t = t
        self._tenant = tenant
        self._filter = filter
        self._routes = routes_of(t, tenant, filter, ASKED_ROUTES + 1)

    def sources(self) -> list[Source]:
        filter = self._filter
        if not self._routes:
            return []  # a job makes its route first
        if filter.letter is not None and self._tenant is not None:
            return [Walk("list_letters", {"tenant": self._tenant})]
        places = self._places()
        if places and (self._tenant is None or not _are_shared(places)):
            return places
        if filter.target is not None and self._tenant is not None:
            return self._of_target(self._tenant, filter.target)
        if filter.tag is not None and self._tenant is not None:
            return [Walk("list_tag", {"tenant": self._tenant, "tag": filter.tag})]
        if places is None and filter.error_type is not None:
            places = _of_error(filter.error_type)
        if places and not self._is_small():
            return places
        return self._everything()

    def _places(self) -> list[Source] | None:
        """Where the jobs of the wanted states are; None if that would be everywhere."""
        found: list[Source] = []
        for word in sorted(set(self._filter.states), key=_TRAVEL.index):
            place = self._place(word)
            if place is None:
                return None
            found.append(place)
        return found or None

    def _place(self, word: JobState | Shown) -> Source | None:
        match word:
            case JobState.RUNNING | Shown.CANCELLING if self._tenant is None:
                return Walk("list_everything_running", {})
            case JobState.PENDING | JobState.WAITING | JobState.PAUSED | Shown.BLOCKED if self._tenant is None:
                return None
            case JobState.RUNNING | Shown.CANCELLING:
                return Walk("list_running", {"tenant": self._tenant})
            case JobState.PENDING | JobState.WAITING | JobState.PAUSED:
                return Walk("list_resting", {"tenant": self._tenant, "state": word})
            case Shown.BLOCKED:
                return self._gather("list_blocked", tenant=self._tenant)
            case Shown.STUCK:
                return self._gather("list_body_marked")
            case Shown.SCHEDULED | Shown.RETRYING:
                return self._gather_on_routes("list_later")
            case JobState.QUEUED:
                return self._gather_on_routes("list_queued")
            case JobState.COMPLETED:
                return self._gather_on_routes("list_ended", state=word)
            case troubled:
                few = self._gather_on_routes("list_ended", state=troubled)
                return few or Walk("list_troubled", {"state": troubled}, is_shared=True)

    def _gather_on_routes(self, statement: str, **values: Any) -> Gathered | None:
        return self._gather(statement, routes=self._routes, **values) if len(self._routes) <= ASKED_ROUTES else None

    def _gather(self, statement: str, **values: Any) -> Gathered | None:
        rows = self._t.all(statement, most=GATHERED + 1, **values)
        return Gathered([row["number"] for row in rows]) if len(rows) <= GATHERED else None

    def _of_target(self, tenant: str, name: str) -> list[Source]:
        row = self._t.one("target_number", tenant=tenant, name=name)
        return [] if row is None else [Walk("list_target", {"target": row["id"]})]

    def _is_small(self) -> bool:
        """Then its own jobs are fewer than what others may have in an index that all tenants share."""
        if self._tenant is None:
            return False
        rows = self._t.all("list_tenant", tenant=self._tenant, after=0, newest=0, oldest=GATHERED + 1)
        return len(rows) <= GATHERED

    def _everything(self) -> list[Source]:
        by_route = any(part is not None for part in (self._filter.workflow, self._filter.queue, self._filter.within))
        if by_route and len(self._routes) <= MERGED_ROUTES:
            return [Walk("list_route", {"route": route}) for route in self._routes]
        if self._tenant is None:
            return [Walk("list_everything", {})]
        return [Walk("list_tenant", {"tenant": self._tenant})]


def routes_of(t: Transaction, tenant: str | None, filter: JobFilter, most: int) -> list[int]:
    statement, whose = ("routes_everywhere", {}) if tenant is None else ("routes_of_tenant", {"tenant": tenant})
    asked = {"queue": filter.queue, "workflow": filter.workflow, "most": most, **terms_of(filter.within)}
    return [row["id"] for row in t.all(statement, **asked, **whose)]


def _of_error(error_type: str) -> list[Source]:
    """What met it and went on, then what ended by it."""
    error = {"error_type": error_type}
    return [Walk("list_met_by_error", error, is_shared=True), Walk("list_ended_by_error", error, is_shared=True)]


def _are_shared(sources: Sequence[Source]) -> bool:
    return any(isinstance(source, Walk) and source.is_shared for source in sources)
