"""What a check of the doctor is given, and how its findings are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import cached_property
from typing import Generic, Protocol, TypeVar

from unstuck.model.job import WorkerRecord
from unstuck.operations.checks import late
from unstuck.operations.table import Caller
from unstuck.records import dataclass
from unstuck.store.port import FileStand, ServerStand, Store
from unstuck.views.doctor import FindingView, Severity
from unstuck.views.health import CheckView
from unstuck.views.workers import WorkerView

#: Why it matters, of what `health` tells too.
_WHY = {
    "locks": "whatever needs these rows waits until that session ends its transaction",
    "writes": "no job can start or end until the database can be written again",
    "clock": "delays and leases keep their distance; what was given as an hour of the clock comes earlier or later",
    "schema": "this code asks for tables and columns that are not there",
    "workers": "jobs are accepted and stored, and none of them runs",
    "ready": "jobs wait until a worker takes them",
    "silent": "its jobs run again elsewhere once its lease is over; until then they wait for it",
    "polls": "a cancel reaches their handlers late, with a beat",
    "import": "such a worker runs no job",
    "processes": "such a worker runs no job",
    "roles": "what that role does for jobs is not done there",
    "sweeps": "leases, timers and limits count only if somebody looks after them",
    "inbox": "whose turn it is on a target, and which dependants may start, is decided late",
    "targets": "every job behind the blocking one on that target waits for a person",
    "schedules": "what should run by the clock does not",
    "webhooks": "what they should be told waits, and is given up in the end",
    "alerts": "somebody should look at what opened them",
    "quarantine": "these jobs and targets do not move until what refuses the write is gone",
    "dead_letters": "these jobs never ran, or ran out of tries, and nobody has looked",
    "notifications": "somebody should know",
}
#: What is no trouble by itself.
_SEVERITY: dict[str, Severity] = {"notifications": "note"}


class Exam:
    """One examination. What several checks need is read once; if that fails, each of them could not be made."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller

    @property
    def store(self) -> Store:
        return self.caller.store

    @property
    def now(self) -> datetime:
        return self.caller.store.now()

    @cached_property
    def _records(self) -> list[WorkerRecord]:
        return self.caller.lookup.workers()

    @cached_property
    def workers(self) -> list[WorkerView]:
        """Those that live, or ended so lately that it is news."""
        now = self.now
        return [WorkerView.of(worker, now) for worker in self._records]

    @cached_property
    def queues(self) -> dict[int, tuple[str, ...]]:
        """By the number of a worker: what it claims from. Most are not told, and take all that their app names."""
        return {each.number: tuple(each.serves.get("queues") or each.queues) for each in self._records}

    @property
    def alive(self) -> list[WorkerView]:
        return [worker for worker in self.workers if worker.is_alive]

    @cached_property
    def server(self) -> ServerStand | None:
        return self.caller.store.server_stand()

    @cached_property
    def file(self) -> FileStand | None:
        return self.caller.store.file_stand()

    @property
    def late(self) -> float:
        """Seconds after which what is due should have been swept."""
        return late(self.caller.times)

    def told(self, checks: Iterable[CheckView], about: str) -> Iterator[FindingView]:
        """What `health` would say of it."""
        for check in checks:
            if check.ok:
                continue
            what = check.detail.removesuffix(check.remedy or "").rstrip(":; ") if check.remedy else check.detail
            severity = _SEVERITY.get(check.name, "error" if check.fatal else "warning")
            yield finding(
                check.name, severity, about, what, _WHY.get(check.name, "it does not do what it should"), check.remedy
            )


class Subject(Protocol):
    """What is looked at: an installation as its database knows it, or a host. `store`: None: it cannot be asked."""

    @property
    def store(self) -> Store | None: ...


S = TypeVar("S", bound=Subject)


@dataclass(frozen=True, slots=True)
class DoctorCheck(Generic[S]):
    """`looks_at`: in a few words. `fix`: mends what it found and says what it did; only what is safe for everybody
    who works with the database meanwhile. Without `needs_schema` it is made before there are tables, too."""

    name: str
    looks_at: str
    look: Callable[[S], Iterable[FindingView]]
    fix: Callable[[S], str] | None = None
    needs_schema: bool = True


def finding(
    check: str,
    severity: Severity,
    about: str,
    what: str,
    why: str,
    remedy: str | None = None,
    *,
    fixable: bool = False,
) -> FindingView:
    return FindingView(
        check=check, severity=severity, about=about, what=what, why=why, remedy=remedy, fixable=fixable
    )
