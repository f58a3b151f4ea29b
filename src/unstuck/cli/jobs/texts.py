"""How jobs and their attempts are told: durations, the first line of a text, stacks."""

from __future__ import annotations

from datetime import datetime

from unstuck.cli import output, shapes
from unstuck.cli.excerpt import shortened
from unstuck.model.job import AttemptRecord, JobRecord
from unstuck.model.lifecycle import JobState


def run_time(record: JobRecord, now: datetime) -> float | None:
    if record.duration_ms is not None:
        return record.duration_ms / 1000
    if record.state is JobState.RUNNING and (since := record.started_at or record.claimed_at):
        return max(0.0, (now - since).total_seconds())
    return None


def on_its_way(record: JobRecord) -> float | None:
    """From when it was submitted to its end."""
    total = shapes.total_ms(record)
    return None if total is None else total / 1000


def first_line(text: str, limit: int = 60) -> str:
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= limit else line[: limit - 1] + "…"


def took(attempt: AttemptRecord | None) -> str:
    if attempt is None or attempt.duration_ms is None:
        return ""
    return f" after {output.duration(attempt.duration_ms / 1000)}"


def print_stack(attempt: AttemptRecord, whole: bool, indent: str) -> None:
    for line in (attempt.stack or "").splitlines() if whole else shortened(attempt.stack or ""):
        output.say(f"{indent}{output.visible(line)}")
