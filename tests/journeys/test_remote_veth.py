"""A worker at a distance whose network is cut: two network namespaces with a veth between them, `unstuck server` in
one and `unstuck worker` in the other."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.journeys.conftest import Jobs, Marks
from tests.support.eventually import eventually
from tests.support.far_workers import worker_key
from tests.support.warm import PATHS
from tests.support.workers import ROOT
from tests.tiers import LONGER, torture
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

#: Known in these namespaces alone.
NEAR, FAR, PORT = "10.213.0.1", "10.213.0.2", 8420
SOON = 15.0
CANNOT = (
    "this test makes two network namespaces with a veth between them, and could not: it needs Linux, iproute2 and "
    "root (CAP_SYS_ADMIN, CAP_NET_ADMIN)"
)


@dataclass
class Veth:
    """`near` and `far` are namespaces; each has its end of the cable, by its own name."""

    near: str
    far: str

    def cut(self, side: str) -> None:
        _ip("-n", side, "link", "set", "cable", "down")

    def mend(self, side: str) -> None:
        _ip("-n", side, "link", "set", "cable", "up")

    def run(self, side: str, log: Path, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        with log.open("ab") as out:
            return subprocess.Popen(
                ["ip", "netns", "exec", side, sys.executable, "-m", "unstuck", *words],
                cwd=ROOT,
                env=os.environ | PATHS | variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


@pytest.fixture
def veth() -> Iterator[Veth]:
    made = Veth(f"unstuck-near-{os.getpid()}", f"unstuck-far-{os.getpid()}")
    try:
        try:
            for side in (made.near, made.far):
                _ip("netns", "add", side)
                _ip("-n", side, "link", "set", "lo", "up")
            _ip("-n", made.near, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", made.far)
            for side, address in ((made.near, NEAR), (made.far, FAR)):
                _ip("-n", side, "addr", "add", f"{address}/30", "dev", "cable")
                made.mend(side)
        except (OSError, subprocess.SubprocessError) as problem:
            said = getattr(problem, "stderr", b"") or str(problem).encode()
            pytest.fail(f"{CANNOT}: {said.decode(errors='replace').strip()}")
        yield made
    finally:
        for side in (made.near, made.far):
            with suppress(OSError, subprocess.SubprocessError):
                _ip("netns", "del", side)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "cuts",
    [
        pytest.param(6, marks=pytest.mark.tier("slow", on_postgres="torture"), id="6-cuts"),
        pytest.param(20 * LONGER, marks=torture, id=f"{20 * LONGER}-cuts"),
    ],
)
def test_a_cable_that_is_cut_again_and_again_costs_no_job_anything(
    veth: Veth, store_url: str, db: Store, jobs: Jobs, marks: Marks, tmp_path: Path, cuts: int
) -> None:
    """With the times that `--server` implies. Each job runs once, and soon after the cable is whole."""
    dice, slowest = random.Random(cuts), 0.0
    key = worker_key(db)
    server_log, worker_log = tmp_path / "server.log", tmp_path / "worker.log"
    server = veth.run(veth.near, server_log, "server", "--host", NEAR, "--port", str(PORT), "-d", store_url)
    eventually(lambda: "unstuck server on" in server_log.read_text(), timeout=30)
    worker = veth.run(
        veth.far,
        worker_log,
        *("worker", "tests.journeys.apps:app", "--server", f"http://{NEAR}:{PORT}", "--allow-http"),
        *("--concurrency", "4", "--processes", "1", "--name", "far"),
        UNSTUCK_KEY=key,
        UNSTUCK_DATABASE="",
    )
    try:
        eventually(lambda: [each for each in db.workers() if each.serves and each.info.get("ready")], timeout=60)
        ids: list[str] = []
        for number in range(1, cuts + 1):
            ids += jobs.enqueue_many("blink", marks.path, dice.choice([0.0, 0.05, 0.5, 2.0]), times=2)
            time.sleep(dice.random() * 0.2)
            side = dice.choice([veth.near, veth.far])
            veth.cut(side)
            ids += jobs.enqueue_many("blink", marks.path, 0.0, times=1)
            time.sleep(dice.choice([0.02, 0.2, 1.0, 3.0]))
            veth.mend(side)
            if number % 10 == 0 or number == cuts:
                began = time.monotonic()
                marks.wait_for("begun", len(ids), within=SOON)
                slowest = max(slowest, time.monotonic() - began)
        for job in ids:
            record = jobs.until(job, JobState.COMPLETED, within=60)
            assert (record.losses, record.failures, record.suspects) == (0, 0, 0), jobs.kinds(job)
        assert (len(marks.of("begun")), len(marks.of("ended"))) == (len(ids), len(ids))
        given_back = sum(jobs.kinds(job).count("given_back") for job in ids)
        print(
            f"{cuts} cuts, {len(ids)} jobs: each ran once; {given_back} offers went back; all had begun within "
            f"{slowest:.1f} s of the mend"
        )
    finally:
        for process in (worker, server):
            process.terminate()
        for process in (worker, server):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        print(f"----- server\n{server_log.read_text()[-3000:]}\n----- worker\n{worker_log.read_text()[-6000:]}")
