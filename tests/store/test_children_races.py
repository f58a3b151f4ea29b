"""Parents and children at the same instant: no child is lost or doubled, no parent waits for an end that has been."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import psycopg
import pytest

from tests.store.test_children import claim, gathering, run, spawned
from tests.store.test_pending import state, work_off
from tests.store.test_pending_races import under_way
from tests.store.test_races import together
from tests.support.builders import TENANT, a_job, a_worker, claimed, insist, kinds, settle, settle_all
from unstuck.model.errors import IllegalMove, StoreBusy
from unstuck.model.lifecycle import JobState, Move
from unstuck.model.settlement import Returned, Stopped
from unstuck.model.waits import Child
from unstuck.store.flow import spawn
from unstuck.store.life import settle as settling
from unstuck.store.life.control import Control
from unstuck.store.port import NewChild, Report, Verdict
from unstuck.store.sql_store import SqlStore

# --- spawn --------------------------------------------------------------------------------------------------------


def test_sixteen_threads_that_spawn_the_same_child_get_the_same(store: SqlStore) -> None:
    parent = claimed(store, a_worker(store))
    for ordinal in range(1, 4):
        spawns = [NewChild(parent.ref, "greet", ordinal, a_job()) for _ in range(16)]
        with ThreadPoolExecutor(16) as threads:
            found = list(threads.map(lambda new: insist(partial(store.spawn, new)), spawns))
        assert None not in found
        assert len({child.id for child in found if child is not None}) == 1
        born = [job.job.id for job in spawns if store.get(TENANT, job.job.id) is not None]
        assert len(born) == 1

    assert len(store.children_of(TENANT, parent.id)) == 3


def test_a_spawn_and_the_parents_cancel_at_once_leave_no_child_alive(store: SqlStore) -> None:
    worker = a_worker(store)
    for _ in range(15):
        parent = claimed(store, worker)
        store.cancel(TENANT, parent.id, "ada")
        draft = NewChild(parent.ref, "greet", 1, a_job())
        together(
            partial(insist, partial(store.spawn, draft)),
            partial(settle, store, worker, parent.ref, Stopped()),
        )
        store.tend_children()
        assert state(store, parent.id) is JobState.CANCELLED
        born = store.get(TENANT, draft.job.id)
        assert born is None or born.state is JobState.CANCELLED


def test_a_parent_ends_only_after_the_spawn_under_way(one: SqlStore, other: SqlStore, server_url: str) -> None:
    """The fence row is locked from the check to the commit: the end that comes next sees the child."""
    worker = a_worker(one)
    parent = claimed(one, worker)
    one.cancel(TENANT, parent.id, "ada")
    draft = NewChild(parent.ref, "greet", 1, a_job())
    numbers = other._name_ids.ensure(other._database, [draft.job])
    with ThreadPoolExecutor(1) as thread:
        with under_way(other, lambda t: spawn.spawn(t, other._name_ids, draft, numbers, 86400.0)):
            ending = thread.submit(settle, one, worker, parent.ref, Stopped())
            (busy,) = one.settle(worker.number, [Report(parent.ref, Stopped())])
            assert busy.verdict is Verdict.BUSY
        assert ending.result(35).state is JobState.CANCELLED

    assert one.tend_children() == 1
    assert state(one, draft.job.id) is JobState.CANCELLED


def test_a_spawn_that_waited_for_the_parents_end_is_fenced(one: SqlStore, other: SqlStore, server_url: str) -> None:
    worker = a_worker(one)
    parent = claimed(one, worker)
    draft = NewChild(parent.ref, "greet", 1, a_job())
    report = Report(parent.ref, Returned("1"), output="slow path")
    with ThreadPoolExecutor(1) as thread:
        with under_way(other, lambda t: settling.settle(t, other._tools, worker.number, "ada", [report])):
            spawning = thread.submit(one.spawn, draft)
            with pytest.raises(StoreBusy):  # its flow call is tried again, and keeps nobody waiting meanwhile
                spawning.result(15)
        assert one.spawn(draft) is None

    assert one.get(TENANT, draft.job.id) is None


# --- gather -------------------------------------------------------------------------------------------------------


def test_children_end_while_their_parent_parks(store: SqlStore) -> None:
    worker = a_worker(store)
    for n in range(15):
        parent = claimed(store, worker)
        born = [spawned(store, parent, ordinal=k, workflow=f"w{n}-{k}") for k in (1, 2, 3)]
        attempts = [claim(store, worker, child) for child in born]
        together(
            partial(settle, store, worker, parent.ref, gathering(*born)),
            *[partial(settle, store, worker, attempt.ref) for attempt in attempts],
            store.ingest,
        )
        work_off(store)
        assert state(store, parent.id) is JobState.QUEUED, kinds(store, parent.id)
        assert list(kinds(store, parent.id)).count("woken") == 1
        settle(store, worker, claim(store, worker, parent).ref)


def test_the_end_of_a_child_under_way_while_its_parent_parks_is_not_missed(one: SqlStore, other: SqlStore) -> None:
    worker = a_worker(one)
    parent = claimed(one, worker)
    child = spawned(one, parent, workflow="x")
    report = Report(claim(one, worker, child).ref, Returned("1"))
    with under_way(other, lambda t: settling.settle(t, other._tools, worker.number, "ada", [report])):
        settle(one, worker, parent.ref, gathering(child))
        one.ingest()
        assert state(one, parent.id) is JobState.WAITING

    work_off(one)

    assert state(one, parent.id) is JobState.QUEUED


def test_an_end_beside_one_that_somebody_holds_wakes_the_parent_that_parked(
    one: SqlStore, other: SqlStore, server_url: str
) -> None:
    """The settle waits for nobody: what is held comes again, and the child's end is told."""
    worker = a_worker(one)
    blocked, parent = claimed(one, worker), claimed(one, worker)
    child = claim(one, worker, spawned(one, parent, workflow="x"))
    reports = [Report(attempt.ref, Returned("1")) for attempt in (blocked, child)]
    with psycopg.connect(server_url) as person:
        person.execute("SELECT 1 FROM unstuck_running WHERE job = %s FOR UPDATE", (blocked.ref.job,))
        settle(one, worker, parent.ref, gathering(*one.children_of(TENANT, parent.id)))
        one.ingest()
        held, done = other.settle(worker.number, reports)
        assert (held.verdict, done.verdict) == (Verdict.BUSY, Verdict.DONE)
    assert {answer.state for answer in other.settle(worker.number, reports)} == {JobState.COMPLETED}

    work_off(one)

    assert state(one, parent.id) is JobState.QUEUED


def test_a_cancel_of_a_child_under_way_while_its_parent_parks_is_not_missed(one: SqlStore, other: SqlStore) -> None:
    worker = a_worker(one)
    parent = claimed(one, worker)
    child = spawned(one, parent, workflow="x")
    verb = Control(other._name_ids, TENANT, child.id, "ada")
    with under_way(other, lambda t: verb.stop(t, Move.CANCEL, None)):
        settle(one, worker, parent.ref, gathering(child))
        one.ingest()

    work_off(one)

    assert state(one, parent.id) is JobState.QUEUED


def test_a_cancel_and_the_last_child_at_once_end_in_one_of_the_two(store: SqlStore) -> None:
    worker = a_worker(store)
    for n in range(12):
        parent = claimed(store, worker)
        child = spawned(store, parent, workflow=f"x{n}")
        attempt = claim(store, worker, child)
        settle(store, worker, parent.ref, gathering(child))
        together(
            partial(settle, store, worker, attempt.ref),
            partial(store.cancel, TENANT, parent.id, "ada"),
            lambda: work_off(store),
        )
        work_off(store)
        # A cancel wins wherever the parent was just then: waiting, or woken and in the queue.
        assert state(store, parent.id) is JobState.CANCELLED
        # Its child is done, unless the cancel reached it before its own end did.
        ended = JobState.CANCELLED if "requested" in kinds(store, child.id) else JobState.COMPLETED
        assert state(store, child.id) is ended


# --- ends ---------------------------------------------------------------------------------------------------------


def test_janitors_tend_the_same_children_at_once(store: SqlStore) -> None:
    """Some of them are claimed, or end, at the same instant: every one is cancelled or done, and asked once."""
    worker = a_worker(store)
    parent = claimed(store, worker)
    born = [spawned(store, parent, ordinal=n, workflow=f"w{n}") for n in range(1, 41)]
    attempts = [claim(store, worker, child) for child in born[:10]]
    store.cancel(TENANT, parent.id, "ada")
    settle(store, worker, parent.ref, Stopped())
    together(
        *[lambda: _tend_all(store) for _ in range(4)],
        lambda: [settle(store, worker, attempt.ref, Returned("1")) for attempt in attempts[:5]],
        lambda: _try_to_run(store, born[10:15]),
    )
    _tend_all(store)
    asked = {one.ref for one in store.asked(worker.number)}
    assert asked == {attempt.ref for attempt in attempts[5:]}
    for child in [*born[:5], *born[10:]]:
        assert state(store, child.id) in (JobState.CANCELLED, JobState.COMPLETED, JobState.RUNNING)
        events = list(kinds(store, child.id))
        assert events.count("requested") + events.count("cancelled") <= 2


def test_a_family_that_falls_at_once_waits_for_nobody_in_a_circle(store: SqlStore) -> None:
    """Parents, children and grandchildren are cancelled, settled and tended from eight sides."""
    worker = a_worker(store)
    tops = [claimed(store, worker) for _ in range(4)]
    middles = [claim(store, worker, spawned(store, top, workflow=f"m{top.ref.job}")) for top in tops]
    lows = [spawned(store, middle, ordinal=n) for middle in middles for n in range(1, 6)]
    for attempt in (*tops, *middles):
        store.cancel(TENANT, attempt.id, "ada")
    reports = [Report(attempt.ref, Stopped()) for attempt in (*tops, *middles)]
    together(
        lambda: settle_all(store, worker.number, reports[:5]),
        lambda: settle_all(store, worker.number, reports[5:]),
        *[lambda: _tend_all(store) for _ in range(3)],
        lambda: work_off(store),
        *[partial(_cancel_all, store, half) for half in (lows[:10], lows[10:])],
    )
    _tend_all(store)

    assert {state(store, child.id) for child in lows} == {JobState.CANCELLED}


def _tend_all(store: SqlStore) -> None:
    for _ in range(100):
        if not store.tend_children(7):
            return


def _try_to_run(store: SqlStore, jobs: list[Child]) -> None:
    worker = a_worker(store, name="late")
    for job in jobs:
        with suppress(AssertionError):  # it was cancelled first
            run(store, worker, job)


def _cancel_all(store: SqlStore, jobs: list[Child]) -> None:
    for job in jobs:
        with suppress(IllegalMove):  # somebody else was faster
            store.cancel(TENANT, job.id, "grace")
