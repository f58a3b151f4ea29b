"""What an attack on order found: each was a defect once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.builders import (
    TENANT,
    a_job,
    a_worker,
    begin,
    boom,
    chance,
    claim_all,
    everything,
    record,
    settle,
    settle_all,
    submitted,
)
from tests.support.tables import counts_of_tables
from unstuck.model.errors import TooManyQueued, UnknownJob
from unstuck.model.job import ClaimedJob
from unstuck.model.settlement import ErrorInfo, Returned, Stuck
from unstuck.store.database import Transaction
from unstuck.store.order import targets
from unstuck.store.port import BY_CODE, EVERY, Limit, Pause, Report, Verdict
from unstuck.store.sql_store import SqlStore


def test_a60_a_held_job_does_not_take_the_room_of_a_shared_limit_from_others(store: SqlStore) -> None:
    worker, other = a_worker(store, lease=3600), a_worker(store, "bob", lease=3600)
    store.set_limit(Limit("queue", "default", EVERY, "ada", concurrency=2))
    held = submitted(store, workflow="aa")
    (attempt,) = claim_all(store, worker)
    begin(store, worker, attempt, lease=3600)
    store.settle(worker.number, [Report(attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "deaf")))])
    store.resume(TENANT, held.id, "ada")
    free = [submitted(store, workflow="bb").id for _ in range(3)]

    claimed = claim_all(store, other)

    assert [job.id for job in claimed] == free[:1], "one place is taken by the body that may still live"


def test_a46_a_submit_that_is_refused_makes_no_names(store: SqlStore, store_url: str) -> None:
    store.set_limit(Limit("tenant", "acme", "acme", "ada", max_queued=1))
    store.submit([a_job(tenant="acme")])
    before = counts_of_tables(store_url)
    with pytest.raises(TooManyQueued):
        store.submit([a_job(tenant="acme", workflow="new", target="ghost", retries=7)])
    with pytest.raises(UnknownJob):
        store.submit([a_job(tenant="nobody", target="ghost", after=("01a1e1da-0000-7000-8000-000000000000",))])
    assert counts_of_tables(store_url) == before
    assert store.target("nobody", "ghost") is None


def test_a_cap_of_ones_own_does_not_lift_the_limit_that_holds_for_all(store: SqlStore) -> None:
    worker = a_worker(store)
    store.set_limit(Limit("tenant", EVERY, EVERY, "ada", concurrency=1))
    store.set_limit(Limit("tenant", "acme", "acme", "ada", max_queued=100))
    store.submit([a_job(tenant="acme") for _ in range(3)])

    assert len(claim_all(store, worker)) == 1


# --- deadlocks: PostgreSQL's own -----------------------------------------------------------------------------------


def deadlocks(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_deploy_that_changes_limits_and_a_claim_from_them_do_not_wait_for_each_other(
    server: SqlStore, server_url: str
) -> None:
    worker = a_worker(server, lease=3600)
    for name in ("zz", "aa"):
        server.set_limit(Limit("workflow", name, EVERY, BY_CODE, concurrency=5))
        submitted(server, workflow=name)
    shares = everything(server)
    begun, go = threading.Event(), threading.Event()
    changed = {"kind": "workflow", "tenant": EVERY, "concurrency": 6, "rate": None, "per_us": None, "by": BY_CODE}

    def deploy(t: Transaction) -> None:
        t.run("set_code_limit", **changed, name="aa")
        begun.set()
        assert go.wait(20)
        t.run("set_code_limit", **changed, name="zz")

    with ThreadPoolExecutor(1) as threads:
        deploying = threads.submit(server._database.write, deploy)
        assert begun.wait(20)
        claimed = server.claim(worker.number, "c", shares)
        assert [job.workflow for job in claimed] == ["zz"]
        assert {route.workflow for route in server.routes(sorted(claimed.held))} == {"aa"}
        go.set()
        deploying.result(20)

    assert [job.workflow for job in server.claim(worker.number, "d", shares)] == ["aa"]
    assert deadlocks(server_url) == 0


def test_starts_and_settles_beside_one_that_is_held_wait_for_nobody(server: SqlStore, server_url: str) -> None:
    """Attempts lie on disk in the reverse order of their numbers, and there are enough of them for a hash join."""
    worker = a_worker(server, lease=3600)
    server.submit([a_job(priority=n) for n in range(300)])
    (share,) = everything(server, 10)
    attempts: list[ClaimedJob] = []
    while len(attempts) < 300:
        attempts += server.claim(worker.number, chance.nonce(), [share])
    young, middle, old = attempts[5], attempts[100], attempts[200]
    assert young.ref.job > middle.ref.job > old.ref.job
    with psycopg.connect(server_url, autocommit=True) as hand:
        hand.execute("VACUUM ANALYZE")
    started = {job.ref.job: server.now() for job in (young, middle, old)}
    held = [job.ref for job in attempts]
    reports = [Report(job.ref, Returned("1")) for job in (old, young)]
    with psycopg.connect(server_url) as person, ThreadPoolExecutor(2) as threads:
        person.execute("SELECT 1 FROM unstuck_running WHERE job = %s FOR UPDATE", (middle.ref.job,))
        beating = threads.submit(server.beat, worker.number, 3600.0, held, started=started)
        settling = threads.submit(settle_all, server, worker.number, reports)
        beat = beating.result(20)
        assert {answer.verdict for answer in settling.result(35)} == {Verdict.DONE}
        assert (beat.alive, middle.ref.job in beat.unstarted) == (True, True)
        person.rollback()
    rest = [attempt.ref for attempt in attempts if attempt not in (old, young)]
    assert server.beat(worker.number, 3600.0, rest, started=started).unstarted == frozenset()

    assert deadlocks(server_url) == 0


def test_a_pause_that_ends_while_a_retry_comes_due_waits_for_no_target(server: SqlStore, server_url: str) -> None:
    """A cancel holds the target and wants the timer: whoever ends pauses must not hold timers and want the target."""
    worker = a_worker(server, lease=3600)
    job = submitted(server, target="acme", backoff_base=60.0)
    server.ingest()
    (attempt,) = claim_all(server, worker)
    settle(server, worker, attempt.ref, boom())
    server.pause(Pause("target", "acme", TENANT, "ada", until_at=server.now()))
    with psycopg.connect(server_url, autocommit=True) as hand:
        hand.execute("UPDATE unstuck_test_clock SET offset_us = offset_us + 120000000")
    held, go = threading.Event(), threading.Event()

    def hold_the_target(t: Transaction) -> None:
        targets.lock_named(t, TENANT, "acme")
        held.set()
        assert go.wait(20)
        t.run("take_timer", kind="start", due_at=0, job=record_number)

    record_number = record(server, job.id).number
    with ThreadPoolExecutor(1) as threads:
        person = threads.submit(server._database.write, hold_the_target)
        assert held.wait(20)
        server.release_due()
        assert not person.done()
        go.set()
        person.result(20)

    server.release_due()
    server.ingest()
    assert [one.id for one in claim_all(server, worker)] == [job.id]
    assert deadlocks(server_url) == 0
