"""Routes and targets that nobody means any more go; a job never names one that is gone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_job, a_worker, chance, claim_all, claimed, everything, settle, submitted
from tests.support.tables import ask
from tests.tiers import in_tiers
from unstuck.clock import FakeClock, boot
from unstuck.janitor.retention import OldNames
from unstuck.model.job import WorkflowRecord
from unstuck.model.names import LIFE
from unstuck.model.policy import Policy
from unstuck.model.settlement import ErrorInfo, Returned, Stuck
from unstuck.store.database import Database
from unstuck.store.drivers.connect import open_database
from unstuck.store.life import submit, sweep
from unstuck.store.order import name_ids
from unstuck.store.order.name_ids import StaleNames
from unstuck.store.port import NameKind, Pause, Report
from unstuck.store.sql_store import SqlStore

KINDS: tuple[NameKind, ...] = ("routes", "targets")
ORPHANS = (
    "SELECT j.id FROM unstuck_jobs j LEFT JOIN unstuck_routes r ON r.id = j.route"
    " LEFT JOIN unstuck_targets t ON t.id = j.target"
    " WHERE r.id IS NULL OR (j.target IS NOT NULL AND t.id IS NULL)"
)


def names(url: str) -> tuple[list[str], list[str]]:
    routes = [row[0] for row in ask(url, "SELECT workflow FROM unstuck_routes ORDER BY workflow")]
    return routes, [row[0] for row in ask(url, "SELECT name FROM unstuck_targets ORDER BY name")]


def forget(store: SqlStore, batch: int = 100) -> None:
    for kind in KINDS:
        store.forget_names(kind, store.now() - timedelta(days=7), batch)


def gone(store: SqlStore, **options: Any) -> None:
    """A job that has run and is forgotten."""
    worker = a_worker(store, lease=1e9)
    submitted(store, **options)
    store.ingest()
    (attempt,) = claim_all(store, worker)
    settle(store, worker, attempt.ref)
    assert store.forget_ended(-60) == 1


def test_names_that_nobody_means_any_more_go(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    gone(store, workflow="old", target="old")
    submitted(store, workflow="named", target="named", delay=1e8)
    gone(store, workflow="paused", target="paused")
    store.pause(Pause("target", "paused", TENANT, by="ada"))
    clock.advance(days=6)
    forget(store)
    assert len(names(store_url)[0]) == 3, "a week has not passed"
    clock.advance(days=2)
    submitted(store, workflow="young", target="young", delay=1e8)

    forget(store)

    assert names(store_url) == (["named", "young"], ["named", "paused", "young"])
    clock.advance(days=8)
    forget(store, batch=1)
    assert names(store_url)[0] == ["named", "young"], "looked at again, and still named"


def test_a_name_that_is_meant_again_stays(
    store: SqlStore, database: Database, store_url: str, clock: StoreClock
) -> None:
    gone(store, workflow="used", target="used")
    clock.advance(days=5)
    other = SqlStore(database)  # another process: it looks the names up
    gone(other, workflow="used", target="used")
    clock.advance(days=5)
    forget(store)
    assert names(store_url) == (["used"], ["used"])
    clock.advance(days=3)
    forget(store)
    assert names(store_url) == ([], [])


def test_who_remembers_the_number_of_a_name_that_is_gone_makes_it_anew(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    """This process's clock says that it has just looked them up; the database knows better."""
    gone(store, workflow="w", target="t")
    before = ask(store_url, "SELECT MAX(id) FROM unstuck_routes")[0][0]
    clock.advance(days=8)
    forget(store)
    assert names(store_url) == ([], [])

    job = submitted(store, workflow="w", target="t")

    assert ask(store_url, ORPHANS) == []
    assert ask(store_url, "SELECT MAX(id) FROM unstuck_routes")[0][0] > before, "a number is never used twice"
    store.ingest()
    worker = a_worker(store)
    assert [attempt.id for attempt in claim_all(store, worker)] == [job.id]


def test_a_submit_that_was_stopped_on_its_way_for_days_writes_nothing(
    store: SqlStore, database: Database, store_url: str, clock: StoreClock
) -> None:
    gone(store, workflow="w", target="t")
    job = a_job(workflow="w", target="t")
    numbers = store._name_ids.ensure(database, [job])
    clock.advance(days=8)
    forget(store)

    with pytest.raises(StaleNames):
        database.write(lambda t: submit.submit(t, [job], numbers, 86400.0))

    assert store.get(TENANT, job.id) is None
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_line")[0][0] == 0


def test_a_process_looks_its_names_up_again_after_an_hour(store: SqlStore, database: Database) -> None:
    clock = FakeClock()
    memory = name_ids.NameIds(clock.boot)
    first = memory.ensure(database, [a_job()])
    assert memory.ensure(database, [a_job()]).as_of == first.as_of
    clock.advance(LIFE + 1)
    assert memory.ensure(database, [a_job()]).as_of > first.as_of


def test_a_clock_that_leapt_makes_nothing_old(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """Who holds a number has looked it up again, by any clock, before its name seems old."""
    mine = FakeClock()
    routes = OldNames(store, "routes", 7 * 86400.0, mine)
    gone(store, workflow="used")
    routes.forget(10, 0)
    clock.advance(days=365)  # at this instant
    mine.advance(LIFE)
    routes.forget(10, 0)
    mine.advance(LIFE)
    routes.forget(10, 0)
    assert names(store_url)[0] == ["used"], "two lives ago it was another year"
    mine.advance(2 * LIFE)
    routes.forget(10, 0)
    assert names(store_url)[0] == []


@in_tiers("seconds", 5, 9)
def test_submits_and_forgetting_at_once_leave_no_job_without_its_names(
    store_url: str, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """A day is half a second here: names die and are made anew all the time."""
    monkeypatch.setattr(sweep, "KEPT", 3.0)
    monkeypatch.setattr(name_ids, "NAMED_EVERY", 0.5)
    monkeypatch.setattr(name_ids, "LIFE", 0.5)
    stores = [SqlStore(open_database(store_url, application="unstuck-test")) for _ in range(4)]
    until = boot() + seconds
    made: list[str] = []

    def make(store: SqlStore, seed: int) -> None:
        number = seed
        while boot() < until:
            number = (number * 7919 + 13) % 10007
            if number % 40 == 0:
                threading.Event().wait(1.5)  # names go out of use for a while
            names = {"workflow": f"w{number % 5}", "target": f"t{number % 7}" if number % 2 else None}
            made.append(submitted(store, **names, retries=0).id)

    def work(store: SqlStore) -> None:
        worker = a_worker(store, lease=1e6)
        while boot() < until:
            store.ingest()
            found = store.claim(worker.number, chance.nonce(), everything(store))
            store.settle(worker.number, [Report(attempt.ref, Returned("1")) for attempt in found])
            store.forget_ended(-60)

    def sweep_names(store: SqlStore) -> None:
        while boot() < until:
            looked.extend(store.forget_names(kind, store.now(), 50) for kind in KINDS)

    looked: list[int] = []
    with ThreadPoolExecutor(4) as threads:
        running = [threads.submit(make, stores[0], 1), threads.submit(make, stores[1], 2)]
        running += [threads.submit(work, stores[2]), threads.submit(sweep_names, stores[3])]
        for one in running:
            one.result(60)
    assert made
    assert sum(looked), "something was old enough to be looked at"
    assert ask(store_url, ORPHANS) == []
    for store in stores:
        store.close()


def test_versions_of_workflows_go_but_never_the_last(store: SqlStore, clock: StoreClock, store_url: str) -> None:
    def register(name: str, version: str) -> None:
        store.register_workflows([WorkflowRecord(name, version, "default", Policy(), {})])

    register("kept", "v1")
    clock.advance(days=3)
    register("kept", "v2")
    register("alone", "v1")
    clock.advance(days=5)
    assert store.forget_workflows(7 * 86400.0) == 1
    clock.advance(days=30)
    assert store.forget_workflows(7 * 86400.0) == 0
    found = ask(store_url, "SELECT name, code_version FROM unstuck_workflows ORDER BY name")
    assert [tuple(row) for row in found] == [("alone", "v1"), ("kept", "v2")]


def test_breakers_go_when_nothing_counts_against_them(store: SqlStore, clock: StoreClock, store_url: str) -> None:
    worker = a_worker(store, lease=1e9)
    attempt = claimed(store, worker)
    settle(store, worker, attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "x")))
    assert store.forget_breakers() == 1, "the one that all tenants have in common is a lock, and has no marks"
    assert store.forget_breakers() == 0
    clock.advance(days=30)
    assert store.forget_stucks(7 * 86400.0) == 1
    assert store.forget_breakers() == 1
    assert ask(store_url, "SELECT COUNT(*) FROM unstuck_breakers")[0][0] == 0
