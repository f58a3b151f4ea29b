"""How jobs and their attempts are told: durations, the first line of a text, stacks."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from unstuck.cli import output
from unstuck.cli.excerpt import shortened
from unstuck.model.lifecycle import JobState
from unstuck.views.jobs import AttemptView, JobView


def run_time(job: JobView, now: datetime) -> float | None:
    if job.duration_ms is not None:
        return job.duration_ms / 1000
    if job.state is JobState.RUNNING and (since := job.started_at or job.claimed_at):
        return max(0.0, (now - since).total_seconds())
    return None


def on_its_way(job: JobView) -> float | None:
    """From when it was submitted to its end."""
    return None if job.total_ms is None else job.total_ms / 1000


def first_line(text: str, limit: int = 60) -> str:
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def as_json(value: Any) -> str:
    """A value that a job chose, as it is stored."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def took(attempt: AttemptView | None) -> str:
    if attempt is None or attempt.duration_ms is None:
        return ""
    return f" after {output.duration(attempt.duration_ms / 1000)}"


def print_stack(attempt: AttemptView, whole: bool, indent: str) -> None:
    for line in (attempt.stack or "").splitlines() if whole else shortened(attempt.stack or ""):
        output.say(f"{indent}{output.visible(line)}")
