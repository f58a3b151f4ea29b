"""Executors that die, freeze, lie or leave children behind; supervisors that are killed. Forked and spawned."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.executor.watch import Watch, is_gone
from tests.support.eventually import eventually
from unstuck.clock import boot
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Returned, Stopped
from unstuck.worker.processes import ExecutorDied, Finished, HandlerOutput, ImportFailed, ZygoteDied


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("name", "args", "status"),
    [("exit_hard", [0], "exit 0"), ("exit_hard", [7], "exit 7"), ("kill_self", [9], "signal 9 (SIGKILL)")],
)
def test_a_death_is_heard_at_once_with_its_status(
    watch: Watch, alone: bool, name: str, args: list[int], status: str
) -> None:
    """A12, F01, F02."""
    executor = watch.executor(alone=alone)
    ref = watch.feed(executor, name, *args)

    died = watch.died(executor, within=2.0)

    assert died.status == status
    assert died.running == (ref,)
    assert died.unstarted == ()
    assert not died.expected
    assert not died.out_of_memory
    assert is_gone(died.pid)
    assert executor not in {view.executor for view in watch.fleet.views()}


def test_a_death_is_noticed_within_a_tenth_of_a_second(watch: Watch) -> None:
    """A12."""
    executor = watch.executor()
    watch.begin(executor, "block", 30)

    killed_at = time.monotonic()
    os.kill(watch.pid(executor), signal.SIGKILL)
    watch.died(executor)

    assert time.monotonic() - killed_at < 0.5


def test_neighbours_that_ran_and_jobs_that_had_not_begun_are_told_apart(watch: Watch) -> None:
    executor = watch.executor(alone=True)
    done = watch.run(executor, "add", 1, 1).ref
    running = watch.begin(executor, "block", 30)
    unstarted = [watch.feed(executor, "add", 1, 1) for _ in range(3)]
    watch.hear_for(0.2)

    watch.fleet.kill(executor, "test")
    died = watch.died(executor)

    assert died.running == (running,)
    assert set(died.unstarted) == set(unstarted)
    assert done not in died.running
    assert not died.expected
    assert "test" in died.status


@pytest.mark.parametrize("name", ["segfault", "segfault_async"])
def test_a_native_crash_leaves_its_stack_and_names_the_culprit(watch: Watch, name: str) -> None:
    """A12, F03."""
    executor = watch.executor()
    neighbours = [watch.begin(executor, "block", 30), watch.begin(executor, "sleep_async", 30)]

    culprit = watch.feed(executor, name)
    died = watch.died(executor)

    assert died.status == "signal 11 (SIGSEGV)"
    assert died.culprit == culprit
    assert set(died.running) == {culprit, *neighbours}
    assert "string_at" in (died.stack or "")


def test_nobody_is_the_culprit_of_a_death_that_left_no_stack(watch: Watch) -> None:
    executor = watch.executor()
    refs = {watch.begin(executor, "block", 30), watch.begin(executor, "block", 30)}

    os.kill(watch.pid(executor), signal.SIGKILL)
    died = watch.died(executor)

    assert set(died.running) == refs
    assert died.culprit is None


def test_a_stopped_executor_stops_pulsing_and_can_be_killed(watch: Watch) -> None:
    """F04."""
    executor = watch.executor()
    ref = watch.begin(executor, "block", 30)
    os.kill(watch.pid(executor), signal.SIGSTOP)

    def pulse_age() -> float:
        return next(view.pulse_age for view in watch.fleet.views() if view.executor == executor)

    eventually(lambda: pulse_age() > 0.5)
    watch.fleet.kill(executor, "frozen")

    assert watch.died(executor, within=2.0).running == (ref,)


def test_a_blocked_loop_does_not_stop_the_pulse(watch: Watch) -> None:
    executor = watch.executor()
    watch.begin(executor, "block_loop", 30)
    watch.hear_for(0.6)

    # One that had stopped would only grow older.
    eventually(lambda: watch.fleet.views()[-1].pulse_age < 0.4)
    watch.fleet.kill(executor, "done")
    watch.died(executor)


@pytest.mark.parametrize("name", ["close_everything", "bad_frame"])
def test_an_executor_that_is_attacked_from_inside_dies_and_nobody_else(watch: Watch, name: str) -> None:
    """F26."""
    executor, other = watch.executor(), watch.executor()
    ref = watch.feed(executor, name)

    died = watch.died(executor, within=5.0)

    assert died.running == (ref,)
    assert not died.expected
    assert watch.run(other, "add", 1, 1).outcome == Returned("2")


@pytest.mark.parametrize("name", ["child", "daemon", "forked_daemon"])
@pytest.mark.parametrize("end", ["kill", "crash", "drain"])
def test_descendants_are_gone_with_their_executor(watch: Watch, name: str, end: str) -> None:
    """F12."""
    executor, other = watch.executor(), watch.executor()
    pid = watch.result(executor, name)
    others = watch.result(other, "daemon")
    assert not is_gone(pid)

    match end:
        case "kill":
            watch.fleet.kill(executor, "test")
        case "drain":
            watch.fleet.drain(executor, "test")
        case _:
            os.kill(watch.pid(executor), signal.SIGKILL)
    watch.died(executor)

    assert is_gone(pid)
    assert not is_gone(others)
    watch.fleet.kill(other, "done")
    watch.died(other)
    assert is_gone(others)


def test_output_said_before_a_crash_is_kept(watch: Watch) -> None:
    executor = watch.executor()
    ref = watch.begin(executor, "talk_then", 30)
    watch.hear_one(HandlerOutput, ref=ref)

    os.kill(watch.pid(executor), signal.SIGKILL)
    watch.died(executor)

    assert watch.said(ref, "output") == ["first words\n"]


def test_drain_lets_handlers_finish_and_runs_on_stop(
    mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = tmp_path / "stopped"
    monkeypatch.setenv("TEST_STOP_FILE", str(stopped))
    watch = Watch(mode)
    try:
        executor = watch.executor()
        refs = [watch.begin(executor, name, 0.5) for name in ("block", "sleep_async")]
        watch.fleet.drain(executor, "recycled")
        assert watch.fleet.views()[0].state == "draining"

        died = watch.died(executor)

        assert [watch.finished(ref).outcome for ref in refs] == [Returned('"woke"'), Returned('"slept"')]
        assert (died.status, died.expected, died.running) == ("exit 0", True, ())
        assert stopped.read_text() == "stopped\n"
    finally:
        watch.close()


def test_an_on_stop_hook_that_hangs_is_killed_after_the_kill_grace(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_STOP_SECONDS", "60")
    watch = Watch(mode, kill_grace=0.5)
    try:
        executor = watch.executor()
        watch.fleet.drain(executor, "recycled")

        died = watch.died(executor, within=3.0)

        assert died.status.startswith("signal 9")
        assert died.expected
    finally:
        watch.close()


def test_a_stray_thread_does_not_keep_a_drained_executor_alive(watch: Watch) -> None:
    executor = watch.executor()
    assert watch.result(executor, "stray_thread", 60) == "left a thread"

    watch.fleet.drain(executor, "recycled")

    assert watch.died(executor, within=3.0).status == "exit 0"


def test_nothing_runs_past_the_lease_even_if_nobody_asks(watch: Watch) -> None:
    """The zygote guards the lease by itself: the supervisor is not heard from here."""
    executor = watch.executor()
    watch.begin(executor, "block", 30)
    pid = watch.pid(executor)
    try:
        watch.fleet.lease(boot() + 0.3)
        eventually(lambda: is_gone(pid), timeout=2.0)
        died = watch.died(executor)
        assert "lease" in died.status
        assert died.expected
    finally:
        watch.fleet.lease(0.0)
        watch.hear_for(0.2)


def test_a_handler_can_ask_whether_the_lease_still_holds(mode: str) -> None:
    """It has a pulse for that: then its process ends itself. On a busy machine it may not get its turn in time."""
    watch = Watch(mode)
    try:
        for _ in range(10):
            executor = watch.executor()
            ref = watch.begin(executor, "check_lease_forever")
            watch.fleet._members[executor].page.grant(boot() + 0.2)
            watch.wait(partial(_ended, watch, executor, ref))
            if (finished := watch.first(Finished, ref=ref)) is not None:
                break
        assert finished is not None
        assert finished.outcome == Stopped(None, "Cancelled: the worker's lease has run out")
    finally:
        watch.close()


def _ended(watch: Watch, executor: int, ref: AttemptRef) -> object:
    return watch.first(Finished, ref=ref) or watch.first(ExecutorDied, executor=executor)


def test_the_death_of_the_zygote_is_survived(mode: str) -> None:
    watch = Watch(mode)
    try:
        executor = watch.executor()
        ref = watch.begin(executor, "block", 30)
        zygote = watch.fleet.pids()["zygote"]["pid"]
        os.kill(zygote, signal.SIGKILL)

        died = watch.died(executor, within=5.0)
        assert died.running == (ref,)
        assert "zygote" in died.status
        assert died.with_others
        lost = watch.hear_one(ZygoteDied)
        assert (lost.status, lost.again_in) == ("signal 9 (SIGKILL)", 1.0)
        assert watch.first(ImportFailed) is None

        again = watch.executor()
        assert watch.result(again, "add", 1, 1) == 2
    finally:
        watch.close()


def test_views_tell_what_an_executor_does_without_its_help(watch: Watch) -> None:
    executor = watch.executor(alone=True)
    watch.run(executor, "add", 1, 1)
    running = watch.begin(executor, "sleep", 30)
    waiting = watch.feed(executor, "add", 1, 1)

    view = next(view for view in watch.fleet.views() if view.executor == executor)
    assert (view.state, view.jobs_done) == ("active", 1)
    assert (view.running, view.unstarted) == ((running,), (waiting,))
    assert view.memory > 1 << 20
    identities = watch.fleet.pids()["executors"]
    assert {"pid": view.pid, "start": start_of(view.pid)} in identities

    watch.fleet.cancel(executor, running, RequestKind.CANCEL, "")
    watch.finished(waiting)
    watch.fleet.drain(executor, "done")
    watch.died(executor)


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@contextmanager
def no_number_free() -> Iterator[None]:
    """Below the highest that is open: a limit of descriptors counts numbers, and tests before may have left gaps."""
    highest = max(map(int, os.listdir("/proc/self/fd")))
    filling: list[int] = []
    try:
        while not filling or filling[-1] < highest:
            filling.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for descriptor in filling:
            os.close(descriptor)


def start_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def test_jobs_fed_to_an_executor_that_is_already_gone_come_back(watch: Watch) -> None:
    executor = watch.executor()
    watch.fleet.kill(executor, "test")
    watch.died(executor)

    ref = watch.feed(executor, "add", 1, 1)

    assert watch.recalled(ref).refs == (ref,)


def test_a_nudge_from_another_thread_ends_the_wait(watch: Watch) -> None:
    watch.hear_for(0.2)
    threading.Timer(0.1, watch.fleet.nudge).start()
    began = time.monotonic()

    watch.events += watch.fleet.hear(10.0)

    assert time.monotonic() - began < 5.0


def test_an_executor_that_is_killed_before_it_was_born_is_reported(mode: str) -> None:
    watch = Watch(mode)
    try:
        watch.fleet.spawn(1)
        ref = watch.feed(1, "add", 1, 1)
        watch.fleet.kill(1, "changed my mind")

        died = watch.died(1)
        assert died.unstarted == (ref,)
    finally:
        watch.close()


def test_closing_leaves_neither_processes_nor_descriptors(mode: str) -> None:
    before = open_descriptors()
    watch = Watch(mode)
    executor = watch.executor()
    daemon = watch.result(executor, "daemon")
    watch.begin(executor, "block", 30)
    os.kill(watch.pid(watch.executor()), signal.SIGSTOP)
    pids = [daemon, *(view.pid for view in watch.fleet.views()), watch.fleet.pids()["zygote"]["pid"]]

    watch.close()

    assert [pid for pid in pids if not is_gone(pid)] == []
    assert open_descriptors() == before


def test_executors_come_and_go_without_leaking_descriptors(watch: Watch) -> None:
    watch.fleet.kill(watch.executor(), "warm-up")
    watch.died(watch._executors)
    before = open_descriptors()

    for _ in range(5):
        executor = watch.executor()
        watch.fleet.kill(executor, "test")
        watch.died(executor)

    assert open_descriptors() == before


SUPERVISOR = """
import sys, json
from tests.executor.watch import Watch
watch = Watch(sys.argv[1])
executor = watch.executor()
frozen = watch.executor()
pids = [watch.result(executor, name) for name in ("child", "daemon", "forked_daemon")]
watch.begin(executor, "block", 300)
watch.begin(executor, "block_loop", 300)
pids += [view.pid for view in watch.fleet.views()] + [watch.fleet.pids()["zygote"]["pid"]]
print(json.dumps({"pids": pids, "frozen": watch.pid(frozen)}), flush=True)
watch.hear_for(300)
"""


@pytest.mark.parametrize("frozen", [False, True])
def test_nothing_survives_the_kill_of_its_supervisor(mode: str, frozen: bool) -> None:
    """A32, F05: executors and all their descendants are gone within 6 s, stopped ones too."""
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR, mode], stdout=subprocess.PIPE, text=True)
    try:
        assert supervisor.stdout is not None
        told = json.loads(supervisor.stdout.readline())
        assert all(not is_gone(pid) for pid in told["pids"])
        if frozen:
            os.kill(told["frozen"], signal.SIGSTOP)

        supervisor.kill()

        eventually(lambda: all(is_gone(pid) for pid in told["pids"]), timeout=6.0)
    finally:
        supervisor.kill()
        supervisor.wait()
        if supervisor.stdout:
            supervisor.stdout.close()


def test_a_supervisor_that_is_frozen_past_its_lease_runs_nothing(mode: str) -> None:
    """F06, the executor's part: STOP of the supervisor, and the zygote ends what must not go on."""
    # The lease is granted before we are told, so that the STOP cannot come first.
    script = SUPERVISOR.replace("print(", "from unstuck.clock import boot; watch.fleet.lease(boot() + 1.0); print(")
    supervisor = subprocess.Popen([sys.executable, "-c", script, mode], stdout=subprocess.PIPE, text=True)
    try:
        assert supervisor.stdout is not None
        told = json.loads(supervisor.stdout.readline())
        supervisor.send_signal(signal.SIGSTOP)

        executors = told["pids"][3:-1]
        eventually(lambda: all(is_gone(pid) for pid in told["pids"][:3] + executors), timeout=4.0)
    finally:
        supervisor.kill()
        supervisor.wait()
        if supervisor.stdout:
            supervisor.stdout.close()
    eventually(lambda: is_gone(told["pids"][-1]))


def test_a_zygote_that_was_stopped_does_not_stay_behind_its_killed_supervisor(mode: str) -> None:
    """The signal of its supervisor's death waits until an executor, which ends without it, has continued it."""
    script = SUPERVISOR.replace("print(", "from unstuck.clock import boot; watch.fleet.lease(boot() + 2.0); print(")
    supervisor = subprocess.Popen([sys.executable, "-c", script, mode], stdout=subprocess.PIPE, text=True)
    try:
        assert supervisor.stdout is not None
        told = json.loads(supervisor.stdout.readline())
        os.kill(told["pids"][-1], signal.SIGSTOP)
    finally:
        supervisor.kill()
        supervisor.wait()
        if supervisor.stdout:
            supervisor.stdout.close()
    eventually(lambda: all(is_gone(pid) for pid in told["pids"]), timeout=20.0)


def test_a_storm_of_deaths_loses_and_doubles_nothing(watch: Watch) -> None:
    """Every attempt that was fed is answered for exactly once: finished, or named by the death."""
    fed = set()
    executors = [watch.executor() for _ in range(2)]
    for executor in executors:
        jobs = [watch.job("add", n, 1) for n in range(500)]
        watch.fleet.feed(executor, jobs)
        fed |= {job.ref for job in jobs}
        os.kill(watch.pid(executor), signal.SIGKILL)
    deaths = [watch.died(executor) for executor in executors]

    finished = [e.ref for e in watch.events if isinstance(e, Finished) and e.ref in fed]
    lost = [ref for died in deaths for ref in (*died.running, *died.unstarted)]
    assert sorted(finished + lost, key=lambda ref: ref.job) == sorted(fed, key=lambda ref: ref.job)
    assert isinstance(deaths[0], ExecutorDied)


def test_an_executor_for_which_there_are_no_descriptors_is_reported_and_leaks_none(mode: str) -> None:
    """F11, the fleet's part."""
    watch = Watch(mode)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        watch.imported()
        with no_number_free():
            before = open_descriptors()
            for spare in range(6):
                resource.setrlimit(resource.RLIMIT_NOFILE, (before + spare, hard))
                watch.fleet.spawn(100 + spare)
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                assert "could not be started" in watch.died(100 + spare).status
                assert open_descriptors() == before
        assert watch.result(watch.executor(), "add", 1, 1) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        watch.close()


@pytest.mark.parametrize("name", ["child_crashes", "child_crashes_async"])
def test_the_crash_of_a_forked_child_convicts_nobody_when_the_executor_is_killed(watch: Watch, name: str) -> None:
    """The report that the child left is about the thread of whoever comes next."""
    executor = watch.executor()
    for _ in range(3):
        assert watch.result(executor, name) == "fine"
    refs = {watch.begin(executor, "block", 30), watch.begin(executor, "sleep_async", 30)}

    os.kill(watch.pid(executor), signal.SIGKILL)
    died = watch.died(executor)

    assert (set(died.running), died.culprit, died.stack) == (refs, None, None)


def test_the_executors_own_crash_is_told_from_that_of_a_child(watch: Watch) -> None:
    executor = watch.executor()
    assert watch.result(executor, "child_crashes") == "fine"
    watch.begin(executor, "block", 30)

    culprit = watch.feed(executor, "segfault")
    died = watch.died(executor)

    assert died.culprit == culprit
    assert (died.stack or "").count("Fatal Python error") == 1


def test_an_executor_that_was_killed_under_a_stopped_zygote_did_not_fail_to_end_in_time(mode: str) -> None:
    watch = Watch(mode)
    try:
        executor = watch.executor()
        ref = watch.begin(executor, "block", 30)
        zygote = watch.fleet.pids()["zygote"]["pid"]
        os.kill(zygote, signal.SIGSTOP)
        os.kill(watch.pid(executor), signal.SIGKILL)

        died = watch.died(executor)

        # It was told to go on, and reaped it.
        assert died.running == (ref,)
        assert died.status == "signal 9 (SIGKILL)"
    finally:
        watch.close()


def test_an_executor_ends_itself_when_the_lease_is_over_and_nobody_is_awake_to_do_it(mode: str) -> None:
    """A7, F06: worker and zygote are stopped; what the executor has started goes with it."""
    watch = Watch(mode)
    try:
        executor = watch.executor()
        left = [watch.result(executor, name) for name in ("child", "daemon")]
        watch.begin(executor, "block", 30)
        pid, zygote = watch.pid(executor), watch.fleet.pids()["zygote"]["pid"]
        os.kill(zygote, signal.SIGSTOP)

        watch.fleet.lease(boot() + 0.3)
        eventually(lambda: all(map(is_gone, [pid, *left])), timeout=2.0)

        os.kill(zygote, signal.SIGCONT)
        died = watch.died(executor)
        assert "lease" in died.status
        assert died.expected
    finally:
        watch.close()


def test_a_handler_that_ends_its_process_with_the_status_of_a_lost_lease_is_not_believed(watch: Watch) -> None:
    executor = watch.executor()
    watch.feed(executor, "exit_hard", 68)

    assert not watch.died(executor).expected
