"""What can be told of an executor without its help: who holds the interpreter or the loop, and where everybody is."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.executor.watch import Watch, stop
from tests.support.eventually import eventually
from tests.tiers import in_tiers
from unstuck.model.job import AttemptRef
from unstuck.worker import stacks
from unstuck.worker.processes import ExecutorView
from unstuck.worker.threads import Activity, Look, holder, look_at_threads

APP = "tests.executor.facts_app:app"
CONTROL, MAIN, FIRST, SECOND, STRANGER = 2, 1, 10, 11, 99


@pytest.fixture(scope="module")
def watch(mode: str) -> Iterator[Watch]:
    watch = Watch(mode, APP)
    watch.imported()
    yield watch
    watch.close()


@pytest.fixture
def executor(watch: Watch) -> Iterator[int]:
    number = watch.executor()
    yield number
    watch.fleet.kill(number, "the test is over")
    watch.died(number)


#: What the interpreter itself says of every file and folder that is opened; such a hook cannot be taken out again.
spies: list[Callable[[str, tuple[Any, ...]], None]] = []
sys.addaudithook(lambda event, args: [spy(event, args) for spy in spies] and None)


def view_of(watch: Watch, executor: int) -> ExecutorView:
    return next(view for view in watch.fleet.views() if view.executor == executor)


def silent(watch: Watch, executor: int, within: float = 5.0) -> ExecutorView:
    """Long enough for the kernel to be asked more than once."""

    def look() -> ExecutorView | None:
        view = view_of(watch, executor)
        return view if view.pulse_age > 1.0 else None

    return watch.wait(look, within, every=0.05)


def held(watch: Watch, executor: int, within: float = 10.0) -> ExecutorView:
    """Silent, and somebody is seen to hold the interpreter: on a busy machine that takes some more looks."""

    def look() -> ExecutorView | None:
        view = view_of(watch, executor)
        return view if view.pulse_age > 1.0 and view.holder is not None else None

    return watch.wait(look, within, every=0.05)


# who holds the interpreter: the rule


def looks(**threads: tuple[int, float]) -> tuple[Look, Look]:
    """A tenth of a second apart: by how much each thread's switches and CPU seconds grew."""
    names = {"control": CONTROL, "main": MAIN, "first": FIRST, "second": SECOND, "stranger": STRANGER}
    before = {names[name]: Activity("S", 1000, 1.0) for name in threads}
    after = {names[name]: Activity("S", 1000 + more, 1.0 + cpu) for name, (more, cpu) in threads.items()}
    return Look(50.0, before), Look(50.1, after)


WAITS, SLEEPS, BURNS = (20, 0.001), (0, 0.0), (1, 0.1)
JOBS = {FIRST: 7, SECOND: 8}


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        ({"control": WAITS, "first": BURNS, "second": WAITS}, 7),
        ({"control": WAITS, "first": BURNS, "second": SLEEPS}, 7),
        ({"control": WAITS, "first": WAITS, "second": SLEEPS}, 8),
        ({"control": WAITS, "first": SLEEPS, "second": SLEEPS}, None),
        ({"control": WAITS, "first": BURNS, "second": BURNS}, None),
        ({"control": WAITS, "first": WAITS, "second": WAITS}, None),
        ({"control": SLEEPS, "first": BURNS, "second": SLEEPS}, None),
        ({"control": WAITS, "first": SLEEPS, "stranger": BURNS}, None),
        ({"first": BURNS}, None),
    ],
)
def test_the_holder_is_the_one_that_neither_waits_nor_leaves_a_doubt(
    threads: dict[str, tuple[int, float]], expected: int | None
) -> None:
    assert holder(*looks(**threads), CONTROL, JOBS) == expected


def test_whoever_waited_before_in_the_same_silence_is_not_the_holder() -> None:
    looked = looks(control=WAITS, first=SLEEPS, second=SLEEPS)

    assert holder(*looked, CONTROL, JOBS, cleared={FIRST}) == 8


# who holds the interpreter: real processes


def test_a_regex_in_a_thread_is_the_holder_whoever_sleeps_or_computes_beside_it(
    watch: Watch, executor: int, tmp_path: Path
) -> None:
    culprit = watch.begin(executor, "regex", str(tmp_path / "go"))
    others = [watch.begin(executor, *job) for job in (("block", 60), ("block", 60), ("compute", 60))]
    (tmp_path / "go").touch()

    view = held(watch, executor)

    assert view.holder == culprit
    assert set(view.running) == {culprit, *others}
    assert not view.is_stopped


def test_a_regex_in_a_coroutine_is_the_holder(watch: Watch, executor: int, tmp_path: Path) -> None:
    watch.begin(executor, "block", 60)
    neighbour = watch.begin(executor, "sleep_async", 60)
    culprit = watch.begin(executor, "regex_async", str(tmp_path / "go"))
    (tmp_path / "go").touch()

    view = held(watch, executor)

    assert view.holder == culprit == view.on_loop
    assert view.on_main == {culprit, neighbour}
    assert view.loop_age > 1.0


@in_tiers("rounds", 1, 10)
@pytest.mark.parametrize("culprit", ["regex", "spins_without_a_break"])
def test_the_holder_is_known_in_a_process_that_has_just_begun(
    watch: Watch, tmp_path: Path, culprit: str, rounds: int
) -> None:
    """Its control thread may be starting a thread for the second job right then, and sleep until that can answer."""
    (tmp_path / "go").touch()
    for place in range(rounds):
        executor = watch.executor()
        jobs = [watch.job("block", 60) for _ in range(7)]
        guilty = watch.job(culprit, str(tmp_path / "go"))
        jobs.insert(place // 2 % 8, guilty)
        watch.fleet.feed(executor, jobs)

        assert held(watch, executor).holder == guilty.ref
        assert f"in {culprit}" in dumped(watch, executor, guilty.ref)

        watch.fleet.kill(executor, "the test is over")
        watch.died(executor)


def test_who_takes_no_turns_is_the_holder_whoever_is_on_the_loop(watch: Watch, executor: int, tmp_path: Path) -> None:
    """Nobody is seen to wait, and the coroutine whose code is on the loop is not the reason."""
    watch.begin(executor, "block", 60)
    napping = watch.begin(executor, "naps_on_the_loop")
    culprit = watch.begin(executor, "spins_without_a_break", str(tmp_path / "go"))
    (tmp_path / "go").touch()

    view = held(watch, executor)

    assert (view.holder, view.on_loop) == (culprit, napping)
    assert "in spins_without_a_break" in dumped(watch, executor, culprit)


def test_a_coroutine_that_takes_no_turns_is_the_holder(watch: Watch, executor: int, tmp_path: Path) -> None:
    watch.begin(executor, "block", 60)
    watch.begin(executor, "sleep_async", 60)
    culprit = watch.begin(executor, "spins_on_the_loop", str(tmp_path / "go"))
    (tmp_path / "go").touch()

    assert held(watch, executor).holder == culprit


def test_a_native_call_that_keeps_the_interpreter_is_the_holder(watch: Watch, executor: int, tmp_path: Path) -> None:
    culprit = watch.begin(executor, "native_call", str(tmp_path / "go"), 60)
    watch.begin(executor, "compute", 60)
    watch.begin(executor, "sleep_async", 60)
    (tmp_path / "go").touch()

    assert held(watch, executor).holder == culprit


def test_nobody_is_the_holder_if_it_cannot_be_told_apart_from_a_sleeper(
    watch: Watch, executor: int, tmp_path: Path
) -> None:
    watch.begin(executor, "native_call", str(tmp_path / "go"), 60)
    watch.begin(executor, "block", 60)
    (tmp_path / "go").touch()

    assert silent(watch, executor).holder is None


def test_nobody_is_the_holder_in_a_process_that_is_stopped(watch: Watch, executor: int) -> None:
    refs = [watch.begin(executor, "block", 60), watch.begin(executor, "block", 60)]
    stop(watch.pid(executor))

    view = silent(watch, executor)

    assert view.is_stopped
    assert view.holder is None
    assert set(view.running) == set(refs)
    os.kill(view.pid, signal.SIGCONT)
    watch.wait(lambda: ((v := view_of(watch, executor)).pulse_age < 0.2 and not v.is_stopped) or None)


def test_a_holder_is_forgotten_when_the_process_speaks_again(watch: Watch, executor: int, tmp_path: Path) -> None:
    culprit = watch.begin(executor, "native_call", str(tmp_path / "go"), 4.0)
    watch.begin(executor, "compute", 60)
    (tmp_path / "go").touch()
    assert held(watch, executor).holder == culprit

    watch.finished(culprit)

    assert view_of(watch, executor).holder is None
    eventually(lambda: view_of(watch, executor) and watch.fleet._members[executor].silence is None)


def test_who_blocks_the_loop_is_seen_while_the_process_speaks(watch: Watch, executor: int) -> None:
    """A29's facts."""
    neighbour = watch.begin(executor, "sleep_async", 60)
    thread = watch.begin(executor, "block", 60)
    culprit = watch.begin(executor, "block_loop", 60)

    view = watch.wait(
        lambda: v if (v := view_of(watch, executor)).loop_age > 1.0 and v.pulse_age < 0.5 else None, every=0.05
    )

    assert view.on_loop == culprit
    assert view.on_main == {culprit, neighbour}
    assert thread in view.running
    assert view.holder is None


def test_the_job_of_a_process_of_its_own_is_on_its_main_thread(watch: Watch) -> None:
    solo = watch.executor(alone=True)
    ref = watch.begin(solo, "block", 60)

    view = view_of(watch, solo)

    assert view.on_loop == ref
    assert view.on_main == {ref}
    watch.fleet.kill(solo, "the test is over")
    watch.died(solo)


def test_the_threads_of_a_healthy_process_are_not_looked_at(watch: Watch, executor: int) -> None:
    """It would cost a read of /proc per thread, twenty times a second."""
    watch.begin(executor, "block", 60)
    folder = f"/proc/{watch.pid(executor)}/task"
    read: list[object] = []
    spies.append(lambda event, args: read.append(args[0]) if event == "os.listdir" else None)

    for _ in range(100):
        view_of(watch, executor)
    assert folder not in read
    look_at_threads(watch.pid(executor), 0.0)
    assert folder in read

    spies.clear()


# where they are


def dumped(watch: Watch, executor: int, ref: AttemptRef) -> str:
    watch.fleet.dump(executor, [ref])
    return stack_of(watch, executor, ref)


def stack_of(watch: Watch, executor: int, ref: AttemptRef) -> str:
    """Looking meanwhile, as a supervisor does: that the interpreter is held may be seen only after the order."""
    return watch.wait(lambda: (watch.fleet.views(), watch.fleet.stack(executor, ref))[1], every=0.01)


def shows(watch: Watch, executor: int, ref: AttemptRef, frame: str) -> None:
    """Soon: an attempt says that it begins before its first line runs, and others may be busy."""
    eventually(lambda: frame in dumped(watch, executor, ref))


def test_the_stack_of_a_thread_is_read_while_it_holds_the_interpreter(
    watch: Watch, executor: int, tmp_path: Path
) -> None:
    """Within milliseconds: the handler's frames alone, the most recent call last."""
    neighbour = watch.begin(executor, "block", 60)
    culprit = watch.begin(executor, "regex", str(tmp_path / "go"))
    (tmp_path / "go").touch()
    silent(watch, executor)

    began = time.monotonic()
    lines = dumped(watch, executor, culprit).splitlines()

    assert time.monotonic() - began < 0.5
    assert lines[0] == "In its thread (most recent call last):"
    assert lines[1].endswith(", in regex")
    assert "facts_app.py" in lines[1]
    assert any(line.endswith(", in catastrophe") for line in lines)
    assert not any("unstuck" in line and "/executor/" in line for line in lines)
    assert watch.fleet.stack(executor, neighbour) is None


def test_the_stack_of_a_coroutine_that_blocks_the_loop_is_read(watch: Watch, executor: int, tmp_path: Path) -> None:
    culprit = watch.begin(executor, "regex_async", str(tmp_path / "go"))
    (tmp_path / "go").touch()
    silent(watch, executor)

    lines = dumped(watch, executor, culprit).splitlines()

    assert lines[0] == "On the main thread (most recent call last):"
    assert lines[1].endswith(", in regex_async")
    assert any(line.endswith(", in catastrophe") for line in lines)


def test_the_stack_of_a_suspended_coroutine_is_told_by_its_own_process(watch: Watch, executor: int) -> None:
    ref = watch.begin(executor, "deep_in_a_coroutine", 60)
    watch.hear_for(0.1)

    shows(watch, executor, ref, "in the_innermost")


def test_nobody_is_shown_the_stack_of_another_on_the_same_loop(watch: Watch, executor: int) -> None:
    suspended = watch.begin(executor, "deep_in_a_coroutine", 60)
    watch.begin(executor, "block_loop", 60)
    watch.hear_for(0.1)

    stack = dumped(watch, executor, suspended)

    assert "in the_innermost" in stack
    assert "block_loop" not in stack


def test_a_suspended_coroutine_has_no_stack_while_another_holds_the_interpreter(
    watch: Watch, executor: int, tmp_path: Path
) -> None:
    """Above all not that of the other one."""
    suspended = watch.begin(executor, "deep_in_a_coroutine", 60)
    culprit = watch.begin(executor, "regex_async", str(tmp_path / "go"))
    (tmp_path / "go").touch()
    silent(watch, executor)
    watch.fleet.dump(executor, [suspended, culprit])

    assert "in regex_async" in stack_of(watch, executor, culprit)
    assert watch.fleet.stack(executor, suspended) is None


def test_there_is_no_stack_of_a_stopped_process_until_it_goes_on(watch: Watch, executor: int) -> None:
    ref = watch.begin(executor, "block", 60)
    pid = watch.pid(executor)
    stop(pid)
    watch.fleet.dump(executor, [ref])
    watch.hear_for(0.2)
    assert watch.fleet.stack(executor, ref) is None

    os.kill(pid, signal.SIGCONT)

    assert "in block" in watch.wait(lambda: watch.fleet.stack(executor, ref))


def test_the_last_of_many_dumps_is_the_one_that_is_read(watch: Watch, executor: int) -> None:
    """And none of them hurts a process whose threads are at work."""
    ref = watch.begin(executor, "churn", 60)
    watch.begin(executor, "churn", 60)
    shows(watch, executor, ref, "in churn")
    for _ in range(50):
        assert "in churn" in dumped(watch, executor, ref)
    last = watch.begin(executor, "block", 60)

    shows(watch, executor, last, "in block")
    assert "in churn" in (watch.fleet.stack(executor, ref) or "")
    # Not one signal was sent: it would walk frames that come and go, and crash the process once in some hundreds.
    assert os.fstat(watch.fleet._members[executor].dumps._file).st_size == 0


def hold_and_dump(watch: Watch, executor: int, path: Path) -> None:
    """There is a dump in the file, and the process goes on."""
    ref = watch.begin(executor, "native_call", str(path), 3.0)
    path.touch()
    silent(watch, executor)
    shows(watch, executor, ref, "in native_call")
    watch.finished(ref)


@pytest.mark.parametrize("name", ["segfault", "segfault_async"])
def test_a_crash_is_told_apart_from_the_dumps_before_it(watch: Watch, name: str, tmp_path: Path) -> None:
    executor = watch.executor()
    watch.begin(executor, "block", 60)
    hold_and_dump(watch, executor, tmp_path / "go")

    culprit = watch.feed(executor, name)
    died = watch.died(executor)

    assert died.culprit == culprit
    stack = died.stack or ""
    assert stack.startswith("Fatal Python error: Segmentation fault")
    assert stack.count("Current thread") == 1
    assert stack.index(f"in {name}") < stack.index("in block")
    assert "native_call" not in stack


def test_a_dump_is_not_taken_for_a_crash(watch: Watch, tmp_path: Path) -> None:
    executor = watch.executor()
    watch.begin(executor, "block", 60)
    hold_and_dump(watch, executor, tmp_path / "go")

    watch.feed(executor, "aborts_without_a_report")
    died = watch.died(executor)

    assert died.status == "signal 6 (SIGABRT)"
    assert died.stack is None
    assert died.culprit is None


def test_a_handler_that_took_our_signals_away_is_not_killed_by_them(
    watch: Watch, executor: int, tmp_path: Path
) -> None:
    ref = watch.begin(executor, "forgets_our_signals", 60)
    shows(watch, executor, ref, "in forgets_our_signals")
    watch.fleet.interrupt(executor, ref)
    held = watch.begin(executor, "native_call", str(tmp_path / "go"), 3.0)
    (tmp_path / "go").touch()
    silent(watch, executor)
    watch.fleet.dump(executor, [held])

    watch.finished(held)

    assert view_of(watch, executor).running == (ref,)


def test_an_executor_that_is_being_born_is_not_killed_by_our_signals(mode: str) -> None:
    watch = Watch(mode, APP)
    try:
        watch.fleet.spawn(1)
        ref = watch.feed(1, "add", 1, 2)
        for _ in range(200):
            watch.fleet.dump(1, [ref])
            watch.fleet.interrupt(1, ref)
            watch.fleet.terminate(1)
            watch.events += watch.fleet.hear(0.005)
        assert watch.finished(ref).executor == 1
        assert view_of(watch, 1).state == "active"
    finally:
        watch.close()


def test_half_a_dump_is_no_stack_yet() -> None:
    """faulthandler writes call by call, the most recent first: the beginning alone would be a lie."""
    ours = next(iter(stacks._GATES))
    calls = ['  File "a.py", line 1 in inner', '  File "a.py", line 9 in outer', f'  File "{ours}", line 5 in call']
    whole = "\n".join(["Thread 0x000000000000002a (most recent call first):", *calls, ""])

    seen = {stacks.stack_of(42, whole[:cut], "In its thread") for cut in range(len(whole))}

    told = 'In its thread (most recent call last):\n  File "a.py", line 9, in outer\n  File "a.py", line 1, in inner'
    assert seen == {None, told}
