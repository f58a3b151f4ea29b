"""Whether the machine stood still while the tests ran.

A host that takes both cores away for half a minute fails tests that promise seconds, and no race of ours is behind
it. A thread that only sleeps sees it: it wakes late, or the kernel says how much was stolen. If every failure of
a run fell beside a standstill, the failed tests are listed in a file, and `make test-again` runs them once more. A
failure at any other time stands.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from unstuck.clock import boot, wall

LISTED = Path(__file__).parents[2] / ".venv" / "again.txt"
#: A standstill that fails more than these has another reason.
MOST = 40
LATE = 4.0
_LOOK = 0.5
_WINDOW = 10
_STOLEN = 0.6
#: What began this long after a standstill may still meet what it broke.
_AFTERMATH = 30.0
#: A process that a test timeout ended is told without times, this long after the cause at most.
_UNTIMED = 200.0


@dataclass
class Standstill:
    """From when to when, by the wall's seconds."""

    began: float
    ended: float

    def touches(self, began: float, ended: float) -> bool:
        return began <= self.ended + _AFTERMATH and ended >= self.began

    def __str__(self) -> str:
        return f"{self.ended - self.began:.0f} s before {_clock(self.ended)} UTC"


@dataclass
class Failure:
    test: str
    began: float
    ended: float


class Watch:
    """Notes each standstill from `start` on."""

    def __init__(self, late: float = LATE, look: float = _LOOK) -> None:
        self.found: list[Standstill] = []
        self._late, self._look = late, look
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standstill", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        looked, is_over = [(boot(), stolen())], False
        while not is_over:
            is_over = self._end.wait(self._look)  # and then one look more: the last moments count too
            looked = [*looked[-_WINDOW:], (boot(), stolen())]
            (first, taken), (before, _), (now, taken_now) = looked[0], looked[-2], looked[-1]
            if now - before >= self._late:
                self._note(now - before)
            elif now - first >= self._late and taken_now - taken >= _STOLEN * (now - first):
                self._note(now - first)

    def _note(self, lasted: float) -> None:
        ended = wall().timestamp()
        if self.found and self.found[-1].ended >= ended - lasted - 1:
            self.found[-1].ended = ended
        else:
            self.found.append(Standstill(ended - lasted, ended))


def stolen() -> float:
    """Seconds of a core, on average over the cores, that the host gave to others; 0 where the kernel does not say."""
    try:
        words = Path("/proc/stat").read_text().split(maxsplit=9)
        return int(words[8]) / os.sysconf("SC_CLK_TCK") / (os.cpu_count() or 1)
    except (OSError, ValueError, IndexError):
        return 0.0


def excused(failures: Sequence[Failure], standstills: Iterable[Standstill]) -> bool:
    """Whether each of these fell beside a standstill."""
    if not 0 < len(failures) <= MOST:
        return False
    found = list(standstills)
    return all(any(still.touches(failure.began, failure.ended) for still in found) for failure in failures)


class Plugin:
    """In the process that a run is started by: sees all reports, runs no test beside xdist's workers."""

    def __init__(self) -> None:
        self._watch = Watch()
        self._failures: list[Failure] = []
        self._broken = False

    def pytest_sessionstart(self) -> None:
        LISTED.unlink(missing_ok=True)
        self._watch.start()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            now = wall().timestamp()
            began, ended = (report.start, report.stop) if report.start else (now - _UNTIMED, now)
            self._failures.append(Failure(report.nodeid, began, ended))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._broken = self._broken or report.failed

    def pytest_sessionfinish(self) -> None:
        self._watch.stop()
        if not self._broken and LISTED.parent.is_dir() and excused(self._failures, self._watch.found):
            tests = dict.fromkeys(failure.test for failure in self._failures)
            LISTED.write_text("".join(f"{test}\n" for test in tests))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for still in self._watch.found:
            terminalreporter.write_line(f"the machine stood still: {still}", yellow=True)
        if LISTED.exists():
            terminalreporter.write_line("each failure fell beside it; `make test-again` runs them once more")


def _clock(seconds: float) -> str:
    hours, rest = divmod(int(seconds) % 86400, 3600)
    return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
