"""Alarms and answers to signals that a handler leaves behind are nobody else's trouble."""

from __future__ import annotations

import pytest

from tests.executor.watch import Watch
from unstuck.model.settlement import Returned
from unstuck.worker.processes import ExecutorDied

HANDLERS = "tests.executor.alarms_app:app"


@pytest.mark.parametrize("every", [0.0, 0.05])
@pytest.mark.parametrize(
    ("alone", "leaver", "innocent"),
    [
        (True, "arms", "rests"),
        (True, "arms", "rests_async"),
        (True, "arms_async", "rests"),
        (False, "arms_async", "rests"),
    ],
)
def test_an_alarm_of_a_job_that_has_ended_does_not_strike_the_next(
    watch: Watch, alone: bool, leaver: str, innocent: str, every: float
) -> None:
    """Also of one that was fed before the first had ended."""
    executor = watch.executor(alone=alone)
    first, second = watch.feed(executor, leaver, 0.3, every), watch.feed(executor, innocent, 0.8)

    ends = [watch.finished(ref).outcome for ref in (first, second)]

    assert ends == [Returned(str(watch.pid(executor)))] * 2


def test_an_alarm_that_nobody_heard_of_yet_is_gone_when_a_coroutine_comes(watch: Watch) -> None:
    executor = watch.executor()
    watch.run(executor, "arms_async", 0.5)
    watch.hear_for(0.2)

    assert watch.result(executor, "rests_async", 0.8) == watch.pid(executor)


@pytest.mark.parametrize(("alone", "leaver"), [(False, "arms_async"), (True, "sends_later")])
def test_a_signal_that_finds_nobody_ends_nothing(watch: Watch, alone: bool, leaver: str) -> None:
    executor = watch.executor(alone=alone)
    for _ in range(3):
        watch.run(executor, leaver, 0.01)
        watch.hear_for(0.15)
    assert watch.result(executor, "rests_async", 0.1) == watch.pid(executor)
    assert watch.first(ExecutorDied, executor=executor) is None


def test_signals_that_find_nobody_again_and_again_end_nothing(watch: Watch) -> None:
    """More of them between two pulses than a loop may fail that cannot turn any more."""
    executor = watch.executor()
    for _ in range(20):
        watch.run(executor, "arms_async", 0.003)
        watch.hear_for(0.005)
    assert watch.result(executor, "rests_async", 0.1) == watch.pid(executor)


@pytest.mark.parametrize("alone", [False, True])
def test_a_coroutine_keeps_its_own_alarm_as_long_as_it_runs(watch: Watch, alone: bool) -> None:
    executor = watch.executor(alone=alone)
    assert watch.result(executor, "waits_for_its_alarm", 0.4) is True


@pytest.mark.parametrize("alone", [False, True])
def test_the_answers_to_signals_are_those_of_the_start_again(watch: Watch, alone: bool) -> None:
    executor = watch.executor(alone=alone)
    before = watch.result(executor, "answers")
    watch.run(executor, "sends_later" if alone else "arms_async", 30)
    watch.hear_for(0.2)

    assert watch.result(executor, "answers") == before == ["SIG_DFL", "SIG_DFL", "_mine"]


def test_an_executor_is_drained_after_a_signal_that_found_nobody(watch: Watch) -> None:
    executor = watch.executor(alone=True)
    watch.run(executor, "sends_later", 0.01)
    watch.hear_for(0.2)
    watch.fleet.drain(executor, "enough")

    assert watch.hear_one(ExecutorDied, within=5.0, executor=executor).expected
