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


@pytest.mark.parametrize("name", ["forks_and_awaits_what_it_had", "forks_in_a_callback"])
def test_a_forked_copy_of_the_loop_runs_nobodys_callbacks(
    watch: Watch, shared: int, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "notes"
    neighbour = watch.begin(shared, "notes_later", str(path))

    assert watch.result(shared, name, str(path)) == "waited"

    watch.finished(neighbour)
    assert path.read_text() == "called\n"


def test_a_forked_copy_of_the_loop_does_not_even_finish_its_round(watch: Watch, shared: int, tmp_path: Path) -> None:
    path = tmp_path / "notes"

    assert watch.result(shared, "forks_amid_callbacks", str(path)) == "waited"

    assert path.read_text() == "called\n"


def test_a_forked_copy_cannot_be_woken_by_an_exception_either(watch: Watch, shared: int, tmp_path: Path) -> None:
    path = tmp_path / "notes"

    assert watch.result(shared, "forks_and_cancels_itself", str(path)) == "waited"

    assert not path.exists()
    assert watch.result(shared, "add", 1, 2) == 3


def test_a_handler_cannot_ask_itself_to_stop_in_the_name_of_others(watch: Watch, shared: int) -> None:
    outcome = watch.run(shared, "asks_itself").outcome

    assert isinstance(outcome, Raised)
    assert outcome.error.type == "AttributeError"
