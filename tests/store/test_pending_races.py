"""Ends and beginnings at the same instant: nobody waits for an end that has been."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.store.test_pending import claim, end, folds, state, work_off
from tests.store.test_races import together
from tests.support.builders import TENANT, a_job, a_worker, chance, settle_all, submitted
from tests.support.eventually import eventually
from tests.support.troubles import waits_for_a_lock
from tests.tiers import in_tiers
from unstuck.model.errors import IllegalMove, UnknownJob
from unstuck.model.job import NewJob
from unstuck.model.lifecycle import JobState, Move
from unstuck.model.settlement import Returned
from unstuck.store.database import Transaction
from unstuck.store.life import settle, submit, sweep
from unstuck.store.life.control import Control
from unstuck.store.port import Report, Share, Verdict
from unstuck.store.sql_store import SqlStore


@contextmanager
def under_way(store: SqlStore, work: Callable[[Transaction], Any]) -> Iterator[Future[Any]]:
    """A transaction that has done its work and commits when the block ends."""
    done, go = threading.Event(), threading.Event()

    def slowly(t: Transaction) -> Any:
        answer = work(t)
        done.set()
        assert go.wait(15)
        return answer

    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(store._database.write, slowly)
        try:
            assert done.wait(15) or future.exception(0) is None
            yield future
        finally:
            go.set()
        future.result(15)


def test_an_end_under_way_while_the_newcomer_is_looked_at_is_not_missed(one: SqlStore, other: SqlStore) -> None:
    worker = a_worker(one)
    submitted(one)
    (first,) = claim(one, worker)
    report = Report(first.ref, Returned("1"))
    with under_way(other, lambda t: settle.settle(t, other._tools, worker.number, "ada", [report])):
        job = submitted(one, after=(first.id,))
        assert one.ingest().woken == 0  # and it did not wait
        assert state(one, job) is JobState.PENDING

    work_off(one)

    assert state(one, job) is JobState.QUEUED


def test_an_end_beside_one_that_somebody_holds_is_not_missed(one: SqlStore, other: SqlStore, server_url: str) -> None:
    """The settle waits for nobody: what is held comes again, and the others end with their dependants told."""
    worker = a_worker(one)
    one.submit([a_job(), a_job()])
    blocked, first = sorted(claim(one, worker), key=lambda attempt: attempt.ref.job)
    reports = [Report(attempt.ref, Returned("1")) for attempt in (blocked, first)]
    with psycopg.connect(server_url) as person:
        person.execute("SELECT 1 FROM unstuck_running WHERE job = %s FOR UPDATE", (blocked.ref.job,))
        job = submitted(one, after=(first.id,))
        assert one.ingest().entries == 1
        held, done = other.settle(worker.number, reports)
        assert (held.verdict, done.verdict) == (Verdict.BUSY, Verdict.DONE)
    assert {answer.state for answer in other.settle(worker.number, reports)} == {JobState.COMPLETED}

    work_off(one)

    assert state(one, job) is JobState.QUEUED
    assert state(one, first.id) is JobState.COMPLETED


def test_a_cancel_under_way_while_the_newcomer_is_looked_at_is_not_missed(one: SqlStore, other: SqlStore) -> None:
    first = submitted(one)
    verb = Control(other._name_ids, TENANT, first.id, "ada")
    with under_way(other, lambda t: verb.stop(t, Move.CANCEL, None)):
        job = submitted(one, after=(first.id,))
        one.ingest()
        assert state(one, job) is JobState.PENDING

    work_off(one)

    assert state(one, job) is JobState.FAILED


def test_a_submit_under_way_while_what_it_waits_for_ends_is_not_missed(one: SqlStore, other: SqlStore) -> None:
    worker = a_worker(one)
    first = submitted(one)
    job = a_job(after=(first.id,))
    numbers = other._name_ids.ensure(other._database, [job])
    with under_way(other, lambda t: submit.submit(t, [job], numbers, 86400.0)):
        end(one, worker)
        work_off(one)

    work_off(one)

    assert state(one, job) is JobState.QUEUED


def test_two_looks_at_once_release_a_job_once(one: SqlStore, other: SqlStore) -> None:
    worker = a_worker(one)
    for _ in range(10):
        first = a_job()
        jobs = [a_job(workflow="next", after=(first.id,)) for _ in range(20)]
        one.submit([first, *jobs])
        end(one, worker)

        together(lambda: work_off(one), lambda: work_off(other), lambda: work_off(other))

        work_off(one)
        assert sorted(end(one, worker)) == sorted(job.id for job in jobs)
        assert folds(one, jobs)


def test_a_locked_job_holds_up_nobody_else_and_is_looked_at_again(one: SqlStore, server_url: str) -> None:
    """A person in psql, a backup, a forgotten transaction."""
    worker, first = a_worker(one), submitted(one)
    locked, free = submitted(one, workflow="w", after=(first.id,)), submitted(one, workflow="w", after=(first.id,))
    work_off(one)
    with psycopg.connect(server_url) as person:
        person.execute("SELECT 1 FROM unstuck_jobs WHERE uid = %s FOR UPDATE", (locked.id,))
        end(one, worker)
        for _ in range(3):
            one.ingest()
        assert (state(one, free), state(one, locked)) == (JobState.QUEUED, JobState.PENDING)

    work_off(one)

    assert state(one, locked) is JobState.QUEUED


def test_a_job_that_is_being_forgotten_cannot_be_waited_for(one: SqlStore, other: SqlStore, server_url: str) -> None:
    worker = a_worker(one)
    first = submitted(one)
    end(one, worker)
    with ThreadPoolExecutor(1) as thread:
        with under_way(other, lambda t: sweep.forget_ended(t, 0, 10)):
            late = thread.submit(one.submit, [a_job(after=(first.id,))])
            eventually(lambda: waits_for_a_lock(server_url))
        with pytest.raises(UnknownJob):
            late.result(15)


def test_a_job_that_a_submit_under_way_waits_for_is_not_forgotten(one: SqlStore, other: SqlStore) -> None:
    worker = a_worker(one)
    first = submitted(one)
    end(one, worker)
    job = a_job(after=(first.id,))
    numbers = other._name_ids.ensure(other._database, [job])
    with under_way(other, lambda t: submit.submit(t, [job], numbers, 86400.0)):
        assert one.forget_ended(0) == 0
    assert one.forget_ended(0) == 0

    work_off(one)

    assert state(one, job) is JobState.QUEUED


@in_tiers("size", 50, 150)
def test_dependants_of_a_moving_system_all_go_on(store: SqlStore, size: int) -> None:
    """Submits, claims, settles, cancels, looks and retention at once: in the end nobody waits."""
    workers = [a_worker(store, lease=1e6) for _ in range(2)]
    known: list[str] = [submitted(store).id]
    jobs: list[NewJob] = []
    over = threading.Event()

    def make() -> None:
        for number in range(size):
            after = tuple(known[-3:]) if number % 4 else (known[number % len(known)],)
            job = a_job(after=after, after_failure="run", target=f"t{number % 5}" if number % 3 == 0 else None)
            store.submit([job])
            jobs.append(job)
            known.append(job.id)

    def make_all() -> None:
        try:
            together(make, make)
        finally:
            over.set()

    def work(worker: int) -> None:
        while True:
            shares = [Share(front.route, 3) for front in store.open_routes()]
            found = store.claim(worker, chance.nonce(), shares) if shares else []
            settle_all(store, worker, [Report(attempt.ref, Returned("1")) for attempt in found])
            if over.is_set() and not found:
                return

    def look() -> None:
        while not over.is_set():
            store.ingest()
            store.forget_ended(3600)

    def cancel() -> None:
        while not over.is_set():
            try:
                store.cancel(TENANT, known[-1], by="ada")
            except IllegalMove:
                over.wait(0.01)

    together(make_all, look, look, cancel, *[lambda w=w: work(w.number) for w in workers])
    for _ in range(400):
        if not work_off(store) + len(end(store, workers[0])):
            break

    assert {state(store, job) for job in jobs} <= {JobState.COMPLETED, JobState.CANCELLED}
    assert folds(store, jobs)
