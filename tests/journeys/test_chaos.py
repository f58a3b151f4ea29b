"""Everything goes wrong at once, at random, for a while; afterwards every job has ended and every row is sound."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.journeys.chaos_app import app
from tests.journeys.conftest import Jobs
from tests.support import postgres
from tests.support.cut_link import CutLink
from tests.support.eventually import eventually
from tests.support.far_workers import NOWHERE, FarServer, worker_key
from tests.support.outage import database_away
from tests.support.postgres import PostgresServer
from tests.support.workers import Worker, workers
from tests.tiers import LONGER, slow, torture
from unstuck.assembly.store import open_store
from unstuck.model.errors import Conflict, StoreError
from unstuck.model.lifecycle import JobState, fold
from unstuck.model.times import Times
from unstuck.store.port import Store

APP = "tests.journeys.chaos_app:app"
WORKERS = 3
#: One in so many is of the kinds that cost a process.
RARE = 40
KINDS = ("quick", "quick_async", "nap", "often_fails", "in_steps", "waits")


@dataclass
class Place:
    url: str
    #: The database goes away and comes back.
    outage: Callable[[], None]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'unstuck.db'}"

        def locked() -> None:
            with database_away(url):
                time.sleep(1.0)

        yield Place(url, locked)
        return
    with postgres.own_server() as server:

        def restarted() -> None:
            server.stop(random.choice([signal.SIGINT, signal.SIGQUIT]))
            server.start()

        yield Place(PostgresServer(server.dsn).url("postgres"), restarted)


@pytest.fixture
def db(place: Place) -> Iterator[Store]:
    store = open_store(place.url, Times())
    store.migrate()
    yield store
    store.close()


@dataclass
class Road:
    """Between workers at a distance and the database: two servers under one address."""

    servers: list[FarServer]
    link: CutLink


@dataclass
class Chaos:
    place: Place
    jobs: Jobs
    start: Callable[..., Worker]
    dice: random.Random
    road: Road | None = None
    crew: list[Worker] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def rage(self, seconds: float) -> None:
        """Something every few tenths of a second, and always a crew that could go on."""
        until = time.monotonic() + seconds
        on_the_road = [self.kill_server, self.freeze_server, self.cut, self.stand_still] if self.road else []
        mischief = itertools.cycle(
            [self.kill_executor, self.freeze, self.kill, self.outage, self.kill_family, *on_the_road]
        )
        while time.monotonic() < until:
            self.fill_up()
            deed = next(mischief) if self.dice.random() < 0.15 else self.dice.choice([self.cancel, self.send])
            with suppress(StoreError, Conflict, psutil.NoSuchProcess, LookupError):
                deed()
                self.done[deed.__name__] = self.done.get(deed.__name__, 0) + 1
            self.over.wait(self.dice.random() * 0.3)
        self.fill_up()

    def fill_up(self) -> None:
        self.crew = [worker for worker in self.crew if worker.process.poll() is None]
        while len(self.crew) < WORKERS:
            self.crew.append(self.start(app=APP))

    def submit(self, count: int, seconds: float) -> None:
        """Spread over the time; a submit that failed was not acknowledged and is not counted."""
        dice = random.Random(count)
        while len(self.acknowledged) < count and not self.over.is_set():
            n = len(self.acknowledged)
            kind = dice.choice(("deaf", "dies")) if n % RARE == RARE - 1 else dice.choice(KINDS)
            with suppress(StoreError):
                self.acknowledged.append(self.jobs.enqueue(kind, n))
            self.over.wait(seconds / count / 2)

    # --- what goes wrong ----------------------------------------------------------------------------------------
    def kill(self) -> None:
        self.dice.choice(self.crew).kill()

    def kill_family(self) -> None:
        self.dice.choice(self.crew).kill_all()

    def kill_executor(self) -> None:
        families = [psutil.Process(worker.process.pid).children(recursive=True) for worker in self.crew]
        self.dice.choice([process for family in families for process in family]).kill()

    def freeze(self) -> None:
        """Sometimes past its lease."""
        self._freeze(self.dice.choice(self.crew).process.pid)

    def _freeze(self, pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        wake = threading.Timer(self.dice.choice([0.5, 2.0, 8.0]), self._wake, (pid,))
        wake.daemon = True
        wake.start()

    def _wake(self, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    def outage(self) -> None:
        self.place.outage()

    def kill_server(self) -> None:
        """The other one goes on."""
        assert self.road is not None
        server = self.dice.choice(self.road.servers)
        server.kill()
        server.start()

    def freeze_server(self) -> None:
        """It takes connections, and says nothing to anybody."""
        assert self.road is not None
        process = self.dice.choice(self.road.servers).process
        assert process is not None
        self._freeze(process.pid)

    def cut(self) -> None:
        assert self.road is not None
        self.road.link.cut()

    def stand_still(self) -> None:
        """Nothing passes, sometimes past a lease, and then all that was said meanwhile."""
        assert self.road is not None
        self.road.link.freeze()
        self.over.wait(self.dice.choice([0.5, 2.0, 8.0]))
        self.road.link.thaw()

    def cancel(self) -> None:
        self.jobs.store.cancel("default", self.dice.choice(self.acknowledged), "chaos")

    def send(self) -> None:
        self.jobs.store.signal("default", "go", '"here"', "chaos", job=self.dice.choice(self.acknowledged))


@contextmanager
def beside_the_database(place: Place, db: Store, folder: Path) -> Iterator[tuple[Callable[..., Worker], None]]:
    with workers(place.url, folder, UNSTUCK_DATABASE=place.url, UNSTUCK_FORK="on") as start:
        yield start, None


@contextmanager
def at_a_distance(place: Place, db: Store, folder: Path) -> Iterator[tuple[Callable[..., Worker], Road]]:
    with ExitStack() as ends:
        servers = [FarServer(place.url, folder / f"server-{number}.log") for number in (1, 2)]
        for server in servers:
            ends.callback(server.end)
            server.start()
        link = ends.enter_context(CutLink(*(server.port for server in servers)))
        start = ends.enter_context(workers(NOWHERE, folder, UNSTUCK_DATABASE="", UNSTUCK_FORK="on"))
        yield partial(start, server=link.url, key=worker_key(db)), Road(servers, link)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("seconds", "count", "crew"),
    [
        pytest.param(25, 400, beside_the_database, marks=slow, id="a-moment"),
        pytest.param(60 * LONGER, 500 * LONGER, beside_the_database, marks=torture, id="ten-minutes"),
        pytest.param(60 * LONGER, 500 * LONGER, at_a_distance, marks=torture, id="ten-minutes-two-servers"),
    ],
)
def test_a58_after_kills_freezes_outages_cancels_and_signals_every_job_has_ended(
    place: Place, db: Store, tmp_path: Path, seconds: float, count: int, crew: Callable[..., Any]
) -> None:
    """A13 holds afterwards, and no acknowledged job is missing."""
    db.set_setting("stuck_circuit_breaker_threshold", "1000", "chaos")
    with crew(place, db, tmp_path) as (start, road):
        chaos = Chaos(place, Jobs(db, app), start, random.Random(seconds), road)
        people = threading.Thread(target=chaos.submit, args=(count, seconds))
        people.start()
        try:
            chaos.rage(seconds)
            people.join(60 + seconds)
        finally:
            chaos.over.set()
        assert len(chaos.acknowledged) >= count
        assert len(chaos.done) == (11 if road else 7), f"not everything went wrong: {chaos.done}"
        eventually(lambda: _open_jobs(db) == {}, timeout=120 + seconds, every=0.5)

    ends: Counter[str] = Counter()
    for job in chaos.acknowledged:
        record = db.get("default", job)
        assert record is not None, f"{job} was acknowledged and is gone"
        events = db.history("default", job)
        assert [event.number for event in events] == list(range(1, len(events) + 1))
        assert fold(event.kind for event in events) is record.state
        assert (record.worker, record.lease_until) == (None, None)
        ends[str(record.state)] += 1
    print(
        f"{seconds} s of chaos, {len(chaos.acknowledged)} jobs, all ended: {dict(ends)}; what was done: {chaos.done}"
    )


def _open_jobs(store: Store) -> dict[JobState, int]:
    return {state: count for state, count in store.counts("default").items() if count and not state.is_final}
