"""Another priority for a job that waits, and what is due now instead of later."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    begin,
    boom,
    claim_all,
    claimed,
    kinds,
    record,
    settle,
    submitted,
)
from tests.support.parking import Stage
from tests.support.tables import ask
from tests.tiers import in_tiers
from unstuck.intake.control import JobVerbs
from unstuck.model.errors import IllegalMove, InvalidInput, UnknownJob, UnstuckError
from unstuck.model.lifecycle import JobState
from unstuck.store.drivers.connect import open_database
from unstuck.store.sql_store import SqlStore

#: A job of the queue stands in one place, and in ready by the rank that its row says.
WRONG_PLACES = """
SELECT j.id
  FROM unstuck_jobs j
  LEFT JOIN unstuck_ready r ON r.job = j.id
  LEFT JOIN unstuck_line l ON l.job = j.id
  LEFT JOIN unstuck_timers t ON t.job = j.id AND t.kind = 'start'
  LEFT JOIN unstuck_targets g ON g.id = j.target
 WHERE NOT EXISTS (SELECT 1 FROM unstuck_done d WHERE d.job = j.id)
   AND NOT EXISTS (SELECT 1 FROM unstuck_running a WHERE a.job = j.id)
   AND j.state = 'QUEUED'
   AND ((CASE WHEN r.job IS NULL THEN 0 ELSE 1 END) + (CASE WHEN l.job IS NULL THEN 0 ELSE 1 END)
        + (CASE WHEN t.job IS NULL THEN 0 ELSE 1 END) <> 1
        OR r.rank <> j.rank OR j.rank <> j.created_at - j.priority * 60000000
        OR (l.place <> -j.priority AND NOT l.place < -1000000)
        OR (r.job IS NOT NULL AND g.id IS NOT NULL AND g.head <> j.id))
"""


def test_a_job_overtakes_those_of_its_queue(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    first, second, third = (submitted(store) for _ in range(3))

    after = store.reprioritise(TENANT, third.id, 5, by="ada")

    assert (after.priority, after.state, after.created_at) == (5, JobState.QUEUED, record(store, third.id).created_at)
    last = store.history(TENANT, third.id)[-1]
    assert (last.kind, last.data) == ("reprioritised", {"by": "ada", "priority": 5, "was": 0})
    store.reprioritise(TENANT, first.id, -1, by="ada")
    assert ask(store_url, WRONG_PLACES) == []
    assert [claim_all(store, worker, 1)[0].id for _ in range(3)] == [third.id, second.id, first.id]
    assert [action.verb for action in store.audit()] == ["jobs.reprioritise"] * 2


def test_the_same_priority_again_changes_nothing(store: SqlStore) -> None:
    job = submitted(store, priority=3)
    before = record(store, job.id)
    assert store.reprioritise(TENANT, job.id, 3, by="ada") == before
    assert kinds(store, job.id) == ["submitted"]


@pytest.mark.parametrize("options", [{"delay": 60.0}, {"on_hold": True}], ids=["scheduled", "pending"])
def test_a_job_that_waits_for_its_time_or_a_person_comes_back_with_it(
    store: SqlStore, store_url: str, clock: StoreClock, options: dict[str, object]
) -> None:
    worker = a_worker(store, lease=1e6)
    later = submitted(store, **options)
    before = record(store, later.id)
    after = store.reprioritise(TENANT, later.id, 10, by="ada")
    assert (after.state, after.available_at, after.on_hold) == (before.state, before.available_at, before.on_hold)
    other = submitted(store)
    clock.advance(seconds=61)
    store.release_due()
    if "on_hold" in options:
        store.release(TENANT, later.id, by="ada")

    assert ask(store_url, WRONG_PLACES) == []
    assert [claim_all(store, worker, 1)[0].id for _ in range(2)] == [later.id, other.id]


def test_an_appointment_stays_one(store: SqlStore, clock: StoreClock, store_url: str) -> None:
    job = a_job(start_at=clock.now() + timedelta(hours=1))
    store.submit([job])
    before = ask(store_url, "SELECT kind, due_at, appointed FROM unstuck_timers")
    assert before[0][2] is not None
    store.reprioritise(TENANT, job.id, 4, by="ada")
    assert ask(store_url, "SELECT kind, due_at, appointed FROM unstuck_timers") == before


def test_a_retry_and_what_is_parked_or_paused_take_it_along(
    store: SqlStore, clock: StoreClock, store_url: str
) -> None:
    stage = Stage(store)
    failing = stage.begun(retries=3, expires_after=500.0)
    settle(store, stage.worker, failing.ref, boom())
    waiting = stage.awaits("paid")
    paused = submitted(store)
    store.interrupt(TENANT, paused.id, by="ada")

    for job in (failing.id, waiting, paused.id):
        before = record(store, job)
        after = store.reprioritise(TENANT, job, 7, by="ada")
        assert (after.state, after.priority) == (before.state, 7)
        assert (after.error_message, after.available_at, after.failures) == (
            before.error_message, before.available_at, before.failures,
        )  # fmt: skip
    store.signal(TENANT, "paid", "1", "ada", job=waiting)
    store.ingest()
    store.resume(TENANT, paused.id, by="ada")
    clock.advance(seconds=100)
    store.release_due()
    assert ask(store_url, WRONG_PLACES) == []
    assert {job.id for job in claim_all(store, stage.worker)} == {failing.id, waiting, paused.id}


def test_in_the_line_of_a_target_the_head_that_nobody_claimed_yields(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    jobs = [a_job(target="acme") for _ in range(3)]
    store.submit(jobs)
    store.ingest()

    store.reprioritise(TENANT, jobs[2].id, 1, by="ada")
    store.ingest()

    assert ask(store_url, WRONG_PLACES) == []
    (attempt,) = claim_all(store, worker)
    assert attempt.id == jobs[2].id


def test_a_fresh_head_that_sinks_steps_back(store: SqlStore, store_url: str) -> None:
    worker = a_worker(store)
    jobs = [a_job(target="acme") for _ in range(3)]
    store.submit(jobs)
    store.ingest()

    store.reprioritise(TENANT, jobs[0].id, -1, by="ada")

    assert ask(store_url, WRONG_PLACES) == []
    for expected in (jobs[1], jobs[2], jobs[0]):
        (attempt,) = claim_all(store, worker)
        assert attempt.id == expected.id
        settle(store, worker, attempt.ref)


def test_a_head_that_has_begun_keeps_its_turn(store: SqlStore, store_url: str, clock: StoreClock) -> None:
    """Half-done work on a target goes on before anything else there, whatever its priority."""
    worker = a_worker(store, lease=1e6)
    jobs = [a_job(target="acme", retries=3) for _ in range(2)]
    store.submit(jobs)
    store.ingest()
    (attempt,) = claim_all(store, worker)
    begin(store, worker, attempt)
    settle(store, worker, attempt.ref, boom())
    store.reprioritise(TENANT, attempt.id, -5, by="ada")  # on its timer
    clock.advance(seconds=600)
    store.release_due()
    store.ingest()
    store.reprioritise(TENANT, attempt.id, -7, by="ada")  # in ready

    assert ask(store_url, WRONG_PLACES) == []
    assert [job.id for job in claim_all(store, worker)] == [attempt.id]


def test_what_runs_or_has_ended_has_no_place_to_change(store: SqlStore) -> None:
    worker = a_worker(store)
    running, ended = claimed(store, worker), claimed(store, worker)
    settle(store, worker, ended.ref)
    for job, state in ((running, "RUNNING"), (ended, "COMPLETED")):
        before = record(store, job.id)
        with pytest.raises(IllegalMove, match=f"a {state} job cannot be reprioritised"):
            store.reprioritise(TENANT, job.id, 1, by="ada")
        assert record(store, job.id) == before
    with pytest.raises(UnknownJob):
        store.reprioritise(TENANT, "nobody", 1, by="ada")


@pytest.mark.parametrize("priority", [10_001, 1.5, "5", True, None])
def test_the_door_takes_what_submit_takes(store: SqlStore, priority: object) -> None:
    job = submitted(store)
    with pytest.raises(InvalidInput, match="priority="):
        JobVerbs(store).reprioritise(job.id, priority)  # type: ignore[arg-type]
    assert JobVerbs(store, by="eve").reprioritise(job.id, 10_000).priority == 10_000


@in_tiers("rounds", 40, 400)
def test_claims_timers_cancels_and_new_priorities_meet(store: SqlStore, store_url: str, rounds: int) -> None:
    """Whatever meets: every job of the queue stands in one place, by the rank its row says."""
    worker = a_worker(store, lease=1e6)
    dice = random.Random(rounds)
    problems: list[BaseException] = []

    def hurried(act: Callable[[SqlStore], object]) -> None:
        other = SqlStore(open_database(store_url, store_call=20.0))
        try:
            act(other)
        except UnstuckError:
            pass  # what is refused changed nothing
        except BaseException as problem:
            problems.append(problem)
        finally:
            other.close()

    for _ in range(rounds // 10):
        jobs = [
            a_job(target=dice.choice([None, "t1", "t2"]), delay=dice.choice([0.0, 0.0, 0.01, 0.02]))
            for _ in range(10)
        ]
        store.submit(jobs)
        ids = [job.id for job in jobs]

        def reprioritise(mine: SqlStore, ids: list[str] = ids) -> None:
            for job in ids:
                try:
                    mine.reprioritise(TENANT, job, random.randint(-5, 5), by="ada")
                except IllegalMove:
                    pass

        def move(mine: SqlStore) -> None:
            for _ in range(5):
                mine.release_due()
                mine.ingest()
                claim_all(mine, worker, 1)

        def stop(mine: SqlStore, ids: list[str] = ids) -> None:
            mine.cancel(TENANT, ids[0], by="eve")
            mine.run_now(TENANT, ids[1], by="eve")

        threads = [threading.Thread(target=hurried, args=(act,)) for act in (reprioritise, move, stop, reprioritise)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

    assert problems == []
    assert ask(store_url, WRONG_PLACES) == []


@in_tiers("rounds", 6, 20)
def test_a_timer_that_fires_meanwhile_brings_a_job_back_by_its_new_rank(
    store: SqlStore, store_url: str, rounds: int
) -> None:
    """A sweep may have read the job before its priority changed, and reach its timer after that."""
    for _ in range(rounds):
        jobs = [a_job(delay=0.05) for _ in range(150)]
        store.submit(jobs)
        ids = [job.id for job in jobs]
        is_over = threading.Event()

        def fire(is_over: threading.Event = is_over) -> None:
            with closing(SqlStore(open_database(store_url, store_call=20.0))) as mine:
                while not is_over.is_set():
                    mine.release_due()

        def reprioritise(some: list[str]) -> None:
            with closing(SqlStore(open_database(store_url, store_call=20.0))) as mine:
                for job in some:
                    mine.reprioritise(TENANT, job, random.randint(1, 9), by="ada")

        firing = threading.Thread(target=fire)
        changing = [threading.Thread(target=reprioritise, args=(ids[part::3],)) for part in range(3)]
        for thread in (firing, *changing):
            thread.start()
        for thread in changing:
            thread.join(60)
        is_over.set()
        firing.join(60)
        assert ask(store_url, WRONG_PLACES) == []


# --- run now ------------------------------------------------------------------------------------------------------


def test_run_now_makes_a_delay_an_appointment_and_a_retry_due(store: SqlStore, clock: StoreClock) -> None:
    verbs, worker = JobVerbs(store, by="ada"), a_worker(store, lease=1e6)
    appointed = a_job(start_at=clock.now() + timedelta(hours=1), expires_after=60.0)
    store.submit([appointed])
    delayed = submitted(store, delay=3600.0)
    failing = claimed(store, worker, retries=3)
    settle(store, worker, failing.ref, boom())

    for job in (appointed.id, delayed.id, failing.id):
        now = verbs.run_now(job)
        assert (now.state, now.available_at <= clock.now()) == (JobState.QUEUED, True)
        assert verbs.run_now(job) == now, "safe to repeat"
        assert kinds(store, job)[-1] == "hurried"
    assert {job.id for job in claim_all(store, worker)} == {appointed.id, delayed.id, failing.id}
    with pytest.raises(IllegalMove):
        verbs.run_now(delayed.id)


@pytest.mark.parametrize("how", ["run_now", "resume"])
def test_an_appointment_that_somebody_did_not_want_to_wait_for_is_over(
    store: SqlStore, clock: StoreClock, how: str
) -> None:
    """Held by the blacklist meanwhile, it is due when it is let go; it went back to waiting for its appointment."""
    worker = a_worker(store, lease=1e6)
    job = a_job(start_at=clock.now() + timedelta(hours=1), on_blacklist="hold")
    store.submit([job])
    if how == "run_now":
        store.run_now(TENANT, job.id, by="ada")
    else:
        store.cancel(TENANT, job.id, by="ada")
        store.resume(TENANT, job.id, by="ada")
    store.blacklist_add(TENANT, job.workflow, "stuck", "ada")
    store.tend_guard()
    assert record(store, job.id).state is JobState.PENDING

    store.blacklist_remove(TENANT, job.workflow, "ada")
    store.tend_guard()

    assert record(store, job.id).available_at <= clock.now()
    assert [attempt.id for attempt in claim_all(store, worker)] == [job.id]
