"""What a worker does about roles of its own that fail."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.holdings import a_post
from unstuck.chance import SystemChance
from unstuck.clock import FakeClock
from unstuck.model.errors import SchemaMismatch
from unstuck.model.job import WorkerRecord
from unstuck.model.times import Times
from unstuck.model.trouble import Trouble
from unstuck.worker.describing import describe
from unstuck.worker.feeding import Feeding
from unstuck.worker.loops import Loop
from unstuck.worker.placing import Seats
from unstuck.worker.requests import News
from unstuck.worker.role_watch import RoleWatch
from unstuck.worker.roles import UNFIT
from unstuck.worker.selffence import Fence
from unstuck.worker.shutdown import Phase, Shutdown
from unstuck.worker.state import WorkerState
from unstuck.worker.view import WearLimits

TIMES = Times()


class Patient:
    """A worker whose settle loop, duties and side_tasks do what a test says; its beats land."""

    def __init__(self, clock: FakeClock, me: WorkerRecord) -> None:
        self.clock = clock
        self.state = WorkerState(TIMES, Seats(slots=2, processes=1), WearLimits(), Fence.after(clock.boot(), TIMES))
        self.state.has_started = True
        self.shutdown = Shutdown(TIMES)
        self.error: Exception | None = None
        self.settle = Loop("settle", self._settle, clock, silence=100.0)
        self.duties: dict[str, Trouble] = {}
        self.side_tasks: dict[str, Trouble] = {}
        self.news: list[News] = []
        self.role_watch = RoleWatch(
            me,
            self.state,
            self.shutdown,
            [self.settle],
            duties=lambda: self.duties,
            ends=dict,
            side_tasks=lambda: self.side_tasks,
            tell=self.news.append,
        )

    def _settle(self) -> float:
        if self.error is not None:
            raise self.error
        return 0.0

    def live(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.settle.once()
            self.clock.advance(1.0)
            self.state.fence = Fence.after(self.clock.boot(), TIMES)
            self.state.phase = self.shutdown.phase(self.clock.boot())
            self.role_watch.look(self.clock.boot())

    def info(self) -> dict[str, Any]:
        return describe(self.state, {}, self.clock.boot(), is_impatient=False)[1]


@pytest.fixture
def patient() -> Patient:
    clock = FakeClock()
    at: Any = None
    return Patient(
        clock,
        WorkerRecord(
            number=1,
            incarnation=SystemChance().nonce(),
            name="a b",
            host="h",
            boot_id="",
            pid_namespace="",
            pid=1,
            pid_start=1,
            queues=(),
            code_version="",
            state="active",
            started_at=at,
            heartbeat_at=at,
            lease_until=at,
        ),
    )


def test_a_worker_that_cannot_settle_is_not_ready_and_shows_why_until_it_can(patient: Patient) -> None:
    patient.error = SchemaMismatch("no such table: unstuck_done")
    patient.live(6)
    assert not patient.state.is_ready(patient.clock.boot())
    (role,) = patient.info()["roles"]
    assert (role["name"], role["error"]) == ("settle", "SchemaMismatch: no such table: unstuck_done")
    Feeding(patient.state, None).publish(patient.clock.boot())  # type: ignore[arg-type]
    assert patient.state.ledger.room().total == 0

    patient.error = None
    patient.live(1)
    assert patient.state.is_ready(patient.clock.boot())
    assert patient.info()["roles"] == []


def test_a_worker_whose_lease_is_going_asks_for_nothing_more(patient: Patient) -> None:
    patient.state.roster.posts[1] = a_post(1, slots=2)
    feeding, fence = Feeding(patient.state, None), patient.state.fence  # type: ignore[arg-type]
    feeding.publish(fence.cancel_at - 0.1)
    assert patient.state.ledger.room().total > 0

    feeding.publish(fence.cancel_at)

    assert patient.state.ledger.room().total == 0


def test_one_that_fails_for_good_is_told_once_and_the_worker_leaves_with_a_code_of_its_own(patient: Patient) -> None:
    patient.error = ValueError("a mistake of ours")
    patient.live(TIMES.lease - 1)
    assert (patient.news, patient.shutdown.is_asked) == ([], False)
    patient.live(TIMES.lease)
    (news,) = patient.news
    assert (news.title, news.severity) == ("Worker Role Failing: settle", "error")
    assert "worker a b on h: its settle has failed for 30 s: ValueError: a mistake of ours" in news.message
    assert news.link.endswith("worker=a%20b")
    assert patient.state.phase is Phase.DRAINING
    assert patient.shutdown.exit_code == UNFIT


def test_a_duty_that_fails_for_good_is_told_and_the_worker_stays(patient: Patient) -> None:
    patient.duties = {"timers": Trouble.after(None, ValueError("x"), patient.clock.boot())}
    patient.live(2 * TIMES.lease)
    assert [(news.title, news.severity) for news in patient.news] == [
        ("Worker Role Failing: janitor/timers", "warning")
    ]
    assert not patient.shutdown.is_asked
    assert patient.state.is_ready(patient.clock.boot())


def test_a_chore_of_the_claimer_is_shown_while_it_fails(patient: Patient) -> None:
    patient.side_tasks = {"ingest": Trouble(ValueError("x"), patient.clock.boot(), failures=3)}
    patient.live(5)
    (role,) = patient.info()["roles"]
    assert (role["name"], role["failures"], role["failing_for"]) == ("claim/ingest", 3, 5.0)
    patient.side_tasks = {}
    patient.live(1)
    assert patient.info()["roles"] == []


def test_who_was_asked_to_leave_keeps_the_exit_code_of_that(patient: Patient) -> None:
    patient.shutdown.ask()
    patient.error = ValueError("x")
    patient.live(2 * TIMES.lease)
    assert patient.shutdown.exit_code == 0
