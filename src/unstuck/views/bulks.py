"""Bulks: one verb over all the jobs that a filter wants."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.bulk import BulkState, BulkVerb, Counted
from unstuck.model.redaction import REDACTED, Redactions
from unstuck.store.port import BulkRecord, JobFilter
from unstuck.views import View


class FilterView(View, frozen=True, kw_only=True):
    """Which jobs are meant; null: not asked for. States may be said more precisely (SCHEDULED, BLOCKED, …)."""

    state: tuple[str, ...]
    workflow: str | None
    queue: str | None
    error_type: str | None
    target: str | None
    tag: str | None
    before: datetime | None
    since: datetime | None
    #: The reason of their dead letters; "any": those that have one.
    dead_letter: str | None
    #: The name and the value of an argument.
    argument: tuple[str, Any] | None

    @classmethod
    def of(cls, wanted: JobFilter, hidden: Redactions) -> FilterView:
        return cls(
            state=tuple(state.value for state in wanted.states),
            workflow=wanted.workflow,
            queue=wanted.queue,
            error_type=wanted.error_type,
            target=wanted.target,
            tag=wanted.tag,
            before=wanted.before,
            since=wanted.since,
            dead_letter=None if wanted.letter is None else wanted.letter.reason or "any",
            argument=_argument(wanted, hidden),
        )


def _argument(wanted: JobFilter, hidden: Redactions) -> tuple[str, Any] | None:
    if wanted.argument is None:
        return None
    name, value = wanted.argument
    return name, REDACTED if hidden.covers(name, wanted.workflow) else value


class CountView(View, frozen=True, kw_only=True):
    """How many jobs match. `exact` False: there are that many, and maybe more; counting ends somewhere."""

    filter: FilterView
    number: int
    exact: bool

    @classmethod
    def of(cls, wanted: JobFilter, counted: Counted, hidden: Redactions) -> CountView:
        return cls(filter=FilterView.of(wanted, hidden), number=counted.number, exact=counted.is_exact)


class RefusalView(View, frozen=True, kw_only=True):
    """A job that the verb was refused for, and why."""

    job: str
    reason: str


class BulkView(View, frozen=True, kw_only=True):
    """How far a bulk is. Of the jobs that `matched` so far it has `done` some (of a running job: asked it), was
    `refused` others (the first are in `refusals`), found that some had `moved_on` before it came to them, and has
    some `left`. It knows how many match in all once it is `looked_through`."""

    number: int
    tenant: str
    verb: BulkVerb
    filter: FilterView
    reason: str | None
    from_start: bool
    force: bool
    by: str
    state: BulkState
    began_at: datetime
    matched: int
    done: int
    refused: int
    moved_on: int
    left: int
    refusals: tuple[RefusalView, ...]
    expected: int | None
    looked_through: bool
    carried_at: datetime | None
    ended_at: datetime | None
    ended_by: str | None
    error: str | None

    @classmethod
    def of(cls, record: BulkRecord, hidden: Redactions) -> BulkView:
        return cls(
            number=record.number,
            tenant=record.tenant,
            verb=record.verb,
            filter=FilterView.of(record.filter, hidden),
            reason=record.options.reason,
            from_start=record.options.from_start,
            force=record.options.force,
            by=record.by,
            state=record.state,
            began_at=record.began_at,
            matched=record.matched,
            done=record.done,
            refused=record.refused,
            moved_on=record.moved_on,
            left=record.left,
            refusals=tuple(RefusalView(job=each.job, reason=each.reason) for each in record.reasons),
            expected=record.expected,
            looked_through=record.is_looked_through,
            carried_at=record.carried_at,
            ended_at=record.ended_at,
            ended_by=record.ended_by,
            error=record.error,
        )
