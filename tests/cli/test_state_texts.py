"""What `jobs show` and a history say, as whoever is paged reads it: no riddle, and nothing that `why` denies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.model.test_why import NOW, a_record, facts
from unstuck.cli.event_texts import narrate
from unstuck.model.job import EventRecord
from unstuck.model.lifecycle import EventKind, JobState
from unstuck.model.why import explain as ask_why
from unstuck.views.meaning import explain


def an_event(kind: EventKind, **data: Any) -> EventRecord:
    return EventRecord("job-7", 3, kind, NOW, run=1, token=1, data=data)


@pytest.mark.parametrize(
    ("ending", "is_skipped"),
    [
        ({"state": JobState.FAILED, "error_type": "ValueError"}, False),
        ({"state": JobState.FAILED, "error_type": "ExecutionStuck"}, False),
        ({"state": JobState.TIMEOUT, "error_type": "Timeout"}, False),
        ({"state": JobState.FAILED, "error_type": "ValueError", "target": "t"}, True),
    ],
    ids=["failed", "stuck", "timeout", "skipped"],
)
def test_another_try_is_the_one_that_why_names(ending: dict[str, Any], is_skipped: bool) -> None:
    """`retry` would forget the finished steps; whoever is in a hurry must not be led there."""
    job = a_record(finished_at=NOW, **ending)
    [reason] = ask_why(facts(job, is_ready=False), NOW).reasons
    assert reason.remedy == "unstuck jobs resume job-7"
    assert f"another try: {reason.remedy}" in explain(job, NOW, is_skipped=is_skipped)


def test_an_error_in_the_history_is_told_as_everywhere_else() -> None:
    event = an_event(EventKind.FAILED, by="ada", error_type="ValueError", error_message="no\nsuch thing")
    assert narrate(event) == "failed for good: ValueError: no such thing (by ada)"
    assert narrate(an_event(EventKind.FAILED, by="ada", error_type="ValueError", error_message="")) == (
        "failed for good: ValueError (by ada)"
    )


def test_the_history_says_how_long_the_next_try_waits() -> None:
    event = an_event(EventKind.RETRIED, by="ada", error_type="ValueError", error_message="x", delay=72.54207701364152)
    assert narrate(event) == "failed, will be tried again: ValueError: x (by ada, delay 1m 12s)"


def test_an_instant_in_the_history_is_spelled_like_its_own() -> None:
    until = datetime.fromisoformat("2026-11-17T10:36:29.452218+00:00").isoformat()
    event = an_event(EventKind.PARKED, wait="event", name="start_task", until=until)
    assert narrate(event) == "parked: waits for event start_task, until 2026-11-17T10:36:29.452Z"
