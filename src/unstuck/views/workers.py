"""Workers as they describe themselves with every beat: their processes, the jobs in them, the processes that went.

Read with tolerance: the description may come from a worker of another version, and a key that is missing there must
not hide the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from unstuck.model.job import WorkerRecord
from unstuck.model.offers import key_of
from unstuck.model.times import Times
from unstuck.model.why.facts import FailingRole, beat_of, failing_roles
from unstuck.model.wording import duration
from unstuck.observe.lookup import ALIVE, WORKERS_SHOWN
from unstuck.store.port import OrderKind, WorkerOrder
from unstuck.views import View


class RoleView(View, frozen=True, kw_only=True):
    """What a worker cannot do beside running jobs, as of this moment."""

    name: str
    failing_ms: int
    failures: int
    error: str

    @classmethod
    def of(cls, record: FailingRole, passed: float) -> RoleView:
        failing_ms = round((record.failing_for + passed) * 1000)
        return cls(name=record.name, failing_ms=failing_ms, failures=record.failures, error=record.error)

    @property
    def text(self) -> str:
        """What it cannot do, since when, and why."""
        tries = "once" if self.failures == 1 else f"{self.failures:,} times"
        failing = f"{self.name} has failed for {duration(self.failing_ms / 1000)} ({tries})"
        return f"{failing}: {self.error}" if self.error else failing


class BodyView(View, frozen=True, kw_only=True):
    """A job in a process; the times are those of this moment, not of the last beat. `grace_left_ms` counts down once
    it was asked (`request`) to stop."""

    job: str
    workflow: str
    elapsed_ms: int
    on: str
    request: str | None
    grace_left_ms: int | None
    stuck: bool

    @classmethod
    def of(cls, said: dict[str, Any], passed: float) -> BodyView:
        request, left = said.get("asked"), _number(said.get("grace_left"))
        return cls(
            job=str(said.get("job") or "?"),
            workflow=str(said.get("workflow") or "?"),
            elapsed_ms=round(((_number(said.get("for")) or 0.0) + passed) * 1000),
            on=str(said.get("on") or "?"),
            request=str(request) if request else None,
            grace_left_ms=None if left is None else round(max(0.0, left - passed) * 1000),
            stuck=bool(said.get("stuck")),
        )

    @property
    def trouble(self) -> str:
        """What is wrong with it; empty for most."""
        if self.stuck:
            return "STUCK"
        if self.request is None and self.grace_left_ms is None:
            return ""
        left = "" if self.grace_left_ms is None else f", {self.grace_left_ms / 1000:.0f} s of grace left"
        return f"{f'{self.request} asked' if self.request else 'told to stop'}{left}"


class ProcessView(View, frozen=True, kw_only=True):
    """A process of a worker. `jobs` names at most some of the `running` ones."""

    pid: int
    state: str
    generation: int
    alone: bool
    memory: int
    jobs_done: int
    running: int
    reason: str
    silent_ms: int
    jobs: tuple[BodyView, ...]

    @classmethod
    def of(cls, said: dict[str, Any], passed: float) -> ProcessView:
        jobs = tuple(BodyView.of(job, passed) for job in _objects(said.get("jobs")))
        return cls(
            pid=_whole(said.get("pid")),
            state=str(said.get("state") or "?"),
            generation=_whole(said.get("generation")),
            alone=bool(said.get("alone")),
            memory=_whole(said.get("memory")),
            jobs_done=_whole(said.get("jobs_done")),
            running=max(_whole(said.get("running")), len(jobs)),
            reason=str(said.get("reason") or ""),
            silent_ms=round((_number(said.get("silent_for")) or 0.0) * 1000),
            jobs=jobs,
        )


class GoneProcess(View, frozen=True, kw_only=True):
    """A process that went, and why."""

    pid: int
    generation: int
    jobs_done: int
    reason: str
    at: datetime | None

    @classmethod
    def of(cls, said: dict[str, Any]) -> GoneProcess:
        return cls(
            pid=_whole(said.get("pid")),
            generation=_whole(said.get("generation")),
            jobs_done=_whole(said.get("jobs_done")),
            reason=str(said.get("reason") or "ended as asked"),
            at=_instant(said.get("at")),
        )


class WorkerView(View, frozen=True, kw_only=True):
    """A worker. `state` as others see it: active, draining, lost (its lease is over), offline (silent for too long),
    gone (it left). `ready`: it takes jobs. Only who is alive has processes; `recycled` are the last that went, the
    newest last. `info` is what it said of itself, as it said it; the rest is ours to keep stable."""

    name: str
    incarnation: str
    state: str
    host: str
    pid: int
    queues: tuple[str, ...]
    code_version: str
    running: int
    started_at: datetime
    heartbeat_at: datetime
    lease_until: datetime
    ready: bool
    roles: tuple[RoleView, ...]
    processes: tuple[ProcessView, ...]
    recycled: tuple[GoneProcess, ...]
    info: dict[str, Any]
    #: It names one where two have the same name.
    number: int
    #: How many jobs it runs at once; None: it did not say.
    slots: int | None
    #: Why it cannot import its app, or start processes.
    import_error: str | None
    start_error: str | None
    #: Of one at a distance: the name of the key by which it asks a server, and the address from which it does. None:
    #: it has the database itself.
    key: str | None
    address: str | None
    #: Of such a one: the server through which it last beat, and when its poll for what is asked of it was last
    #: answered.
    server: str | None
    polled_at: datetime | None

    @classmethod
    def of(cls, record: WorkerRecord, now: datetime, *, whole: bool = True) -> WorkerView:
        """Of a record as `Lookup.workers` gives it. Not `whole`: without all that may name jobs, which may be those
        of any tenant."""
        info = record.info if whole else {}
        slots = record.info.get("slots")
        remote = info.get("remote") if key_of(record.incarnation) else None
        remote = remote if isinstance(remote, dict) else {}
        return cls(
            name=record.name,
            incarnation=record.incarnation,
            state=record.state,
            host=record.host,
            pid=record.pid,
            queues=tuple(record.queues),
            code_version=record.code_version,
            running=record.running,
            started_at=record.started_at,
            heartbeat_at=record.heartbeat_at,
            lease_until=record.lease_until,
            ready=is_ready(record),
            roles=roles(record, now) if whole else (),
            processes=processes(info, passed(record, now)) if record.state in ALIVE else (),
            recycled=tuple(GoneProcess.of(said) for said in _objects(info.get("recycled"))),
            info=info,
            number=record.number,
            slots=slots if isinstance(slots, int) else None,
            import_error=_words(info.get("import_error")),
            start_error=_words(info.get("start_error")),
            key=_words(remote.get("key")),
            address=_words(remote.get("address")),
            server=_words(remote.get("server")),
            polled_at=polled_at(record) if remote else None,
        )

    @property
    def is_alive(self) -> bool:
        return self.state in ALIVE

    def is_silent(self, times: Times, now: datetime) -> bool:
        """By the beat that it says to keep: workers at a distance beat seldom."""
        beat = beat_of(self.info.get("beat"))
        allowed = times.silent_after if beat is None else times.silent_after - times.beat + beat
        return now - self.heartbeat_at > timedelta(seconds=allowed)

    def is_news(self, now: datetime) -> bool:
        """Workers that left in order are history; one that fell silent is news for an hour."""
        return self.state != "gone" and now - self.heartbeat_at < timedelta(seconds=WORKERS_SHOWN)

    @property
    def has_room(self) -> bool:
        """It takes jobs and has a free slot, as far as it says how many it has."""
        return self.ready and (self.slots is None or self.running < self.slots)


class OrderView(View, frozen=True, kw_only=True):
    """What somebody asks of a worker itself. `done_at`, `answer`: None before it has answered; `refused`: it did not
    do it. `subject`: "" for the whole worker, a pid, or "JOBNUMBER:TOKEN"."""

    number: int
    kind: OrderKind
    worker: str
    subject: str
    given_at: datetime
    given_by: str
    done_at: datetime | None
    refused: bool
    answer: str | None
    #: Of the worker; its name may be that of another, too.
    worker_number: int

    @classmethod
    def of(cls, record: WorkerOrder, worker: str) -> OrderView:
        return cls(
            number=record.number,
            kind=record.kind,
            worker=worker,
            subject=record.subject,
            given_at=record.given_at,
            given_by=record.by,
            done_at=record.done_at,
            refused=record.is_refused,
            answer=record.answer,
            worker_number=record.worker,
        )


def polled_at(worker: WorkerRecord) -> datetime | None:
    """As it says itself, which may be anything."""
    ago = _number(worker.info.get("polled_ago"))
    return None if ago is None or not 0 <= ago < 1e7 else worker.heartbeat_at - timedelta(seconds=ago)


def is_ready(worker: WorkerRecord) -> bool:
    """It takes jobs: alive, not draining, its app imported and a process there to run them."""
    return worker.state == "active" and bool(worker.info.get("ready"))


def passed(worker: WorkerRecord, now: datetime) -> float:
    """Seconds since its last beat, if it lives: what is true of who still beats moves on between two beats."""
    is_alive = worker.state in ALIVE and worker.lease_until > now
    return max(0.0, (now - worker.heartbeat_at).total_seconds()) if is_alive else 0.0


def processes(info: dict[str, Any], passed: float = 0.0) -> tuple[ProcessView, ...]:
    """As of its last beat; with the seconds that passed since, as they must be by now."""
    return tuple(ProcessView.of(said, passed) for said in _objects(info.get("executors")))


def roles(worker: WorkerRecord, now: datetime) -> tuple[RoleView, ...]:
    """What of its own it cannot do, the longest first."""
    since = passed(worker, now)
    found = [RoleView.of(role, since) for role in failing_roles(worker.info.get("roles"))]
    return tuple(sorted(found, key=lambda role: (-role.failing_ms, role.name)))


def where_is(workers: Iterable[WorkerRecord], job: str) -> tuple[WorkerRecord, ProcessView] | None:
    """The process that says it has this job inside."""
    for worker in workers:
        for process in processes(worker.info):
            if any(body.job == job for body in process.jobs):
                return worker, process
    return None


def _words(said: object) -> str | None:
    return str(said) if said else None


def _objects(said: object) -> list[dict[str, Any]]:
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def _number(said: object) -> float | None:
    is_number = isinstance(said, int | float) and not isinstance(said, bool)
    return float(said) if is_number else None  # type: ignore[arg-type]


def _whole(said: object) -> int:
    return len(said) if isinstance(said, list) else int(_number(said) or 0)


def _instant(said: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(said))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
