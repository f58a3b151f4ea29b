"""An answer that nobody reads hides nothing, and its session ends by itself."""

from __future__ import annotations

import os
import signal
from contextlib import closing

import psycopg
import pytest

from tests.bulkheads.conftest import TIMES, House, boot, only_postgres
from tests.support.eventually import eventually

pytestmark = pytest.mark.timeout(120)


def test_a_worker_that_is_stopped_with_a_large_claim_hides_no_job(house: House) -> None:
    """Its own share is RUNNING until its lease ends; whatever it did not get starts elsewhere at once."""
    frozen = house.start(name="frozen", concurrency=20)
    eventually(lambda: frozen.record(house.store), timeout=30)
    jobs = house.send("large", "large", "x" * 1_000_000, times=20, delay=1.0)
    eventually(lambda: house.jobs.state(jobs[0]) != "QUEUED" or house.marks(), timeout=20)
    os.kill(frozen.process.pid, signal.SIGSTOP)
    try:
        house.begin(1, name="healthy")
        house.endure(boot())
        house.completes(*jobs, within=TIMES.lease + 15)
    finally:
        os.kill(frozen.process.pid, signal.SIGCONT)


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
