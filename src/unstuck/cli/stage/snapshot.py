"""What the demo's window shows: the database, asked a few times a second, and what changed in between."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import field
from datetime import datetime

from unstuck.model.errors import ErrorType
from unstuck.model.guard import BlacklistEntry, refusal
from unstuck.model.job import JobRecord, shown_state
from unstuck.model.lifecycle import JobState, Shown
from unstuck.observe.flow import Approval, approvals
from unstuck.records import dataclass
from unstuck.store.port import JobFilter, Store, TargetRecord
from unstuck.views import loads
from unstuck.views.meaning import explain
from unstuck.views.workers import WorkerView

RECENT = 150


@dataclass(frozen=True, slots=True)
class Change:
    """One line of the news."""

    at: datetime
    job: str
    workflow: str
    state: str
    text: str


@dataclass(frozen=True, slots=True)
class RunningRow:
    record: JobRecord
    progress: object


@dataclass(frozen=True, slots=True)
class Blocked:
    """A target that a job blocks, and the first of those that wait behind it."""

    target: TargetRecord
    blocker: JobRecord | None
    next: JobRecord | None


@dataclass(frozen=True, slots=True)
class DemoSnapshot:
    now: datetime
    counts: dict[JobState, int]
    workers: tuple[WorkerView, ...]
    running: tuple[RunningRow, ...]
    news: tuple[Change, ...]
    blocked: tuple[Blocked, ...] = ()
    barred: tuple[BlacklistEntry, ...] = ()
    asked: tuple[Approval, ...] = ()


@dataclass(slots=True)
class DemoTally:
    """What the summary tells: things that happened to jobs while somebody watched. `barred`: workflows that came onto
    the blacklist, each with how often: the shop lifts its own."""

    retries: int = 0
    losses: int = 0
    stuck: int = 0
    barred: Counter[str] = field(default_factory=Counter)


class Watcher:
    def __init__(self, store: Store, tenant: str, keep: int = 200) -> None:
        self.store = store
        self.tenant = tenant
        self.news: deque[Change] = deque(maxlen=keep)
        self.tally = DemoTally()
        self._known: dict[str, JobRecord] = {}
        self._told: dict[str, str] = {}
        #: The last job that got stuck while somebody watched.
        self.stuck: str | None = None
        self._entries: dict[int, BlacklistEntry] = {}
        self._asked: dict[str, Approval] = {}
        self._begun = False

    def look(self) -> DemoSnapshot:
        now = self.store.now()
        records = self.store.jobs(self.tenant, JobFilter(), RECENT).jobs
        barred = self.store.blacklist(self.tenant)
        self._asked = {approval.job: approval for approval in approvals(self.store, self.tenant, limit=100)}
        fresh = (*self._compare(records, now), *self._guarded(barred, now))
        self.news.extend(fresh)
        self._begun = True
        return DemoSnapshot(
            now=now,
            counts=self.store.counts(self.tenant),
            workers=tuple(WorkerView.of(worker, now) for worker in self.store.live_workers()),
            running=self._running(),
            news=fresh,
            blocked=self._blocked(),
            barred=tuple(barred),
            asked=tuple(self._asked.values()),
        )

    def states_since(self, instant: datetime) -> Counter[JobState]:
        """How many of the jobs that were accepted since then are in which state; page by page, newest first."""
        found: Counter[JobState] = Counter()
        cursor: str | None = None
        while True:
            page = self.store.jobs(self.tenant, JobFilter(), 1000, cursor)
            recent = [record.state for record in page.jobs if record.created_at >= instant]
            found.update(recent)
            cursor = page.next
            if cursor is None or len(recent) < len(page.jobs):
                return found

    def _running(self) -> tuple[RunningRow, ...]:
        page = self.store.jobs(self.tenant, JobFilter(states=(JobState.RUNNING,), newest_first=False), 12)
        return tuple(RunningRow(r, loads(self.store.progress_of(self.tenant, r.id))) for r in page.jobs)

    def _blocked(self) -> tuple[Blocked, ...]:
        """The longest blocked; in a while the others are shown too."""
        found = []
        for target in self.store.targets(self.tenant, blocked=True, limit=2):
            blocker = self.store.get(self.tenant, target.blocked_by) if target.blocked_by else None
            line = self.store.line(self.tenant, target.name, 1)
            found.append(Blocked(target, blocker, line[0] if line else None))
        return tuple(found)

    def _compare(self, records: tuple[JobRecord, ...], now: datetime) -> tuple[Change, ...]:
        """News since the last look, oldest first. What was there before the first look is not news."""
        fresh = []
        for record in reversed(records):
            before = self._known.get(record.id)
            state = told_state(record, now)
            if self._told.get(record.id) != state and (before is not None or self._begun):
                asked = self._asked.get(record.id) if record.state is JobState.WAITING else None
                text = f"asks: {asked.question}" if asked else sentence(record, before, now)
                fresh.append(Change(now, record.id, record.workflow, state, text))
            if state == Shown.STUCK and self._told.get(record.id) != state and self._begun:
                self.tally.stuck, self.stuck = self.tally.stuck + 1, record.id
            if before is not None:
                if record.losses > before.losses:
                    fresh.insert(_before_last(fresh, record.id), _lost(record, now))
                if record.state is not JobState.FAILED:
                    self.tally.retries += max(0, record.failures - before.failures)
                self.tally.losses += max(0, record.losses - before.losses)
            self._known[record.id], self._told[record.id] = record, state
        self._forget({record.id for record in records})
        return tuple(fresh)

    def _guarded(self, barred: list[BlacklistEntry], now: datetime) -> list[Change]:
        """Workflows that were shut out since the last look, in the words of their notifications, and let in again."""
        standing = {entry.number: entry for entry in barred}
        came = [entry for number, entry in standing.items() if number not in self._entries]
        went = [entry for number, entry in self._entries.items() if number not in standing]
        self._entries = standing
        if not self._begun:
            return []
        self.tally.barred.update(entry.workflow for entry in came)
        return [
            *(Change(now, "", entry.workflow, "BLACKLISTED", self._notice(entry)) for entry in came),
            *(Change(now, "", entry.workflow, "LIFTED", self._lifted(entry)) for entry in went),
        ]

    def _notice(self, entry: BlacklistEntry) -> str:
        told = self.store.notifications(self.tenant, acked=True, limit=20) if entry.is_auto else []
        return next((news.message for news in told if news.workflow == entry.workflow), refusal(entry))

    def _lifted(self, entry: BlacklistEntry) -> str:
        past = self.store.blacklist_history(self.tenant, entry.workflow, limit=20)
        by = next((gone.removed_by for gone in past if gone.number == entry.number), None)
        return f"off the blacklist by {by or 'somebody'}: it is accepted and started again"

    def _forget(self, kept: set[str]) -> None:
        for gone in self._known.keys() - kept:
            del self._known[gone], self._told[gone]


def told_state(record: JobRecord, now: datetime) -> str:
    """A job that got stuck stays the news that it was, also once its process is gone and it is merely FAILED."""
    is_stuck = record.state is JobState.FAILED and record.error_type == ErrorType.EXECUTION_STUCK
    return Shown.STUCK if is_stuck else shown_state(record, now)


def _lost(record: JobRecord, now: datetime) -> Change:
    """Told by itself: a lost job often runs again, and ends, before anybody looks a second time."""
    return Change(now, record.id, record.workflow, "LOST", "its process died under it; it runs again in another")


def _before_last(news: list[Change], job: str) -> int:
    """Where the loss belongs: before what came of it."""
    return len(news) - 1 if news and news[-1].job == job else len(news)


def sentence(record: JobRecord, before: JobRecord | None, now: datetime) -> str:
    """What happened, for a person who sees it for the first time."""
    match record.state:
        case JobState.QUEUED if record.failures and record.available_at > now:
            return f"{record.error_message}; {explain(record, now)}"
        case JobState.QUEUED if record.is_blocked:
            return f"accepted; a job before it on target {record.target} failed"
        case JobState.QUEUED if record.priority:
            return f"accepted with priority {record.priority}"
        case JobState.QUEUED if before is not None and before.state is JobState.WAITING:
            return "answered: it goes on where it was"
        case JobState.QUEUED if record.available_at <= now and before is None:
            return "accepted"
        case JobState.QUEUED if before is not None and before.is_blocked:
            return f"target {record.target} moves on: it is its turn, or soon"
        case JobState.QUEUED if before is not None and record.available_at <= now:
            return "its time has come"
        case JobState.COMPLETED:
            return f"result {_short(record.result)}" + (_healed(record))
        case JobState.FAILED | JobState.TIMEOUT:
            return f"{record.error_type}: {record.error_message}"
        case _:
            return explain(record, now)


def _healed(record: JobRecord) -> str:
    troubles = record.failures + record.losses
    return f", after {troubles} bad attempt{'' if troubles == 1 else 's'}" if troubles else ""


def _short(text: str | None, limit: int = 60) -> str:
    text = text or "null"
    return text if len(text) <= limit else text[: limit - 1] + "…"
