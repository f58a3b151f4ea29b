"""Who waits for whom: fates and cycles."""

from __future__ import annotations

import pytest

from unstuck.model.dependencies import Dependency, Fate, cycle, fate, reproach
from unstuck.model.job import AfterFailure
from unstuck.model.lifecycle import JobState

DONE = Dependency("a", JobState.COMPLETED)
OPEN = Dependency("b", None)
BAD = [Dependency("c", state) for state in (JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED, JobState.DEAD)]


@pytest.mark.parametrize(
    ("others", "after_failure", "expected"),
    [
        ([DONE, DONE], "fail", Fate.RUN),
        ([], "fail", Fate.RUN),
        ([DONE, OPEN], "fail", Fate.WAIT),
        ([DONE, OPEN], "run", Fate.WAIT),
        *[([DONE, OPEN, bad], "fail", Fate.FAIL) for bad in BAD],
        *[([DONE, OPEN, bad], "run", Fate.WAIT) for bad in BAD],
        *[([DONE, bad], "run", Fate.RUN) for bad in BAD],
    ],
)
def test_one_bad_end_is_enough_to_fail_and_all_ends_are_needed_to_run(
    others: list[Dependency], after_failure: AfterFailure, expected: Fate
) -> None:
    assert fate(others, after_failure) is expected


def test_the_reproach_names_the_first_few() -> None:
    bad = [Dependency(f"j{n}", JobState.FAILED, "ValueError") for n in range(5)]
    text = reproach([DONE, OPEN, *bad])
    assert text == (
        "it waited for others to complete: job j0 is FAILED (ValueError), job j1 is FAILED (ValueError), "
        "job j2 is FAILED (ValueError) and 2 more did not complete"
    )


def test_a_cycle_is_named_and_a_mesh_without_one_is_none() -> None:
    assert cycle({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]
    assert cycle({"a": ["a"]}) == ["a", "a"]
    assert cycle({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": ["elsewhere"]}) == []


def test_a_chain_longer_than_pythons_stack_is_walked() -> None:
    chain = {f"{n}": [f"{n + 1}"] for n in range(20_000)}
    assert cycle(chain) == []
    assert len(cycle({**chain, "20000": ["0"]})) == 20_002
