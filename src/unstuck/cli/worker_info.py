"""A worker as it describes itself with every beat: its processes, the jobs in them, and the processes that went.

Read with tolerance: the description may come from a worker of another version, and a key that is missing there must
not hide the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from unstuck.model.job import WorkerRecord
from unstuck.model.why.facts import FailingRole, failing_roles

#: What is only true of a worker that still beats moves on between two beats.
ALIVE = ("active", "draining")


@dataclass(frozen=True, slots=True)
class Body:
    """A job inside a process. `grace_left` counts down once it was `asked` to stop."""

    job: str
    workflow: str
    seconds: float
    on: str
    asked: str | None = None
    grace_left: float | None = None
    is_stuck: bool = False

    @property
    def trouble(self) -> str:
        """What is wrong with it, in the words of the tree; empty for most."""
        if self.is_stuck:
            return "STUCK"
        if self.asked is None and self.grace_left is None:
            return ""
        left = "" if self.grace_left is None else f", {self.grace_left:.0f} s of grace left"
        return f"{f'{self.asked} asked' if self.asked else 'told to stop'}{left}"


@dataclass(frozen=True, slots=True)
class ProcessView:
    pid: int
    state: str
    generation: int
    is_alone: bool
    memory: int
    jobs_done: int
    running: int
    reason: str
    silent_for: float
    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class GoneProcess:
    """A process that went, and why."""

    pid: int
    generation: int
    jobs_done: int
    reason: str
    at: datetime | None


def processes(worker: WorkerRecord, now: datetime | None = None) -> list[ProcessView]:
    """As of its last beat; with `now`, as they must be by now if it still lives."""
    passed = _passed(worker, now)
    return [_process(found, passed) for found in _objects(worker.info.get("executors"))]


def _passed(worker: WorkerRecord, now: datetime | None) -> float:
    """Seconds since its last beat, if it lives."""
    is_alive = now is not None and worker.state in ALIVE and worker.lease_until > now
    return max(0.0, (now - worker.heartbeat_at).total_seconds()) if now is not None and is_alive else 0.0


def recycled(worker: WorkerRecord) -> list[GoneProcess]:
    """The last ones, the newest last."""
    return [
        GoneProcess(
            _whole(found.get("pid")),
            _whole(found.get("generation")),
            _whole(found.get("jobs_done")),
            str(found.get("reason") or "ended as asked"),
            _instant(found.get("at")),
        )
        for found in _objects(worker.info.get("recycled"))
    ]


def roles(worker: WorkerRecord, now: datetime | None = None) -> list[FailingRole]:
    """What of its own it cannot do, the longest first; with `now`, as it must be by now if it still lives."""
    passed = _passed(worker, now)
    found = [replace(role, failing_for=role.failing_for + passed) for role in failing_roles(worker.info.get("roles"))]
    return sorted(found, key=lambda role: (-role.failing_for, role.name))


def is_ready(worker: WorkerRecord, state: str) -> bool:
    """It takes jobs: alive, not draining, its app imported and a process there to run them."""
    return state == "active" and bool(worker.info.get("ready"))


def where_is(
    workers: list[WorkerRecord], job: str, now: datetime | None = None
) -> tuple[WorkerRecord, ProcessView] | None:
    """The process that says it has this job inside."""
    for worker in workers:
        for process in processes(worker, now):
            if any(body.job == job for body in process.bodies):
                return worker, process
    return None


def import_error(info: dict[str, Any]) -> str | None:
    found = info.get("import_error")
    return str(found) if found else None


def start_error(info: dict[str, Any]) -> str | None:
    found = info.get("start_error")
    return str(found) if found else None


def _process(found: dict[str, Any], passed: float) -> ProcessView:
    bodies = tuple(_body(job, passed) for job in _objects(found.get("jobs")))
    silent = _number(found.get("silent_for")) or 0.0
    return ProcessView(
        pid=_whole(found.get("pid")),
        state=str(found.get("state") or "?"),
        generation=_whole(found.get("generation")),
        is_alone=bool(found.get("alone")),
        memory=_whole(found.get("memory")),
        jobs_done=_whole(found.get("jobs_done")),
        running=max(_whole(found.get("running")), len(bodies)),
        reason=str(found.get("reason") or ""),
        silent_for=silent,
        bodies=bodies,
    )


def _body(found: dict[str, Any], passed: float) -> Body:
    asked, left = found.get("asked"), _number(found.get("grace_left"))
    return Body(
        job=str(found.get("job") or "?"),
        workflow=str(found.get("workflow") or "?"),
        seconds=(_number(found.get("for")) or 0.0) + passed,
        on=str(found.get("on") or "?"),
        asked=str(asked) if asked else None,
        grace_left=None if left is None else max(0.0, left - passed),
        is_stuck=bool(found.get("stuck")),
    )


def _objects(found: object) -> list[dict[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _number(found: object) -> float | None:
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if is_number else None  # type: ignore[arg-type]


def _whole(found: object) -> int:
    return len(found) if isinstance(found, list) else int(_number(found) or 0)


def _instant(found: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(found))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
