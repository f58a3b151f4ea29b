"""Children: spawned once, gathered when all have ended, and not left behind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import StoreClock
from tests.store.test_pending import state, work_off
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    all_routes,
    boom,
    claim_all,
    claimed,
    kinds,
    record,
    settle,
    submitted,
)
from unstuck.model.children import MOST_CHILDREN
from unstuck.model.errors import Conflict, InvalidInput, TargetDeadlock, UnknownJob, WorkflowBlacklisted
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState, RequestKind
from unstuck.model.settlement import Outcome, Parked, Returned, Stopped
from unstuck.model.waits import Answer, Child, Wait, WaitKind
from unstuck.store.flow import children
from unstuck.store.port import NewChild, Share
from unstuck.store.sql_store import SqlStore


def spawned(store: SqlStore, parent: ClaimedJob, name: str = "greet", ordinal: int = 1, **options: Any) -> Child:
    on_end = options.pop("on_end", "cancel")
    child = store.spawn(NewChild(parent.ref, name, ordinal, a_job(**options), on_end))
    assert child is not None
    return child


def gathering(*wanted: Child, **options: Any) -> Parked:
    return Parked(Wait(WaitKind.CHILDREN, "gather#1", children=tuple(child.id for child in wanted), **options))


def claim(store: SqlStore, worker: WorkerRecord, job: Child | ClaimedJob) -> ClaimedJob:
    """This one and no other."""
    routes = {route.number: route for route in all_routes(store)}
    wanted = record(store, job.id)
    for front in store.open_routes():
        if routes[front.route].workflow == wanted.workflow:
            for attempt in store.claim(worker.number, f"c-{job.id}-{wanted.token}", [Share(front.route, 1)]):
                assert attempt.id == job.id
                return attempt
    raise AssertionError(f"{job.id} is not ready: {wanted.state}")


def run(store: SqlStore, worker: WorkerRecord, job: Child, outcome: Outcome | None = None) -> None:
    settle(store, worker, claim(store, worker, job).ref, outcome)


def ends_badly(store: SqlStore, worker: WorkerRecord, parent: ClaimedJob, how: JobState) -> None:
    match how:
        case JobState.CANCELLED:
            store.cancel(TENANT, parent.id, "ada")
            settle(store, worker, parent.ref, Stopped())
        case JobState.TIMEOUT:
            store.ask(parent.ref, RequestKind.TIMEOUT)
            settle(store, worker, parent.ref, Stopped())
        case JobState.PAUSED:
            store.interrupt(TENANT, parent.id, "ada")
            settle(store, worker, parent.ref, Stopped())
        case JobState.COMPLETED:
            settle(store, worker, parent.ref)
        case _:
            settle(store, worker, parent.ref, boom())
    assert state(store, parent.id) is how


# --- spawn --------------------------------------------------------------------------------------------------------


def test_a_child_is_a_job_that_knows_its_parent(store: SqlStore) -> None:
    parent = claimed(store, a_worker(store))

    child = spawned(store, parent, workflow="side")

    assert (child.name, child.ordinal, child.run, child.workflow) == ("greet", 1, 1, "side")
    assert (child.parent, child.state) == (parent.id, "QUEUED")
    assert record(store, child.id).workflow == "side"
    assert store.children_of(TENANT, parent.id) == [child]
    assert (store.parent_of(TENANT, child.id), store.parent_of(TENANT, parent.id)) == (parent.id, None)


def test_a_spawn_whose_answer_was_lost_is_the_same_child(store: SqlStore) -> None:
    """The executor repeats what it asked, with the same draft or, in its next attempt, with a new one."""
    worker = a_worker(store)
    parent = claimed(store, worker, backoff_base=0.0)
    draft = NewChild(parent.ref, "greet", 1, a_job())
    first = store.spawn(draft)

    assert store.spawn(draft) == first
    settle(store, worker, parent.ref, boom())
    again = claim(store, worker, parent)

    assert first is not None
    assert spawned(store, again).id == first.id
    assert len(store.children_of(TENANT, parent.id)) == 1
    journal = store.journal(again.ref)
    assert journal is not None
    assert [child.id for child in journal.children] == [first.id]


def test_names_and_ordinals_tell_children_apart(store: SqlStore) -> None:
    parent = claimed(store, a_worker(store))

    ids = {spawned(store, parent, name, ordinal).id for name in ("a", "b") for ordinal in (1, 2)}

    assert len(ids) == 4


def test_a_fenced_attempt_spawns_nothing(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    settle(store, worker, parent.ref)
    job = a_job()

    assert store.spawn(NewChild(parent.ref, "greet", 1, job)) is None
    assert store.get(TENANT, job.id) is None


@pytest.mark.parametrize("how", [JobState.FAILED, JobState.CANCELLED])
def test_a_new_run_replaces_a_child_that_did_not_complete(store: SqlStore, how: JobState) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker, retries=0)
    good, bad = spawned(store, parent, "good", workflow="x"), spawned(store, parent, "bad", workflow="y", retries=0)
    run(store, worker, good)
    if how is JobState.FAILED:
        run(store, worker, bad, boom())
    ends_badly(store, worker, parent, JobState.FAILED)
    store.tend_children()
    assert state(store, bad.id) is how
    store.resume(TENANT, parent.id, "ada")
    again = claim(store, worker, parent)

    assert spawned(store, again, "good").id == good.id
    fresh = spawned(store, again, "bad", workflow="z")

    assert fresh.id != bad.id
    assert (fresh.run, fresh.ordinal) == (2, 1)
    assert [(c.id, c.ordinal) for c in store.children_of(TENANT, parent.id)] == [
        (good.id, 1),
        (bad.id, 0),
        (fresh.id, 1),
    ]


def test_from_the_start_means_with_new_children(store: SqlStore) -> None:
    """A19: also in place of one that completed."""
    worker = a_worker(store)
    parent = claimed(store, worker, retries=0)
    old = spawned(store, parent, workflow="x")
    run(store, worker, old)
    ends_badly(store, worker, parent, JobState.FAILED)
    store.resume(TENANT, parent.id, "ada", from_start=True)
    again = claim(store, worker, parent)
    journal = store.journal(again.ref)

    fresh = spawned(store, again, workflow="y")

    assert journal is not None
    assert journal.children == ()
    assert fresh.id != old.id
    assert [(c.id, c.ordinal) for c in store.children_of(TENANT, parent.id)] == [(old.id, 0), (fresh.id, 1)]


def test_no_child_is_forgotten_while_its_parent_lies_paused(store: SqlStore, clock: StoreClock) -> None:
    """For longer than ended jobs are kept: what the child did must not be done again."""
    worker = a_worker(store)
    parent = claimed(store, worker)
    old = spawned(store, parent, workflow="x")
    run(store, worker, old)
    ends_badly(store, worker, parent, JobState.PAUSED)
    clock.advance(100)
    assert store.forget_ended(10) == 0
    worker = a_worker(store)
    store.resume(TENANT, parent.id, "ada")

    assert spawned(store, claim(store, worker, parent), workflow="x").id == old.id


def test_a_failed_child_stays_the_same_within_its_run(store: SqlStore) -> None:
    """The handler that ran again from the top must see the failure it saw before."""
    worker = a_worker(store)
    parent = claimed(store, worker, backoff_base=0.0)
    child = spawned(store, parent, workflow="x", retries=0)
    run(store, worker, child, boom())
    settle(store, worker, parent.ref, boom())

    assert spawned(store, claim(store, worker, parent)).id == child.id


def test_a_child_that_is_to_be_cancelled_is_replaced_before_anybody_got_to_it(store: SqlStore) -> None:
    """The parent is resumed at once: what it gets back must not be taken from under it a moment later."""
    worker = a_worker(store)
    parent = claimed(store, worker, retries=0)
    doomed = spawned(store, parent, workflow="x")
    ends_badly(store, worker, parent, JobState.FAILED)
    store.resume(TENANT, parent.id, "ada")

    fresh = spawned(store, claim(store, worker, parent), workflow="y")
    store.tend_children()

    assert fresh.id != doomed.id
    assert (state(store, doomed.id), state(store, fresh.id)) == (JobState.CANCELLED, JobState.QUEUED)


def test_a_pause_keeps_the_children(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = spawned(store, parent)
    ends_badly(store, worker, parent, JobState.PAUSED)
    assert store.tend_children() == 0
    store.resume(TENANT, parent.id, "ada")

    assert spawned(store, claim(store, worker, parent)).id == child.id


def test_what_is_refused_leaves_nothing(store: SqlStore) -> None:
    parent = claimed(store, a_worker(store))
    store.blacklist_add(TENANT, "barred", "manual", "ada")
    drafts: Sequence[tuple[NewChild, type[Exception]]] = [
        (NewChild(parent.ref, "greet", 1, a_job(tenant="other")), InvalidInput),
        (NewChild(parent.ref, "greet", 1, a_job(after=(parent.id,))), InvalidInput),
        (NewChild(parent.ref, "greet", 1, a_job(after=("nobody",))), UnknownJob),
        (NewChild(parent.ref, "greet", 1, a_job(workflow="barred")), WorkflowBlacklisted),
        (NewChild(parent.ref, "", 1, a_job()), InvalidInput),
        (NewChild(parent.ref, "greet", 0, a_job()), InvalidInput),
        (NewChild(parent.ref, "greet", 1, a_job(), "whatever"), InvalidInput),  # type: ignore[arg-type]
    ]
    for draft, error in drafts:
        with pytest.raises(error):
            store.spawn(draft)
        assert store.get(draft.job.tenant, draft.job.id) is None

    assert store.children_of(TENANT, parent.id) == []


def test_the_key_of_somebody_elses_job_gives_no_child(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    submitted(store, key="k", fingerprint="f")

    with pytest.raises(Conflict, match="did not spawn it"):
        spawned(store, parent, key="k", fingerprint="f")
    mine = spawned(store, parent, key="mine", fingerprint="f")

    assert spawned(store, parent, "again", key="mine", fingerprint="f").id == mine.id
    assert len(store.children_of(TENANT, parent.id)) == 1


def test_children_of_children_go_ten_deep(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    for depth in range(10):
        parent = claim(store, worker, spawned(store, parent, workflow=f"deep-{depth}"))

    with pytest.raises(InvalidInput, match="10 deep"):
        spawned(store, parent, workflow="too deep")


def test_a_job_has_a_thousand_children_at_most(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_CHILDREN == 1000
    monkeypatch.setattr("unstuck.model.children.MOST_CHILDREN", 5)
    parent = claimed(store, a_worker(store))
    for n in range(1, 6):
        spawned(store, parent, ordinal=n)

    with pytest.raises(InvalidInput, match="5 children at most"):
        spawned(store, parent, ordinal=6)
    assert spawned(store, parent, ordinal=5).ordinal == 5


# --- gather -------------------------------------------------------------------------------------------------------


def test_a_gather_of_ended_children_has_their_results_in_the_order_asked(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    one, two = spawned(store, parent, "a", workflow="x"), spawned(store, parent, "b", workflow="y", retries=0)
    assert store.gather(parent.ref, [two.id, one.id]) is None
    run(store, worker, one, Returned('{"n":1}'))
    assert store.gather(parent.ref, [two.id, one.id]) is None
    run(store, worker, two, boom("no luck"))

    told = store.gather(parent.ref, [two.id, one.id])

    assert told is not None
    bad, good = json.loads(told)
    assert good == {
        "id": one.id,
        "state": "COMPLETED",
        "result": {"n": 1},
        "error_type": None,
        "error_message": None,
    }
    assert (bad["id"], bad["state"], bad["error_type"]) == (two.id, "FAILED", "ValueError")
    assert bad["error_message"] == "no luck"
    assert store.gather(parent.ref, []) == "[]"


def test_only_ones_own_children_are_gathered_and_each_once(store: SqlStore) -> None:
    worker = a_worker(store)
    parent, other = claimed(store, worker), claimed(store, worker)
    mine, theirs = spawned(store, parent), spawned(store, other)

    for wanted in ([theirs.id], ["nobody"], [mine.id, mine.id], [parent.id], ["\x00"]):
        with pytest.raises(InvalidInput):
            store.gather(parent.ref, wanted)


def test_results_beyond_the_limit_are_left_out_and_said_so(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MOST_GATHERED", 100)
    worker = a_worker(store)
    parent = claimed(store, worker)
    wanted = [spawned(store, parent, f"c{n}", workflow=f"w{n}") for n in range(3)]
    for child, result in zip(wanted, ('"' + "ä" * 20 + '"', '"' + "ä" * 40 + '"', None), strict=True):
        run(store, worker, child, Returned(result))

    told = json.loads(store.gather(parent.ref, [child.id for child in wanted]) or "")

    assert [(entry["result"], entry.get("too_large")) for entry in told] == [
        ("ä" * 20, None),
        (None, True),
        (None, None),
    ]


def test_a_result_that_is_no_json_does_not_spoil_the_others(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = spawned(store, parent, workflow="x")
    run(store, worker, child, Returned("nonsense ]"))

    (entry,) = json.loads(store.gather(parent.ref, [child.id]) or "")

    assert entry["result"] == "nonsense ]"


def test_a_parent_is_woken_by_the_last_of_its_children(store: SqlStore) -> None:
    """A51"""
    worker = a_worker(store)
    parent = claimed(store, worker)
    wanted = [spawned(store, parent, f"c{n}", workflow=f"w{n}") for n in range(3)]
    assert settle(store, worker, parent.ref, gathering(*wanted)).state is JobState.WAITING
    for n, child in enumerate(wanted):
        work_off(store)
        assert state(store, parent.id) is JobState.WAITING
        run(store, worker, child, Returned(str(n)))

    work_off(store)

    assert state(store, parent.id) is JobState.QUEUED
    journal = store.journal(claim(store, worker, parent).ref)
    assert journal is not None
    (answered,) = journal.waits
    assert (answered.answer, answered.wait.key) == (Answer.ENDED, "gather#1")
    assert [entry["result"] for entry in json.loads(answered.payload or "")] == [0, 1, 2]


def test_a_gather_of_children_that_ended_meanwhile_is_answered_at_once(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = spawned(store, parent, workflow="x")
    assert store.gather(parent.ref, [child.id]) is None
    run(store, worker, child)

    settle(store, worker, parent.ref, gathering(child))
    work_off(store)

    assert state(store, parent.id) is JobState.QUEUED


# --- targets ------------------------------------------------------------------------------------------------------


def test_a_parent_does_not_wait_for_a_child_on_its_own_target(store: SqlStore) -> None:
    parent = _on_target(store, a_worker(store), "prod")
    child, elsewhere = spawned(store, parent, "a", target="prod"), spawned(store, parent, "b", target="test")

    with pytest.raises(TargetDeadlock, match=r"target prod.*release_target=True"):
        store.gather(parent.ref, [elsewhere.id, child.id])

    assert store.gather(parent.ref, [elsewhere.id]) is None
    assert store.gather(parent.ref, [child.id], True) is None


def test_nor_for_one_whose_own_wait_leads_there(store: SqlStore) -> None:
    """The child is without a target; what it waits for is not."""
    worker = a_worker(store)
    parent = _on_target(store, worker, "prod")
    there = submitted(store, target="prod", workflow="there")
    child = spawned(store, parent, workflow="x", after=(there.id,))

    with pytest.raises(TargetDeadlock, match="target prod"):
        store.gather(parent.ref, [child.id])


def test_nor_for_one_that_waits_for_the_parent(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    between = submitted(store, after=(parent.id,))
    child = spawned(store, parent, workflow="x", after=(between.id,))

    with pytest.raises(InvalidInput, match="wait for each other"):
        store.gather(parent.ref, [child.id])


def test_nothing_is_spawned_on_a_target_that_a_waiting_ancestor_keeps(store: SqlStore) -> None:
    worker = a_worker(store)
    top = _on_target(store, worker, "prod")
    middle = claim(store, worker, spawned(store, top, workflow="middle"))
    early = spawned(store, middle, "early", target="prod")  # nobody waits yet
    settle(store, worker, top.ref, gathering(*store.children_of(TENANT, top.id)))

    with pytest.raises(TargetDeadlock, match=f"target prod is kept by job {top.id}"):
        spawned(store, middle, "late", target="prod")
    with pytest.raises(TargetDeadlock, match="target prod"):
        store.gather(middle.ref, [early.id], True)
    assert spawned(store, middle, "elsewhere", target="test").state == "QUEUED"


def test_an_ancestor_that_let_go_of_its_target_is_in_nobodys_way(store: SqlStore) -> None:
    worker = a_worker(store)
    top = _on_target(store, worker, "prod")
    middle = claim(store, worker, spawned(store, top, workflow="middle"))
    settle(store, worker, top.ref, gathering(*store.children_of(TENANT, top.id), release_target=True))

    child = spawned(store, middle, target="prod", workflow="x")
    assert store.gather(middle.ref, [child.id]) is None
    work_off(store)
    run(store, worker, child)


def _on_target(store: SqlStore, worker: WorkerRecord, target: str) -> ClaimedJob:
    submitted(store, target=target, workflow="top")
    work_off(store)
    (attempt,) = claim_all(store, worker)
    return attempt


# --- ends ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "cancelled"),
    [
        (JobState.CANCELLED, {"cancel", "leave"}),
        (JobState.FAILED, {"cancel"}),
        (JobState.TIMEOUT, {"cancel"}),
        (JobState.COMPLETED, set()),
        (JobState.PAUSED, set()),
    ],
)
def test_which_children_outlive_their_parent(store: SqlStore, how: JobState, cancelled: set[str]) -> None:
    """A51: by how it ended, and what was said at the spawn."""
    worker = a_worker(store)
    parent = claimed(store, worker, retries=0)
    born = {on_end: spawned(store, parent, on_end, on_end=on_end) for on_end in ("cancel", "leave")}
    done = spawned(store, parent, "done", workflow="x")
    run(store, worker, done)

    ends_badly(store, worker, parent, how)

    assert store.tend_children() == len(cancelled)
    assert {on_end for on_end, child in born.items() if state(store, child.id) is JobState.CANCELLED} == cancelled
    assert state(store, done.id) is JobState.COMPLETED
    assert store.tend_children() == 0


def test_the_children_of_a_parent_that_its_blacklist_fails_in_the_queue_go_too(store: SqlStore) -> None:
    """A35, A51: it waits for its retry when its workflow is shut out, so no worker of it says that it ended."""
    worker = a_worker(store)
    parent = claimed(store, worker, workflow="barred", retries=3, backoff_base=0.0)
    born = {on_end: spawned(store, parent, on_end, on_end=on_end) for on_end in ("cancel", "leave")}
    settle(store, worker, parent.ref, boom())
    assert state(store, parent.id) is JobState.QUEUED
    store.blacklist_add(TENANT, "barred", "manual", "ada")

    assert store.tend_guard() == 1
    work_off(store)

    assert record(store, parent.id).error_type == "WorkflowBlacklisted"
    assert state(store, born["cancel"].id) is JobState.CANCELLED
    assert state(store, born["leave"].id) is JobState.QUEUED


def test_a_running_child_is_asked_and_says_who_asked(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = claim(store, worker, spawned(store, parent, workflow="x"))
    ends_badly(store, worker, parent, JobState.CANCELLED)

    store.tend_children()

    (asked,) = store.asked(worker.number)
    assert (asked.ref, asked.kind) == (child.ref, RequestKind.CANCEL)
    assert asked.reason == f"its parent {parent.id} ended CANCELLED"
    (event,) = [event for event in store.history(TENANT, child.id) if event.kind == "requested"]
    assert event.data["by"] == f"parent {parent.id}"


def test_grandchildren_go_too(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = claim(store, worker, spawned(store, parent, workflow="x"))
    grandchild = spawned(store, child, workflow="y")
    settle(store, worker, child.ref, gathering(grandchild))
    ends_badly(store, worker, parent, JobState.CANCELLED)

    while store.tend_children():
        pass

    assert (state(store, child.id), state(store, grandchild.id)) == (JobState.CANCELLED, JobState.CANCELLED)


def test_a_cancelled_gather_takes_its_children_with_it_and_is_woken_by_none(store: SqlStore) -> None:
    """A16, A51"""
    worker = a_worker(store)
    parent = claimed(store, worker)
    child = spawned(store, parent, workflow="x")
    settle(store, worker, parent.ref, gathering(child))
    store.cancel(TENANT, parent.id, "ada")

    work_off(store)  # the end left an entry: whoever works it off tends the children too

    assert (state(store, parent.id), state(store, child.id)) == (JobState.CANCELLED, JobState.CANCELLED)
    assert "woken" not in kinds(store, parent.id)


def test_three_hundred_children_some_of_which_run(store: SqlStore) -> None:
    worker = a_worker(store)
    parent = claimed(store, worker)
    born = [spawned(store, parent, ordinal=n, workflow=f"w{n % 3}") for n in range(1, 301)]
    running = claim_all(store, worker, limit=20)
    ends_badly(store, worker, parent, JobState.CANCELLED)

    tended = 0
    while moved := store.tend_children():
        assert moved <= 100
        tended += moved

    assert tended == 300
    assert {asked.ref for asked in store.asked(worker.number)} == {attempt.ref for attempt in running}
    at_rest = {child.id for child in born} - {attempt.id for attempt in running}
    assert {state(store, job) for job in at_rest} == {JobState.CANCELLED}


def test_relatives_of_a_job_that_is_not_there(store: SqlStore) -> None:
    for ask in (store.children_of, store.parent_of):
        with pytest.raises(UnknownJob):
            ask(TENANT, "nobody")
