"""Streams of real servers that are killed and started again, and of real workers' jobs."""

from __future__ import annotations

import http.client
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import httpx2
import pytest

import unstuck
from tests.store import feed_crowd
from tests.store.feed_crowd import listed
from tests.store.test_feed_storm import expected, in_order_of_each_job, written_by_process
from tests.support.builders import submitted
from tests.support.eventually import eventually
from tests.support.sse import SseReader
from tests.support.tables import ask
from tests.support.warm import warm_process
from tests.support.workers import ROOT, workers
from tests.tiers import LONGER, slow, torture
from unstuck.store.sql_store import SqlStore

WRITERS = 4


class Servers:
    """Two, each at its own port, so that one that is started again has its old address."""

    def __init__(self, database: str, log: Path) -> None:
        self._database = database
        self._log = log
        self.ports = [_free_port(), _free_port()]
        self._running = [self._start(port) for port in self.ports]

    def await_all(self) -> None:
        for port in self.ports:
            eventually(partial(_is_there, port), timeout=60)

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def kill(self, number: int) -> None:
        """And start it again; the other one goes on meanwhile."""
        self._running[number].send_signal(signal.SIGKILL)
        self._running[number].wait(10)
        self._running[number] = self._start(self.ports[number])
        eventually(lambda: _is_there(self.ports[number]), timeout=60)

    def end(self) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            assert process.wait(30) == 0

    def _start(self, port: int) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "unstuck", "server", "--port", str(port), "--database", self._database]
        with self._log.open("ab") as out:
            return subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=out)


def _free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        port: int = chosen.getsockname()[1]
        return port


def _is_there(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx2.HTTPError:
        return False


@contextmanager
def two_servers(database: str, log: Path) -> Iterator[Servers]:
    servers = Servers(database, log)
    try:
        servers.await_all()
        yield servers
    finally:
        servers.end()


class Follower(threading.Thread):
    """Reads streams at whichever server answers; it is cut at random, away for a while, and goes on."""

    def __init__(self, urls: list[str], count: int, seed: int, away: float) -> None:
        super().__init__()
        self._urls, self._count, self._chance, self._away = urls, count, random.Random(seed), away
        self.seen: list[str] = []
        self.last = ""
        self.cuts = 0
        self.start()

    def run(self) -> None:
        while len(self.seen) < self._count:
            try:
                self._read()
            except (OSError, http.client.HTTPException):
                time.sleep(0.05)  # it was killed under us

    def _read(self) -> None:
        query = "" if self.last else "?after=start"
        url = self._chance.choice(self._urls)
        with SseReader(url, f"/api/v1/events{query}", last=self.last, patience=60) as reader:
            for event in islice(reader.events(), self._chance.randint(0, 300 + 100 * int(self._away))):
                self.seen.append(f"{event['job']}:{event['number']}")
                self.last = event["cursor"]
                if len(self.seen) == self._count:
                    return
        self.cuts += 1
        time.sleep(self._chance.choice([self._away, self._chance.uniform(0, self._away)]))


#: Events, for how many seconds they are written at least, and for how many a follower is away at most. By hand it is
#: the sentence of the issue: ten minutes, ten seconds.
SIZES = [
    pytest.param(3_000, 0.0, 1.0, marks=slow, id="a moment"),
    pytest.param(3_000 * LONGER, 60.0 * LONGER, 1.0 * LONGER, marks=torture, id=f"{LONGER} minutes"),
]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("events", "lasting", "away"), SIZES)
def test_a51_streams_go_on_over_servers_that_are_killed(
    store_url: str, store: SqlStore, tmp_path: Path, events: int, lasting: float, away: float
) -> None:
    """A51: two servers of one database, each killed and started again, followers that are away for a while."""
    is_file = store_url.startswith("sqlite")
    warm_process()  # before several threads ask for it at once
    jobs = [submitted(store).id for _ in range(WRITERS)]
    numbers = {uid: number for number, uid in ask(store_url, "SELECT id, uid FROM unstuck_jobs")}
    each = events // WRITERS
    write, delay = (written_by_process, 0.05) if is_file else (feed_crowd.write, 0.3)
    began = time.monotonic()
    with two_servers(store_url, tmp_path / "server.log") as servers, ThreadPoolExecutor(WRITERS) as pool:
        followers = [Follower(servers.urls, WRITERS * (each + 1), seed, away) for seed in range(3)]
        writing = [pool.submit(write, store_url, numbers[jobs[n]], each, n, delay, lasting) for n in range(WRITERS)]
        kills = 0
        while not all(future.done() for future in writing) or kills < 2:
            servers.kill(kills % 2)
            kills += 1
            time.sleep(lasting / 60)
        for future in writing:
            future.result()
        for follower in followers:
            follower.join(max(120, events / 100))
            assert not follower.is_alive()
    first = followers[0].seen
    assert sorted(first) == expected(jobs, each)
    assert in_order_of_each_job(first)
    assert all(follower.seen == first for follower in followers)
    assert listed(store_url) == first
    assert all(follower.cuts >= 2 for follower in followers)
    cuts = [follower.cuts for follower in followers]
    print(f"{len(first):,} events in {time.monotonic() - began:.0f} s, {kills} servers killed, cut {cuts} times")


def test_a52_who_is_told_of_an_end_by_a_stream_reads_all_of_it(
    store_url: str, store: SqlStore, tmp_path: Path
) -> None:
    """A52: state, result and output of a real worker's jobs, asked at another server than the one that told it."""
    with (
        two_servers(store_url, tmp_path / "server.log") as servers,
        workers(store_url, tmp_path, UNSTUCK_DATABASE=store_url, FAR_APP=store_url) as start,
        unstuck.Client(servers.urls[1]) as client,
    ):
        start(app="tests.client.far_app:app")
        eventually(lambda: len(client.workflows.list()) == 1)
        with SseReader(servers.urls[0], "/api/v1/events?after=now&kinds=completed") as reader:
            reader.begun()
            jobs = [client.jobs.enqueue("greet", args=[f"n{n}"]).id for n in range(40)]
            for event in islice(reader.events(), len(jobs)):
                seen = client.jobs.wait(event["job"], timeout=0)
                name = f"n{jobs.index(event['job'])}"
                assert (seen.state, seen.result) == ("COMPLETED", f"Hello {name}")
                assert [piece.text for piece in client.jobs.logs(event["job"])] == [f"hi {name}\n"]
        assert {client.jobs.wait(job, timeout=10).state for job in jobs} == {"COMPLETED"}
