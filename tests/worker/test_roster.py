"""The state about executors follow what the shared pages say."""

from __future__ import annotations

import pytest

from tests.support.holdings import a_holding
from unstuck.model.lifecycle import RequestKind
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.processes import ExecutorView
from unstuck.worker.roster import Roster


def seated(fed_at: float) -> tuple[Roster, HeldAttempt]:
    roster, holding = Roster(), a_holding(Stage.CLAIMED)
    roster.seat(roster.open(alone=False, now=0.0), [holding], fed_at)
    return roster, holding


def seen_running(holding: HeldAttempt, at: float) -> ExecutorView:
    ref = holding.ref
    return ExecutorView(1, 7, "active", 0.0, 9.0, 0, 0, running=(ref,), unstarted=(), unsaid={ref: at})


def test_an_attempt_that_the_page_shows_running_has_started_though_its_executor_could_not_say_so() -> None:
    """A handler that holds the interpreter from its first line: its timeout must count all the same."""
    roster, holding = seated(fed_at=10.0)

    roster.look([seen_running(holding, at=10.5)], now=12.0)

    assert (holding.stage, holding.started_at) == (Stage.RUNNING, 10.5)
    assert roster.posts[1].bodies == [holding]


@pytest.mark.parametrize("at", [0.0, 9.9, 12.1, float("nan")])
def test_a_start_that_cannot_be_true_counts_from_now(at: float) -> None:
    """The page is the executor's to write, and half a write may be read."""
    roster, holding = seated(fed_at=10.0)

    roster.look([seen_running(holding, at)], now=12.0)

    assert (holding.stage, holding.started_at) == (Stage.RUNNING, 12.0)


def test_a_look_moves_nothing_that_is_past_its_start() -> None:
    roster, holding = seated(fed_at=10.0)
    holding.stage, holding.started_at, holding.asked = Stage.STUCK, 10.1, RequestKind.CANCEL

    roster.look([seen_running(holding, at=10.5)], now=12.0)

    assert (holding.stage, holding.started_at) == (Stage.STUCK, 10.1)
