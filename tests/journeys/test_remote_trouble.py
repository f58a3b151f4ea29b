"""Workers at a distance when what lies between them and the database breaks: no job is lost, none runs twice, and
nobody pays for what nobody heard of."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.journeys.conftest import Jobs, Marks
from tests.journeys.test_clock import MOVED_WALL
from tests.support.cut_link import CutLink
from tests.support.eventually import eventually
from tests.support.far_workers import NOWHERE, FarServer, worker_key
from tests.support.workers import COMPRESSED, Worker, workers
from tests.tiers import LONGER, torture
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Store

#: With room for what goes wrong: whoever is cut off for four seconds keeps its lease.
PATIENT = replace(COMPRESSED, lease=15.0, beat=2.0, margin=3.0, store_call=1.5)

Start = Callable[..., Worker]
#: In the slow tier on one database each; what differs between them is not the road.
on_sqlite = pytest.mark.tier("slow", on_postgres="torture")
on_postgres = pytest.mark.tier("torture", on_postgres="slow")


class Servers:
    """Two of one database, and a link to both under one address."""

    def __init__(self, url: str, folder: Path) -> None:
        self.each = [FarServer(url, folder / f"server-{number}.log", PATIENT) for number in (1, 2)]
        for server in self.each:
            server.start()

    def link(self, **more: Any) -> CutLink:
        return CutLink(*(server.port for server in self.each), **more)

    def end(self) -> None:
        for server in self.each:
            server.end()
            print(f"----- {server.log.name}\n{server.log.read_text()[-3000:]}")


@pytest.fixture
def servers(store_url: str, db: Store, tmp_path: Path) -> Iterator[Servers]:
    both = Servers(store_url, tmp_path)
    yield both
    both.end()


@pytest.fixture
def begin(db: Store, servers: Servers, tmp_path: Path) -> Iterator[Start]:
    """Starts workers that ask at this address, and waits until they serve."""
    key = worker_key(db)
    with workers(NOWHERE, tmp_path, UNSTUCK_DATABASE="") as start:

        def begun(address: str, name: str = "far", **more: Any) -> Worker:
            worker: Worker = start(name, server=address, key=key, **{"times": PATIENT, **more})
            eventually(lambda: [w for w in db.workers() if w.name == name and w.serves], timeout=30)
            return worker

        yield begun


def ran_once(jobs: Jobs, marks: Marks, ids: list[str], within: float) -> None:
    until = time.monotonic() + within
    for job in ids:
        record = jobs.until(job, JobState.COMPLETED, within=max(1.0, until - time.monotonic()))
        assert (record.losses, record.failures, record.suspects) == (0, 0, 0), jobs.kinds(job)
    assert (len(marks.of("begun")), len(marks.of("ended"))) == (len(ids), len(ids))


@on_postgres
def test_two_servers_behind_one_address_that_are_deployed_and_killed_lose_nothing(
    begin: Start, servers: Servers, jobs: Jobs, marks: Marks
) -> None:
    with servers.link() as link:
        for name in ("one", "two"):
            begin(link.url, name)
        ids: list[str] = []
        for number in range(6):
            ids += jobs.enqueue_many("blink", marks.path, 0.2, times=12)
            marks.wait_for("begun", 12 * number + 1, within=30)
            server = servers.each[number % 2]
            if number % 3:
                server.kill()
            else:
                server.stop()
            link.cut()
            server.start()
        ran_once(jobs, marks, ids, within=60)


ROUNDS = [pytest.param(12, marks=on_sqlite), pytest.param(12 * LONGER, marks=torture)]


@pytest.mark.parametrize("rounds", ROUNDS)
def test_whatever_the_link_does_no_job_is_lost_and_none_has_two_bodies(
    begin: Start, servers: Servers, jobs: Jobs, marks: Marks, rounds: int
) -> None:
    """Cut, frozen and half open connections, and what is said lost in both directions, for less than a lease."""
    dice = random.Random(rounds)
    ids: list[str] = []
    with servers.link(linger=0.2) as link:

        def cut() -> None:
            link.cut()

        def freeze() -> None:
            link.freeze()
            time.sleep(dice.choice([0.3, 1.0, 4.0]))
            link.thaw()

        def half_open() -> None:
            link.abandon()

        def lose_answers() -> None:
            link.is_mute = True
            time.sleep(dice.choice([0.1, 1.5]))
            link.is_mute = False

        def lose_questions() -> None:
            link.is_deaf = True
            time.sleep(dice.choice([0.1, 1.5]))
            link.is_deaf = False

        deeds = (cut, freeze, half_open, lose_answers, lose_questions)
        for name in ("one", "two"):
            begin(link.url, name)
        for number in range(rounds):
            ids += jobs.enqueue_many("blink", marks.path, dice.choice([0.02, 0.3, 1.0]), times=4)
            time.sleep(dice.random() * 0.3)
            deeds[number % len(deeds)]()
        ran_once(jobs, marks, ids, within=90)


@on_sqlite
def test_a_result_that_came_in_an_outage_lands_when_it_is_over(
    begin: Start, servers: Servers, jobs: Jobs, marks: Marks
) -> None:
    """Nothing passes, then there is no server at all; its token still holds."""
    with servers.link() as link:
        begin(link.url)
        job = jobs.enqueue("nap", marks.path, 2.0)
        marks.wait_for("begun", within=30)
        link.freeze()
        for server in servers.each:
            server.kill()
        marks.wait_for("ended")
        link.cut()
        link.thaw()
        time.sleep(1.0)
        assert jobs.state(job) is JobState.RUNNING
        for server in servers.each:
            server.start()
        ran_once(jobs, marks, [job], within=30)
        assert jobs.get(job).result == '"rested"'


@on_postgres
def test_what_was_said_long_ago_and_arrives_now_takes_no_body_from_its_worker(
    begin: Start, servers: Servers, jobs: Jobs, marks: Marks
) -> None:
    """A beat stays under way until its worker gave it up and began something that the beat does not know."""
    is_armed, is_held, may_pass = threading.Event(), threading.Event(), threading.Event()

    def hold_a_beat(piece: bytes) -> None:
        if is_armed.is_set() and b"/worker/reconcile" in piece:
            is_armed.clear()
            is_held.set()
            may_pass.wait(60)

    with servers.link(asking=hold_a_beat, linger=2.0) as link:
        begin(link.url)
        is_armed.set()
        assert is_held.wait(10)
        # The first comes by a question that the beat knows of, the second by one that came after it.
        ids = [jobs.enqueue("nap", marks.path, 6.0)]
        marks.wait_for("begun", within=30)
        ids.append(jobs.enqueue("nap", marks.path, 4.0))
        marks.wait_for("begun", 2, within=30)
        may_pass.set()
        ran_once(jobs, marks, ids, within=30)
    for job in ids:
        assert jobs.kinds(job) == ["submitted", "claimed", "completed"]


@on_sqlite
def test_a7_a_worker_that_is_cut_off_past_its_lease_changes_nothing_and_begins_anew(
    begin: Start, servers: Servers, jobs: Jobs, marks: Marks
) -> None:
    """Its body ends before its lease does, and what it said meanwhile arrives when another has the job."""
    with servers.link() as link:
        first = begin(link.url, "first", times=COMPRESSED)
        job = jobs.enqueue("nap", marks.path, 8.0)
        ((body, _),) = marks.wait_for("begun", within=30)
        link.freeze()
        begin(servers.each[0].url, "second", times=COMPRESSED)
        eventually(lambda: not psutil.pid_exists(body), timeout=COMPRESSED.lease)
        marks.wait_for("begun", 2, within=20)
        link.thaw()
        record = jobs.until(job, JobState.COMPLETED, within=30)
        eventually(lambda: "begins_anew" in first.log.read_text(), timeout=20)
    assert (record.losses, len(marks.of("ended"))) == (1, 1)
    assert jobs.kinds(job) == ["submitted", "claimed", "lost", "claimed", "completed"]


@on_sqlite
def test_a10_hosts_whose_clocks_are_minutes_apart_lose_and_prolong_no_lease(
    begin: Start, servers: Servers, jobs: Jobs, marks: Marks, tmp_path: Path
) -> None:
    """One worker is five minutes ahead of the database and one behind; each runs a job two leases long."""
    times = replace(COMPRESSED, lease=5.0)
    with ExitStack():
        for name, seconds in (("ahead", 300), ("behind", -300)):
            (tmp_path / name).write_text(str(seconds))
            before = MOVED_WALL.format(path=str(tmp_path / name))
            begin(servers.each[0].url, name, times=times, before=before, concurrency=1)
    ids = jobs.enqueue_many("nap", marks.path, 10.0, times=2)
    marks.wait_for("begun", 2, within=30)

    def ended() -> bool:
        for job in ids:
            record, now = jobs.get(job), jobs.store.now()
            if record.state is JobState.RUNNING:
                assert record.lease_until is not None
                assert -0.5 < (record.lease_until - now).total_seconds() <= times.lease + 0.1
                assert record.started_at is None or abs((now - record.started_at).total_seconds()) < 20
        return all(jobs.state(job) is not JobState.RUNNING for job in ids)

    eventually(ended, timeout=40, every=0.1)
    ran_once(jobs, marks, ids, within=1)
    assert {attempt.worker for job in ids for attempt in jobs.store.attempts("default", job)} == {"ahead", "behind"}
