"""Workers at a distance that are killed in the millisecond of an offer: each job runs once to its end, at no cost
where nobody had said that it was heard of."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.journeys.conftest import Jobs, Marks
from tests.support.cut_link import CutLink
from tests.support.eventually import eventually
from tests.support.far_workers import NOWHERE, FarServer, far_server, worker_key
from tests.support.workers import COMPRESSED, Worker, workers
from tests.tiers import LONGER, torture
from unstuck.model.lifecycle import JobState
from unstuck.model.times import Times
from unstuck.store.port import Store

Start = Callable[..., Worker]
#: Within so many seconds an offer that nobody heard of has its next body.
SOON = 15.0
#: What is on its way when the worker dies, whether that still arrives, and how many seconds later it dies at most.
MOMENTS = [
    ("offer", False, 0.0),
    ("offer", True, 0.0),
    ("offer", True, 0.02),
    ("acknowledgement", False, 0.0),
    ("acknowledgement", True, 0.0),
    ("acknowledgement", True, 0.005),
    ("verdict", False, 0.0),
    ("verdict", True, 0.02),
]


@dataclass
class Victim:
    """A worker of one slot behind a link of its own, and when it dies."""

    moment: str
    arrives: bool
    after: float
    family: list[int] = field(default_factory=list)
    killed_at: float = 0.0
    #: Whether a server may have heard its acknowledgement.
    is_heard: bool = False
    dead: threading.Event = field(default_factory=threading.Event)

    def answering(self, piece: bytes) -> None:
        if b'"verdicts"' in piece:
            self._at("verdict")
        elif b'"nap"' in piece and b'"jobs"' in piece:
            self._at("offer")

    def asking(self, piece: bytes) -> None:
        if b"/worker/acknowledge " in piece:
            self.is_heard = self.moment != "acknowledgement" or self.arrives
            self._at("acknowledgement")

    def _at(self, moment: str) -> None:
        if moment != self.moment or self.dead.is_set():
            return
        if self.after:
            threading.Timer(self.after, self.die).start()
            return
        self.die()
        if not self.arrives:
            raise ConnectionAbortedError

    def die(self) -> None:
        """As a host does that loses its power: the supervisor first, which alone speaks to servers."""
        self.killed_at = time.clock_gettime(time.CLOCK_BOOTTIME)
        for pid in self.family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.dead.set()


@pytest.fixture
def times(kills: int) -> Times:
    """The defaults by hand: then the bound is the one that people see."""
    return COMPRESSED if kills < 100 else Times()


@pytest.fixture
def server(store_url: str, db: Store, times: Times, tmp_path: Path) -> Iterator[FarServer]:
    with far_server(store_url, tmp_path, times) as found:
        yield found


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("kills", "at_once"),
    [
        pytest.param(8, 8, marks=pytest.mark.tier("slow", on_sqlite="torture"), id="8-kills"),
        pytest.param(20 * LONGER, 20, marks=torture, id=f"{20 * LONGER}-kills"),
    ],
)
def test_a_worker_killed_in_the_millisecond_of_an_offer_costs_its_job_no_second_end(
    server: FarServer, db: Store, jobs: Jobs, tmp_path: Path, kills: int, at_once: int, times: Times
) -> None:
    dice, key, tally = random.Random(kills), worker_key(db), Tally()
    for first in range(0, kills, at_once):
        numbers = range(first, first + at_once)
        with workers(NOWHERE, tmp_path, UNSTUCK_DATABASE="") as start, ExitStack() as links:

            def begin(name: str, address: str, slots: int = 1) -> Worker:
                worker: Worker = start(name, server=address, key=key, times=times, concurrency=slots, processes=1)
                return worker

            victims: dict[str, Victim] = {}
            for number in numbers:
                moment, arrives, most = MOMENTS[number % len(MOMENTS)]
                victim = Victim(moment, arrives, most and max(0.0005, dice.random() * most))
                link = links.enter_context(CutLink(server.port, answering=victim.answering, asking=victim.asking))
                victim.family = [begin(f"victim-{number}", link.url).process.pid]
                victims[f"victim-{number}"] = victim
            for name, victim in victims.items():
                await_ready(db, name)
                victim.family += [child.pid for child in psutil.Process(*victim.family).children(recursive=True)]
            marks = [Marks(tmp_path / f"marks-{number}") for number in numbers]
            ids = [jobs.enqueue("nap", each.path, 0.3) for each in marks]
            for victim in victims.values():
                assert victim.dead.wait(60), f"no {victim.moment} came by"
            begin(f"heir-{first}", server.url, at_once)
            await_ready(db, f"heir-{first}")
            heir_at = time.clock_gettime(time.CLOCK_BOOTTIME)
            for job, of_job in zip(ids, marks, strict=True):
                jobs.until(job, JobState.COMPLETED, within=times.lease + 2 * times.sweep + 60)
                name = db.attempts("default", job)[0].worker
                assert name is not None
                tally.count(jobs, job, of_job, victims[name], heir_at)
    print(f"{kills} kills: {tally.heard} had acknowledged; the others' jobs began within {tally.slowest:.1f} s")
    assert 0 < tally.heard < kills
    assert tally.slowest < SOON


@dataclass
class Tally:
    heard: int = 0
    #: Seconds from the death of who had heard of nothing to the next body, once there was somebody for it.
    slowest: float = 0.0

    def count(self, jobs: Jobs, job: str, marks: Marks, victim: Victim, heir_at: float) -> None:
        record, begun = jobs.get(job), marks.of("begun")
        told = (victim, jobs.kinds(job), begun)
        assert len(marks.of("ended")) == 1, told
        assert record.losses + 1 >= len(begun), told
        if victim.is_heard:
            self.heard += 1
            assert record.losses <= 1, told
        else:
            assert (record.losses, len(begun)) == (0, 1), told
            self.slowest = max(self.slowest, begun[0][1] - max(victim.killed_at, heir_at))


def await_ready(db: Store, name: str) -> None:
    eventually(lambda: [w for w in db.workers() if w.name == name and w.serves and w.info.get("ready")], timeout=120)
