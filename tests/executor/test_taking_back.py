"""What has not begun can be taken back without the executor's help: it has begun, or it never will."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.executor.watch import Watch, stop
from unstuck.model.settlement import Returned
from unstuck.worker.processes import Finished, Recalled, Started

HANDLERS = "tests.executor.hard_cases:app"


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", ["make_folder", "make_folder_async"])
def test_a_withdrawn_attempt_is_given_back_by_whoever_would_begin_it(
    watch: Watch, name: str, alone: bool, tmp_path: Path
) -> None:
    """No recall reached it: the page alone says so."""
    executor = watch.executor(alone=alone)
    member = watch.fleet._members[executor]
    stop(member.pid)
    refs = [watch.feed(executor, name, str(tmp_path / folder)) for folder in ("withdrawn", "wanted")]
    withdrawn, wanted = refs
    number = member.number_of(withdrawn)
    assert number is not None
    place = member.fed[number].place
    member.page.withdraw(place, number)
    os.kill(member.pid, signal.SIGCONT)

    assert watch.recalled(withdrawn).refs == (withdrawn,)
    assert watch.finished(wanted).outcome == Returned("null")
    assert os.listdir(tmp_path) == ["wanted"]
    assert not watch.first(Started, ref=withdrawn)
    assert not watch.first(Finished, ref=withdrawn)
    assert member.page.cell(place).number in (0, number + 1)
    assert watch.result(executor, "add_async", 1, 2) == 3


def test_a_stopped_executor_loses_what_it_has_not_begun_and_does_not_run_it_when_it_goes_on(
    watch: Watch, tmp_path: Path
) -> None:
    executor = watch.executor()
    pid = watch.pid(executor)
    stop(pid)
    refs = [watch.feed(executor, "make_folder", str(tmp_path / str(n))) for n in range(20)]
    watch.fleet.recall(executor, refs)
    watch.wait(
        lambda: True if {r for e in watch.events if isinstance(e, Recalled) for r in e.refs} >= {*refs} else None
    )

    os.kill(pid, signal.SIGCONT)
    assert watch.result(executor, "add", 1, 2) == 3
    watch.hear_for(0.3)

    assert os.listdir(tmp_path) == []
    assert watch.result(executor, "add_async", 1, 2) == 3


def test_a_recall_that_races_with_the_start_ends_each_attempt_exactly_once(watch: Watch, tmp_path: Path) -> None:
    executor = watch.executor()
    refs = []
    for n in range(300):
        refs.append(watch.feed(executor, "make_folder" + "_async" * (n % 2), str(tmp_path / str(n))))
        watch.fleet.recall(executor, refs[-2:])
        if n % 10 == 0:
            watch.hear_for(0.001)

    def ends() -> dict[object, int]:
        counted: dict[object, int] = {}
        for event in watch.events:
            over = event.refs if isinstance(event, Recalled) else (event.ref,) if isinstance(event, Finished) else ()
            for ref in over:
                counted[ref] = counted.get(ref, 0) + 1
        return counted

    watch.wait(lambda: True if all(ref in ends() for ref in refs) else None)
    watch.hear_for(0.3)
    counted = ends()

    assert {counted[ref] for ref in refs} == {1}
    finished = {e.ref for e in watch.events if isinstance(e, Finished)} & set(refs)
    assert len(os.listdir(tmp_path)) == len(finished)


def test_the_page_names_the_threads_as_interpreter_and_kernel_do(watch: Watch) -> None:
    executor = watch.executor()
    member = watch.fleet._members[executor]
    on_loop, on_thread = watch.begin(executor, "sleep_async", 60), watch.begin(executor, "block", 60)
    cells = {}
    for ref in (on_loop, on_thread):
        number = member.number_of(ref)
        assert number is not None
        cells[ref] = member.page.cell(member.fed[number].place)
    names = {}
    for thread in os.listdir(f"/proc/{member.pid}/task"):
        names[int(thread)] = Path(f"/proc/{member.pid}/task/{thread}/stat").read_text().split()[0]

    assert cells[on_loop].thread == member.page.main_thread != cells[on_thread].thread
    assert cells[on_loop].kernel_thread == member.pid
    assert {cells[on_thread].kernel_thread, member.page.control_thread} <= names.keys() - {member.pid}
    assert cells[on_thread].kernel_thread != member.page.control_thread
    watch.fleet.kill(executor, "done")
    watch.died(executor)


def test_the_import_tells_which_handlers_are_coroutines(watch: Watch) -> None:
    coroutines = watch.imported().coroutines

    assert {"make_folder_async", "sleep_async"} <= coroutines
    assert not {"make_folder", "sleep"} & coroutines
