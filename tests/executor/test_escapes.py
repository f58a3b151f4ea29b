"""What handlers do to get out of their role: each gets an end, and nobody else pays for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.executor.watch import Watch
from unstuck.model.settlement import Raised


@pytest.mark.parametrize("name", ["stops_unasked", "stops_unasked_async"])
def test_a_stop_that_nobody_asked_for_is_a_failure_that_counts(watch: Watch, shared: int, name: str) -> None:
    """Given back at no cost it would be due at once and never end."""
    outcome = watch.run(shared, name).outcome

    assert isinstance(outcome, Raised)
    assert (outcome.error.type, outcome.error.message) == ("Cancelled", "nobody asked")


@pytest.mark.parametrize("name", ["forks_and_returns", "forks_and_awaits"])
def test_a_forked_copy_of_an_executor_does_not_go_on_as_one(
    watch: Watch, shared: int, name: str, tmp_path: Path
) -> None:
    child = watch.result(shared, name, str(tmp_path / "note"))

    assert child > 0
    assert not (tmp_path / "note").exists()
    assert watch.result(shared, "add", 1, 2) == 3


def test_a_program_that_a_handler_started_can_be_terminated(watch: Watch, shared: int) -> None:
    assert watch.result(shared, "terminates_a_program") == -15
