"""The table of outcomes and requests, and the budgets, one line per rule."""

from __future__ import annotations

from typing import Any

import pytest

from unstuck.model.errors import ErrorType
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.policy import Policy
from unstuck.model.settlement import (
    INTERRUPTED_BY_USER,
    Blame,
    ErrorInfo,
    Lost,
    NotStarted,
    Outcome,
    Parked,
    Raised,
    Returned,
    Settlement,
    Standing,
    Stopped,
    Stuck,
    settle,
)
from unstuck.model.waits import Wait, WaitKind

BOOM = ErrorInfo("ValueError", "boom")
GONE = ErrorInfo(ErrorType.WORKER_LOST, "worker w1 was lost")
CANCEL, BUDGET, INTERRUPT, TIMEOUT, DRAIN = RequestKind


def settled(
    outcome: Outcome, request: RequestKind | None = None, policy: Policy | None = None, **counts: Any
) -> Settlement:
    return settle(Standing(policy or Policy(), request=request, **counts), outcome)


@pytest.mark.parametrize(
    ("request_", "state"),
    [
        (None, JobState.COMPLETED),
        (CANCEL, JobState.CANCELLED),
        (BUDGET, JobState.FAILED),
        (INTERRUPT, JobState.COMPLETED),
        (TIMEOUT, JobState.COMPLETED),
        (DRAIN, JobState.COMPLETED),
    ],
)
def test_a_handler_that_returned_under_a_request(request_: RequestKind | None, state: JobState) -> None:
    settlement = settled(Returned("42"), request_)

    assert settlement.state is state
    assert settlement.result == "42"
    assert settlement.late is (request_ is TIMEOUT)


@pytest.mark.parametrize("outcome", [Stopped(), Raised(BOOM), Lost(GONE, "worker")])
@pytest.mark.parametrize(
    ("request_", "state", "error_type"),
    [
        (CANCEL, JobState.CANCELLED, ErrorType.CANCELLED),
        (BUDGET, JobState.FAILED, ErrorType.BUDGET_EXCEEDED),
        (INTERRUPT, JobState.PAUSED, ErrorType.INTERRUPTED),
        (TIMEOUT, JobState.TIMEOUT, ErrorType.TIMEOUT),
    ],
)
def test_a_request_decides_when_the_handler_stopped_raised_or_was_lost(
    outcome: Outcome, request_: RequestKind, state: JobState, error_type: str
) -> None:
    settlement = settled(outcome, request_)

    assert settlement.state is state
    assert settlement.error is not None
    assert settlement.error.type == error_type
    assert (settlement.failure, settlement.loss) == (0, 0)


@pytest.mark.parametrize("outcome", [Stopped(), Raised(BOOM), Lost(GONE, "worker")])
def test_a_drained_job_goes_back_at_no_cost_unless_its_policy_pauses_it(outcome: Outcome) -> None:
    back = settled(outcome, DRAIN)
    paused = settled(outcome, DRAIN, Policy(on_drain_timeout="pause"))

    assert (back.state, back.failure, back.loss, back.delay) == (JobState.QUEUED, 0, 0, 0)
    assert paused.state is JobState.PAUSED


def test_what_a_drain_killed_says_that_it_was_interrupted_and_not_that_it_died() -> None:
    killed = Lost(
        ErrorInfo(ErrorType.PROCESS_DIED, "pid 7 was killed by its worker: the worker is shutting down"), "uncharged"
    )
    for policy in (Policy(), Policy(on_drain_timeout="pause")):
        error = settled(killed, DRAIN, policy).error
        assert error is not None
        assert error.type == "Interrupted"
        assert error.message == "its worker was shutting down, and it did not stop in time"


@pytest.mark.parametrize("outcome", [Stopped(), Raised(BOOM), Lost(GONE, "uncharged"), Lost(GONE, "worker")])
def test_a_drained_job_left_to_expire_is_charged_a_loss_as_if_its_lease_had_ended(outcome: Outcome) -> None:
    """A54"""
    policy = Policy(on_drain_timeout="expire", max_lost=1)
    first = settled(outcome, DRAIN, policy)
    assert (first.state, first.loss, first.failure) == (JobState.QUEUED, 1, 0)
    assert settled(outcome, DRAIN, policy, losses=1).state is JobState.FAILED


@pytest.mark.parametrize("request_", list(RequestKind))
def test_a_stuck_verdict_stands_whatever_was_asked_and_writes_a_hold(request_: RequestKind) -> None:
    stuck = settled(Stuck(ErrorInfo(ErrorType.EXECUTION_STUCK, "…")), request_)

    assert (stuck.state, stuck.body_may_live) == (JobState.FAILED, True)


def test_a_stuck_verdict_on_a_body_that_is_gone_holds_nothing() -> None:
    stuck = settled(Stuck(ErrorInfo(ErrorType.EXECUTION_STUCK, "…"), is_gone=True), CANCEL)

    assert (stuck.state, stuck.body_may_live) == (JobState.FAILED, False)


@pytest.mark.parametrize(
    ("request_", "begins"),
    [
        (CANCEL, "cancelled by Ada: enough; its process 7 was killed"),
        (INTERRUPT, "Job was interrupted by user; its process 7 was killed"),
        (TIMEOUT, "stopped after its time limit of 600 seconds; its process 7 was killed"),
    ],
)
def test_who_lost_its_process_under_a_request_says_so_and_keeps_its_stack(request_: RequestKind, begins: str) -> None:
    killed = Lost(ErrorInfo(ErrorType.PROCESS_DIED, "its process 7 was killed: …", "where it was"), "neighbour")
    standing = Standing(Policy(timeout=600), request=request_, request_by="Ada", request_reason="enough")

    error = settle(standing, killed).error

    assert error is not None
    assert error.message.startswith(begins)
    assert error.stack == "where it was"


def test_the_stronger_of_the_durable_and_the_reported_request_decides() -> None:
    assert settled(Stopped(asked=TIMEOUT), CANCEL).state is JobState.CANCELLED
    assert settled(Stopped(asked=TIMEOUT), DRAIN).state is JobState.TIMEOUT
    assert settled(Stopped(asked=INTERRUPT)).state is JobState.PAUSED


@pytest.mark.parametrize(
    "outcome", [Returned("1"), Stopped(), NotStarted(), Parked(Wait(WaitKind.EVENT, "event:paid#1", "paid"))]
)
def test_a_cancelled_job_says_who_asked_and_why(outcome: Outcome) -> None:
    def told(**asked: Any) -> str | None:
        error = settle(Standing(Policy(), **asked), outcome).error
        return error.message if error else None

    assert (
        told(request=CANCEL, request_by="Ada", request_reason="wrong customer") == "cancelled by Ada: wrong customer"
    )
    assert told(request=CANCEL, request_by="Ada") == "cancelled by Ada"
    assert told(request=CANCEL) == "cancelled by request"


def test_a_cancel_that_only_the_worker_knows_is_not_laid_to_whoever_asked_for_less() -> None:
    standing = Standing(Policy(), request=TIMEOUT, request_by="worker", request_reason="too long")

    error = settle(standing, Stopped(asked=CANCEL)).error

    assert error is not None
    assert error.message == "cancelled by request"


def test_an_interrupted_job_says_so_in_the_words_users_know() -> None:
    error = settled(Stopped(), INTERRUPT).error

    assert error is not None
    assert error.message == INTERRUPTED_BY_USER == "Job was interrupted by user"


def test_what_never_started_goes_back_uncharged_and_a_pending_cancel_cancels_it() -> None:
    assert settled(NotStarted()).state is JobState.QUEUED
    assert settled(NotStarted()).failure == settled(NotStarted()).loss == 0
    assert settled(NotStarted(), CANCEL).state is JobState.CANCELLED
    assert settled(NotStarted(), INTERRUPT).state is JobState.PAUSED
    assert settled(NotStarted(), TIMEOUT).state is JobState.QUEUED


@pytest.mark.parametrize(
    ("request_", "state", "error_type"),
    [
        (None, JobState.WAITING, None),
        (CANCEL, JobState.CANCELLED, ErrorType.CANCELLED),
        (BUDGET, JobState.FAILED, ErrorType.BUDGET_EXCEEDED),
        (INTERRUPT, JobState.PAUSED, ErrorType.INTERRUPTED),
        (TIMEOUT, JobState.WAITING, None),
        (DRAIN, JobState.WAITING, None),
    ],
)
def test_a_handler_that_parked_under_a_request_waits_unless_it_is_to_stop(
    request_: RequestKind | None, state: JobState, error_type: str | None
) -> None:
    wait = Wait(WaitKind.EVENT, "event:paid#1", "paid")

    settlement = settled(Parked(wait), request_)

    assert settlement.state is state
    assert settlement.wait is (wait if state is JobState.WAITING else None)
    assert (settlement.error.type if settlement.error else None) == error_type
    assert (settlement.failure, settlement.loss, settlement.suspect) == (0, 0, 0)


def test_a_job_over_its_budget_says_what_it_used_however_it_ended() -> None:
    standing = Standing(Policy(), request=BUDGET, request_reason="used 1,020 of 1,000 tokens")
    wait = Wait(WaitKind.TIME, "time#1", timeout=1.0)
    for outcome in (Returned("1"), Raised(BOOM), Parked(wait), NotStarted(), Lost(GONE, "worker")):
        settlement = settle(standing, outcome)
        assert settlement.state is JobState.FAILED
        assert settlement.error == ErrorInfo(ErrorType.BUDGET_EXCEEDED, "used 1,020 of 1,000 tokens")


def test_a_handler_stopped_by_its_worker_without_a_request_goes_back_uncharged() -> None:
    settlement = settled(Stopped())

    assert (settlement.state, settlement.failure, settlement.loss) == (JobState.QUEUED, 0, 0)


def test_a14_three_retries_make_four_attempts_with_growing_gaps() -> None:
    gaps = []
    for failures in range(3):
        retried = settled(Raised(BOOM), failures=failures)
        assert (retried.state, retried.failure, retried.error) == (JobState.QUEUED, 1, BOOM)
        gaps.append(retried.delay)
    last = settled(Raised(BOOM), failures=3)

    assert gaps == sorted(set(gaps))
    assert (last.state, last.error) == (JobState.FAILED, BOOM)


@pytest.mark.parametrize(
    "error_type",
    ["SignatureInvalid", "WorkflowBlacklisted", "ExecutionStuck", "InvalidJob", "ResultNotStorable", "InvalidResult"],
)
def test_a15_some_errors_are_never_retried(error_type: str) -> None:
    assert settled(Raised(ErrorInfo(error_type, "…"))).state is JobState.FAILED


def test_the_handlers_own_word_about_retrying_counts() -> None:
    assert settled(Raised(BOOM, retry=False)).state is JobState.FAILED
    assert settled(Raised(BOOM, retry=True, after=7.5)).delay == 7.5
    assert settled(Raised(BOOM, retry=True), failures=3).state is JobState.FAILED


def test_a_timeout_is_retried_only_when_the_policy_says_so() -> None:
    policy = Policy(retry_on_timeout=True, retries=1)

    assert settled(Stopped(), TIMEOUT, policy).state is JobState.QUEUED
    assert settled(Stopped(), TIMEOUT, policy, failures=1).state is JobState.TIMEOUT


def test_a5_losses_and_failures_have_separate_budgets() -> None:
    assert settled(Lost(GONE, "worker"), failures=99).state is JobState.QUEUED
    assert settled(Lost(GONE, "worker"), losses=3).state is JobState.FAILED
    assert settled(Raised(BOOM), losses=99).state is JobState.QUEUED


AGAIN = [
    (Raised(BOOM), None),
    (Raised(BOOM, retry=True), None),
    (Stopped(), None),
    (Stopped(), DRAIN),
    (Lost(GONE, "own"), None),
    (Lost(GONE, "worker"), None),
    (Lost(GONE, "suspect"), None),
    (Lost(GONE, "bystander"), None),
    (Lost(GONE, "neighbour"), None),
    (Lost(GONE, "uncharged"), DRAIN),
]


@pytest.mark.parametrize(("outcome", "request_"), AGAIN, ids=str)
def test_max_retries_bounds_all_reruns_together(outcome: Outcome, request_: RequestKind | None) -> None:
    """Whatever came between: with 0 no handler begins twice, with 2 none begins a fourth time."""
    never = settled(outcome, request_, Policy().with_("w", {"max_retries": 0}))
    assert (never.state, never.delay) == (JobState.FAILED, 0)
    assert never.error is not None

    twice = Policy().with_("w", {"max_retries": 2})
    second = settled(outcome, request_, twice, failures=1)
    assert second.state is JobState.QUEUED
    assert second.failure + second.loss + second.suspect == 1
    assert settled(outcome, request_, twice, failures=1, losses=1).state is JobState.FAILED
    assert settled(outcome, request_, twice, suspects=2).state is JobState.FAILED


def test_what_never_began_is_no_rerun() -> None:
    policy = Policy().with_("w", {"max_retries": 0})
    back = settled(NotStarted(), None, policy)
    assert (back.state, back.loss) == (JobState.QUEUED, 0)


def test_the_first_loss_runs_again_at_once_and_later_ones_wait_longer() -> None:
    delays = [settled(Lost(GONE, "worker"), losses=n).delay for n in range(3)]

    assert delays[0] == 0 < delays[1] < delays[2]


@pytest.mark.parametrize("blame", ["neighbour", "uncharged"])
def test_a_loss_that_is_nobodys_fault_costs_nothing_however_often(blame: Blame) -> None:
    settlement = settled(Lost(GONE, blame), losses=99, suspects=99)

    assert (settlement.state, settlement.loss, settlement.suspect) == (JobState.QUEUED, 0, 0)


def test_suspects_rerun_alone_and_are_capped_by_their_own_budget() -> None:
    first, last = settled(Lost(GONE, "suspect")), settled(Lost(GONE, "suspect"), suspects=3)

    assert (first.state, first.alone, first.suspect, first.loss) == (JobState.QUEUED, True, 1, 0)
    assert last.state is JobState.FAILED


def test_a_bystander_reruns_alone_at_no_cost() -> None:
    again = settled(Lost(GONE, "bystander"), losses=99, suspects=99)

    assert (again.state, again.alone, again.suspect, again.loss) == (JobState.QUEUED, True, 0, 0)


@pytest.mark.parametrize("blame", ["own", "worker", "suspect", "bystander", "neighbour", "uncharged"])
def test_a6_on_lost_decides_at_the_first_loss(blame: Blame) -> None:
    assert settled(Lost(GONE, blame), policy=Policy(on_lost="fail")).state is JobState.FAILED
    assert settled(Lost(GONE, blame), policy=Policy(on_lost="pause")).state is JobState.PAUSED
