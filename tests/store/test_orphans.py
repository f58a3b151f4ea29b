"""Jobs that no code will ever run: found, and ended with a word about who knew them last."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support import alerts
from tests.support.budgets import endless
from tests.support.builders import TENANT, a_worker, all_routes, claim_all, kinds, record, submitted
from unstuck.janitor.orphans import OrphansDuty
from unstuck.janitor.pages import RecentNews
from unstuck.model.job import NewJob, WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.times import Times
from unstuck.store.port import Pause, Store
from unstuck.telemetry import subscribe

DAY = 86400.0


def knows(store: Store, *workflows: str, lease: float = 30.0, version: str = "v1", **more: Any) -> WorkerRecord:
    worker = a_worker(store, f"of {workflows}", lease=lease, code_version=version, **more)
    records = [WorkflowRecord(name, version, "default", Policy(), {}) for name in workflows]
    store.register_workflows(records, worker=worker.number, queues=["default"])
    return worker


def states(store: Store, *jobs: NewJob) -> list[str]:
    return [record(store, job.id).state.value for job in jobs]


class Heard:
    """What was said aloud since."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, dict[str, object]]] = []
        self.end = subscribe(lambda name, facts: self.facts.append((name, facts)))

    def of(self, name: str) -> list[dict[str, object]]:
        return [facts for said, facts in self.facts if said == name]


@pytest.fixture
def heard() -> Any:
    listening = Heard()
    yield listening
    listening.end()


def test_jobs_of_a_workflow_that_nobody_has_known_for_a_day_fail_and_say_who_knew_it(
    store: Store, clock: StoreClock
) -> None:
    """A47"""
    knows(store, "gone", version="v7")
    orphan = submitted(store, workflow="gone")
    clock.advance(3600)
    OrphansDuty(store, Times()).tick(0.0, endless())
    assert states(store, orphan) == ["QUEUED"]

    clock.advance(DAY)
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 1
    failed = record(store, orphan.id)
    assert (failed.state, failed.error_type) == ("FAILED", "UnknownWorkflow")
    assert "code version v7 knew it last" in (failed.error_message or "")
    assert kinds(store, orphan.id)[-1] == "failed"


def test_healthy_jobs_are_never_taken_for_orphans(store: Store, clock: StoreClock) -> None:
    """A47: known by a live worker, paused, scheduled, waiting on another queue, or young."""
    knows(store, "known", "elsewhere", lease=10 * DAY)
    known = submitted(store, workflow="known")
    elsewhere = submitted(store, workflow="elsewhere", queue="unserved")
    paused = submitted(store, workflow="paused")
    scheduled = submitted(store, workflow="scheduled", delay=3 * DAY)
    by_queue = submitted(store, workflow="gone", queue="shut")
    store.pause(Pause("workflow", "paused", TENANT, "dana"))
    store.pause(Pause("queue", "shut", TENANT, "dana", until_at=clock.now() + timedelta(days=5)))
    clock.advance(2 * DAY)
    young = submitted(store, workflow="gone")
    orphan = submitted(store, workflow="never")
    clock.advance(DAY - 60)

    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 0
    clock.advance(90)
    store.release_due()
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 2
    assert states(store, known, elsewhere, paused, scheduled, by_queue) == ["QUEUED"] * 5
    assert states(store, young, orphan) == ["FAILED"] * 2
    assert "ever" in (record(store, orphan.id).error_message or "")


def test_a_worker_that_comes_back_with_the_workflow_saves_its_jobs(store: Store, clock: StoreClock) -> None:
    job = submitted(store, workflow="gone")
    clock.advance(2 * DAY)
    worker = knows(store, "gone")
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 0
    clock.advance(29)
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 0
    assert [claimed.id for claimed in claim_all(store, worker)] == [job.id]


def test_a_worker_that_lived_for_long_counts_until_its_end_not_until_its_start(
    store: Store, clock: StoreClock
) -> None:
    """Registered once, ten days ago, and alive until a minute before."""
    knows(store, "w", lease=10 * DAY)
    clock.advance(10 * DAY - 60)
    OrphansDuty(store, Times()).tick(0.0, endless())
    job = submitted(store, workflow="w")
    clock.advance(DAY / 2)
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 0
    clock.advance(DAY / 2)
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 1
    assert states(store, job) == ["FAILED"]


def test_orphans_are_never_failed_if_told_so_but_still_reported(
    store: Store, clock: StoreClock, heard: Heard
) -> None:
    submitted(store, workflow="gone")
    clock.advance(100 * DAY)
    duty = OrphansDuty(store, Times(orphan_after=0))
    assert duty.tick(0.0, endless()) == 0
    assert duty.tick(60.0, endless()) == 0
    assert [(said["workflow"], said["problem"]) for said in heard.of("unserved")] == [
        ("gone", "no worker knows this workflow")
    ]
    duty.tick(3700.0, endless())
    assert len(heard.of("unserved")) == 2


class Asked:
    """The store, and how often it was asked to fail orphans."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.routes: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def fail_orphans(self, route: int, orphan_after: float, batch: int = 500) -> int:
        self.routes.append(route)
        return self._store.fail_orphans(route, orphan_after, batch)


def test_a_workflow_of_many_tenants_that_nobody_knows_is_told_once_and_asked_for_when_its_jobs_are_old(
    store: Store, clock: StoreClock, heard: Heard
) -> None:
    """A walk over ten thousand such routes asked two questions and wrote a line for each, every minute."""
    old = submitted(store, workflow="gone", tenant="first")
    clock.advance(DAY - 60)
    young = [submitted(store, workflow="gone", tenant=f"tenant {n}") for n in range(50)]
    submitted(store, workflow="gone", tenant="first", queue="gpu")
    asked = Asked(store)
    duty = OrphansDuty(asked, Times())  # type: ignore[arg-type]

    assert duty.tick(0.0, endless()) == 0
    assert asked.routes == []
    assert [said["queue"] for said in heard.of("unserved")] == ["default", "gpu"]

    clock.advance(90)
    assert duty.tick(60.0, endless()) == 1
    assert len(asked.routes) == 2, "of one route, until there was no more"
    assert record(store, old.id, tenant="first").state == "FAILED"
    assert {record(store, job.id, tenant=job.tenant).state for job in young} == {"QUEUED"}
    assert len(heard.of("unserved")) == 2


def test_what_was_said_lately_costs_the_same_however_much_it_was() -> None:
    """It was gone through for every piece of news."""
    news, began = RecentNews(), time.thread_time()
    assert all(news.is_news(n, "unserved", float(n // 10_000)) for n in range(20_000))
    assert not any(news.is_news(n, "unserved", 3000.0) for n in range(20_000))
    assert time.thread_time() - began < 2.0
    assert news.is_news(0, "unserved", 3600.0)
    assert not news.is_news(10_000, "unserved", 3600.0)
    assert len(news._said) == 10_001, "what is long past is forgotten"


def test_a_queue_that_nobody_serves_is_reported(store: Store, heard: Heard) -> None:
    knows(store, "w")
    submitted(store, workflow="w")
    submitted(store, workflow="w", queue="gpu")
    OrphansDuty(store, Times()).tick(0.0, endless())
    assert [said["queue"] for said in heard.of("unserved")] == ["gpu"]


def test_a_job_that_waits_long_is_reported_once_with_its_reason(
    store: Store, clock: StoreClock, heard: Heard
) -> None:
    first, second = submitted(store, workflow="w"), submitted(store, workflow="w")
    clock.advance(299)
    assert alerts.turn(store) == 0
    clock.advance(alerts.A_TURN)
    assert alerts.turn(store) == 1
    clock.advance(alerts.A_TURN)
    assert alerts.turn(store) == 0
    (said,) = heard.of("alert_opened")
    assert (said["subject"], said["rule"], said["tenant"]) == (first.id, "job_queued", TENANT)
    assert "no live worker serves queue default" in str(said["sentence"])
    store.cancel(TENANT, first.id, "dana")
    clock.advance(alerts.A_TURN)
    assert alerts.turn(store) == 0
    assert [alert.subject for alert in store.alerts()] == [second.id], "it is the same trouble"


def test_a_job_behind_another_on_its_target_and_a_paused_one_are_reported_too(
    store: Store, clock: StoreClock, heard: Heard
) -> None:
    """Their routes have nothing that a claim would find."""
    worker = a_worker(store, lease=DAY)
    submitted(store, workflow="ahead", target="site")
    store.ingest()
    claim_all(store, worker)
    behind = submitted(store, workflow="behind", target="site")
    paused = submitted(store, workflow="paused")
    store.pause(Pause("workflow", "paused", TENANT, "dana"))
    store.ingest()
    clock.advance(301)
    assert {route.workflow for route in all_routes(store)} == {"ahead", "behind", "paused"}
    alerts.turn(store)
    said = [str(said["subject"]) for said in heard.of("alert_opened") if said["rule"] == "job_queued"]
    assert sorted(said) == sorted([behind.id, paused.id])


def test_the_head_of_a_target_that_is_an_orphan_lets_the_next_one_have_its_turn(
    store: Store, clock: StoreClock
) -> None:
    head = submitted(store, workflow="gone", target="site")
    store.ingest()
    clock.advance(DAY / 2)
    worker = knows(store, "known", lease=10 * DAY)
    after = submitted(store, workflow="known", target="site")
    store.ingest()
    assert claim_all(store, worker, 0) == []
    clock.advance(DAY / 2 + 1)
    assert OrphansDuty(store, Times()).tick(0.0, endless()) == 1
    assert states(store, head, after) == ["FAILED", "QUEUED"]
    assert [claimed.id for claimed in claim_all(store, worker)] == [after.id]
