"""Workers: who asks for those that live does not read the thousands that a crash loop left."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.conftest import StoreClock
from tests.support.builders import a_worker, claimed, settle, submitted
from tests.support.troubles import execute
from unstuck.model.job import WorkerRecord
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.observe.lookup import WORKERS_PAGE, Lookup, every_worker
from unstuck.store.sql_store import SqlStore

DAY = 86400.0


def names(found: list[WorkerRecord]) -> list[str]:
    return [worker.name for worker in found]


def crash_loop(store: SqlStore, url: str, count: int, state: str = "lost", ago: float = 7200.0) -> None:
    """So many that ended so long ago."""
    now = round(store.now().timestamp() * 1_000_000)
    ended = now - round(ago * 1_000_000)
    execute(
        url,
        "INSERT INTO unstuck_workers (incarnation, name, host, boot_id, pid_namespace, pid, pid_start, queues,"
        " code_version, state, started_at, beat_at, lease_until, ended_at)"
        f" WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
        f" SELECT 'gone-{state}-' || i, 'gone-' || i, 'h', 'boot-1', '4026531836', i, 1, '[]', 'v', '{state}',"
        f" {ended}, {ended}, {ended}, {ended} FROM n",
    )


def test_live_workers_are_those_whose_lease_holds(store: SqlStore, clock: StoreClock) -> None:
    leaves, dies = a_worker(store, "leaves"), a_worker(store, "dies", lease=10)
    drains = a_worker(store, "drains", lease=300)
    store.beat(drains.number, 300, [], state="draining")
    a_worker(store, "lives", lease=300, boot_id="another")
    store.unregister_worker(leaves.number)
    clock.advance(seconds=11)
    assert names(store.live_workers()) == ["drains", "lives"]
    assert names(store.live_workers(("boot-1", "4026531836"))) == ["drains"]
    assert dies.name in names(store.workers())


def test_those_that_ended_lately_are_told_and_the_others_by_pages(store: SqlStore, clock: StoreClock) -> None:
    for name in ("old", "drained"):
        a_worker(store, name, lease=10)
    store.beat(2, 10, [], state="draining")
    clock.advance(seconds=11)
    store.recover_lost(0)
    clock.advance(hours=2)
    a_worker(store, "lately", lease=10)
    a_worker(store, "lives", lease=1e6)
    clock.advance(seconds=11)
    store.recover_lost(0)

    assert names(store.workers(ended_within=3600)) == ["lately", "lives"]
    assert names(store.workers(ended_within=0)) == ["lives"]
    assert names(store.workers()) == ["old", "drained", "lately", "lives"]
    assert names(store.workers(1, 2)) == ["drained", "lately"]
    assert [w.state for w in store.workers()] == ["lost", "draining", "lost", "active"], "it keeps its last word"


def test_a_crash_loop_is_listed_page_by_page(store: SqlStore, store_url: str) -> None:
    crash_loop(store, store_url, 2 * WORKERS_PAGE + 7)
    a_worker(store, "lives")
    assert len(list(every_worker(store, None))) == 2 * WORKERS_PAGE + 8
    assert names(Lookup(store).workers()) == ["lives"]


def test_recovery_finds_what_is_held_by_a_worker_that_was_marked_before(store: SqlStore, clock: StoreClock) -> None:
    """More attempts than a batch: the rest must not be forgotten with the mark."""
    worker = a_worker(store, lease=10)
    for _ in range(3):
        claimed(store, worker)
    clock.advance(seconds=11)
    assert [len(store.recover_lost(0, batch=1)) for _ in range(4)] == [1, 1, 1, 0]


@pytest.mark.parametrize("state", ["lost", "gone"])
def test_workers_that_ended_go_after_a_day_and_never_while_something_names_them(
    store: SqlStore, store_url: str, clock: StoreClock, state: str
) -> None:
    holder = a_worker(store, "holder", lease=10)
    stuck = claimed(store, holder)
    settle(store, holder, stuck.ref, Stuck(ErrorInfo("ExecutionStuck", "x")))
    runner = a_worker(store, "runner", lease=10)
    claimed(store, runner)
    drained = a_worker(store, "drained", lease=10)
    store.beat(drained.number, 10, [], state="draining")
    crash_loop(store, store_url, 20, state, ago=0)
    a_worker(store, "lives", lease=1e9)
    clock.advance(seconds=DAY - 60)
    assert store.forget_workers(DAY) == 0
    clock.advance(seconds=120)

    assert [store.forget_workers(DAY, batch=8) for _ in range(4)] == [8, 8, 5, 0]

    assert names(store.workers()) == ["holder", "runner", "lives"]
    store.recover_lost(0)
    store.lift_body_marks(0)
    clock.advance(seconds=DAY + 60)
    assert store.forget_workers(DAY) == 2
    assert names(store.workers()) == ["lives"]


def test_why_knows_when_a_worker_was_last_seen_among_thousands(store: SqlStore, store_url: str) -> None:
    crash_loop(store, store_url, 3000, ago=5 * 3600)
    crash_loop(store, store_url, 1, "gone", ago=600)
    job = submitted(store)
    seen = store.now() - timedelta(seconds=600)
    facts = store.gate_facts("default", job.id)
    assert facts is not None
    assert abs(max(worker.beat_at for worker in facts.workers) - seen) < timedelta(seconds=30)
    assert len(facts.workers) <= 100
