"""The soft interrupt against handlers that wait inside code which it spares, and what it may leave behind."""

from __future__ import annotations

import time

import pytest

from tests.executor.test_interrupts import begin_hanging, end_by_one_order
from tests.executor.watch import Watch
from tests.support.eventually import eventually
from unstuck.model.job import AttemptRef
from unstuck.model.settlement import Returned, Stopped
from unstuck.worker.processes import Finished, LeftBehind

HANDLERS = "tests.executor.spared_cases:app"


def interrupt(watch: Watch, executor: int, ref: AttemptRef) -> tuple[Finished, float]:
    """By one order, and how long it took."""
    since = time.monotonic()
    watch.fleet.interrupt(executor, ref)
    return watch.finished(ref, within=5.0), time.monotonic() - since


def end(watch: Watch, executor: int) -> None:
    watch.fleet.kill(executor, "done")
    watch.died(executor)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("what", ["condition", "queue", "exit stack", "logging", "import"])
def test_who_waits_inside_spared_code_is_reached_by_one_order(watch: Watch, what: str, alone: bool) -> None:
    executor = watch.executor(alone=alone)
    ref = begin_hanging(watch, executor, "wait_inside" if alone else "wait_inside_async", what)
    watch.hear_for(0.3)

    finished, took = interrupt(watch, executor, ref)

    assert isinstance(finished.outcome, Stopped)
    assert 0.2 < took < 1.0
    assert watch.result(executor, "add_async", 1, 2) == 3
    end(watch, executor)


@pytest.mark.parametrize("seconds", [0.4, 12.0])
def test_nothing_of_a_handler_is_kept_for_having_been_found_at_a_wait(watch: Watch, seconds: float) -> None:
    """Also if the wait was over before anybody took it for one."""
    executor = watch.executor()
    ref = begin_hanging(watch, executor, "wait_inside_with_possessions", seconds)
    watch.hear_for(0.2)
    interrupt(watch, executor, ref)

    eventually(lambda: watch.result(executor, "count_possessions") == 0)
    end(watch, executor)


def test_the_selector_of_the_loop_stays_whole(watch: Watch) -> None:
    executor = watch.executor()
    for _ in range(40):
        end_by_one_order(watch, executor, "reader", 0.5)
        assert watch.result(executor, "find_readers_lost") == []
    end(watch, executor)


@pytest.mark.parametrize("watcher", ["profile", "trace"])
def test_a_profiler_does_not_open_what_is_spared(watch: Watch, watcher: str) -> None:
    """An exception in its function comes out of the code that it looks at."""
    executor = watch.executor()
    for _ in range(20):
        ref = watch.begin(executor, "watch_condition", watcher)
        watch.hear_for(0.01)
        assert isinstance(interrupt(watch, executor, ref)[0].outcome, Stopped)
        assert watch.result(executor, "find_locks_held") == []
    end(watch, executor)


@pytest.mark.parametrize(("name", "outcome"), [("import_slowly", Stopped), ("import_slowly_and_go_on", Returned)])
def test_a_process_in_which_an_import_was_struck_is_to_be_replaced(
    watch: Watch, name: str, outcome: type[Stopped | Returned]
) -> None:
    """Some modules cannot be imported a second time, and it is told before the end of the attempt is."""
    executor = watch.executor()
    ref = begin_hanging(watch, executor, name)

    assert isinstance(interrupt(watch, executor, ref)[0].outcome, outcome)

    told = watch.first(LeftBehind, executor=executor)
    assert told == LeftBehind(executor, name, (), broken_import="imports_slowly")
    assert watch.events.index(told) < watch.events.index(watch.finished(ref))
    end(watch, executor)


def test_a_process_is_not_replaced_for_a_strike_anywhere_else(watch: Watch) -> None:
    executor = watch.executor()
    interrupt(watch, executor, begin_hanging(watch, executor, "hang_async", "sleep"))
    watch.hear_for(0.8)

    assert watch.first(LeftBehind, executor=executor) is None
    end(watch, executor)


@pytest.mark.parametrize("store_url", ["postgres"], indirect=True)
def test_our_own_store_is_spared_with_all_it_calls(watch: Watch, store_url: str) -> None:
    """A connection that was taken from its pool and not yet given to anybody would be lost to all."""
    executor = watch.executor()
    ref = watch.feed(executor, "struck_within_the_store", store_url)
    member = watch.fleet._members[executor]
    number = member.number_of(ref)
    assert number is not None
    member.page.aim(number)

    assert isinstance(watch.finished(ref).outcome, Stopped)
    assert watch.result(executor, "connections_out") == [0]
    end(watch, executor)
