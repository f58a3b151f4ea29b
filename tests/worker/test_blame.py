"""Who is charged for the death of an executor."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.holdings import a_holding, a_post
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Lost, NotStarted, Outcome, Stuck
from unstuck.worker import actions as plans
from unstuck.worker.blame import reports_on_death, why_it_went
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.processes import ExecutorDied
from unstuck.worker.roster import Post


def died(post: Post, **facts: Any) -> ExecutorDied:
    bodies = tuple(h.ref for h in post.bodies)
    return ExecutorDied(1, 4711, facts.pop("status", "signal 9"), running=bodies, unstarted=(), **facts)


def blames(post: Post, event: ExecutorDied) -> dict[int, str]:
    held = [h for h in post.holdings.values() if h.stage < Stage.STUCK]
    reports = {report.ref: report.outcome for report in reports_on_death(event, post, held)}
    return {h.ref.job: getattr(reports[h.ref], "blame", "not started") for h in held}


def test_the_only_job_in_a_process_that_died_did_it_itself() -> None:
    post = a_post(1, one := a_holding())
    (report,) = reports_on_death(died(post, stack="…"), post, [one])
    assert isinstance(report.outcome, Lost)
    assert (report.outcome.blame, report.outcome.error.type) == ("own", "ProcessDied")
    assert report.outcome.error.stack == "…"
    assert "signal 9" in report.outcome.error.message


def test_out_of_memory_is_told_apart() -> None:
    post = a_post(1, one := a_holding())
    (report,) = reports_on_death(died(post, out_of_memory=True), post, [one])
    assert isinstance(report.outcome, Lost)
    assert report.outcome.error.type == "OutOfMemory"


def test_a_known_culprit_is_charged_and_its_neighbours_are_not_but_learn_its_name() -> None:
    """A12, A29"""
    post = a_post(1, culprit := a_holding(), neighbour := a_holding())
    event = died(post, culprit=culprit.ref)
    assert blames(post, event) == {culprit.ref.job: "own", neighbour.ref.job: "neighbour"}
    outcome = reports_on_death(event, post, [culprit, neighbour])[1].outcome
    assert isinstance(outcome, Lost)
    assert f"w {culprit.job.id}" in outcome.error.message


def test_why_a_process_went_names_whose_doing_it_was() -> None:
    post = a_post(1, stuck := a_holding(Stage.STUCK), a_holding(), killed=plans.STUCK_INSIDE)
    assert why_it_went(died(post), post) == f"a job in it ignored its request to stop: w {stuck.job.id}"
    unknown = a_post(1, a_holding(), a_holding(), killed=plans.FROZEN)
    assert why_it_went(died(unknown), unknown) == plans.FROZEN
    deaf = a_holding()
    deaf.asked, deaf.told_at = RequestKind.CANCEL, 1.0
    silent = a_post(1, deaf, a_holding(), killed=plans.FROZEN, killed_at=1000.0)
    named = f"w {deaf.job.id} had been asked to stop and did not answer"
    assert why_it_went(died(silent), silent) == f"{plans.FROZEN}; {named}"


def test_several_and_no_culprit_makes_all_of_them_suspects() -> None:
    post = a_post(1, a_holding(), a_holding())
    assert set(blames(post, died(post)).values()) == {"suspect"}


def test_whose_handler_had_ended_while_others_ran_is_charged_with_nothing() -> None:
    """Its end was not heard any more. What it left behind may have done it: by itself it is charged."""
    post = a_post(1, ended := a_holding(), ran := a_holding(), again := a_holding(alone=True))
    event = died(post, ended=(ended.ref, again.ref))
    assert blames(post, event) == {ended.ref.job: "bystander", ran.ref.job: "suspect", again.ref.job: "suspect"}
    outcome = reports_on_death(event, post, [ended, ran, again])[0].outcome
    assert isinstance(outcome, Lost)
    assert "its handler had ended just before" in outcome.error.message
    post.killed, post.killed_at, ran.asked, ran.told_at = plans.FROZEN, 1000.0, RequestKind.CANCEL, 1.0
    outcome = reports_on_death(event, post, [ended, ran, again])[0].outcome
    assert isinstance(outcome, Lost)
    assert f"{ran.job.workflow} {ran.job.id} had been asked to stop and did not answer" in outcome.error.message
    post.killed = ""
    fell = reports_on_death(died(post, ended=(ended.ref,), with_others=True), post, [ended, ran, again])[0].outcome
    assert isinstance(fell, Lost)
    assert "every job of its worker fell with it" in fell.error.message
    everybody = died(post, ended=(ended.ref, ran.ref, again.ref))
    assert set(blames(post, everybody).values()) == {"suspect"}


def test_who_falls_with_the_zygote_is_a_bystander_until_it_runs_alone() -> None:
    """Any job of the worker may have done it; run alone one after the other, the next fall names its culprit."""
    for isolation in ("shared", "process"):
        post = a_post(1, one := a_holding(isolation=isolation))
        assert blames(post, died(post, with_others=True)) == {one.ref.job: "bystander"}
        post = a_post(1, again := a_holding(alone=True, isolation=isolation))
        assert blames(post, died(post, with_others=True)) == {again.ref.job: "suspect"}


def test_the_message_counts_no_neighbours_where_there_were_none() -> None:
    post = a_post(1, one := a_holding(alone=True))
    (report,) = reports_on_death(died(post, with_others=True), post, [one])
    assert isinstance(report.outcome, Lost)
    assert "several jobs" not in report.outcome.error.message
    assert "fell with it" in report.outcome.error.message

    frozen = a_post(1, one := a_holding(), killed=plans.FROZEN)
    (report,) = reports_on_death(died(frozen), frozen, [one])
    assert isinstance(report.outcome, Lost)
    assert "several jobs" not in report.outcome.error.message


def test_a_process_we_killed_for_the_lease_or_a_shutdown_charges_nobody() -> None:
    for reason in (plans.LEASE_GOING, plans.HANDED_BACK):
        post = a_post(1, a_holding(), a_holding(), killed=reason)
        assert set(blames(post, died(post)).values()) == {"uncharged"}


def test_neighbours_of_a_stuck_job_are_innocent() -> None:
    post = a_post(1, a_holding(Stage.STUCK), innocent := a_holding(), killed=plans.STUCK_INSIDE)
    assert blames(post, died(post)) == {innocent.ref.job: "neighbour"}


def test_what_had_not_started_goes_back_as_such() -> None:
    post = a_post(1, a_holding(), waiting := a_holding(Stage.FED))
    assert blames(post, died(post))[waiting.ref.job] == "not started"


def test_a_start_that_only_the_shared_page_knew_of_counts_as_a_start() -> None:
    post = a_post(1, quick := a_holding(Stage.FED))
    event = ExecutorDied(1, 4711, "exit 0", running=(quick.ref,), unstarted=())
    (report,) = reports_on_death(event, post, [quick])
    assert not isinstance(report.outcome, NotStarted)


def outcomes(post: Post, **facts: Any) -> list[Lost]:
    held = [h for h in post.holdings.values() if h.stage < Stage.STUCK]
    found = [report.outcome for report in reports_on_death(died(post, **facts), post, held)]
    return [outcome for outcome in found if isinstance(outcome, Lost)]


@pytest.mark.parametrize("reason", [plans.FROZEN, plans.STALLED_LOOP])
def test_who_was_seen_to_hold_the_process_is_charged_and_its_neighbours_learn_its_name(reason: str) -> None:
    """A29"""
    post = a_post(1, culprit := a_holding(), a_holding(), killed=reason, culprit=None)
    post.culprit, culprit.stack = culprit.ref, "where it was"

    own, neighbour = outcomes(post)

    assert (own.blame, own.error.stack, neighbour.blame, neighbour.error.stack) == (
        "own",
        "where it was",
        "neighbour",
        None,
    )
    assert reason in own.error.message
    assert reason in neighbour.error.message
    assert f"the culprit was another job in it: w {culprit.job.id}" in neighbour.error.message


def test_a_stuck_job_is_not_named_for_a_freeze_of_its_process_by_another() -> None:
    post = a_post(1, stuck := a_holding(Stage.STUCK), holder := a_holding(), a_holding(), killed=plans.FROZEN)
    post.culprit = holder.ref

    own, neighbour = outcomes(post)

    assert (own.blame, neighbour.blame) == ("own", "neighbour")
    assert stuck.job.id not in neighbour.error.message
    assert holder.job.id in neighbour.error.message


@pytest.mark.parametrize(
    ("killed", "blame"), [(plans.OVER_MEMORY, "suspect"), ("", "suspect"), (plans.ORDERED, "uncharged")]
)
def test_a_stuck_job_answers_only_for_the_end_that_it_caused(killed: str, blame: str) -> None:
    """Nor does its last neighbour for one that either may have caused."""
    post = a_post(1, a_holding(Stage.STUCK), a_holding(), killed=killed)
    (neighbour,) = outcomes(post)
    assert neighbour.blame == blame


def test_the_end_of_a_process_that_was_terminated_for_a_stuck_job_is_that_jobs() -> None:
    post = a_post(1, a_holding(Stage.STUCK), a_holding(), terminated_at=1.0)
    assert [o.blame for o in outcomes(post)] == ["neighbour"]


def test_all_in_a_frozen_process_are_suspects_with_a_stack_each_if_nobody_can_be_named() -> None:
    post = a_post(1, one := a_holding(), a_holding(), killed=plans.FROZEN)
    one.stack = "here"
    assert [(o.blame, o.error.stack) for o in outcomes(post)] == [("suspect", "here"), ("suspect", None)]


def test_of_a_loop_that_something_unknown_blocked_only_those_on_it_are_suspects() -> None:
    post = a_post(1, on_loop := a_holding(), a_holding(), killed=plans.STALLED_LOOP)
    post.on_main = frozenset({on_loop.ref})
    assert [o.blame for o in outcomes(post)] == ["suspect", "uncharged"]


BROKEN = "its event loop cannot run any more: ValueError: closed; jobs in it, or just ended: v, w"


@pytest.mark.parametrize("killed", [plans.STALLED_LOOP, ""])
def test_what_was_wrong_with_a_process_is_told_when_it_goes(killed: str) -> None:
    """And nobody is said to have blocked a loop that was broken."""
    post = a_post(1, on_loop := a_holding(), a_holding(), killed=killed, left_behind=BROKEN)
    post.on_main = frozenset({on_loop.ref})
    told = f"{killed or 'exit 70'}; {BROKEN}"
    assert all(told in outcome.error.message for outcome in outcomes(post, status="exit 70"))
    assert why_it_went(died(post, status="exit 70"), post) == told
    assert "blocked" not in told


@pytest.mark.parametrize(
    ("last_ended", "killed", "blame"),
    [("v", "", "suspect"), ("", "", "own"), ("v", plans.OVER_MEMORY, "own"), ("v", plans.ORDERED, "uncharged")],
)
def test_the_last_job_in_a_process_that_another_may_have_broken_is_a_suspect(
    last_ended: str, killed: str, blame: str
) -> None:
    """A12: who ended there before cannot be asked any more."""
    post = a_post(1, a_holding(), killed=killed, left_behind=BROKEN, last_ended=last_ended)
    assert [o.blame for o in outcomes(post)] == [blame]


@pytest.mark.parametrize(("bodies", "blame"), [(1, "own"), (2, "suspect")])
def test_over_the_memory_limit_is_out_of_memory(bodies: int, blame: str) -> None:
    post = a_post(1, *[a_holding() for _ in range(bodies)], killed=plans.OVER_MEMORY)
    assert {(o.blame, o.error.type) for o in outcomes(post)} == {(blame, "OutOfMemory")}


def test_a_crash_report_does_not_outweigh_why_we_killed_it() -> None:
    post = a_post(1, a_holding(), a_holding(), killed=plans.FROZEN)
    assert {o.blame for o in outcomes(post, culprit=post.bodies[0].ref)} == {"suspect"}


def test_a_process_that_an_operator_had_killed_charges_nobody() -> None:
    post = a_post(1, a_holding(), a_holding(), killed=plans.ORDERED)
    assert {o.blame for o in outcomes(post)} == {"uncharged"}


# --- those with a request of their own ----------------------------------------------------------------------------
def asked(post_killed_after: float, kind: RequestKind = RequestKind.TIMEOUT) -> HeldAttempt:
    """Told to stop so many seconds before its process was killed, at 100.0; its grace is 5 s."""
    holding = a_holding(at=0.0, grace=5.0)
    holding.asked, holding.told_at, holding.stack = kind, 100.0 - post_killed_after, "where it was"
    return holding


def killed(reason: str, *holdings: HeldAttempt, culprit: HeldAttempt | None = None) -> Post:
    post = a_post(1, *holdings, killed=reason, killed_at=100.0)
    post.culprit = culprit.ref if culprit else None
    return post


def ends(post: Post) -> list[Outcome]:
    held = [h for h in post.holdings.values() if h.stage < Stage.STUCK]
    return [report.outcome for report in reports_on_death(died(post), post, held)]


def test_who_falls_with_a_culprit_inside_its_own_grace_says_so_and_keeps_its_stack() -> None:
    post = killed(plans.STUCK_INSIDE, culprit := a_holding(Stage.STUCK), asked(4.9), a_holding())

    fallen, neighbour = ends(post)

    assert isinstance(fallen, Lost)
    assert (fallen.blame, fallen.error.stack) == ("neighbour", "where it was")
    assert f"the culprit was another job in it: w {culprit.job.id}" in fallen.error.message
    assert isinstance(neighbour, Lost)
    assert neighbour.error.stack is None


def test_who_falls_with_a_culprit_after_its_own_grace_is_convicted_too() -> None:
    post = killed(plans.STUCK_INSIDE, culprit := a_holding(Stage.STUCK), asked(5.0))

    (fallen,) = ends(post)

    assert isinstance(fallen, Stuck)
    assert (fallen.is_gone, fallen.is_proven) == (True, True)
    assert (fallen.error.type, fallen.error.stack) == ("ExecutionStuck", "where it was")
    assert fallen.error.message == (
        "Execution did not respond to cancellation within 5 seconds. Worker process recycled. "
        "Its process 4711 was killed: a job in it ignored its request to stop; "
        f"the culprit was another job in it: w {culprit.job.id}"
    )


def test_who_is_past_its_grace_in_a_process_that_froze_is_stuck_though_nothing_shows_that_it_did_it() -> None:
    post = killed(plans.FROZEN, me := asked(5.0), a_holding(), a_holding())

    mine, other, _ = ends(post)

    assert isinstance(mine, Stuck)
    assert (mine.is_gone, mine.is_proven, mine.error.stack) == (True, False, "where it was")
    assert "killed: it showed no sign of life; 3 jobs were in it and nothing says which" in mine.error.message
    assert isinstance(other, Lost)
    assert other.blame == "suspect"
    assert f"w {me.job.id} had been asked to stop and did not answer" in other.error.message


def test_a_stopped_process_has_no_stack_and_that_is_said() -> None:
    post = killed(plans.FROZEN, me := asked(5.0), a_holding())
    me.stack, post.is_stopped, post.pid = None, True, 4711
    mine = ends(post)[0]
    assert isinstance(mine, Stuck)
    assert mine.error.stack == "no stack: process 4711 is stopped (state T)"


@pytest.mark.parametrize("kind", [RequestKind.DRAIN, None])
def test_a_drain_convicts_nobody(kind: Any) -> None:
    post = killed(plans.FROZEN, asked(50.0, kind), a_holding())
    assert all(isinstance(end, Lost) for end in ends(post))


@pytest.mark.parametrize("reason", [plans.ORDERED, plans.OVER_MEMORY, plans.LEASE_GOING, ""])
def test_nor_does_an_end_that_has_nothing_to_do_with_it(reason: str) -> None:
    post = killed(reason, asked(50.0), a_holding())
    assert all(isinstance(end, Lost) for end in ends(post))


def test_the_only_job_beside_something_left_behind_is_not_convicted() -> None:
    """What was left may be what keeps the process."""
    post = killed(plans.FROZEN, asked(50.0))
    post.left_behind = "a thread"
    (end,) = ends(post)
    assert isinstance(end, Lost)
