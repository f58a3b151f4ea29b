"""Payloads and results as large as there may be, by a slow link: they arrive, and nothing else waits for them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import psutil
import pytest

from tests.journeys.conftest import Jobs
from tests.journeys.large_app import app
from tests.support.cut_link import CutLink
from tests.support.far_workers import NOWHERE, far_server, worker_key
from tests.support.workers import Worker, workers
from unstuck.model.lifecycle import FINAL, JobState
from unstuck.model.payload import MAX_PAYLOAD
from unstuck.model.times import Times
from unstuck.store.port import Store

TIMES = Times()
#: Such a payload alone takes as long as an offer stands for; such a result longer than any body may that is small.
BYTES_PER_SECOND = 256 << 10
LARGE_PAYLOAD = MAX_PAYLOAD * 9 // 10
PAYLOADS = 4
#: Characters; each is two bytes of JSON, and four in a body that carries this JSON as text.
LARGE_RESULT = (8 << 20) * 9 // 10 // 2
#: How much more memory a server may need for them.
MEMORY = 256 << 20


@pytest.mark.timeout(300)
def test_large_payloads_and_results_arrive_by_a_slow_link_and_nothing_waits_for_them(
    store_url: str, db: Store, tmp_path: Path
) -> None:
    jobs = Jobs(db, app)
    with (
        far_server(store_url, tmp_path, TIMES) as server,
        CutLink(server.port, bytes_per_second=BYTES_PER_SECOND) as link,
        workers(NOWHERE, tmp_path, UNSTUCK_DATABASE="") as start,
    ):

        def begin(name: str, queue: str, address: str) -> Worker:
            worker: Worker = start(
                name, server=address, key=worker_key(db), app="tests.journeys.large_app:app", queues=(queue,),
                times=TIMES, concurrency=PAYLOADS + 4,
            )  # fmt: skip
            return worker

        begin("far", "far", link.url)
        begin("near", "near", server.url)
        for name in ("small", "small_elsewhere"):
            jobs.until(jobs.enqueue(name), JobState.COMPLETED, within=60)
        process = psutil.Process(server.pid)
        before = most = process.memory_info().rss
        began = time.monotonic()

        takers = jobs.enqueue_many("takes", "x" * LARGE_PAYLOAD, times=PAYLOADS)
        large = [*takers, giver := jobs.enqueue("gives", LARGE_RESULT)]
        slowest: dict[str, float] = {}
        while any(jobs.state(job) not in FINAL for job in large):
            for name in ("small", "small_elsewhere"):
                asked = time.monotonic()
                jobs.until(jobs.enqueue(name), JobState.COMPLETED, within=60)
                slowest[name] = max(slowest.get(name, 0.0), time.monotonic() - asked)
            most = max(most, process.memory_info().rss)
            assert time.monotonic() - began < 150, [jobs.kinds(job) for job in large]
            time.sleep(0.2)
        took = time.monotonic() - began
    print(f"{took:.1f} s; the slowest small jobs took {slowest} s; the server {(most - before) >> 20} MiB more")
    for job in large:
        record = jobs.get(job)
        assert (record.state, record.losses) == (JobState.COMPLETED, 0), (record.error_type, record.error_message)
        assert [kind for kind in jobs.kinds(job) if kind in ("claimed", "completed")] == ["claimed", "completed"]
    assert [jobs.get(job).result for job in takers] == [str(LARGE_PAYLOAD)] * PAYLOADS
    assert json.loads(jobs.get(giver).result or "") == '"' * LARGE_RESULT
    assert max(slowest.values()) < TIMES.poll + 1.0, slowest
    assert most - before < MEMORY
