"""Ends: what code wants to run when a job ends, `@app.on_completed`, `on_failed` and `on_stuck`.

`completed`: it completed, or a person resolved it so. `failed`: it ended without success and nobody had asked for
that: FAILED, TIMEOUT or DEAD, and so also every one that got stuck. `stuck`: it was convicted of being stuck. A job
that was cancelled is none of these: whoever cancelled it knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, Literal

from unstuck.model.lifecycle import EventKind, JobState
from unstuck.records import dataclass

EndKind = Literal["completed", "failed", "stuck"]

#: What events of a job's history mean for those who follow ends.
STATES: Final[dict[EventKind, JobState]] = {
    EventKind.COMPLETED: JobState.COMPLETED,
    EventKind.RESOLVED: JobState.COMPLETED,
    EventKind.FAILED: JobState.FAILED,
    EventKind.STUCK: JobState.FAILED,
    EventKind.TIMED_OUT: JobState.TIMEOUT,
    EventKind.BURIED: JobState.DEAD,
}
_KINDS: Final[dict[EndKind, frozenset[EventKind]]] = {
    "completed": frozenset({EventKind.COMPLETED, EventKind.RESOLVED}),
    "failed": frozenset({EventKind.FAILED, EventKind.STUCK, EventKind.TIMED_OUT, EventKind.BURIED}),
    "stuck": frozenset({EventKind.STUCK}),
}
#: Bytes of a result that a job about its end is given; a larger one is left out.
MOST_RESULT: Final = 64 << 10
#: A job about an end carries the id of the job that ended, as a tag.
TAG: Final = "end:"


@dataclass(frozen=True, slots=True)
class Follows:
    """Of which ends a workflow's jobs are made. `of`: of jobs of these workflows; None: of all."""

    on: EndKind
    of: tuple[str, ...] | None = None

    @property
    def kinds(self) -> frozenset[EventKind]:
        return _KINDS[self.on]

    def meets(self, kind: str, workflow: str | None) -> bool:
        return kind in self.kinds and workflow is not None and (self.of is None or workflow in self.of)

    def to_json(self) -> str:
        return json.dumps({"on": self.on, "of": self.of}, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Follows:
        facts = json.loads(text)
        return cls(facts["on"], None if facts.get("of") is None else tuple(facts["of"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedJob:
    """A job that has ended, as a function is given it that `@app.on_completed`, `on_failed` or `on_stuck` decorates.
    `result`: of one that completed; `result_left_out` says why it is not there: "redacted" or "too large"."""

    id: str
    workflow: str
    tenant: str
    queue: str
    state: str
    run: int
    ended_at: datetime
    error_type: str | None = None
    error: str | None = None
    result: Any = None
    result_left_out: str | None = None

    def to_json(self) -> str:
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps({**said, "ended_at": self.ended_at.isoformat()}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> EndedJob:
        """ValueError, TypeError or KeyError for what is none, because its row was damaged."""
        said = json.loads(text)
        return cls(**{**said, "ended_at": datetime.fromisoformat(said["ended_at"])})


def kinds_of(follows: Iterable[Follows]) -> tuple[str, ...]:
    """The kinds of events that any of them needs."""
    return tuple(sorted({str(kind) for each in follows for kind in each.kinds}))
