"""Parks, events, decisions, deadlines and people at the same instant: nothing is lost, nothing counts twice."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial

import psycopg
import pytest

from tests.conftest import StoreClock
from tests.store.test_pending import claim, folds, state, work_off
from tests.store.test_pending_races import under_way
from tests.store.test_races import together
from tests.store.test_waits import PAID, PUSH, check_invariant, parked, rows_of, send, the_wait
from tests.support.builders import TENANT, a_job, a_worker, claimed, kinds, settle, settle_all
from tests.support.eventually import eventually
from tests.support.troubles import waits_for_a_lock
from tests.tiers import in_tiers
from unstuck.model.errors import IllegalMove, NotWaiting
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.lifecycle import JobState, Move
from unstuck.model.settlement import Parked, Returned
from unstuck.model.waits import Answer, Wait, WaitKind
from unstuck.store.drivers.connect import open_database
from unstuck.store.flow import waits, waking
from unstuck.store.life import settle as settles
from unstuck.store.life.control import Control
from unstuck.store.port import NewChild, Report
from unstuck.store.sql_store import SqlStore

AT_ONCE = 20


# --- park and signal ----------------------------------------------------------------------------------------------


@pytest.mark.timeout(400)
@in_tiers("rounds", 100, 2000)
def test_no_wake_up_is_lost_and_none_doubled_when_park_and_signal_race(store: SqlStore, rounds: int) -> None:
    """2000 rounds: each job parks while somebody sends the event it parks for."""
    worker = a_worker(store, lease=1e6)
    for _ in range(rounds // AT_ONCE):
        store.submit([a_job() for _ in range(AT_ONCE)])
        attempts = claim(store, worker)
        assert len(attempts) == AT_ONCE

        race(store, worker, attempts)

        work_off(store)
        woken = claim(store, worker)
        assert {attempt.id for attempt in woken} == {attempt.id for attempt in attempts}
        assert [the_wait(store, attempt.id).payload for attempt in attempts] == [f'"{a.id}"' for a in attempts]
        settle_all(store, worker.number, [Report(attempt.ref, Returned("1")) for attempt in woken])
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_unclaimed_events") == [(0,)]
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_events WHERE kind = 'woken'") == [(rounds,)]
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_timers WHERE kind = 'wait'") == [(0,)]


def race(store: SqlStore, worker: WorkerRecord, attempts: Sequence[ClaimedJob]) -> None:
    def park(some: Sequence[ClaimedJob]) -> None:
        for attempt in some:
            settle(store, worker, attempt.ref, Parked(PAID))

    def signal(some: Sequence[ClaimedJob]) -> None:
        for attempt in some:
            send(store, attempt.id, payload=f'"{attempt.id}"')

    halves = attempts[::2], attempts[1::2]
    together(*[partial(verb, half) for verb in (park, signal) for half in halves], store.ingest)


def test_an_event_that_is_under_way_while_its_job_parks_is_not_missed(one: SqlStore, other: SqlStore) -> None:
    """The park does not wait for it: a word in the inbox brings them together."""
    worker = a_worker(one)
    attempt = claimed(one, worker)
    with under_way(other, lambda t: waits.signal(t, TENANT, "paid", "1", "ada", attempt.id, None)):
        settle(one, worker, attempt.ref, Parked(PAID))
        one.ingest()
        assert state(one, attempt.id) is JobState.WAITING
    work_off(one)
    assert state(one, attempt.id) is JobState.QUEUED
    assert the_wait(one, attempt.id).payload == "1"
    check_invariant(one)


def test_a_park_that_is_under_way_while_its_event_is_sent_is_not_missed(
    one: SqlStore, other: SqlStore, server_url: str
) -> None:
    worker = a_worker(one)
    attempt = claimed(one, worker)
    report = Report(attempt.ref, Parked(PAID))
    with ThreadPoolExecutor(1) as thread:
        with under_way(other, lambda t: settles.settle(t, other._tools, worker.number, "ada", [report])):
            sending = thread.submit(send, one, attempt.id)
            eventually(lambda: waits_for_a_lock(server_url))
        assert sending.result(15) == attempt.id
    work_off(one)
    assert state(one, attempt.id) is JobState.QUEUED


@in_tiers("rounds", 10, 30)
def test_two_waiters_on_a_topic_get_one_event_each(store: SqlStore, rounds: int) -> None:
    worker = a_worker(store, lease=1e6)
    wait = replace(PAID, topic="orders")
    for number in range(rounds):
        attempts = [claimed(store, worker) for _ in range(2)]

        def emit(number: int, place: int) -> None:
            store.signal(TENANT, "paid", str(2 * number + place), "ada", topic="orders")

        together(
            *[lambda a=a: settle(store, worker, a.ref, Parked(wait)) for a in attempts],
            *[lambda n=number, p=place: emit(n, p) for place in range(2)],
        )
        work_off(store)
        woken = claim(store, worker)
        assert {attempt.id for attempt in woken} == {attempt.id for attempt in attempts}
        got = {the_wait(store, attempt.id).payload for attempt in attempts}
        assert got == {str(2 * number), str(2 * number + 1)}
        settle_all(store, worker.number, [Report(attempt.ref, Returned("1")) for attempt in woken])


def test_an_event_goes_to_the_other_waiter_when_the_first_is_being_cancelled(
    one: SqlStore, other: SqlStore, server_url: str
) -> None:
    """A topic: the oldest wait goes away while the event reaches for it."""
    worker = a_worker(one)
    wait = replace(PAID, topic="orders")
    first, second = parked(one, worker, wait), parked(one, worker, wait)
    verb = Control(other._name_ids, TENANT, first.id, "ada")
    with ThreadPoolExecutor(1) as thread:
        with under_way(other, lambda t: verb.stop(t, Move.CANCEL, None)):
            sending = thread.submit(one.signal, TENANT, "paid", "1", "ada", topic="orders")
            eventually(lambda: waits_for_a_lock(server_url))
        assert sending.result(15).job == second.id


def test_an_event_sent_while_its_job_is_interrupted_is_kept_for_the_next_run(
    one: SqlStore, other: SqlStore, server_url: str
) -> None:
    worker = a_worker(one)
    attempt = parked(one, worker)
    verb = Control(other._name_ids, TENANT, attempt.id, "ada")
    with ThreadPoolExecutor(1) as thread:
        with under_way(other, lambda t: verb.stop(t, Move.INTERRUPT, None)):
            sending = thread.submit(send, one, attempt.id, payload='"late"')
            eventually(lambda: waits_for_a_lock(server_url))
        assert sending.result(15) is None
    one.resume(TENANT, attempt.id, by="ada")
    (again,) = claim(one, worker)
    settle(one, worker, again.ref, Parked(PAID))
    assert the_wait(one, attempt.id).payload == '"late"'


@in_tiers("rounds", 15, 50)
def test_an_event_sent_while_its_job_is_resumed_is_taken_by_the_new_run(store: SqlStore, rounds: int) -> None:
    worker = a_worker(store, lease=1e6)
    for number in range(rounds):
        attempt = parked(store, worker)
        store.interrupt(TENANT, attempt.id, by="ada")
        together(
            partial(store.resume, TENANT, attempt.id, by="ada"),
            partial(send, store, attempt.id, payload=str(number)),
        )
        (again,) = claim(store, worker)
        settle(store, worker, again.ref, Parked(PAID))
        assert (the_wait(store, attempt.id).payload, the_wait(store, attempt.id).run) == (str(number), 2)
        (last,) = claim(store, worker)
        settle(store, worker, last.ref)


# --- decisions, deadlines, people ---------------------------------------------------------------------------------


@in_tiers("rounds", 20, 60)
def test_one_of_approve_reject_deadline_and_cancel_decides(store: SqlStore, clock: StoreClock, rounds: int) -> None:
    worker = a_worker(store, lease=1e7)
    seen: set[str] = set()
    for _ in range(rounds):
        attempt = parked(store, worker, PUSH)
        clock.advance(seconds=601)
        won: list[str] = []

        def decide(answer: Answer, job: str = attempt.id, won: list[str] = won) -> None:
            with suppress(NotWaiting):
                store.decide(TENANT, job, answer, "ada")
                won.append(answer)

        def expire(won: list[str] = won) -> None:
            if store.expire_waits():
                won.append("timeout")

        def cancel(job: str = attempt.id) -> None:
            with suppress(IllegalMove):
                store.cancel(TENANT, job, by="bob")

        together(
            lambda: decide(Answer.APPROVED), lambda: decide(Answer.REJECTED), expire, cancel, lambda: store.ingest()
        )
        work_off(store)
        ended = state(store, attempt.id)
        assert len(won) <= 1
        if won == ["timeout"]:
            assert ended is JobState.FAILED
        elif not won:
            assert ended is JobState.CANCELLED
        else:
            # A cancel that comes after a decision still cancels.
            assert ended in (JobState.QUEUED, JobState.CANCELLED)
            assert the_wait(store, attempt.id).answer == won[0]
        assert kinds(store, attempt.id).count("woken") <= 1
        assert folds(store, [a_job(id=attempt.id)])
        check_invariant(store)
        seen.add(won[0] if won else "cancel")
        if ended is JobState.QUEUED:
            store.cancel(TENANT, attempt.id, by="bob")
    assert len(seen) > 1, "nobody ever raced"


def test_an_approval_that_is_under_way_beats_the_deadline_and_holds_up_no_other(
    one: SqlStore, other: SqlStore
) -> None:
    worker = a_worker(one)
    attempt = parked(one, worker, replace(PUSH, timeout=0.001))
    late = parked(one, worker, replace(PUSH, timeout=0.001))
    with under_way(other, lambda t: waits.decide(t, TENANT, attempt.id, Answer.APPROVED, "ada", None, None)):
        assert one.expire_waits() == 1
    assert (state(one, late.id), one.next_wait()) == (JobState.FAILED, 0)
    assert one.expire_waits() == 0
    assert one.next_wait() is None
    check_invariant(one)
    work_off(one)
    assert state(one, attempt.id) is JobState.QUEUED


def test_a_deadline_that_is_under_way_beats_the_approval(one: SqlStore, other: SqlStore, server_url: str) -> None:
    worker = a_worker(one)
    attempt = parked(one, worker, replace(PUSH, timeout=0.001))
    with ThreadPoolExecutor(1) as thread:
        with under_way(other, lambda t: waking.expire(t, other._tools, waking.due_of(t, [attempt.ref.job]))):
            deciding = thread.submit(one.decide, TENANT, attempt.id, Answer.APPROVED, "ada")
            eventually(lambda: waits_for_a_lock(server_url))
        with pytest.raises(NotWaiting, match="decided already: timeout by timeout"):
            deciding.result(15)
    assert state(one, attempt.id) is JobState.FAILED


def test_a_job_that_somebody_holds_is_woken_as_soon_as_he_lets_go(one: SqlStore, server_url: str) -> None:
    """A person in psql, a backup, a forgotten transaction: he holds up nobody else."""
    worker = a_worker(one)
    locked, free = parked(one, worker), parked(one, worker)
    with psycopg.connect(server_url) as person:
        person.execute("SELECT 1 FROM unstuck_jobs WHERE uid = %s FOR UPDATE", (locked.id,))
        send(one, locked.id)
        send(one, free.id)
        for _ in range(3):
            one.ingest()
        assert (state(one, free.id), state(one, locked.id)) == (JobState.QUEUED, JobState.WAITING)
    work_off(one)
    assert state(one, locked.id) is JobState.QUEUED


def test_who_holds_a_target_holds_up_no_other_wait(server_url: str) -> None:
    """The waits of all others end; that of the job whose target is held does when it is let go."""
    store = SqlStore(open_database(server_url, store_call=1.0))
    try:
        worker = a_worker(store, lease=1e6)
        jobs = store.submit([a_job(target=target) for target in ("held", "other", None)])
        work_off(store)
        parks = [Report(one.ref, Parked(replace(PAID, timeout=0.001))) for one in claim(store, worker)]
        assert {answer.state for answer in store.settle(worker.number, parks)} == {JobState.WAITING}
        with psycopg.connect(server_url) as psql:
            psql.execute("SELECT 1 FROM unstuck_targets WHERE name = 'held' FOR UPDATE")
            assert store.expire_waits() == 2
            assert [state(store, job.id) for job in jobs] == [JobState.WAITING, JobState.FAILED, JobState.FAILED]
            assert store.next_wait() == 0
        assert store.expire_waits() == 1
        check_invariant(store)
    finally:
        store.close()


@in_tiers("rounds", 3, 10)
def test_two_looks_at_once_wake_a_job_once(one: SqlStore, other: SqlStore, rounds: int) -> None:
    worker = a_worker(one, lease=1e6)
    for _ in range(rounds):
        attempts = [parked(one, worker) for _ in range(10)]
        for attempt in attempts:
            send(one, attempt.id)
        together(lambda: work_off(one), lambda: work_off(other), lambda: other.expire_waits())
        work_off(one)
        woken = claim(one, worker)
        assert sorted(attempt.id for attempt in woken) == sorted(attempt.id for attempt in attempts)
        assert folds(one, [a_job(id=attempt.id) for attempt in attempts])
        one.settle(worker.number, [Report(attempt.ref, Returned("1")) for attempt in woken])


def test_parks_on_the_same_topics_in_every_order_never_deadlock(store: SqlStore) -> None:
    """Batches that park on several topics each, and senders to all of them, at once."""
    workers = [a_worker(store, name=f"w{n}", lease=1e6) for n in range(4)]
    topics = [f"t{n}" for n in range(8)]

    def park(number: int) -> None:
        worker = workers[number]
        for _ in range(5):
            attempts = [claimed(store, worker) for _ in topics]
            order = topics if number % 2 else topics[::-1]
            reports = [Report(a.ref, Parked(replace(PAID, topic=t))) for a, t in zip(attempts, order, strict=True)]
            settle_all(store, worker.number, reports)

    def emit() -> None:
        for number in range(80):
            store.signal(TENANT, "paid", "1", "ada", topic=topics[number % len(topics)])

    together(*[lambda n=n: park(n) for n in range(4)], emit, emit)
    work_off(store)
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_unclaimed_events") == [(0,)]
    assert rows_of(store, "SELECT COUNT(*) FROM unstuck_events WHERE kind = 'woken'") == [(160,)]
    check_invariant(store)


# --- children -----------------------------------------------------------------------------------------------------


@in_tiers("rounds", 10, 30)
def test_children_that_end_while_their_parent_parks_wake_it(one: SqlStore, other: SqlStore, rounds: int) -> None:
    worker = a_worker(one, lease=1e6)
    for _ in range(rounds):
        parent = claimed(one, worker)
        born = [a_job(workflow="child") for _ in range(3)]
        for ordinal, job in enumerate(born, 1):
            one.spawn(NewChild(parent.ref, "child", ordinal, job))
        wait = Wait(WaitKind.CHILDREN, "children#1", children=tuple(job.id for job in born))
        attempts = claim(one, worker)
        assert len(attempts) == 3

        together(
            partial(settle, one, worker, parent.ref, Parked(wait)),
            *[partial(settle, one, worker, attempt.ref) for attempt in attempts],
            partial(work_off, other),
            partial(work_off, other),
        )

        work_off(one)
        assert the_wait(one, parent.id).answer is Answer.ENDED
        (again,) = claim(one, worker)
        assert again.id == parent.id
        settle(one, worker, again.ref)
        assert folds(one, [a_job(id=parent.id), *born])
