"""Lookup: jobs by id or prefix, lists, counts, and the workers behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from unstuck.model.errors import AmbiguousJob, InvalidInput, UnknownJob
from unstuck.model.job import DEFAULT_TENANT, AttemptRecord, EventRecord, JobRecord, WorkerRecord
from unstuck.model.lifecycle import ALIASES, JobState, parse_state
from unstuck.store.port import JobFilter, Page, Store

CEILING = 10_000
MOST_JOBS = 100_000
_ID_LENGTH = 36
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Stats:
    """Jobs per state (a count equal to `ceiling` means: at least that many) and workers per kind."""

    states: dict[JobState, int]
    workers: int
    offline: int
    ceiling: int = CEILING

    def __getitem__(self, state: JobState | str) -> int:
        return self.states.get(as_state(state), 0)


class Lookup:
    """Reading, for one tenant."""

    def __init__(self, store: Store, *, tenant: str = DEFAULT_TENANT, offline: float = 120.0) -> None:
        self._store = store
        self._tenant = tenant
        self._offline = offline

    def job(self, name: str) -> JobRecord:
        """By id, or by as much of its beginning as names one job only."""
        record = self._store.get(self._tenant, self.job_id(name))
        if record is None:
            raise UnknownJob(name)
        return record

    def job_id(self, name: str) -> str:
        """The whole id; a whole one is taken as it is."""
        prefix = name.strip().lower()
        if not prefix or set(prefix) - set("0123456789abcdef-"):
            raise UnknownJob(name)
        if len(prefix) >= _ID_LENGTH:
            return prefix
        match self._store.find(self._tenant, prefix, _SHOWN):
            case []:
                raise UnknownJob(name)
            case [only]:
                return only
            case several:
                raise AmbiguousJob(name, several)

    def jobs(
        self,
        *,
        state: JobState | str | list[JobState | str] | tuple[JobState | str, ...] = (),
        workflow: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        newest_first: bool = True,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        if not 1 <= limit <= MOST_JOBS:
            raise InvalidInput(f"limit={limit} is not between 1 and {MOST_JOBS}")
        states = (state,) if isinstance(state, str) else state
        wanted = JobFilter(tuple(as_state(s) for s in states), workflow, queue, error_type, newest_first)
        return self._store.jobs(self._tenant, wanted, limit, after)

    def history(self, job: str) -> list[EventRecord]:
        return self._store.history(self._tenant, job)

    def attempts(self, job: str) -> list[AttemptRecord]:
        return self._store.attempts(self._tenant, job)

    def progress(self, job: str) -> str | None:
        return self._store.progress_of(self._tenant, job)

    def workers(self) -> list[WorkerRecord]:
        """Each as it reported itself; one that has been silent for too long is shown as offline."""
        now = self._store.now()
        return [self._as_seen(worker, now) for worker in self._store.workers()]

    def stats(self) -> Stats:
        workers = self.workers()
        silent = sum(worker.state == "offline" for worker in workers)
        counts = self._store.counts(self._tenant, CEILING)
        return Stats({state: counts.get(state, 0) for state in JobState}, len(workers) - silent, silent)

    def _as_seen(self, worker: WorkerRecord, now: datetime) -> WorkerRecord:
        silent = now - worker.heartbeat_at > timedelta(seconds=self._offline)
        return replace(worker, state="offline") if silent else worker


def as_state(name: JobState | str) -> JobState:
    try:
        return parse_state(name)
    except ValueError:
        known = ", ".join([*JobState, *ALIASES])
        raise InvalidInput(f"there is no state {name}; known: {known}") from None
