"""What running handlers say: whole batches in a handful of statements, each remark under its own fence."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.support.builders import TENANT, a_job, a_worker, claim_all, claimed, record, settle
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import JobState
from unstuck.store.database import Database
from unstuck.store.drivers.statements import Statements
from unstuck.store.port import AttemptOutput, Verdict
from unstuck.store.sql_store import SqlStore


class Counted(Statements):
    """Notes the name of every statement that is sent."""

    def __init__(self, dialect: str) -> None:
        super().__init__(dialect)
        self.sent: list[str] = []

    def __getitem__(self, name: str) -> str:
        self.sent.append(name)
        return super().__getitem__(name)


@pytest.fixture
def sent(database: Database) -> list[str]:
    counted = Counted(database.dialect)
    database._statements = counted  # type: ignore[attr-defined]
    return counted.sent


def during(sent: list[str], call: Callable[[], object]) -> list[str]:
    before = len(sent)
    call()
    return sent[before:]


def test_a_batch_of_remarks_is_a_few_statements_whatever_its_length(sent: list[str], store: SqlStore) -> None:
    """Each is a round trip: two per remark would never come through a network within the deadline."""
    store.submit([a_job() for _ in range(300)])
    attempts = claim_all(store, a_worker(store))
    remarks = [AttemptOutput(a.ref, output=f"{a.id}\n", progress=f"{a.ref.job}") for a in attempts]

    few = during(sent, lambda: store.keep_output(remarks))

    assert len(few) <= 3
    for attempt in (attempts[0], attempts[150], attempts[-1]):
        assert store.attempts(TENANT, attempt.id)[0].output == f"{attempt.id}\n"
        assert store.progress_of(TENANT, attempt.id) == f"{attempt.ref.job}"


def test_new_routes_and_policies_are_a_few_statements_whatever_their_number(sent: list[str], store: SqlStore) -> None:
    jobs = [a_job(tenant=f"tenant-{n}", timeout=float(1 + n % 50)) for n in range(500)]
    store.now()  # once in its life a process asks what time it is

    few = during(sent, lambda: store.submit(jobs))

    assert len(few) <= 13
    assert len(store.routes(range(1, 5000))) == 500
    assert record(store, jobs[77].id, "tenant-77").policy == jobs[77].policy
    again = SqlStore(store._database)
    twins = [a_job(tenant=job.tenant, timeout=job.policy.timeout) for job in jobs]
    assert all(answer.created for answer in again.submit(twins))
    assert len(store.routes(range(1, 5000))) == 500


def test_two_clients_that_bring_the_same_routes_at_once_agree(store: SqlStore) -> None:
    twins = [SqlStore(store._database) for _ in range(4)]
    start = threading.Barrier(4)
    problems: list[BaseException] = []

    def submit(client: SqlStore, turn: int) -> None:
        names = [f"t{n}" for n in range(200)]
        start.wait(10)
        try:
            client.submit([a_job(tenant=name, timeout=9.0) for name in (names if turn % 2 else names[::-1])])
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=submit, args=(client, turn)) for turn, client in enumerate(twins)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert problems == []
    assert len(store.routes(range(1, 5000))) == 200
    assert store.counts()[JobState.QUEUED] == 800


def test_remarks_are_answered_in_their_order_each_by_its_own_fence(store: SqlStore) -> None:
    worker = a_worker(store)
    one, two, over = (claimed(store, worker) for _ in range(3))
    settle(store, worker, over.ref)
    forged = AttemptRef(one.ref.job, one.ref.token, "another claim")

    answers = store.keep_output(
        [
            AttemptOutput(two.ref, progress="2"),
            AttemptOutput(over.ref, output="too late\n", progress="9"),
            AttemptOutput(forged, output="forged\n", progress="0"),
            AttemptOutput(one.ref, output="a\n"),
            AttemptOutput(one.ref, output="b\n", progress="1"),
            AttemptOutput(two.ref),
        ]
    )

    done, fenced = Verdict.DONE, Verdict.FENCED
    assert answers == [done, fenced, fenced, done, done, done]
    assert store.attempts(TENANT, one.id)[0].output == "a\nb\n"
    assert [store.progress_of(TENANT, a.id) for a in (one, two, over)] == ["1", "2", None]
    assert store.attempts(TENANT, over.id)[0].output is None
    assert store.keep_output([]) == []


@pytest.mark.parametrize("wrong", ['"\x00"', '"\ud800"'])
def test_a_progress_that_cannot_be_stored_is_left_out_and_its_neighbours_are_kept(
    store: SqlStore, wrong: str
) -> None:
    worker = a_worker(store)
    bad, good = claimed(store, worker), claimed(store, worker)
    store.keep_output([AttemptOutput(bad.ref, progress="0.1")])

    answers = store.keep_output(
        [AttemptOutput(bad.ref, output="said\n", progress=wrong), AttemptOutput(good.ref, progress="0.5")]
    )

    assert answers == [Verdict.DONE, Verdict.DONE]
    assert (store.progress_of(TENANT, bad.id), store.progress_of(TENANT, good.id)) == ("0.1", "0.5")
    assert store.attempts(TENANT, bad.id)[0].output == "said\n"
    assert store.keep_output([AttemptOutput(AttemptRef(bad.ref.job, 99, "x"), progress=wrong)]) == [Verdict.FENCED]
