"""What a loop does beside its own work: what fails there is shown as long as it lasts, and said ever more rarely."""

from __future__ import annotations

import pytest

from unstuck.clock import FakeClock
from unstuck.model.errors import StoreUnavailable
from unstuck.worker.side_tasks import SideTasks


def away() -> None:
    raise StoreUnavailable("the database cannot be reached")


def test_an_outage_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """As the loops do it: the first failure is said, the second, the fourth."""
    clock = FakeClock()
    tasks = SideTasks(clock)
    for _ in range(100):
        tasks.do("timers", away)
        tasks.forgive()  # as the claimer does while the database is away
        clock.advance(1.0)

    assert tasks.troubles["timers"].failures == 100
    said = [line[-8:].strip() for line in caplog.messages if "side_task_failed" in line]
    assert said == ["times=1", "times=2", "times=4", "times=8", "times=16", "times=32", "times=64"]


def test_what_failed_and_works_again_is_said_when_it_fails_anew(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    tasks = SideTasks(clock)
    for task in (away, away, away, lambda: None, away):
        tasks.do("timers", task)
        clock.advance(10.0)

    said = [line[-7:] for line in caplog.messages if "side_task_failed" in line]
    assert said == ["times=1", "times=2", "times=1"]
