"""WorkDesk: who is woken when there is work, beside many who wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from tests.support.builders import a_worker, chance, submitted
from tests.support.eventually import eventually
from tests.support.threads import no_more_threads
from tests.support.troubles import execute
from unstuck.clock import MachineClock
from unstuck.model.job import WorkflowRecord
from unstuck.model.offers import claim_id
from unstuck.model.policy import Policy
from unstuck.server import work_desk
from unstuck.server.work_desk import Taker, WorkDesk
from unstuck.signing import NO_KEYS
from unstuck.store.port import Grant, Wanted
from unstuck.store.sql_store import SqlStore

CROWD = 200


@pytest.fixture
def desk(store: SqlStore) -> Iterator[WorkDesk]:
    store.register_workflows([WorkflowRecord("greet", "v1", "default", Policy(), {})])
    desk = WorkDesk(lambda: store, MachineClock(), lambda at_once: NO_KEYS)
    yield desk
    desk.close()


def crowd(store: SqlStore, desk: WorkDesk) -> tuple[list[Taker], list[Taker]]:
    """Many who wait; and those of them who were woken, of whom each claims what there is, and leaves if it got it."""
    number, woken = a_worker(store).number, list[Taker]()
    wanted = Wanted(1, ("greet",), ("default",), wait=30.0)
    takers = [Taker.of(number, claim_id(number, chance.nonce()), wanted, Grant()) for _ in range(CROWD)]

    def wake(taker: Taker) -> None:
        if taker not in woken and desk.find(taker).jobs:
            desk.leave(taker)
        woken.append(taker)

    for taker in takers:
        desk.join(taker, lambda taker=taker: wake(taker))  # type: ignore[misc]
    return takers, woken


def test_for_one_job_a_few_are_woken(store: SqlStore, desk: WorkDesk) -> None:
    takers, woken = crowd(store, desk)
    submitted(store)
    eventually(lambda: woken, timeout=20)
    eventually(lambda: not list(store.open_routes(0, 10)), timeout=20)
    assert woken[0] is takers[0]
    assert len(woken) < CROWD // 2


def test_where_there_is_work_for_all_all_are_woken(store: SqlStore, desk: WorkDesk) -> None:
    takers, woken = crowd(store, desk)
    for _ in takers:
        submitted(store)
    eventually(lambda: len(set(map(id, woken))) == len(takers), timeout=40)


def test_whoever_comes_is_not_told_by_a_look_from_before(store: SqlStore, desk: WorkDesk) -> None:
    """It would hear of nothing although there is something, and the hint that told so may be heard already."""
    number, wanted = a_worker(store).number, Wanted(4, ("greet",), ("default",), wait=0.0)

    def found() -> int:
        taker = Taker.of(number, claim_id(number, chance.nonce()), wanted, Grant())
        desk.join(taker, lambda: None)
        jobs = desk.find(taker).jobs
        desk.leave(taker)
        return len(jobs)

    for _ in range(20):
        assert found() == 0
        submitted(store)
        assert found() == 1


def test_whoever_comes_while_no_thread_can_be_started_keeps_nobody_from_being_woken(
    store: SqlStore, desk: WorkDesk
) -> None:
    number, wanted, woken = a_worker(store).number, Wanted(4, ("greet",), ("default",), wait=30.0), threading.Event()
    early, late = (Taker.of(number, claim_id(number, chance.nonce()), wanted, Grant()) for _ in range(2))
    with no_more_threads(), pytest.raises(RuntimeError, match="thread"):
        desk.join(early, lambda: None)
    desk.join(late, woken.set)
    assert not desk.find(late).jobs
    submitted(store)
    eventually(woken.is_set)


@pytest.mark.parametrize("number", [1, 0], ids=["low", "high"])
def test_thousands_of_keys_that_wait_do_not_hide_the_others(
    store: SqlStore, store_url: str, desk: WorkDesk, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a workflow without a key, whatever the number of its route, nor a key that comes after them all."""
    monkeypatch.setattr(work_desk, "_PAGES", 2)
    worker, wanted = a_worker(store).number, Wanted(4, ("greet",), ("default",), wait=0.0)
    if number:
        submitted(store, limit_key="first")
    execute(
        store_url,
        "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 5000)"
        " INSERT INTO unstuck_routes (tenant, queue, workflow, limit_key)"
        " SELECT 'default', 'default', 'theirs', 'k' || n FROM number",
    )
    theirs = "SELECT id, 0, -id FROM unstuck_routes WHERE workflow = 'theirs'"
    execute(store_url, f"INSERT INTO unstuck_ready (route, rank, job) {theirs}")
    plain, keyed = submitted(store), submitted(store, limit_key="last")

    def find() -> set[str]:
        taker = Taker.of(worker, claim_id(worker, chance.nonce()), wanted, Grant())
        return {job.id for job in desk.find(taker).jobs}

    assert plain.id in find()
    eventually(lambda: keyed.id in find(), timeout=20)
