"""Lookup: jobs by id or prefix, lists, counts, and the workers behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from unstuck.model.errors import AmbiguousJob, InvalidInput, UnknownJob, UnknownTarget, quoted, told
from unstuck.model.job import DEFAULT_TENANT, AttemptRecord, EventRecord, JobRecord, WorkerRecord
from unstuck.model.keys import Within
from unstuck.model.lifecycle import ALIASES, JobState, Shown, parse_shown, parse_state
from unstuck.model.parts import MOST_PARTS, Part
from unstuck.model.payload import MAX_NAME, check_wording
from unstuck.model.waits import Child, Spent, StepRecord, WaitRecord
from unstuck.model.why.facts import AwaitedJob
from unstuck.store.port import (
    ATTEMPTS_PAGE,
    EVERY,
    Dossier,
    JobFilter,
    JobPage,
    Store,
    Tally,
    TallyBy,
    TargetRecord,
)

CEILING = 10_000
MOST_JOBS = 100_000
_ID_LENGTH = 36
_SHOWN = 5
#: How often a page that came back short is continued before the caller gets it as it is.
PATIENCE = 10
#: Seconds for which a worker that ended is news.
WORKERS_SHOWN = 3600.0
#: States of a worker that beats.
ALIVE = ("active", "draining")
WORKERS_PAGE = 500

State = JobState | Shown | str


class Lookup:
    """Reading, for one tenant. With EVERY in its place jobs are listed and named whoever's they are. A job that is
    not `within` looks like one that is not there."""

    def __init__(
        self, store: Store, *, tenant: str = DEFAULT_TENANT, offline: float = 120.0, within: Within | None = None
    ) -> None:
        self._store = store
        self._tenant = check_wording(tenant, "tenant") or DEFAULT_TENANT
        self._offline = offline
        self._within = within

    def job(self, name: str) -> JobRecord:
        """By id, or by as much of its beginning as names one job only."""
        return self.seen(self._store.get(self._tenant, self._whole_id(name)), name)

    def dossier(self, name: str, last: int | None = None) -> Dossier:
        """Everything about one job, with its `last` events and attempts, a page of each at most."""
        found = self._store.dossier(self._tenant, self._whole_id(name), last)
        self.seen(found.job if found else None, name)
        assert found is not None
        steps = sorted(found.steps, key=lambda step: step.at)
        children = [c for c in found.children if self._sees(c.queue, c.workflow)]
        return replace(found, steps=steps, children=children)

    def seen(self, record: JobRecord | None, name: str) -> JobRecord:
        """What was found under this name; UnknownJob if there is nothing, or nothing that may be seen."""
        if (
            record is None
            or self._listed not in (None, record.tenant)
            or not self._sees(record.queue, record.workflow)
        ):
            raise self.unknown(name)
        return record

    def job_id(self, name: str) -> str:
        """The whole id; a whole one is taken as it is by whoever may know of every job."""
        return self._whole_id(name) if self._within is None else self.job(name).id

    def _sees(self, queue: str, workflow: str) -> bool:
        return self._within is None or self._within.holds(queue, workflow)

    def _whole_id(self, name: str) -> str:
        prefix = _text(name, "job").strip().lower()
        if not prefix or set(prefix) - set("0123456789abcdef-"):
            raise self.unknown(name)
        if len(prefix) >= _ID_LENGTH:
            return prefix
        match self._store.find(self._listed, prefix, _SHOWN, self._within):
            case []:
                raise self.unknown(name)
            case [only]:
                return only
            case several:
                raise AmbiguousJob(name, several)

    def owner(self, name: str) -> str:
        """The tenant whose job it is."""
        if self._listed is not None:
            return self._tenant
        ident = self._whole_id(name)
        tenant = self._store.owner(ident)
        if tenant is None or not self._sees_job(tenant, ident):
            raise self.unknown(name)
        return tenant

    def _sees_job(self, tenant: str, ident: str) -> bool:
        record = None if self._within is None else self._store.get(tenant, ident)
        return self._within is None or (record is not None and self._sees(record.queue, record.workflow))

    @property
    def _listed(self) -> str | None:
        return None if self._tenant == EVERY else self._tenant

    def unknown(self, name: str) -> UnknownJob:
        """A caller of another tenant than the default one may have meant the default one."""
        return UnknownJob(name, None if self._tenant in (DEFAULT_TENANT, EVERY) else self._tenant)

    def jobs(self, wanted: JobFilter, limit: int = 50, after: str | None = None) -> JobPage:
        check_limit(limit)
        return self._filled(replace(wanted, within=self._within), limit, _cursor(after))

    def _filled(self, wanted: JobFilter, limit: int, after: str | None) -> JobPage:
        """The store looks at a bounded number of jobs at a time; one look more may fill the page."""
        page = self._store.jobs(self._listed, wanted, limit, after)
        for _ in range(PATIENCE):
            if page.next is None or len(page.jobs) == limit or page.looked or page.is_heavy:
                break
            more = self._store.jobs(self._listed, wanted, limit - len(page.jobs), page.next)
            page = JobPage(page.jobs + more.jobs, more.next, is_heavy=more.is_heavy)
        return page

    def history(self, job: str, after: int = 0, limit: int | None = None) -> list[EventRecord]:
        """Its events above this number, in order; at most `limit`."""
        return list(islice(self.events(job, after), limit))

    def events(self, job: str, after: int = 0) -> Iterator[EventRecord]:
        """The same page by page, as far as somebody reads."""
        while page := self._store.history(self._tenant, job, after):
            yield from page
            after = page[-1].number

    def attempts(self, job: str, after: int = 0, limit: int | None = None) -> list[AttemptRecord]:
        """Its attempts above this token, in order; at most `limit`."""
        if limit is not None and limit <= ATTEMPTS_PAGE:
            return self._store.attempts(self._tenant, job, after, limit)
        return list(islice(self.tries(job, after), limit))

    def tries(self, job: str, after: int = 0, some: int = ATTEMPTS_PAGE) -> Iterator[AttemptRecord]:
        """The same page by page, of so many each, as far as somebody reads."""
        while page := self._store.attempts(self._tenant, job, after, some):
            yield from page
            after = page[-1].token

    def progress(self, job: str) -> str | None:
        return self._store.progress_of(self._tenant, job)

    def steps(self, job: str, skip: int = 0) -> Iterator[StepRecord]:
        """What it has finished, in the order it did, behind the first so many; page by page, as far as somebody
        reads."""
        while page := self._store.steps_page(self._tenant, job, skip):
            yield from page
            skip += len(page)

    def parts(self, job: str, after: int = 0, limit: int = MOST_PARTS) -> list[Part]:
        """Its partial results above this number, in the order it gave them."""
        return self._store.parts_of(self._tenant, job, after, limit)

    def waits(self, job: str, skip: int = 0) -> Iterator[WaitRecord]:
        """What it ever waited for, the oldest first, in the same way."""
        while page := self._store.waits_page(self._tenant, job, skip):
            yield from page
            skip += len(page)

    def usage(self, job: str) -> Spent:
        return self._store.usage_of(self._tenant, job)

    def children(self, job: str) -> list[Child]:
        return [c for c in self._store.children_of(self._tenant, job) if self._sees(c.queue, c.workflow)]

    def parent(self, job: str) -> str | None:
        return self._store.parent_of(self._tenant, job)

    def target(self, name: str) -> TargetRecord:
        found = self._store.target(self._tenant, _text(name, "target"))
        if found is None:
            raise UnknownTarget(name)
        return found

    def targets(self, *, blocked: bool = False, after: str = "", limit: int = 100) -> list[TargetRecord]:
        """By name, above `after`; with `blocked` only what a job blocks, the longest blocked first."""
        check_limit(limit)
        after = _text(after, "after")
        if blocked and after:
            self.target(after)  # a name that is none would end the list in silence
        return self._store.targets(self._tenant, blocked=blocked, after=after, limit=limit)

    def line(self, target: str, limit: int = 20) -> list[JobRecord]:
        """The jobs that wait for their turn there, the next first."""
        return self._store.line(self._tenant, target, limit)

    def dependencies(self, job: str) -> tuple[AwaitedJob, ...]:
        """The jobs that a PENDING one waits for, with their states."""
        facts = self._store.gate_facts(self._tenant, job)
        return () if facts is None else facts.dependencies

    def workers(self) -> list[WorkerRecord]:
        """Those that live, or ended so lately that it is news, each with its state as others see it."""
        return list(self.each_worker())

    def each_worker(self, ended_within: float | None = WORKERS_SHOWN, after: int = 0) -> Iterator[WorkerRecord]:
        """The same page by page, as far as somebody reads: by number, above `after`. Those that ended longer ago than
        this are left out; None: all whose rows are kept."""
        now = self._store.now()
        for worker in every_worker(self._store, ended_within, after):
            yield replace(worker, state=seen_state(worker, now, self._offline))

    def tallies(self, by: TallyBy, *, after: str = "", limit: int = 20) -> list[Tally]:
        """How many jobs are where, per tenant, or per queue or workflow of this tenant; by name, above `after`."""
        check_limit(limit)
        return self._store.tallies(by, self._tenant, after=after, limit=limit, ceiling=CEILING)


def seen_state(worker: WorkerRecord, now: datetime, offline: float) -> str:
    """As others see it: active, draining, lost (its lease is over), offline (silent for so long), gone (it left)."""
    if worker.state == "gone":
        return "gone"
    if now - worker.heartbeat_at > timedelta(seconds=offline):
        return "offline"
    return worker.state if worker.lease_until > now else "lost"


def every_worker(store: Store, ended_within: float | None, after: int = 0) -> Iterator[WorkerRecord]:
    """Page by page: a crash loop leaves thousands of them."""
    while page := store.workers(after, WORKERS_PAGE, ended_within=ended_within):
        yield from page
        after = page[-1].number


def check_limit(limit: Any) -> None:
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MOST_JOBS:
        raise InvalidInput(f"limit={quoted(limit)} is not a whole number between 1 and {MOST_JOBS}")


def _text(value: Any, what: str) -> str:
    text = check_wording(value, what)
    if text is None:
        raise InvalidInput(f"{what}=None is not text")
    return text


def _cursor(after: Any) -> str | None:
    cursor = check_wording(after, "after")
    if cursor is not None and len(cursor) > MAX_NAME:
        raise InvalidInput(f"{quoted(cursor)} is not a cursor that a page gave out")
    return cursor


def each_state(given: Any) -> tuple[Any, ...]:
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(f"state={quoted(given)} is neither a state nor several")
    return tuple(given)


def as_state(name: JobState | str) -> JobState:
    try:
        return parse_state(_text(name, "state"))
    except ValueError:
        raise _unknown_state(name, [*JobState, *ALIASES]) from None


def as_shown(name: State) -> JobState | Shown:
    try:
        return parse_shown(_text(name, "state"))
    except ValueError:
        raise _unknown_state(name, [*JobState, *Shown, *ALIASES]) from None


def _unknown_state(name: str, known: list[str]) -> InvalidInput:
    return InvalidInput(f"there is no state {told(name)}; known: {', '.join(known)}")
