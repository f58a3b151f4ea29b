"""The table of legal moves, and that a history folds over it."""

from __future__ import annotations

import pytest

from unstuck.model.errors import IllegalMove
from unstuck.model.lifecycle import EVENT_OF, FINAL, MOVES, JobState, Move, RequestKind, fold, stronger, target_of


def test_every_state_has_a_row_and_every_move_an_event() -> None:
    assert set(MOVES) == set(JobState)
    assert set(EVENT_OF) == set(Move)


def test_a_completed_job_never_moves_again_and_ends_leave_only_by_a_new_run() -> None:
    assert MOVES[JobState.COMPLETED] == {}
    for state in FINAL - {JobState.COMPLETED}:
        assert set(MOVES[state]) <= {Move.RESUME, Move.RESOLVE, Move.REDRIVE}


def test_an_illegal_move_says_what_is_possible() -> None:
    with pytest.raises(IllegalMove, match="a DEAD job cannot be claimed; it can be: redriven"):
        target_of("j1", JobState.DEAD, Move.CLAIM)


@pytest.mark.parametrize(
    ("state", "possible"),
    [
        (JobState.QUEUED, "cancelled, interrupted, retried"),
        (JobState.RUNNING, "cancelled, interrupted"),
        (JobState.PAUSED, "cancelled, resolved, resumed, retried"),
        (JobState.FAILED, "resolved, resumed, retried"),
        (JobState.CANCELLED, "resumed, retried"),
    ],
)
def test_a_refusal_names_only_what_a_person_can_ask(state: JobState, possible: str) -> None:
    with pytest.raises(IllegalMove) as refused:
        target_of("j1", state, Move.WAKE)
    assert str(refused.value).endswith(f"cannot be woken; it can be: {possible}")


def test_states_are_known_by_the_names_of_other_systems_too() -> None:
    assert JobState("ERROR") is JobState.FAILED
    assert JobState("SUCCESS") is JobState.COMPLETED
    with pytest.raises(ValueError, match="PURPLE"):
        JobState("PURPLE")


def test_of_a_job_that_completed_nothing_can_be_asked() -> None:
    with pytest.raises(IllegalMove) as refused:
        target_of("j1", JobState.COMPLETED, Move.CANCEL)
    assert str(refused.value) == "job j1: a COMPLETED job cannot be cancelled: it has ended"


def test_a_history_folds_to_the_state_it_leads_to() -> None:
    assert fold([]) is None
    assert fold(["submitted", "claimed", "retried", "claimed", "requested", "cancelled"]) is JobState.CANCELLED
    assert fold(["submitted", "claimed", "failed", "resumed", "claimed", "completed"]) is JobState.COMPLETED


@pytest.mark.parametrize("weaker", [k for k in RequestKind if k is not RequestKind.CANCEL])
def test_cancel_outranks_every_other_request(weaker: RequestKind) -> None:
    assert stronger(RequestKind.CANCEL, weaker) is RequestKind.CANCEL
    assert stronger(weaker, RequestKind.CANCEL) is RequestKind.CANCEL
    assert stronger(weaker, None) is weaker
