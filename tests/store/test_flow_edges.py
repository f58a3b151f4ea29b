"""Durable flow under attack: what retention, races, odd results and odd clocks must not do to waits and children."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.store.test_pending import claim, state, work_off
from tests.store.test_waits import check_invariant, rows_of
from tests.support.builders import TENANT, a_job, a_worker, claimed, kinds, record, settle
from unstuck.model.errors import InvalidInput
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, Parked, Raised, Returned
from unstuck.model.waits import Answer, Child, Wait, WaitKind
from unstuck.store.flow import children
from unstuck.store.port import NewChild, Report, Verdict
from unstuck.store.sql_store import SqlStore

DAY = 86400.0
YEAR_9999 = 253402300799999999


def born(store: SqlStore, parent: ClaimedJob, name: str = "kid", **options: Any) -> Child:
    child = store.spawn(NewChild(parent.ref, name, 1, a_job(workflow=name, **options)))
    assert child is not None
    return child


def gathers(store: SqlStore, worker: WorkerRecord, parent: ClaimedJob, *wanted: Child, **options: Any) -> None:
    wait = Wait(WaitKind.CHILDREN, "children#1", children=tuple(child.id for child in wanted), **options)
    settle(store, worker, parent.ref, Parked(wait))


def asks(store: SqlStore, worker: WorkerRecord, attempt: ClaimedJob | None = None, key: str = "approval#1") -> str:
    attempt = attempt or claimed(store, worker)
    settle(store, worker, attempt.ref, Parked(Wait(WaitKind.APPROVAL, key, "Push?", timeout=20 * DAY)))
    return attempt.id


# --- retention ----------------------------------------------------------------------------------------------------


def test_a_child_is_kept_as_long_as_its_parent_and_is_not_spawned_twice(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=30 * DAY)
    parent = claimed(store, worker)
    child = born(store, parent)
    (attempt,) = claim(store, worker)
    settle(store, worker, attempt.ref, Returned('"paid"'))
    asks(store, worker, parent)
    clock.advance(8 * DAY)

    assert store.forget_ended(7 * DAY) == 0

    store.decide(TENANT, parent.id, Answer.APPROVED, "kim")
    work_off(store)
    (again,) = claim(store, worker)
    assert born(store, again).id == child.id
    assert json.loads(store.gather(again.ref, [child.id]) or "")[0]["result"] == "paid"


def test_a_child_is_forgotten_once_its_parent_is(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=30 * DAY)
    parent = claimed(store, worker)
    born(store, parent)
    (attempt,) = claim(store, worker)
    settle(store, worker, attempt.ref, Returned("1"))
    settle(store, worker, parent.ref, Returned("2"))
    clock.advance(8 * DAY)

    assert [store.forget_ended(7 * DAY) for _ in range(3)] == [1, 1, 0]

    assert rows_of(store, "SELECT * FROM unstuck_children") == rows_of(store, "SELECT id FROM unstuck_jobs") == []


def test_of_an_attempt_that_was_lost_nothing_is_gathered(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    open_, ended = born(store, parent, "open"), born(store, parent, "ended")
    (attempt,) = (each for each in claim(store, worker) if each.id == ended.id)
    settle(store, worker, attempt.ref, Returned("1"))
    settle(store, worker, parent.ref, Returned("1"))
    for ref in (parent.ref, parent.ref._replace(token=2), parent.ref._replace(claim="another")):
        for wanted in ([ended.id], [open_.id], ["no-child"]):
            assert store.gather(ref, wanted) == Verdict.FENCED


# --- gathers that pass each other ---------------------------------------------------------------------------------


@pytest.fixture
def knot(store: SqlStore) -> tuple[WorkerRecord, ClaimedJob, ClaimedJob, Child]:
    """A parent that keeps its target, its child, and the child's own child, which must run on that target. Both
    gathers were looked at before either parked."""
    worker = a_worker(store)
    store.submit([a_job(workflow="parent", target="t1")])
    work_off(store)
    (parent,) = claim(store, worker)
    child = born(store, parent)
    (kid,) = claim(store, worker)
    grand = born(store, kid, "grand", target="t1")
    assert store.gather(parent.ref, [child.id]) is store.gather(kid.ref, [grand.id]) is None
    return worker, parent, kid, grand


@pytest.mark.parametrize("is_looked_at_between", [False, True], ids=["together", "one after the other"])
@pytest.mark.parametrize("order", ["parent first", "child first"])
def test_two_gathers_that_pass_each_other_do_not_wait_for_ever(
    store: SqlStore,
    knot: tuple[WorkerRecord, ClaimedJob, ClaimedJob, Child],
    order: str,
    is_looked_at_between: bool,
) -> None:
    worker, parent, kid, grand = knot
    parks = [(parent, Child(kid.id, "kid", 1, 1, "RUNNING")), (kid, grand)]
    for attempt, wanted in parks if order == "parent first" else reversed(parks):
        gathers(store, worker, attempt, wanted)
        if is_looked_at_between:
            work_off(store)
    work_off(store)

    failed = [found for job in (parent, kid) if (found := record(store, job.id)).state is JobState.FAILED]
    assert [found.error_type for found in failed] == ["TargetDeadlock"]
    assert "target t1" in (failed[0].error_message or "")
    check_invariant(store)
    assert rows_of(store, f"SELECT * FROM unstuck_dependencies WHERE job = {failed[0].number}") == []
    assert kinds(store, failed[0].id)[-1] == "failed"
    work_off(store)
    assert JobState.WAITING not in {state(store, job.id) for job in (parent, kid)}


def test_who_must_fail_while_its_target_is_in_use_is_looked_at_again(
    one: SqlStore,
    server_url: str,
) -> None:
    """The turn needs the target's lock, which comes before those that are held by then: nobody waits for it."""
    worker = a_worker(one)
    one.submit([a_job(workflow="parent", target="t1")])
    work_off(one)
    (parent,) = claim(one, worker)
    child = born(one, parent, target="t2")
    work_off(one)
    (kid,) = claim(one, worker)
    grand = born(one, kid, "grand", target="t1")
    work_off(one)
    gathers(one, worker, parent, child)
    work_off(one)
    gathers(one, worker, kid, grand)
    with psycopg.connect(server_url) as busy:
        busy.execute("SELECT 1 FROM unstuck_targets WHERE name = 't2' FOR UPDATE")
        assert one.ingest().entries > 0
        assert state(one, kid.id) is JobState.WAITING
        check_invariant(one)
        busy.rollback()
    work_off(one)
    assert (record(one, kid.id).error_type, state(one, parent.id)) == ("TargetDeadlock", JobState.QUEUED)
    (target,) = [found for found in one.targets(TENANT) if found.name == "t2"]
    assert target.blocked_by == kid.id  # as after any failure of a job that has run


def test_a_gather_that_lets_go_of_its_target_passes_the_second_look_too(store: SqlStore) -> None:
    worker = a_worker(store)
    store.submit([a_job(workflow="parent", target="t1")])
    work_off(store)
    (parent,) = claim(store, worker)
    child = born(store, parent, target="t1")
    gathers(store, worker, parent, child, release_target=True)
    work_off(store)
    (kid,) = claim(store, worker)
    settle(store, worker, kid.ref, Returned("1"))
    work_off(store)
    assert (kid.id, state(store, parent.id)) == (child.id, JobState.QUEUED)


# --- results and ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result",
    ["[" * 50_000 + "]" * 50_000, '{"a":' * 3000 + "1" + "}" * 3000, "not json", "NaN", '"\\ud800"', "[1", ""],
    ids=["deep list", "deep object", "no json", "nan", "surrogate", "cut", "empty"],
)
def test_a_result_that_cannot_be_embedded_stops_nobody(store: SqlStore, result: str) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = born(store, parent)
    gathers(store, worker, parent, child)
    store.ingest()
    (attempt,) = claim(store, worker)
    settle(store, worker, attempt.ref, Returned(result))
    work_off(store)
    assert state(store, parent.id) is JobState.QUEUED
    (again,) = claim(store, worker)
    journal = store.journal(again.ref)
    assert journal is not None
    (answered,) = journal.waits
    assert (answered.answer, '"COMPLETED"' in (answered.payload or "")) == (Answer.ENDED, True)


def test_a_child_resumed_while_its_parent_is_woken_is_waited_for_again(
    one: SqlStore,
    other: SqlStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = a_worker(one)
    parent = claimed(one, worker)
    child = born(one, parent)
    gathers(one, worker, parent, child)
    work_off(one)
    (kid,) = claim(one, worker)
    settle(one, worker, kid.ref, Raised(ErrorInfo("ValueError", "boom"), retry=False))
    look = children.ends

    def meanwhile(*asked: Any) -> Any:
        monkeypatch.undo()
        other.resume(TENANT, child.id, "kim")
        return look(*asked)

    monkeypatch.setattr(children, "ends", meanwhile)
    work_off(one)
    assert state(one, parent.id) is JobState.WAITING
    check_invariant(one)
    (kid,) = claim(one, worker)
    settle(one, worker, kid.ref, Returned("5"))
    work_off(one)
    (wait,) = one.waits_of(TENANT, parent.id)
    (end,) = json.loads(wait.payload or "")
    assert (state(one, parent.id), end["state"], end["result"]) == (JobState.QUEUED, "COMPLETED", 5)


# --- pages --------------------------------------------------------------------------------------------------------


def test_a_second_question_of_the_last_one_on_a_page_hides_nobody(store: SqlStore) -> None:
    worker = a_worker(store)
    ids = [asks(store, worker) for _ in range(4)]
    page = store.open_waits(TENANT, limit=2)
    store.decide(TENANT, ids[1], Answer.APPROVED, "kim")
    work_off(store)
    (again,) = claim(store, worker)
    asks(store, worker, again, "approval#2")
    assert [wait.job for wait in store.open_waits(TENANT, after=page[-1].cursor, limit=2)] == ids[2:]


def test_a_cancel_of_the_last_one_on_a_page_does_not_begin_again(store: SqlStore) -> None:
    worker = a_worker(store)
    ids = [asks(store, worker) for _ in range(4)]
    page = store.open_waits(TENANT, limit=2)
    store.cancel(TENANT, ids[1], "kim")
    assert [wait.job for wait in store.open_waits(TENANT, after=page[-1].cursor, limit=2)] == ids[2:]


@pytest.mark.parametrize("after", ["nonsense", "1", "1:", ":1", "1:2:3", "-1:1", f"{1 << 70}:1", "١:١"])
def test_where_no_page_ended_none_begins(store: SqlStore, after: str) -> None:
    with pytest.raises(InvalidInput, match="after="):
        store.open_waits(TENANT, after=after)


# --- clocks -------------------------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_confuses_no_two_waits(store: SqlStore, clock: StoreClock) -> None:
    worker = a_worker(store, lease=30 * DAY)
    first = claimed(store, worker)
    settle(store, worker, first.ref, Parked(Wait(WaitKind.EVENT, "event:a#1", "a", timeout=100)))
    store.signal(TENANT, "a", "1", "ada", job=first.id)
    work_off(store)
    (second,) = claim(store, worker)
    clock.advance(-3600)
    settle(store, worker, second.ref, Parked(Wait(WaitKind.EVENT, "event:b#1", "b", timeout=100)))
    store.signal(TENANT, "b", "2", "kim", job=first.id)
    work_off(store)
    woken = [event.data for event in store.history(TENANT, first.id) if event.kind == "woken"]
    assert [(facts["name"], facts["by"]) for facts in woken] == [("a", "ada"), ("b", "kim")]
    assert [wait.wait.name for wait in store.waits_of(TENANT, first.id)] == ["a", "b"]
    check_invariant(store)


@pytest.mark.parametrize(("until", "expected"), [(YEAR_9999, JobState.WAITING), (YEAR_9999 + 1, JobState.FAILED)])
def test_an_instant_beyond_the_calendar_fails_only_who_asks(store: SqlStore, until: int, expected: JobState) -> None:
    worker = a_worker(store)
    odd, good = claimed(store, worker), claimed(store, worker)
    wait = Wait(WaitKind.TIME, "time#1", until=until)
    store.settle(worker.number, [Report(odd.ref, Parked(wait)), Report(good.ref, Returned("1"))])
    assert (state(store, odd.id), state(store, good.id)) == (expected, JobState.COMPLETED)


@pytest.mark.parametrize("child", ["a\0b", "x" * 5_000_000, "\ud800"], ids=["nul", "long", "surrogate"])
def test_a_child_that_no_database_can_name_fails_only_who_asks(store: SqlStore, child: str) -> None:
    worker = a_worker(store)
    odd, good = claimed(store, worker), claimed(store, worker)
    wait = Wait(WaitKind.CHILDREN, "children#1", children=(child,))
    store.settle(worker.number, [Report(odd.ref, Parked(wait)), Report(good.ref, Returned("1"))])
    assert (state(store, odd.id), state(store, good.id)) == (JobState.FAILED, JobState.COMPLETED)
