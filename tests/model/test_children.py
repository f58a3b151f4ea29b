"""How deep, how many, and which waits could never end."""

from __future__ import annotations

import pytest

from unstuck.model.budget import exceeded
from unstuck.model.children import Ancestor, Needed, check_after, check_place, check_turn, check_wait, is_spent
from unstuck.model.errors import InvalidInput, TargetDeadlock

PARENT = Ancestor(1, "parent", keeps=10)
WAITING = Ancestor(2, "waiting", keeps=20, awaits=True)
FREE = Ancestor(3, "free", keeps=30)
ABOVE_FREE = Ancestor(4, "above free", keeps=40, awaits=True)
LINE = [PARENT, WAITING, FREE, ABOVE_FREE]


def test_depth_and_count_have_an_end() -> None:
    check_place(10, 999)
    for depth, siblings in ((11, 0), (1, 1000)):
        with pytest.raises(InvalidInput):
            check_place(depth, siblings)


def test_nobody_waits_for_a_job_above_it() -> None:
    check_after(["other"], LINE)
    for above in LINE:
        with pytest.raises(InvalidInput):
            check_after(["other", above.id], LINE)


@pytest.mark.parametrize(("target", "refused"), [(None, False), (10, False), (20, True), (30, False), (40, False)])
def test_a_spawn_is_refused_only_where_somebody_who_waits_for_it_stands(target: int | None, refused: bool) -> None:
    """Who runs gives its target up by ending, and so does whoever waits for one that runs in between."""
    if not refused:
        check_turn(target, "t", LINE)
        return
    with pytest.raises(TargetDeadlock):
        check_turn(target, "t", LINE)


@pytest.mark.parametrize(
    ("target", "release", "refused"),
    [(10, False, True), (10, True, False), (20, True, True), (30, False, False), (None, False, False)],
)
def test_a_gather_lets_go_of_its_own_target_only(target: int | None, release: bool, refused: bool) -> None:
    needed = [Needed(50, "child", target, "t")]
    if not refused:
        check_wait(needed, LINE, release_target=release)
        return
    with pytest.raises(TargetDeadlock):
        check_wait(needed, LINE, release_target=release)


def test_a_circle_of_waits_is_refused() -> None:
    check_wait([Needed(3, "free")], LINE, release_target=False)
    for number in (1, 2):
        with pytest.raises(InvalidInput):
            check_wait([Needed(number, "above")], LINE, release_target=True)


@pytest.mark.parametrize(
    ("state", "run", "doomed", "spent"),
    [
        ("FAILED", 1, False, True),
        ("COMPLETED", 1, False, False),
        ("RUNNING", 1, False, False),
        ("RUNNING", 1, True, True),
        ("FAILED", 2, False, False),
        ("RUNNING", 2, True, False),
    ],
)
def test_which_children_of_an_earlier_run_are_replaced(state: str, run: int, doomed: bool, spent: bool) -> None:
    assert is_spent(state, run, 2, is_doomed=doomed) is spent


def test_the_message_says_what_was_used_and_allowed() -> None:
    budget = {"tokens": 1000.0, "euros": 0.5}

    assert exceeded({"tokens": 1000.0}, budget) is None
    assert exceeded({"tokens": 1020.0}, budget) == "used 1,020 of 1,000 tokens"
    assert exceeded({"tokens": 1234567.0, "euros": 0.75, "other": 9e9}, budget) == (
        "used 0.75 of 0.5 euros; used 1,234,567 of 1,000 tokens"
    )
