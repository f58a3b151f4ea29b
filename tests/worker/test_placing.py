"""Claimed jobs find their executor, and the room that is left is counted right."""

from __future__ import annotations

from tests.support.holdings import a_holding, a_post
from unstuck.worker.ledger import HeldAttempt, Stage
from unstuck.worker.placing import Seats, place, room, suspects_to_seat
from unstuck.worker.roster import Post
from unstuck.worker.shares import FreeRoom

SEATS = Seats(slots=8, processes=2)


def test_the_least_loaded_executor_takes_the_next_job() -> None:
    busy, idle = a_post(1, a_holding(), a_holding()), a_post(2)
    waiting = [a_holding(Stage.CLAIMED) for _ in range(4)]
    seats, unseated = place(waiting, [busy, idle])
    assert ({n: len(h) for n, h in seats.items()}, unseated) == ({1: 1, 2: 3}, [])


def test_a_suspect_never_joins_others_and_waits_for_a_process_of_its_own() -> None:
    suspect = a_holding(Stage.CLAIMED, alone=True)
    assert place([suspect], [a_post(1)]) == ({}, [suspect])
    assert place([suspect], [a_post(1), a_post(2, alone=True)]) == ({2: [suspect]}, [])
    assert place([suspect], [a_post(1), a_post(2, a_holding(), alone=True)]) == ({}, [suspect])


def test_an_ordinary_job_never_sits_in_a_process_for_single_jobs() -> None:
    job = a_holding(Stage.CLAIMED)
    assert place([job], [a_post(2, alone=True)]) == ({}, [job])


def test_room_is_the_free_slots_and_what_may_wait_ahead() -> None:
    posts = [a_post(1, *[a_holding() for _ in range(6)]), a_post(2, a_holding())]
    assert room(posts, [], SEATS, may_fetch_ahead=True) == FreeRoom(slots=3, ahead=198, solo=2)
    assert room(posts, [], SEATS, may_fetch_ahead=False) == FreeRoom(slots=3, ahead=0, solo=2)


def test_those_who_stand_take_their_slot_already() -> None:
    unseated = [a_holding(Stage.CLAIMED), a_holding(Stage.CLAIMED, alone=True)]
    assert room([a_post(1)], unseated, SEATS, may_fetch_ahead=False) == FreeRoom(slots=2, ahead=0, solo=2)


def test_a_suspect_takes_a_slot_wherever_it_is_and_an_isolated_job_one_of_the_processes_beside() -> None:
    """Claimed for a slot, it may not let another be claimed for the same one."""
    suspects = [a_holding(alone=True), a_holding(Stage.CLAIMED, alone=True)]
    isolated = a_holding(isolation="process")
    posts = [a_post(1), a_post(2, suspects[0], alone=True), a_post(3, isolated, alone=True)]

    assert room(posts, suspects[1:], SEATS, may_fetch_ahead=False) == FreeRoom(slots=2, ahead=0, solo=1)


def test_what_is_stuck_or_revoked_holds_no_slot() -> None:
    posts = [a_post(1), a_post(2, a_holding(Stage.STUCK, alone=True), alone=True, state="draining")]

    assert room(posts, [], SEATS, may_fetch_ahead=False) == FreeRoom(slots=4, ahead=0, solo=2)


def test_jobs_that_go_on_in_a_draining_executor_keep_their_slots() -> None:
    draining = a_post(1, a_holding(Stage.STUCK), a_holding(), a_holding(), state="draining")

    assert room([draining, a_post(2), a_post(3)], [], SEATS, may_fetch_ahead=False).slots == 6


def test_an_executor_with_fewer_slots_takes_fewer_jobs() -> None:
    small, big = a_post(1, slots=2), a_post(2, slots=3)
    seats, unseated = place([a_holding(Stage.CLAIMED) for _ in range(5)], [small, big])

    assert ({n: len(h) for n, h in seats.items()}, unseated) == ({1: 2, 2: 3}, [])
    assert room([small, big], [], Seats(5, 2), may_fetch_ahead=False).slots == 5


def test_without_executors_there_is_no_room() -> None:
    assert room([], [], SEATS, may_fetch_ahead=True) == FreeRoom(0)


def test_after_the_death_of_a_zygote_suspects_run_one_at_a_time() -> None:
    """Two that fall together would both be charged, again and again, whoever did it."""
    first, second = (a_holding(Stage.CLAIMED, alone=True) for _ in range(2))
    isolated = a_holding(Stage.CLAIMED, isolation="process")
    solos = [a_post(n, alone=True) for n in (2, 3, 4)]

    seats, unseated = place([first, second, isolated], solos, most_suspects=1)

    assert sorted(h.ref for held in seats.values() for h in held) == sorted([first.ref, isolated.ref])
    assert unseated == [second]


def test_a_suspect_that_may_still_have_a_body_keeps_the_next_one_waiting() -> None:
    for stage in (Stage.FED, Stage.RUNNING, Stage.STUCK, Stage.REVOKED):
        busy = a_post(2, a_holding(stage, alone=True), alone=True, state="draining")
        assert suspects_to_seat([busy], is_wary=True) == 0
    isolated = a_post(2, a_holding(isolation="process"), alone=True)
    assert suspects_to_seat([isolated], is_wary=True) == 1
    assert suspects_to_seat([busy], is_wary=False) > 100


def test_a_coroutine_sits_only_where_the_loop_turns_and_a_function_anywhere() -> None:
    stalled, lively = a_post(1, loop_age=1.0), a_post(2, a_holding(), a_holding())
    later, plain = a_holding(Stage.CLAIMED), a_holding(Stage.CLAIMED)
    later.job = later.job._replace(workflow="later")

    def seated(*posts: Post) -> tuple[dict[int, list[HeldAttempt]], list[HeldAttempt]]:
        return place([later, plain], posts, coroutines={"later"}, unresponsive=1.0)

    assert seated(stalled, lively) == ({2: [later], 1: [plain]}, [])
    assert seated(stalled) == ({1: [plain]}, [later])


def test_a_spare_is_never_fed() -> None:
    assert not a_post(1, is_spare=True).is_feedable(1.0)
    assert room([a_post(1), a_post(2, is_spare=True)], [], SEATS, may_fetch_ahead=False).slots == 4
