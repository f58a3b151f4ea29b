"""Targets at the same instant: forced interleavings on PostgreSQL, and races on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.store.test_races import together
from tests.store.test_targets import FAILED, ids, on_target, take
from tests.support.builders import TENANT, a_job, a_worker, claim_all, record, settle_all
from tests.tiers import in_tiers
from unstuck.model.errors import Conflict
from unstuck.model.job import ClaimedJob
from unstuck.model.lifecycle import JobState
from unstuck.model.settlement import ErrorInfo, NotStarted, Outcome, Returned, Stuck
from unstuck.store.database import Transaction
from unstuck.store.life import inbox, settle, submit
from unstuck.store.port import Pause, Report, Verdict
from unstuck.store.sql_store import SqlStore


@contextmanager
def uncommitted(store: SqlStore, work: Callable[[Transaction], object]) -> Iterator[Callable[[], object]]:
    """Everything of a transaction is done, but its commit waits until the answer is called."""
    done, go = threading.Event(), threading.Event()

    def slowly(t: Transaction) -> object:
        answer = work(t)
        done.set()
        assert go.wait(15)
        return answer

    with ThreadPoolExecutor(1) as thread:
        future: Future[object] = thread.submit(store._database.write, slowly)
        assert done.wait(15)

        def commit() -> object:
            go.set()
            return future.result(15)

        try:
            yield commit
        finally:
            go.set()


def closing(store: SqlStore, worker: int, job: ClaimedJob) -> Callable[[Transaction], object]:
    report = Report(job.ref, Returned("1"), duration_ms=1)
    return lambda t: settle.settle(t, store._tools, worker, "w", [report])


def test_an_ingest_that_meets_a_settle_puts_back_what_that_one_does_not_see(server: SqlStore) -> None:
    """The settle had promoted before the newcomer came: an entry that went with the ingest would be lost for ever."""
    worker = a_worker(server)
    on_target(server, 1)
    (first,) = take(server, worker)
    with uncommitted(server, closing(server, worker.number, first)) as commit:
        (second,) = on_target(server, 1)
        assert [server.ingest().woken for _ in range(3)] == [0, 0, 0]
        commit()
    assert server.ingest().woken == 1

    assert ids(claim_all(server, worker)) == [second]


def test_an_ingest_that_meets_a_settle_looks_once_more_a_moment_later(
    server: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = a_worker(server)
    on_target(server, 1)
    (first,) = take(server, worker)
    with uncommitted(server, closing(server, worker.number, first)) as commit:
        (second,) = on_target(server, 1)
        monkeypatch.setattr(inbox, "_pause", lambda _: commit())
        assert server.ingest().woken == 1

    assert ids(claim_all(server, worker)) == [second]


def test_a_settle_that_came_again_after_an_ingest_finds_what_came_meanwhile(
    server: SqlStore, server_url: str
) -> None:
    worker = a_worker(server)
    on_target(server, 1)
    (first,) = take(server, worker)
    on_target(server, 1)
    with (
        uncommitted(server, lambda t: inbox.ingest(t, server._tools, 0, 10)) as commit,
        ThreadPoolExecutor(1) as thread,
    ):
        report = Report(first.ref, Returned("1"), duration_ms=1)
        settling = thread.submit(settle_all, server, worker.number, [report])
        (busy,) = server.settle(worker.number, [report])
        assert busy.verdict is Verdict.BUSY
        (urgent,) = on_target(server, 1, priority=9)
        commit()
        settling.result(35)

    assert ids(claim_all(server, worker)) == [urgent]


def test_a_submit_that_commits_after_the_settle_is_not_forgotten(server: SqlStore) -> None:
    worker = a_worker(server)
    on_target(server, 1)
    (first,) = take(server, worker)
    late = a_job(target="acme")
    numbers = server._name_ids.ensure(server._database, [late])
    with uncommitted(server, lambda t: submit.submit(t, [late], numbers, 86400.0)) as commit:
        settle_all(server, worker.number, [Report(first.ref, Returned("1"), duration_ms=1)])
        assert take(server, worker) == []
        commit()

    assert ids(take(server, worker)) == [late.id]


def test_a_hold_that_is_lifted_while_a_settle_writes_it_is_not_overlooked(server: SqlStore) -> None:
    worker = a_worker(server)
    jobs = on_target(server, 2, on_failure="continue")
    (stuck,) = take(server, worker)
    report = Report(stuck.ref, _stuck(), duration_ms=1)
    with uncommitted(server, lambda t: settle.settle(t, server._tools, worker.number, "w", [report])) as commit:
        assert not server.lift_body_mark(worker.number, stuck.ref.job)
        commit()
    assert take(server, worker) == []

    assert server.lift_body_mark(worker.number, stuck.ref.job)
    assert ids(take(server, worker)) == [jobs[1]]


def _stuck() -> Stuck:
    return Stuck(ErrorInfo("ExecutionStuck", "did not respond"))


def test_eight_batches_over_the_same_targets_in_any_order_do_not_deadlock(store: SqlStore) -> None:
    """Ingests, settles and new targets at once, each over many targets."""
    workers = [a_worker(store, name=f"w{n}", lease=600) for n in range(4)]
    names = [f"t{n}" for n in range(200)]

    def enqueue(shift: int) -> None:
        order = names[shift:] + names[:shift]
        for turn in (order, order[::-1]):
            store.submit([a_job(target=name) for name in turn])
            store.ingest()

    def work(number: int) -> None:
        for _ in range(15):
            store.ingest()
            claimed = claim_all(store, workers[number])
            outcomes: list[Outcome] = [Returned("1"), NotStarted()]
            reports = [Report(job.ref, outcomes[n % 2], duration_ms=1) for n, job in enumerate(claimed)]
            settle_all(store, workers[number].number, reports[::-1])

    together(*[lambda n=n: enqueue(n * 50) for n in range(4)], *[lambda n=n: work(n) for n in range(4)])
    done = 0
    while claimed := take(store, workers[0]):
        settle_all(store, workers[0].number, [Report(job.ref, Returned("1"), duration_ms=1) for job in claimed])
        done += len(claimed)
    assert store.counts(TENANT)[JobState.COMPLETED] == 1600
    assert done > 0


@in_tiers("rounds", 20, 60)
def test_a_cancel_of_the_head_racing_its_claim_never_loses_the_turn(store: SqlStore, rounds: int) -> None:
    """A21 on a target: 60 rounds."""
    worker = a_worker(store, lease=600)
    for _ in range(rounds):
        jobs = on_target(store, 2)
        store.ingest()
        got: list[ClaimedJob] = []

        def claim(got: list[ClaimedJob] = got) -> None:
            got += claim_all(store, worker)

        def cancel(job: str = jobs[0]) -> None:
            store.cancel(TENANT, job, "me")

        together(claim, cancel)
        for job in got:
            settle_all(store, worker.number, [Report(job.ref, Returned("1"), duration_ms=1)])
        while claimed := take(store, worker):
            settle_all(store, worker.number, [Report(job.ref, Returned("1"), duration_ms=1) for job in claimed])
        assert [record(store, job).state for job in jobs] == [JobState.CANCELLED, JobState.COMPLETED]


@in_tiers("rounds", 20, 60)
def test_a_pause_and_a_yield_racing_a_claim_keep_one_head(store: SqlStore, rounds: int) -> None:
    worker = a_worker(store, lease=600)
    for turn in range(rounds):
        on_target(store, 1)
        store.ingest()
        on_target(store, 1, priority=5)
        got: list[ClaimedJob] = []

        def claim(got: list[ClaimedJob] = got) -> None:
            got += claim_all(store, worker)

        def meddle(turn: int = turn) -> None:
            if turn % 2:
                store.pause(Pause("target", "acme", TENANT, "me"))
            else:
                store.ingest()

        together(claim, meddle)
        store.unpause("target", "acme", TENANT)
        ran = len(got)
        for job in got:
            settle_all(store, worker.number, [Report(job.ref, Returned("1"), duration_ms=1)])
        while claimed := take(store, worker):
            assert len(claimed) == 1
            settle_all(store, worker.number, [Report(claimed[0].ref, Returned("1"), duration_ms=1)])
            ran += 1
        assert ran == 2


@in_tiers("rounds", 10, 30)
def test_a_skip_and_a_resume_of_the_same_blocker_at_once_leave_one_head(store: SqlStore, rounds: int) -> None:
    worker = a_worker(store, lease=600)
    for _ in range(rounds):
        jobs = on_target(store, 2)
        (first,) = take(store, worker)
        settle_all(store, worker.number, [Report(first.ref, FAILED, duration_ms=1)])

        def ask(verb: Callable[..., object], job: str = jobs[0]) -> None:
            try:
                verb(TENANT, job, "me")
            except Conflict:
                pass

        together(lambda: ask(store.skip), lambda: ask(store.resume))
        ran = []
        while claimed := take(store, worker):
            assert len(claimed) == 1
            ran.append(claimed[0].id)
            settle_all(store, worker.number, [Report(claimed[0].ref, Returned("1"), duration_ms=1)])
        assert sorted(ran) == sorted(jobs)
