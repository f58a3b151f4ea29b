"""A run that failed because its machine stood still is told from one that failed by itself."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.eventually import eventually
from tests.support.standstill import MOST, Failure, Standstill, excused

_WATCHED = """
import sys
from tests.support.standstill import Watch
watch = Watch(late=0.8, look=0.05)
watch.start()
print("watching", flush=True)
sys.stdin.readline()
watch.stop()
print([round(still.ended - still.began, 1) for still in watch.found])
"""


def test_a_process_that_was_stopped_knows_for_how_long() -> None:
    command, here = [sys.executable, "-c", _WATCHED], Path(__file__).parents[1]
    with subprocess.Popen(command, cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as watched:
        assert watched.stdout
        assert watched.stdout.readline() == "watching\n"
        watched.send_signal(signal.SIGSTOP)
        eventually(lambda: Path(f"/proc/{watched.pid}/stat").read_text().split()[2] == "T")
        with pytest.raises(subprocess.TimeoutExpired):
            watched.wait(1.0)
        watched.send_signal(signal.SIGCONT)
        out, _ = watched.communicate("\n", timeout=30)
    [lasted] = eval(out)
    assert 0.9 <= lasted < 30


STILL = [Standstill(100.0, 140.0)]


@pytest.mark.parametrize(
    ("failures", "is_excused"),
    [
        ([], False),
        ([Failure("in it", 110.0, 120.0)], True),
        ([Failure("began before it", 60.0, 105.0)], True),
        ([Failure("began in its aftermath", 160.0, 170.0)], True),
        ([Failure("ended before it", 60.0, 90.0)], False),
        ([Failure("began long after it", 180.0, 190.0)], False),
        ([Failure("in it", 110.0, 120.0), Failure("long after it", 180.0, 190.0)], False),
        ([Failure("in it", 110.0, 120.0)] * (MOST + 1), False),
    ],
)
def test_only_failures_beside_a_standstill_are_excused(failures: list[Failure], is_excused: bool) -> None:
    assert excused(failures, STILL) is is_excused
    assert excused(failures, []) is False
