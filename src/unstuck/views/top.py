"""One look at what moves and at what needs somebody: what `unstuck top` shows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.redaction import NOTHING, Redaction
from unstuck.views import View, shown
from unstuck.views.gates import QueueView
from unstuck.views.jobs import JobView
from unstuck.views.workers import WorkerView

NeedKind = Literal["approval", "stuck", "target", "blacklist", "health"]


class RunningView(JobView, frozen=True, kw_only=True):
    """A running job with its progress; null: it told none, or too much for a list."""

    progress: Any

    @classmethod
    def seen(cls, record: JobRecord, progress: str | None, now: datetime, hide: Redaction = NOTHING) -> RunningView:
        return cls.of(record, now, hide, progress=shown("progress", progress, hide))


class NeedView(View, frozen=True, kw_only=True):
    """What waits for a person. `command` is what to type; `job`, if it is about one; `key` of an approval: which
    question of its job. `urgent`: it keeps others waiting."""

    kind: NeedKind
    about: str
    text: str
    since_at: datetime | None
    until_at: datetime | None
    job: str | None
    key: str | None
    command: str | None
    urgent: bool


class TopView(View, frozen=True, kw_only=True):
    """Of one tenant; workers are everybody's. Counts of states in `at_least` were not brought to their end. Of what
    runs the longest running come first, and only some if there are many; `healthy` null: nobody asked."""

    tenant: str
    at: datetime
    states: dict[JobState, int]
    at_least: tuple[JobState, ...]
    scheduled: int
    blocked: int
    oldest_due_at: datetime | None
    queues: tuple[QueueView, ...]
    running: tuple[RunningView, ...]
    workers: tuple[WorkerView, ...]
    needs: tuple[NeedView, ...]
    healthy: bool | None
