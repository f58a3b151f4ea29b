"""Workers at a distance: a real server, and real workers that know nothing but its address and a key."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.journeys.conftest import Jobs, Marks
from tests.journeys.flow_app import app as flow_app
from tests.journeys.signed_app import strict
from tests.server.conftest import running
from tests.support.builders import a_job
from tests.support.cut_link import CutLink
from tests.support.eventually import eventually
from tests.support.signing import a_key, envelope_of
from tests.support.warm import PATHS
from tests.support.workers import ROOT, Worker, workers
from tests.tiers import commit_on_sqlite
from unstuck.assembly.server import ServerOptions
from unstuck.chance import SystemChance
from unstuck.client.address import ApiKey
from unstuck.client.transport import Transport
from unstuck.client.worker_port import RemoteWorkerPort
from unstuck.clock import MachineClock
from unstuck.model.keys import id_in
from unstuck.model.lifecycle import JobState
from unstuck.model.offers import claim_id, remote_incarnation
from unstuck.model.times import Times
from unstuck.model.waits import Answer
from unstuck.operations import keys
from unstuck.operations.table import Caller
from unstuck.signing import SigningKeys
from unstuck.store.port import NewWorker, Store, Wanted

#: All times divided, all inequalities kept, with room for a server in between.
TIMES = Times(
    lease=15.0,
    beat=2.0,
    margin=3.0,
    sweep=0.5,
    poll=0.2,
    cancel_poll=0.4,
    grace=0.5,
    kill_grace=0.5,
    drain=20.0,
    store_call=1.5,
    slack=0.5,
    offer_ack=1.0,
    import_limit=20.0,
)

Start = Callable[..., Worker]


@pytest.fixture
def key(db: Store) -> str:
    return keys.create(Caller(db, "ada"), "far host", role="worker").key


@pytest.fixture
def begin(store_url: str, key: str, tmp_path: Path, db: Store) -> Iterator[Start]:
    """Starts workers of the server at this address. They are told of no database, and stand where there is none."""
    with workers("sqlite:////nowhere/at/all.db", tmp_path, UNSTUCK_DATABASE="") as start:

        def begun(address: str, name: str = "far", *, is_served: bool = True, **more: Any) -> Worker:
            worker: Worker = start(name, server=address, key=key, times=TIMES, **more)
            if is_served:
                eventually(lambda: [w for w in db.workers() if w.name == name and w.serves], timeout=30)
            return worker

        yield begun


@pytest.fixture
def address(store_url: str, key: str) -> Iterator[str]:
    with running(ServerOptions(store_url, port=0, times=TIMES)) as site:
        yield site.url


@commit_on_sqlite
def test_a_job_runs_far_from_the_database_and_a_cancel_reaches_it(
    begin: Start, address: str, jobs: Jobs, marks: Marks, db: Store
) -> None:
    worker = begin(address)
    done = jobs.until(jobs.enqueue("add", 2, 3), JobState.COMPLETED, within=30)
    assert done.result == "5"
    assert [each.worker for each in db.attempts("default", done.id)] == ["far"]
    said = jobs.until(jobs.enqueue("says"), JobState.COMPLETED, within=30)
    (attempt,) = db.attempts("default", said.id)
    assert "hello from the handler" in (attempt.output or "")
    nap = jobs.enqueue("nap", marks.path, 60.0)
    marks.wait_for("begun")
    db.cancel("default", nap, "ada")
    jobs.until(nap, JobState.CANCELLED, within=30)
    (seen,) = db.workers()
    assert seen.info["remote"]["key"] == "far host"
    worker.terminate()
    assert worker.wait() == 0
    assert [w.state for w in db.workers()] == ["gone"]


def test_code_that_requires_signatures_starts_where_its_server_can_verify_them(
    begin: Start, address: str, db: Store, marks: Marks, store_url: str
) -> None:
    """A44: by a server without keys it is refused, and told what to do"""
    refused = begin(address, "refused", is_served=False, app="tests.journeys.signed_app:strict")
    assert refused.wait() != 0
    log = refused.log.read_text()
    assert f"a signature is required (workflow:strictly), and {address} has no signing key" in log
    assert [w.name for w in db.workers()] == []
    with running(ServerOptions(store_url, port=0, times=TIMES, signing=SigningKeys([a_key()]))) as site:
        begin(site.url, app="tests.journeys.signed_app:strict")
        handler = strict._registry.handler("strictly")
        plain, signed = (
            a_job(workflow="strictly", policy=handler.policy, payload=f'{{"args":["{marks.path}","{word}"]}}')
            for word in ("plain", "signed")
        )
        signed.signature = envelope_of(db, signed).text()
        db.submit([plain, signed])
        strictly = Jobs(db, strict)
        strictly.until(signed.id, JobState.COMPLETED, within=30)
        assert strictly.until(plain.id, JobState.DEAD, within=30).error_type == "SignatureInvalid"
    assert Path(marks.path).read_text() == "signed\n"


def test_steps_waits_and_children_go_the_same_road(begin: Start, address: str, db: Store, marks: Marks) -> None:
    begin(address, app="tests.journeys.flow_app:app")
    flow = Jobs(db, flow_app)
    job = flow.enqueue("release", marks.path)
    marks.wait_for("asking", within=30)
    flow.until(job, JobState.WAITING, within=30)
    db.decide("default", job, Answer.APPROVED, "ada")
    flow.until(job, JobState.COMPLETED, within=30)
    assert len(marks.of("build")) == 1
    assert len(marks.of("deploy")) == 1
    family = flow.until(flow.enqueue("parent", [1, 2]), JobState.COMPLETED, within=60)
    assert len(db.children_of("default", family.id)) == 2
    flow.until(flow.enqueue("parks_for", marks.path, 0.5), JobState.COMPLETED, within=60)


def test_an_offer_that_nobody_heard_of_runs_on_another_worker_uncharged(
    begin: Start, address: str, jobs: Jobs, marks: Marks, key: str, db: Store
) -> None:
    incarnation = remote_incarnation(id_in(key), SystemChance().nonce())
    port = RemoteWorkerPort(
        Transport(address, ApiKey(key, "the test")), address, incarnation, patience=10.0, clock=MachineClock()
    )
    new = NewWorker(incarnation, "deaf", "h", "b", "1", 7, 1, (), "v1", 60.0)
    number = port.register_worker(new).number
    job = jobs.enqueue("nap", marks.path, 0.0, max_retries=0)
    wanted = Wanted(4, workflows=("nap",), queues=("default",), wait=10.0)
    assert len(port.take(number, claim_id(number, SystemChance().nonce()), wanted)) == 1
    begin(address)
    jobs.until(job, JobState.COMPLETED, within=30)
    assert len(marks.of("begun")) == 1
    port.close()


def test_a_killed_worker_costs_its_jobs_one_loss_and_its_offers_nothing(
    begin: Start, address: str, jobs: Jobs, marks: Marks
) -> None:
    worker = begin(address, concurrency=1)
    held = jobs.enqueue("nap", marks.path, 60.0)
    marks.wait_for("begun", within=30)
    worker.kill_all()
    begin(address, "second")
    marks.wait_for("begun", 2, within=60)
    assert jobs.get(held).losses == 1


def test_a_server_that_restarts_loses_no_job_and_runs_none_twice(
    begin: Start, store_url: str, jobs: Jobs, marks: Marks, key: str
) -> None:
    """What ended while it was away lands when it is back."""
    with ExitStack() as first:
        site = first.enter_context(running(ServerOptions(store_url, port=0, times=TIMES)))
        port = int(site.url.rpartition(":")[2])
        begin(site.url)
        job = jobs.enqueue("nap", marks.path, 5.0)
        marks.wait_for("begun", within=30)
    marks.wait_for("ended", within=30)
    assert jobs.state(job) is JobState.RUNNING
    with running(ServerOptions(store_url, port=port, times=TIMES)):
        jobs.until(job, JobState.COMPLETED, within=60)
        after = jobs.enqueue("add", 1, 1)
        jobs.until(after, JobState.COMPLETED, within=60)
    assert len(marks.of("begun")) == 1


def test_a_server_that_is_killed_loses_no_job_and_runs_none_twice(
    begin: Start, store_url: str, jobs: Jobs, marks: Marks, tmp_path: Path, key: str
) -> None:
    with _server(store_url, 0, tmp_path / "port") as first:
        eventually((tmp_path / "port").exists, timeout=30)
        port = int((tmp_path / "port").read_text())
        begin(f"http://127.0.0.1:{port}")
        many = jobs.enqueue_many("blink", marks.path, 0.05, times=60)
        marks.wait_for("ended", 5, within=30)
        first.send_signal(signal.SIGKILL)
        first.wait()
    with _server(store_url, port, tmp_path / "again"):
        for job in many:
            jobs.until(job, JobState.COMPLETED, within=90)
    assert len(marks.of("begun")) == len(many)
    assert [jobs.get(job).losses for job in many] == [0] * len(many)


_SERVER = """
import json, sys
from pathlib import Path
from unstuck.assembly.server import ServerOptions, build_server
from unstuck.model.offers import claim_id, remote_incarnation
from unstuck.model.times import Times
from unstuck.model.waits import Answer
from unstuck.server.listening import address_of, listen
url, port, told, times = json.loads(sys.argv[1])
server = build_server(ServerOptions(url, times=Times(**times)))
listener = listen("127.0.0.1", port)
Path(told + ".part").write_text(address_of(listener).rpartition(":")[2])
Path(told + ".part").rename(told)
server.run(listener)
"""


class _server:
    """In a process of its own, so that it can be killed."""

    def __init__(self, url: str, port: int, told: Path) -> None:
        import json
        from dataclasses import asdict

        words = [sys.executable, "-c", _SERVER, json.dumps([url, port, str(told), asdict(TIMES)])]
        self._process = subprocess.Popen(words, cwd=ROOT, env=os.environ | PATHS)

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self._process

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(30)


def test_cut_connections_and_lost_answers_lose_no_job_and_run_none_twice(
    begin: Start, address: str, jobs: Jobs, marks: Marks
) -> None:
    with CutLink(int(address.rpartition(":")[2])) as link:
        begin(link.url)
        many = jobs.enqueue_many("blink", marks.path, 0.05, times=60)
        for number in range(1, 13):
            marks.wait_for("ended", 4 * number, within=60)
            link.is_mute = number % 2 == 0
            link.cut()
            time.sleep(0.3 if link.is_mute else 0.0)
            link.is_mute = False
        for job in many:
            jobs.until(job, JobState.COMPLETED, within=90)
    assert len(marks.of("begun")) == len(many)
    assert [jobs.get(job).losses for job in many] == [0] * len(many)


def test_a_worker_whose_key_is_revoked_stops_its_handlers_and_ends(
    begin: Start, address: str, jobs: Jobs, marks: Marks, db: Store, key: str
) -> None:
    worker = begin(address)
    jobs.enqueue("nap_async", marks.path, 60.0)
    ((pid, _),) = marks.wait_for("begun", within=30)
    keys.revoke(Caller(db, "ada"), id_in(key) or "")
    assert worker.wait(60) != 0
    eventually(lambda: not psutil.pid_exists(pid), timeout=30)
    assert "no longer works" in worker.log.read_text() or "Unauthenticated" in worker.log.read_text()


def test_it_needs_no_driver_of_any_database(begin: Start, address: str, jobs: Jobs) -> None:
    begin(address, before="import sys; sys.modules['psycopg'] = sys.modules['sqlite3'] = None\n")
    jobs.until(jobs.enqueue("add", 2, 3), JobState.COMPLETED, within=30)


@pytest.mark.parametrize("is_heard", [False, True], ids=["before-it-is-heard", "as-it-is-heard"])
def test_a_worker_killed_in_the_moment_of_an_offer_costs_the_job_no_second_body(
    begin: Start, address: str, jobs: Jobs, marks: Marks, is_heard: bool
) -> None:
    """Killed before it heard of the offer it costs nothing at all; a moment later it may cost a loss."""
    killed = threading.Event()

    def kill_at_an_offer(piece: bytes) -> None:
        if b'"nap"' in piece:
            if is_heard:
                threading.Timer(0.005, victim.kill_all).start()
            else:
                victim.kill_all()
            killed.set()

    with CutLink(int(address.rpartition(":")[2]), answering=kill_at_an_offer) as link:
        victim = begin(link.url, concurrency=1)
        job = jobs.enqueue("nap", marks.path, 0.5)
        assert killed.wait(30)
        begin(address, "second")
        done = jobs.until(job, JobState.COMPLETED, within=60)
    assert len(marks.of("ended")) == 1
    if not is_heard:
        assert (done.losses, len(marks.of("begun"))) == (0, 1)
