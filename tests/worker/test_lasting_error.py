"""An error of the main loop that lasts: the worker rests between its tries, and in the end says so and leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.workers import ROOT
from unstuck.worker.loops import STALLED

_FAILS = """
import sys
from tests.support.fake_fleet import FakeFleet
from tests.worker.test_incarnation import WORKFLOW, Shop
from unstuck.assembly import open_store
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


def test_a_worker_that_ends_itself_waits_no_longer_than_a_store_call_for_its_last_words(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _IS_NOT_HEARD, f"sqlite:///{tmp_path / 'unstuck.db'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.returncode == STALLED, ended.stderr[-2000:]
    assert ended.stdout.count("last words: it ended itself: the main loop has not ticked") == 1


def test_a_worker_whose_main_loop_only_fails_ends_itself_and_names_the_error(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _FAILS, f"sqlite:///{tmp_path / 'unstuck.db'}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert ended.returncode == STALLED, ended.stderr[-2000:]
    assert "the main loop has not ticked" in ended.stderr
    assert "nothing to be seen" in ended.stderr.splitlines()[-1]
    assert ended.stdout.count("look") < 30
