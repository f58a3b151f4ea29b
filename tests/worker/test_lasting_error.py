"""An error of the main loop that lasts: the worker rests between its tries, and in the end says so and leaves."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.workers import ROOT
from unstuck.assembly.store import open_store
from unstuck.model.times import Times
from unstuck.worker.loops import STALLED

_FAILS = """
import sys
from tests.support.fake_fleet import FakeFleet
from tests.worker.test_incarnation import WORKFLOW, Shop
from unstuck.assembly.store import open_store
from unstuck.model.times import Times
from unstuck.worker.processes import Imported

class Broken(FakeFleet):
    def views(self):
        print("look", flush=True)
        raise RuntimeError("nothing to be seen")

fleet = Broken()
shop = Shop(open_store(sys.argv[1], Times(), migrate=True), fleet)
fleet.say(Imported((WORKFLOW,), "v1", "fork", ""))
shop.incarnation.run()
"""


_IS_NOT_HEARD = (
    _FAILS.replace("shop.incarnation.run()", "")
    + """
import threading
from dataclasses import replace
from unstuck.worker.incarnation import Incarnation

class Deaf:
    def fence_worker(self, worker, reason):
        print("last words:", reason, flush=True)
        threading.Event().wait()

Incarnation(replace(shop.parts, last_store=Deaf), shop.shutdown).run()
"""
)


_STORE_IS_AWAY = (
    _FAILS.replace("shop.incarnation.run()", "")
    + """
import sqlite3, threading
from dataclasses import replace
from unstuck.worker.incarnation import Incarnation

def last_store():
    if not locks:
        locks.append(sqlite3.connect(sys.argv[1].removeprefix("sqlite:///"), check_same_thread=False))
        locks[0].execute("BEGIN IMMEDIATE")
        threading.Timer(1.2, locks[0].rollback).start()
    return open_store(sys.argv[1], shop.parts.times)

locks = []
Incarnation(replace(shop.parts, last_store=last_store), shop.shutdown).run()
"""
)


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """All at once, for they wait most of the time: exit code, stdout and stderr of each script."""
    files = {
        script: tmp_path_factory.mktemp("ends") / "unstuck.db" for script in (_FAILS, _IS_NOT_HEARD, _STORE_IS_AWAY)
    }
    running = {
        script: subprocess.Popen(
            [sys.executable, "-c", script, f"sqlite:///{files[script]}"],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for script in files
    }
    try:
        said = {script: process.communicate(timeout=60) for script, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.wait(10)
    store = open_store(f"sqlite:///{files[_STORE_IS_AWAY]}", Times())
    states.extend(worker.state for worker in store.workers())
    store.close()
    return {script: (process.returncode, *said[script]) for script, process in running.items()}


states: list[str] = []


def test_the_last_words_are_said_again_while_the_store_is_away(ended: dict[str, tuple[int, str, str]]) -> None:
    """Unsaid, they would cost every job of this worker a loss; nothing of it runs for longer than its lease."""
    code, _, err = ended[_STORE_IS_AWAY]

    assert code == STALLED, err[-2000:]
    assert states == ["fenced"]


def test_a_worker_that_ends_itself_waits_no_longer_than_a_store_call_for_its_last_words(
    ended: dict[str, tuple[int, str, str]],
) -> None:
    code, out, err = ended[_IS_NOT_HEARD]

    assert code == STALLED, err[-2000:]
    assert out.count("last words: it ended itself: the main loop has not ticked") == 1


def test_a_worker_whose_main_loop_only_fails_ends_itself_and_names_the_error(
    ended: dict[str, tuple[int, str, str]],
) -> None:
    code, out, err = ended[_FAILS]

    assert code == STALLED, err[-2000:]
    assert "the main loop has not ticked" in err
    assert "nothing to be seen" in err.splitlines()[-1]
    assert out.count("look") < 30
