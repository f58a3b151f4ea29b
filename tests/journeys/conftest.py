"""Journeys: whole stories with real worker processes on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import unstuck
from tests.journeys.apps import app as journeys_app
from tests.support.event_data import check_events, histories
from tests.support.eventually import eventually
from tests.support.far_workers import far_workers
from tests.support.lines import whole_lines
from tests.support.workers import Worker, workers
from unstuck.assembly.store import open_store
from unstuck.chance import SystemChance
from unstuck.model.job import JobRecord, NewJob
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import encode
from unstuck.model.times import Times
from unstuck.store.port import Store


@pytest.fixture
def db(store_url: str) -> Iterator[Store]:
    store = open_store(store_url, Times())
    yield store
    check_events(histories(store, most=50))
    store.close()


#: With forked executors and with subprocess executors, on every database.
both_modes = pytest.mark.parametrize("mode", ["fork", "spawn"])
#: Forked executors on every database, subprocess executors on one.
spawn_once = pytest.mark.parametrize(
    ("mode", "store_url"), [("fork", "sqlite"), ("fork", "postgres"), ("spawn", "sqlite")], indirect=["store_url"]
)
only_sqlite = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
#: Workers beside the database alone: the same story by a server would not be the same story.
only_here = pytest.mark.parametrize("road", ["database"], indirect=True)


@pytest.fixture
def mode() -> str:
    """How executors start; `both_modes` and `spawn_once` say otherwise."""
    return "fork"


@pytest.fixture(params=["database", "server"])
def road(request: pytest.FixtureRequest) -> str:
    """How a worker asks for jobs; by a server when tests/tiers.py says so."""
    return str(request.param)


@pytest.fixture
def start(store_url: str, db: Store, mode: str, road: str, tmp_path: Path) -> Iterator[Callable[..., Worker]]:
    """Starts workers of this mode, as people choose it: by the environment."""
    fork = "off" if mode == "spawn" else "on"
    near = workers(store_url, tmp_path, UNSTUCK_DATABASE=store_url, UNSTUCK_FORK=fork)
    far = far_workers(store_url, db, tmp_path, UNSTUCK_FORK=fork)
    with near if road == "database" else far as starter:
        yield starter
        modes = {worker.info["mode"] for worker in db.workers() if "mode" in worker.info}
        assert modes <= {mode}, modes


class Jobs:
    """Submits to an app, the journeys' own unless told otherwise, and reads back."""

    def __init__(self, store: Store, app: unstuck.App = journeys_app) -> None:
        self.store = store
        self.app = app

    def enqueue(self, workflow: str, *args: Any, times: int = 1, **policy: Any) -> str:
        return self.enqueue_many(workflow, *args, times=times, **policy)[0]

    def enqueue_many(self, workflow: str, *args: Any, times: int, **policy: Any) -> list[str]:
        return self.submit(workflow, *args, times=times, policy=policy)

    def submit(
        self, workflow: str, *args: Any, times: int = 1, policy: dict[str, Any] | None = None, **more: Any
    ) -> list[str]:
        """`more` is of the job itself: delay, start_at."""
        handler, chance = self.app._registry.handler(workflow), SystemChance()
        new = [
            NewJob(
                id=chance.job_id(),
                tenant="default",
                queue=handler.queue,
                workflow=workflow,
                payload=encode({"args": list(args), "kwargs": {}}, "arguments"),
                policy=handler.policy.with_(workflow, policy or {}),
                **more,
            )
            for _ in range(times)
        ]
        return [stored.id for stored in self.store.submit(new)]

    def get(self, job: str) -> JobRecord:
        record = self.store.get("default", job)
        assert record is not None
        return record

    def state(self, job: str) -> JobState:
        return self.get(job).state

    def until(self, job: str, *states: JobState, within: float = 15.0) -> JobRecord:
        def arrived() -> JobRecord:
            record = self.get(job)
            assert record.state in states, f"{record.state} {record.error_type}: {record.error_message}"
            return record

        return eventually(arrived, timeout=within)

    def kinds(self, job: str) -> list[str]:
        return [event.kind for event in self.store.history("default", job)]


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db)


class Marks:
    """What the bodies themselves wrote down: (pid, seconds)."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def of(self, word: str) -> list[tuple[int, float]]:
        lines = [line.split() for line in whole_lines(Path(self.path))]
        return [(int(pid), float(at)) for said, pid, at in lines if said == word]

    def wait_for(self, word: str, count: int = 1, within: float = 15.0) -> list[tuple[int, float]]:
        def arrived() -> list[tuple[int, float]]:
            found = self.of(word)
            assert len(found) >= count, f"{len(found)} of {count} {word}"
            return found

        return eventually(arrived, timeout=within)


@pytest.fixture
def marks(tmp_path: Path) -> Marks:
    return Marks(tmp_path / "marks")
