"""Claimed jobs find their executor, and the room that is left is counted right."""

from __future__ import annotations

from tests.support.holdings import a_holding, a_post
from unstuck.worker.ledger import Stage
from unstuck.worker.placing import Seats, place, room
from unstuck.worker.shares import Room

SEATS = Seats(slots_each=4, processes=2)


def test_the_least_loaded_executor_takes_the_next_job() -> None:
    busy, idle = a_post(1, a_holding(), a_holding()), a_post(2)
    waiting = [a_holding(Stage.CLAIMED) for _ in range(4)]
    seats, standing = place(waiting, [busy, idle])
    assert ({n: len(h) for n, h in seats.items()}, standing) == ({1: 1, 2: 3}, [])


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
    assert room(posts, [], SEATS, may_fetch_ahead=True) == Room(slots=3, ahead=198, solo=2)
    assert room(posts, [], SEATS, may_fetch_ahead=False) == Room(slots=3, ahead=0, solo=2)


def test_those_who_stand_take_their_slot_already() -> None:
    standing = [a_holding(Stage.CLAIMED), a_holding(Stage.CLAIMED, alone=True)]
    assert room([a_post(1)], standing, SEATS, may_fetch_ahead=False) == Room(slots=3, ahead=0, solo=1)


def test_without_executors_there_is_no_room() -> None:
    assert room([], [], SEATS, may_fetch_ahead=True) == Room(0)
