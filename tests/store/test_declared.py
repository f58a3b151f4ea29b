"""Schedules in code: the newest version that has live workers decides."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.support.builders import TENANT, a_worker
from tests.support.schedules import SCHEMA, come, fired, made, outcomes, seen, turn, verbs
from tests.support.tables import ask, counts_of_tables
from tests.support.troubles import execute, holding, refuse
from unstuck.model.errors import DeclaredByCode, ScheduleExists, StoreBusy
from unstuck.model.job import WorkerRecord, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.schedules import DeclaredSchedule, ScheduleSpec, ScheduleState
from unstuck.store.sql_store import SqlStore

ORIGIN = "shop.jobs:app"


def said(name: str = "nightly", tenant: str = TENANT, **more: Any) -> DeclaredSchedule:
    rule = {} if "cron" in more else {"every": 60.0}
    return DeclaredSchedule(tenant, name, ScheduleSpec("greet", kwargs={"name": "ada"}, **{**rule, **more}).to_json())


def deploy(
    store: SqlStore, version: str, *declared: DeclaredSchedule, app: str = "shop", origin: str = ORIGIN
) -> tuple[WorkerRecord, list[str]]:
    """A worker of this version begins, as claimers do it."""
    worker = a_worker(store, name=f"{app}-{version}", lease=1e6, code_version=version)
    record = WorkflowRecord("greet", version, "default", Policy(), SCHEMA)
    store.register_workflows([record], worker=worker.number, queues=["default"], app=app)
    return worker, store.declare_schedules(app, origin, version, declared)


def names(store: SqlStore) -> list[str]:
    return [schedule.name for schedule in store.schedules(TENANT)]


def test_what_code_declares_runs_and_belongs_to_its_app(store: SqlStore, clock: StoreClock) -> None:
    _, refused = deploy(store, "v1", said(), said("daily", cron="@daily"))
    assert refused == []
    assert (names(store), seen(store).owner) == (["nightly", "daily"], "shop")
    assert store.reconcile_schedules() == 0, "what stands is not written again"
    come(store, clock)
    turn(store)
    assert outcomes(store) == ["fired"]
    with pytest.raises(DeclaredByCode, match="declared by the code of app shop"):
        verbs(store).update("nightly", priority=1)
    with pytest.raises(DeclaredByCode):
        verbs(store).delete("nightly")
    with pytest.raises(ScheduleExists, match="declared by the code of app shop"):
        made(store)
    assert verbs(store).pause("nightly").state is ScheduleState.PAUSED


def test_a_removed_line_stops_and_an_old_worker_revives_nothing(store: SqlStore, clock: StoreClock) -> None:
    deploy(store, "v1", said(), said("gone"))
    clock.advance(1)
    deploy(store, "v2", said(priority=7))
    assert (names(store), seen(store).spec.priority) == (["nightly"], 7)
    deploy(store, "v1", said(), said("gone"))  # another worker of the old version, late
    assert store.reconcile_schedules() == 0
    assert (names(store), seen(store).spec.priority) == (["nightly"], 7)
    clock.advance(600)
    turn(store)
    assert names(store) == ["nightly"]


def test_a_rollback_brings_it_back_with_what_it_knows_of_its_ticks(store: SqlStore, clock: StoreClock) -> None:
    deploy(store, "v1", said())
    tick = come(store, clock)
    turn(store)
    verbs(store).pause("nightly", reason="by hand")
    second, _ = deploy(store, "v2")
    assert names(store) == []
    assert store.reconcile_schedules() == 0, "both versions have live workers, and the newer decides"
    store.unregister_worker(second.number)
    assert store.reconcile_schedules() == 1

    back = seen(store)
    assert (back.last_tick, back.state, back.pause_reason) == (tick, ScheduleState.PAUSED, "by hand")
    verbs(store).resume("nightly")
    turn(store)
    assert [firing.tick for firing in fired(store)] == [tick]


def test_where_nobody_lives_nothing_changes(store: SqlStore) -> None:
    first, _ = deploy(store, "v1", said())
    store.unregister_worker(first.number)
    assert store.reconcile_schedules() == 0
    assert names(store) == ["nightly"]


def test_two_different_apps_of_one_name_are_refused(store: SqlStore) -> None:
    first, _ = deploy(store, "v1", said())
    _, refused = deploy(store, "other-1", said("other"), origin="blog.jobs:app")
    assert "give one of them another name: App(name=…)" in refused[0]
    assert names(store) == ["nightly"]
    assert [found.title for found in store.notifications()] == ["Schedules were not taken from the code"]
    store.unregister_worker(first.number)  # it moved: the old place has nobody any more
    assert deploy(store, "other-1", said("other"), origin="blog.jobs:app")[1] == []
    assert names(store) == ["other"]


def test_what_a_person_made_or_another_app_declares_stays_theirs(store: SqlStore) -> None:
    made(store)
    deploy(store, "b1", said("theirs"), app="blog", origin="blog.jobs:app")
    _, refused = deploy(
        store, "v1", said(), said("theirs"), said("ours"), said("bad", every=0.1), said("worse", every=-1)
    )
    assert sorted(names(store)) == ["nightly", "ours", "theirs"]
    assert [seen(store, name).owner for name in ("nightly", "theirs", "ours")] == [None, "blog", "shop"]
    told = "\n".join(refused)
    assert "a person made a schedule of this name" in told
    assert "app blog declares a schedule of this name" in told
    assert "schedule_min_interval" in told


def test_an_app_that_never_declared_any_writes_nothing(store: SqlStore, store_url: str) -> None:

    deploy(store, "v1")
    assert counts_of_tables(store_url)["unstuck_declared"] == 0


def test_what_cannot_be_read_is_refused_alone(store: SqlStore) -> None:
    _, refused = deploy(store, "v1", DeclaredSchedule(TENANT, "odd", "[oops"), said())
    assert "it cannot be read" in refused[0]
    assert names(store) == ["nightly"]


def test_versions_that_nobody_runs_are_forgotten_but_for_the_last(
    store: SqlStore, store_url: str, clock: StoreClock
) -> None:
    for version in ("v1", "v2", "v3"):
        worker, _ = deploy(store, version, said())
        if version != "v2":
            store.unregister_worker(worker.number)
        clock.advance(1)
    clock.advance(days=8)
    store.forget_firings(7 * 86400.0)
    assert ask(store_url, "SELECT code_version FROM unstuck_declared ORDER BY code_version") == [("v2",), ("v3",)]


#: A SQLite file has one lock for all: nobody holds a row there.
WAYS = [
    ("postgres", "held"),
    *((database, way) for database in ("sqlite", "postgres") for way in ("refused", "damaged")),
]


@pytest.mark.parametrize(("store_url", "way"), WAYS, indirect=["store_url"])
def test_what_cannot_be_taken_from_code_keeps_nothing_else_from_its_turn(
    store: SqlStore, store_url: str, clock: StoreClock, way: str
) -> None:
    """A row that somebody holds in psql while its code changes must not stop every schedule there is."""
    deploy(store, "v1", said())
    deploy(store, "v1", said("theirs"), app="zoo")
    made(store, "other")
    clock.advance(1)
    come(store, clock, "other")
    with ExitStack() as stack:
        if way == "held":
            stack.enter_context(holding(store_url, "unstuck_schedules", "name = 'nightly'"))
            with pytest.raises(StoreBusy):  # a worker that begins tries again
                deploy(store, "v2", said(priority=7), said("new"))
        elif way == "refused":
            refuse(store_url, "unstuck_schedules", "NEW.body LIKE '%priority%'", on="UPDATE")
            _, refused = deploy(store, "v2", said(priority=7), said("new"))
            assert ["not for you" in told for told in refused] == [True]
        else:
            execute(store_url, "UPDATE unstuck_declared SET body = '[oops' WHERE app = 'shop'")
        turn(store)
        assert outcomes(store, "other") == ["fired"]
        if way != "damaged":
            assert set(names(store)) == {"nightly", "theirs", "other", "new"}
