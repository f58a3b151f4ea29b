"""The words of a refusal: the cause that it names is the one that was counted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from unstuck.model.guard import BlacklistEntry, Harm, auto_reason, refusal

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("marks", "cause"),
    [
        ({"stuck": 5}, "stuck executions"),
        ({"stuck": 1, "loss": 4}, "stuck executions"),
        ({"freeze": 5}, "freezes of its process"),
        ({"crash": 5}, "crashes"),
        ({"crash": 1, "loss": 4}, "crashes"),
        ({"loss": 5}, "losses of its worker"),
    ],
)
def test_a_refusal_names_the_cause_that_was_counted(marks: dict[Harm, int], cause: str) -> None:
    entry = BlacklistEntry(1, "default", "deploy", auto_reason(marks), "system", NOW, stuck_count=5)
    assert refusal(entry).startswith(f"Workflow is blacklisted due to repeated {cause}. deploy was shut out")


def test_who_was_shut_out_by_hand_is_told_the_note() -> None:
    entry = BlacklistEntry(1, "default", "deploy", "manual:stuck in review", "kim", NOW)
    assert refusal(entry).startswith("Workflow is blacklisted. deploy was shut out for tenant default by kim at")
