"""The bulks' port: a verb over all the jobs that a filter wants."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from unstuck.model.bulk import NO_OPTIONS, BulkOptions, BulkState, BulkVerb, Counted, Refusal
from unstuck.records import dataclass
from unstuck.store.port.jobs import JobFilter
from unstuck.store.port.sweeps import Enough, never


@dataclass(frozen=True, slots=True)
class NewBulk:
    """What somebody asks for. The same `key` again is the same bulk. `expected`: how many jobs the asker thinks it is
    about; None: however many."""

    key: str
    tenant: str
    verb: BulkVerb
    filter: JobFilter
    by: str
    options: BulkOptions = NO_OPTIONS
    expected: int | None = None


@dataclass(frozen=True, slots=True)
class BulkRecord:
    """How far a bulk is. Of the jobs that `matched` so far it has `done` some (of a running job: asked it), was
    `refused` others (the first `reasons` are kept), found that some had `moved_on` before it came to them, and has
    some `left`. It knows how many match in all once `is_looked_through`; `expected` is what its asker said."""

    number: int
    tenant: str
    verb: BulkVerb
    filter: JobFilter
    options: BulkOptions
    by: str
    state: BulkState
    began_at: datetime
    matched: int = 0
    done: int = 0
    refused: int = 0
    moved_on: int = 0
    reasons: tuple[Refusal, ...] = ()
    expected: int | None = None
    is_looked_through: bool = False
    carried_at: datetime | None = None
    ended_at: datetime | None = None
    #: Who cancelled it.
    ended_by: str | None = None
    #: Why it FAILED.
    error: str | None = None

    @property
    def left(self) -> int:
        return self.matched - self.done - self.refused - self.moved_on


class BulksPort(Protocol):
    """A bulk is durable before anything of it is done; any worker's janitor carries it on."""

    def count_matching(self, tenant: str, filter: JobFilter) -> Counted:
        """How many jobs a bulk with this filter would be about, as far as a bounded look tells."""
        ...

    def start_bulk(self, bulk: NewBulk) -> BulkRecord:
        """Jobs submitted from now on do not count. OtherCount if `expected` is not how many match."""
        ...

    def bulk(self, tenant: str, number: int) -> BulkRecord | None: ...

    def bulks(
        self,
        tenant: str | None = None,
        *,
        state: BulkState | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> list[BulkRecord]:
        """The newest first; `before` is the number of the last one of the page before."""
        ...

    def cancel_bulk(self, tenant: str, number: int, by: str) -> BulkRecord:
        """What it has done stays done; it does nothing more once this is committed. UnknownBulk; BulkEnded, unless it
        was cancelled before."""
        ...

    def carry_bulks(self, batch: int = 500, *, enough: Enough = never) -> int:
        """Carry on what is RUNNING, each a batch at a time: how many jobs were moved. What somebody holds is passed
        over and comes again at the end."""
        ...

    def forget_bulks(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        """Those that ended longer ago than this."""
        ...
