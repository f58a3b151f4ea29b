"""Who rests until more has come is woken by what cannot wait, and by nothing else."""

from __future__ import annotations

import select

import pytest

from unstuck.executor.outbox import Outbox


def rings(outbox: Outbox) -> bool:
    return bool(select.select([outbox.wake_in], [], [], 0)[0])


def test_an_end_waits_for_others_and_a_question_does_not() -> None:
    outbox = Outbox()
    assert outbox.gather()

    outbox.say("an end")
    assert not rings(outbox)

    outbox.put("a question")
    outbox.hurry()
    assert rings(outbox)
    assert outbox.is_urgent
    assert outbox.take_all() == ["an end", "a question"]
    assert not outbox.is_urgent


@pytest.mark.parametrize("is_gathering", [False, True])
def test_a_question_that_comes_before_the_rest_keeps_from_it(is_gathering: bool) -> None:
    """Between the look for messages and the rest nothing may be missed."""
    outbox = Outbox()
    outbox.put("a question")
    outbox.hurry()

    assert not (outbox.gather() if is_gathering else outbox.fall_asleep())
