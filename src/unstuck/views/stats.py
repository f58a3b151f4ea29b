"""How many jobs are in which state, as every face shows it.

A count of a state in `at_least` was not brought to its end: it stopped at `ceiling`. Of QUEUED, `scheduled` wait for
a later time (retries too) and `blocked` behind the job that blocks their target; `oldest_due_at` is when the one fell
due that has waited longest.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from unstuck.model.lifecycle import JobState
from unstuck.observe.lookup import as_state
from unstuck.store.port import Tally, TallyBy
from unstuck.views import View


class WorkersCount(View, frozen=True, kw_only=True):
    """Workers that live, and what runs in them, whoever's jobs that are."""

    alive: int
    running: int
    #: Silent for so long that nobody waits for them.
    offline: int


class StatsView(View, frozen=True, kw_only=True):
    """Jobs by state, `stats["QUEUED"]`, of one tenant; `tenant` None: of all together."""

    tenant: str | None
    states: dict[JobState, int]
    at_least: tuple[JobState, ...]
    scheduled: int
    blocked: int
    oldest_due_at: datetime | None
    ceiling: int
    workers: WorkersCount
    at: datetime

    def __getitem__(self, state: JobState | str) -> int:
        return self.states[as_state(state)]


class TallyView(View, frozen=True, kw_only=True):
    """Jobs by state of one tenant, queue or workflow."""

    kind: TallyBy
    name: str
    states: dict[JobState, int]
    at_least: tuple[JobState, ...]
    scheduled: int
    blocked: int
    oldest_due_at: datetime | None
    ceiling: int


def counts_of(found: Tally) -> dict[str, Any]:
    """What both of them count."""
    return {
        "states": {state: found.states[state] for state in JobState},
        "at_least": tuple(state for state in JobState if state in found.at_least),
        "scheduled": found.scheduled,
        "blocked": found.blocked,
        "oldest_due_at": found.oldest_due_at,
        "ceiling": found.ceiling,
    }
