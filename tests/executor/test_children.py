"""The processes of an attempt end with it, whoever they are; those of its neighbours go on."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.executor.children_app import WAYS
from tests.executor.watch import Watch, is_gone
from tests.support.eventually import eventually
from tests.tiers import in_tiers, slow, torture
from unstuck.executor.descendants import children_of, look_at
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Returned, Stopped
from unstuck.worker.processes import LeftBehind

HANDLERS = "tests.executor.children_app:app"


def told(watch: Watch, ref: AttemptRef) -> list[int]:
    """The pids that its handler has told."""
    return list(json.loads(watch.wait(lambda: next(iter(watch.said(ref, "progress")), None))))


@pytest.mark.parametrize(
    ("name", "alone"),
    [
        ("leaves", False),
        pytest.param("leaves_async", False, marks=slow),
        pytest.param("leaves", True, marks=slow),
        pytest.param("leaves_async", True, marks=slow),
    ],
)
@pytest.mark.parametrize("how", WAYS)
def test_when_its_end_is_heard_its_processes_are_gone(
    watch: Watch, shared: int, solo: int, how: str, name: str, alone: bool, tmp_path: Path
) -> None:
    executor = solo if alone else shared

    pids = watch.result(executor, name, how, str(tmp_path / "pid"))

    assert [pid for pid in pids if not is_gone(pid)] == []
    assert watch.result(executor, "add", 1, 2) == 3


def test_also_of_a_coroutine_that_did_not_wait_for_its_program(watch: Watch, shared: int) -> None:
    assert all(map(is_gone, watch.result(shared, "leaves_an_async_one")))


def test_what_was_ended_is_told(watch: Watch, shared: int, tmp_path: Path) -> None:
    (pid,) = watch.result(shared, "leaves", "session", "")
    deaf = watch.result(shared, "leaves", "twenty deaf", "")

    heard = [event for event in watch.events if isinstance(event, LeftBehind) and event.executor == shared]
    assert LeftBehind(shared, "leaves", (), processes=(f"sleep ({pid})",)) in heard
    assert [len(event.processes) for event in heard if event.is_killed][-1] == len(deaf) == 20


@pytest.mark.parametrize("name", ["keeps", "keeps_async"])
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=[] if how == "forked daemon" else slow)
        for how in ("program", "daemon", "fork", "forked daemon", "twenty deaf")
    ],
)
def test_a_neighbour_keeps_its_own(watch: Watch, shared: int, name: str, how: str, tmp_path: Path) -> None:
    over = tmp_path / "over"
    neighbour = watch.begin(shared, name, how, str(tmp_path / "theirs"), str(over))
    theirs = told(watch, neighbour)

    for way in ("program", "daemon", "fork", "forked daemon"):
        watch.run(shared, "leaves", way, str(tmp_path / "mine"))
        watch.run(shared, "leaves_async", way, str(tmp_path / "mine"))
    over.touch()

    assert watch.finished(neighbour).outcome == Returned(json.dumps(theirs, separators=(",", ":")))
    assert all(map(is_gone, theirs))


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", ["keeps", "keeps_async"])
def test_a_request_to_stop_ends_them_too(watch: Watch, name: str, alone: bool, tmp_path: Path) -> None:
    executor = watch.executor(alone=alone)
    ref = watch.begin(executor, name, "forked daemon", "", str(tmp_path / "never"))
    pids = told(watch, ref)

    watch.fleet.cancel(executor, ref, RequestKind.CANCEL, "enough")

    assert watch.finished(ref).outcome == Stopped(RequestKind.CANCEL, "enough")
    assert all(map(is_gone, pids))


def test_who_stops_within_its_grace_is_heard_within_it(watch: Watch, shared: int) -> None:
    """Its children get what is left of it; or they would have it convicted."""
    ref = watch.begin(shared, "stops_late", 2.0, grace=4.0)
    pids = told(watch, ref)
    asked_at = time.monotonic()
    watch.fleet.cancel(shared, ref, RequestKind.CANCEL, "enough")

    assert watch.finished(ref).outcome == Stopped(RequestKind.CANCEL, "enough")
    assert time.monotonic() - asked_at < 4.0
    assert all(map(is_gone, pids))


@in_tiers("rounds", 1, 5)
def test_the_next_attempt_can_bind_the_port_of_a_daemon(watch: Watch, shared: int, rounds: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for _ in range(rounds + 1):
        assert watch.result(shared, "serves_a_port", port) == port


@pytest.mark.parametrize("name", ["forked_daemon", "cleared_daemon"])
@pytest.mark.parametrize("end", ["kill", "drain"])
def test_the_end_of_an_executor_spares_the_daemons_of_another(
    watch: Watch, name: str, end: str, tmp_path: Path
) -> None:
    args = [str(tmp_path / "pid")] if name == "cleared_daemon" else []
    executor, other = watch.executor(), watch.executor()
    theirs = watch.result(other, name, *args)

    getattr(watch.fleet, end)(executor, "test")
    watch.died(executor)

    assert not is_gone(theirs)
    watch.fleet.kill(other, "done")
    watch.died(other)


def test_what_was_ended_is_reaped(watch: Watch) -> None:
    executor = watch.executor()
    for how in ("fork", "posix_spawn", "program"):
        watch.run(executor, "leaves", how, "")
    pid = watch.pid(executor)

    eventually(lambda: [found for one in children_of(pid) if (found := look_at(one))] == [], timeout=5.0)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "rounds", [pytest.param(2, marks=slow, id="2-rounds"), pytest.param(50, marks=torture, id="50-rounds")]
)
def test_round_after_round_nothing_is_left_behind(mode: str, rounds: int, tmp_path: Path) -> None:
    """Cold and warm: a new executor for every round, and one for all of them; every way at once."""
    watch = Watch(mode, app=HANDLERS, slots=2 * len(WAYS))
    try:
        warm = watch.executor()
        for number in range(rounds):
            cold = watch.executor()
            pids = [pid for executor in (warm, cold) for pid in _leave_all(watch, executor, tmp_path)]
            assert [pid for pid in pids if not is_gone(pid)] == [], f"round {number}"
            watch.fleet.kill(cold, "cold enough")
            watch.died(cold)
    finally:
        watch.close()


def _leave_all(watch: Watch, executor: int, folder: Path) -> list[int]:
    """All at once, sync and async, beside one whose own must live."""
    over = folder / f"over-{time.monotonic_ns()}"
    guest = watch.begin(executor, "keeps", "forked daemon", "", str(over))
    theirs = told(watch, guest)
    refs = [
        watch.feed(executor, name, how, str(folder / f"{executor}-{number}-{name}"))
        for name in ("leaves", "leaves_async")
        for number, how in enumerate(WAYS)
    ]
    ends = [watch.finished(ref, within=60.0).outcome for ref in refs]
    assert not any(map(is_gone, theirs))
    over.touch()
    kept = watch.finished(guest).outcome
    assert isinstance(kept, Returned)
    assert json.loads(kept.result or "") == theirs
    return [pid for end in ends if isinstance(end, Returned) for pid in json.loads(end.result or "")] + theirs


#: Has sixty children, says every second one, and ends and reaps the others.
REAPER = """
import os, signal
children = []
for _ in range(60):
    if (pid := os.fork()) == 0:
        signal.pause()
    children.append(pid)
print(*children[1::2], flush=True)
for pid in children[::2]:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print("done", flush=True)
input()
"""


@in_tiers("rounds", few=5, all_=50)
def test_no_child_is_left_out_while_its_siblings_are_reaped(rounds: int) -> None:
    """The kernel's own list leaves one out in about one of three thousand reaped."""
    for _ in range(rounds):
        command = [sys.executable, "-c", REAPER]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, bufsize=0, stdin=pipe, stdout=pipe, start_new_session=True) as reaper:
            assert reaper.stdout is not None
            try:
                living = set(map(int, reaper.stdout.readline().split()))
                assert len(living) == 30
                while not select.select([reaper.stdout], [], [], 0)[0]:
                    assert living <= set(children_of(reaper.pid))
            finally:
                os.killpg(reaper.pid, signal.SIGKILL)
