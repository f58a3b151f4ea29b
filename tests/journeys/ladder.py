"""What the journeys of the ladder share: a culprit beside innocents in one process, and what must be true then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.journeys.conftest import Jobs
from tests.support.eventually import eventually
from tests.support.workers import COMPRESSED, Worker
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.store.port import Store

Start = Callable[..., Worker]
APP = "unstuck.examples.stuck:app"
#: A frozen process gets time for its culprit's own verdict.
TIMES = replace(COMPRESSED, frozen=5.0)
#: The fixed tolerance of A25, A27 and A28.
SLACK = 2.0

on_sqlite_in_both_modes = pytest.mark.parametrize(
    ("mode", "store_url"), [("fork", "sqlite"), ("spawn", "sqlite")], indirect=["store_url"]
)


@dataclass
class Company:
    """Innocents that run in one process of this worker."""

    jobs: Jobs
    worker: Worker
    sync: list[str]
    coroutines: list[str]
    pid: int
    slots: int

    def release(self) -> None:
        """Those that run until they are told may end now."""
        _end_of_innocents(self.worker).touch()

    @property
    def all(self) -> list[str]:
        return [*self.sync, *self.coroutines]


@dataclass(frozen=True)
class Ending:
    """How a culprit ended, and what its history tells."""

    record: JobRecord
    events: list[EventRecord]
    attempts: list[AttemptRecord]
    seen_at: float = field(default_factory=time.time)

    @property
    def last(self) -> AttemptRecord:
        return self.attempts[-1]

    @property
    def stack(self) -> str:
        return self.last.stack or ""

    def took(self, since: str) -> float:
        """Seconds from the last event of that kind to the end."""
        begun = [event.at for event in self.events if event.kind == since]
        return (self.events[-1].at - begun[-1]).total_seconds()


def accompanied(
    start: Start,
    jobs: Jobs,
    *,
    seconds: float | None = None,
    slots: int = 6,
    sync: int = 2,
    coroutines: int = 1,
    **more: Any,
) -> Company:
    """A worker with one process, in which innocents run for so many seconds, or until the company releases them."""
    worker = start(app=APP, concurrency=slots, processes=1, **{"times": TIMES, **more})
    policy = {"grace": 5.0}
    lasting = (50.0, str(_end_of_innocents(worker))) if seconds is None else (seconds,)
    functions = jobs.enqueue_many("innocent.sync", *lasting, times=sync, **policy) if sync else []
    others = jobs.enqueue_many("innocent.async", *lasting, times=coroutines, **policy) if coroutines else []
    pids = {whereabouts(jobs, job)["pid"] for job in (*functions, *others)}
    if not pids:
        pids = {
            eventually(lambda: [post["pid"] for post in serving(jobs, worker) if post["state"] == "active"], 20)[0]
        }
    (pid,) = pids
    return Company(jobs, worker, functions, others, pid, slots)


def _end_of_innocents(worker: Worker) -> Path:
    return worker.log.with_suffix(".innocents-may-end")


def whereabouts(jobs: Jobs, job: str, attempt: int = 1, within: float = 20.0) -> dict[str, Any]:
    """Where it runs, as it said itself."""

    def said() -> dict[str, Any]:
        text = jobs.store.progress_of("default", job)
        assert text, f"{job} has not begun: {jobs.kinds(job)}"
        told: dict[str, Any] = json.loads(text)
        assert told["attempt"] >= attempt
        return told

    return eventually(said, timeout=within)


def ended(jobs: Jobs, job: str, *, within: float = 12.0) -> Ending:
    record = jobs.until(job, *FINAL, JobState.PAUSED, within=within)
    store: Store = jobs.store
    return Ending(record, list(store.history("default", job)), list(store.attempts("default", job)))


def is_stuck(ending: Ending, grace: float) -> None:
    """A25: the verdict with everything that explains it, in time."""
    message = f"Execution did not respond to cancellation within {grace:g} seconds. Worker process recycled."
    assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "ExecutionStuck"), story(ending)
    assert ending.record.error_message == message
    assert grace <= ending.took("requested") + 0.2, story(ending)
    assert ending.took("requested") <= grace + SLACK, story(ending)
    last = ending.last
    assert (last.outcome, last.error_type, last.error_message) == ("stuck", "ExecutionStuck", message)
    assert last.duration_ms is not None
    assert last.duration_ms >= grace * 1000
    assert (ending.record.failures, ending.record.losses) == (0, 0)


_RERUN = ["submitted", "claimed", "lost", "claimed", "completed"]


def turns(jobs: Jobs, job: str) -> list[str]:
    """Its history without claims that came to nothing: what had not started in time went back."""
    kinds = jobs.kinds(job)
    idle = {at for at, kind in enumerate(kinds) if kind == "given_back"}
    return [kind for at, kind in enumerate(kinds) if at not in idle and at + 1 not in idle]


def undisturbed(company: Company, jobs: Sequence[str]) -> None:
    """They end in their first attempt, where they began."""
    company.release()
    for job in jobs:
        record = company.jobs.until(job, JobState.COMPLETED, within=20)
        assert turns(company.jobs, job) == ["submitted", "claimed", "completed"], company.jobs.kinds(job)
        assert json.loads(record.result or "{}")["pid"] == company.pid


def rerun_at_no_cost(company: Company, jobs: Sequence[str], *, because_of: str) -> None:
    """A29: another attempt, charged to nobody; the history names the culprit."""
    _are_lost(company, jobs)
    for job in jobs:
        record = company.jobs.until(job, JobState.COMPLETED, within=25)
        assert (record.failures, record.losses, record.suspects) == (0, 0, 0), record
        assert turns(company.jobs, job) == _RERUN, company.jobs.kinds(job)
        (lost,) = [event for event in company.jobs.store.history("default", job) if event.kind == "lost"]
        assert because_of in str(lost.data), lost.data


def _are_lost(company: Company, jobs: Sequence[str]) -> None:
    """Their attempts went with the process; the next ones may end at once."""
    eventually(lambda: all("lost" in company.jobs.kinds(job) for job in jobs), timeout=25)
    company.release()


def rerun_as_suspects(company: Company, jobs: Sequence[str]) -> None:
    """The culprit is not known: each runs once more, by itself, and nobody is charged."""
    _are_lost(company, jobs)
    for job in jobs:
        record = company.jobs.until(job, JobState.COMPLETED, within=30)
        assert (record.failures, record.losses, record.suspects) == (0, 0, 1), record
        assert turns(company.jobs, job) == _RERUN, company.jobs.kinds(job)
    pids = [json.loads(company.jobs.get(job).result or "{}")["pid"] for job in jobs]
    assert company.pid not in pids


def replaced_at_once(company: Company, since: float) -> None:
    """A27: the next job starts in another process within two seconds of the verdict."""
    probe = company.jobs.enqueue("innocent.sync", 0.1)
    record = company.jobs.until(probe, JobState.COMPLETED, within=10)
    told = json.loads(record.result or "{}")
    assert told["pid"] != company.pid, "a new job was given to the process that drains"
    assert told["began"] - since < SLACK


def capacity_is_whole(company: Company) -> None:
    """As many innocents as there are slots run at the same time, half of them coroutines, all in one new process."""
    half, may_end = company.slots // 2, company.worker.log.with_suffix(".all-have-begun")
    lasting = (50.0, str(may_end))
    fresh = [
        *company.jobs.enqueue_many("innocent.sync", *lasting, times=company.slots - half),
        *company.jobs.enqueue_many("innocent.async", *lasting, times=half),
    ]
    for job in fresh:
        whereabouts(company.jobs, job)
    may_end.touch()
    told = [json.loads(company.jobs.until(job, JobState.COMPLETED, within=15).result or "{}") for job in fresh]
    assert len({where["pid"] for where in told}) == 1
    assert max(where["began"] for where in told) < min(where["ended"] for where in told), told
    assert all(where["attempt"] == 1 for where in told)


def family_is_gone(company: Company, *, within: float = 10.0) -> None:
    """Nothing is left of the culprit's process; below the worker is only what it knows of."""
    eventually(lambda: not is_alive(company.pid), timeout=within)

    def only_known() -> None:
        record = company.worker.record(company.jobs.store)
        assert record is not None
        known = {int(record.info["pids"]["zygote"]["pid"]), *company.worker.executors(company.jobs.store)}
        below = psutil.Process(company.worker.process.pid).children(recursive=True)
        strangers = [p.pid for p in below if p.pid not in known and is_alive(p.pid)]
        assert strangers == [], f"{strangers} are not among {known}"

    eventually(only_known, timeout=within)


def is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def executors(company: Company) -> list[dict[str, Any]]:
    return serving(company.jobs, company.worker)


def serving(jobs: Jobs, worker: Worker) -> list[dict[str, Any]]:
    """What the worker says about its processes, without the spare."""
    record = worker.record(jobs.store)
    posts = record.info.get("executors", []) if record is not None else []
    return [post for post in posts if post["state"] != "spare"]


def recycled(company: Company) -> list[dict[str, Any]]:
    record = company.worker.record(company.jobs.store)
    assert record is not None
    return list(record.info.get("recycled", []))


def story(ending: Ending) -> str:
    lines = [f"{event.at:%H:%M:%S.%f} {event.kind} {event.data}" for event in ending.events]
    return "\n".join([f"{ending.record.state} {ending.record.error_type}: {ending.record.error_message}", *lines])
