"""An answer that nobody reads hides nothing, and its session ends by itself."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import psycopg
import pytest

from tests.bulkheads.conftest import TIMES, House, boot, only_postgres
from tests.support.eventually import eventually
from tests.support.troubles import CLAIMS, claims_waiting
from tests.support.workers import Worker
from unstuck.model.lifecycle import JobState

pytestmark = pytest.mark.timeout(120)

CLAIM_UNREAD = f"{CLAIMS} AND wait_event = 'ClientWrite'"
CLAIM_WORKS = f"{CLAIMS} AND wait_event IS DISTINCT FROM 'ClientWrite'"


@only_postgres
def test_a_worker_that_is_stopped_with_a_large_claim_hides_no_job(house: House) -> None:
    """Its own share is RUNNING, whether or not it reads the answer, and comes back when its lease ends; whatever it
    did not get starts elsewhere at once. (On SQLite nobody answers: a process that is stopped with the write lock is
    an outage.)"""
    large = [job for _ in range(10) for job in house.send("large", "large", "x" * 1_000_000, times=2)]
    frozen = frozen_in_its_claim(house, large[0])
    try:
        eventually(lambda: house.jobs.state(large[0]) is JobState.RUNNING, timeout=20)
        assert "frozen" in house.why(large[0]).verdict
        house.begin(1, name="healthy", concurrency=24)
        house.endure(boot())
        house.completes(*large, within=TIMES.lease + 15)
    finally:
        os.kill(frozen.process.pid, signal.SIGCONT)
    # By each of them: a claim that was rolled back with its session would have left no trace.
    assert house.jobs.kinds(large[0]).count("claimed") == 2


def frozen_in_its_claim(house: House, job: str) -> Worker:
    """A worker that is stopped while the database works on its claim of this job, which then goes on without it. A
    busy machine may take so long for this that the database gives the claim up: then with the next one."""
    worker: Worker | None = None
    with psycopg.connect(house.url, autocommit=True) as watcher:
        while True:
            with claims_waiting(house.url) as one_waits:
                worker = worker or house.start(name="frozen", concurrency=20)
                eventually(one_waits, timeout=30, every=0.005)
                os.kill(worker.process.pid, signal.SIGSTOP)
            eventually(lambda: not watcher.execute(CLAIM_WORKS).fetchall(), timeout=20)
            if house.jobs.state(job) is JobState.RUNNING or watcher.execute(CLAIM_UNREAD).fetchall():
                return worker
            os.kill(worker.process.pid, signal.SIGCONT)


@only_postgres
def test_a_session_of_ours_that_nobody_reads_ends_by_itself(house: House) -> None:
    house.begin()
    with closing(psycopg.connect(house.url, autocommit=True)) as deaf:
        pid = deaf.info.backend_pid
        deaf.pgconn.send_query(b"/* unstuck */ SELECT repeat('x', 1000) FROM generate_series(1, 100000)")

        with psycopg.connect(house.url, autocommit=True) as other:

            def is_gone() -> bool:
                found = other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone()
                return found is None

            house.endure(boot())
            eventually(is_gone, timeout=20)
