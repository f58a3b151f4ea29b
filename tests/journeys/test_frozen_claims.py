"""A worker that freezes in the middle of a claim of large jobs hides neither what it got nor what it left."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.journeys.conftest import Jobs, Marks
from tests.support.eventually import eventually
from tests.support.postgres import PostgresServer, server_on_tcp
from tests.support.troubles import claims_waiting
from tests.support.workers import Worker, workers
from unstuck.assembly.store import open_store
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times
from unstuck.observe.why import why

#: A store call long enough to be stopped in, and a lease as short as that allows.
TIMES = Times(
    lease=14.0, beat=4.0, margin=2.0, sweep=1.0, poll=0.2, grace=0.5, kill_grace=0.5, slack=0.5, offer_ack=1.0,
    store_call=3.0, drain=20.0, import_limit=20.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[PostgresServer, PostgresServer]]:
    with server_on_tcp() as both:
        yield both


@pytest.mark.parametrize("road", ["unix", "tcp"])
def test_a_worker_frozen_in_its_claim_keeps_nothing_from_the_others(
    servers: tuple[PostgresServer, PostgresServer], road: str, tmp_path: Path, marks: Marks
) -> None:
    near, far = servers
    url = near.create()
    if road == "tcp":
        url = far.url(str(conninfo_to_dict(url)["dbname"]))
    store = open_store(url, Times())
    jobs = Jobs(store)
    with workers(url, tmp_path, UNSTUCK_DATABASE=url) as start:
        ids = [jobs.enqueue("carry", marks.path, "x" * 1_000_000) for _ in range(20)]
        rest = [jobs.enqueue("carry", marks.path, f"{number}") for number in range(4)]
        frozen: Worker
        with claims_waiting(url) as one_waits:
            frozen = start("frozen", times=TIMES, concurrency=20)
            eventually(one_waits, timeout=30, every=0.005)
            os.kill(frozen.process.pid, signal.SIGSTOP)
        try:
            # What it asked for is its own, and everybody can see that; what it left begins elsewhere at once.
            eventually(lambda: {jobs.state(job) for job in ids} == {JobState.RUNNING}, timeout=5)
            assert "frozen" in why(store, "default", ids[0]).verdict
            start("second", times=TIMES)
            for job in rest:
                jobs.until(job, JobState.COMPLETED, within=10)
            # Its lease ends, and with that its claim on them.
            for job in ids:
                jobs.until(job, JobState.COMPLETED, within=TIMES.lease + 15)
        finally:
            os.kill(frozen.process.pid, signal.SIGCONT)
    assert len(marks.of("begun")) == 24
    store.close()
