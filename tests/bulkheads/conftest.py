"""Bulkheads: two real workers, a stream of unrelated jobs, and one thing in trouble."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.bulkheads.ship import app as ship
from tests.journeys.conftest import Jobs
from tests.support.eventually import eventually
from tests.support.lines import whole_lines
from tests.support.troubles import raising
from tests.support.workers import COMPRESSED, ROOT, Worker, workers
from unstuck.assembly.store import open_store
from unstuck.chance import SystemChance
from unstuck.model.job import NewJob
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import encode
from unstuck.model.times import Times
from unstuck.model.why import Why
from unstuck.observe.why import why
from unstuck.store.port import Store

#: Times of the workers: those of the other journeys, with a poll and a sweep of a second.
TIMES = replace(COMPRESSED, poll=1.0, sweep=1.0)
#: No job that has nothing to do with the trouble starts later than this.
SOON = TIMES.poll + 1.0
#: How long a trouble lasts: longer than any wait for a lock, a store call or a retry would hide.
TROUBLE = 5.0
#: Once the trouble is over, all is well within a sweep, and what is left then needs a claim and a settle.
WELL_WITHIN = TIMES.sweep + TIMES.poll + 3.0

only_postgres = pytest.mark.parametrize("store_url", ["postgres"], indirect=True)


def boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Stream:
    """Ten jobs a second that have nothing to do with anything, and when each of them began."""

    EVERY = 0.1

    def __init__(self, jobs: Jobs, path: Path) -> None:
        self._jobs = jobs
        self._path = path
        self._sent: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stream", daemon=True)

    def _run(self) -> None:
        number = 0
        while not self._over.wait(self.EVERY):
            number += 1
            self._jobs.enqueue("tick", str(self._path), number)
            self._sent[str(number)] = boot()

    def start(self) -> None:
        self._thread.start()
        eventually(lambda: len(self.begun()) >= 3, timeout=30)

    def stop(self) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(10)

    def begun(self) -> dict[str, float]:
        return {word: float(at) for word, at in (line.split() for line in whole_lines(self._path))}

    def waits(self, since: float) -> list[float]:
        """How long each job of the stream that was sent after this instant waited or still waits for its start."""
        begun, now = self.begun(), boot()
        return [begun.get(number, now) - at for number, at in dict(self._sent).items() if at >= since]

    def worst(self, since: float) -> float:
        waits = self.waits(since)
        assert len(waits) >= 10, f"the stream itself stood still: {len(waits)} jobs were sent"
        return max(waits)


class House:
    """What a test of this room has at hand."""

    def __init__(self, url: str, store: Store, start: Callable[..., Worker], folder: Path) -> None:
        self.url = url
        self.store = store
        self.jobs = Jobs(store, ship)
        self.path = str(folder / "marks")
        self.folder = folder
        self._start = start
        self.stream = Stream(self.jobs, folder / "stream")
        self.workers: list[Worker] = []

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgres")

    def start(self, **options: Any) -> Worker:
        worker = self._start(**{"app": "tests.bulkheads.ship:app", "times": TIMES, **options})
        self.workers.append(worker)
        return worker

    def begin(self, count: int = 2, **options: Any) -> None:
        """So many workers, all of which take jobs, and the stream."""
        for _ in range(count):
            self.start(**options)
        eventually(self._all_ready, timeout=30)
        self.stream.start()

    def _all_ready(self) -> bool:
        return len([worker for worker in self.store.workers() if worker.serves]) >= len(self.workers)

    def marks(self) -> list[str]:
        return [line.split()[0] for line in whole_lines(Path(self.path))]

    # --- jobs ---------------------------------------------------------------------------------------------------
    def send(self, workflow: str, *args: object, times: int = 1, **options: Any) -> list[str]:
        """So many of these jobs; options are those of NewJob."""
        handler, chance = ship._registry.handler(workflow), SystemChance()
        payload = encode({"args": [self.path, *args], "kwargs": {}}, "arguments")
        place = {"tenant": "default", "queue": handler.queue, "workflow": workflow, "policy": handler.policy}
        new = [NewJob(id=chance.job_id(), payload=payload, **{**place, **options}) for _ in range(times)]
        return [stored.id for stored in self.store.submit(new)]

    def send_one(self, workflow: str, *args: object, **options: Any) -> str:
        return self.send(workflow, *args, **options)[0]

    def running(self, word: str, **options: Any) -> tuple[str, Path]:
        """A job whose handler has begun, and the file that ends it."""
        end = self.folder / f"end-{word}"
        job = self.send_one("until_told", word, str(end), **options)
        eventually(lambda: word in self.marks(), timeout=20)
        return job, end

    def completes(self, *jobs: str, within: float = WELL_WITHIN) -> None:
        until = boot() + within
        for job in jobs:
            self.jobs.until(job, JobState.COMPLETED, within=max(0.1, until - boot()))

    def starts(self, word: str, times: int, within: float) -> None:
        """So many jobs with this word have begun by then."""
        eventually(lambda: self.marks().count(word) >= times, timeout=within)

    # --- trouble ------------------------------------------------------------------------------------------------
    @contextmanager
    def held(self, sql: str, *values: Any) -> Iterator[int]:
        """A session of somebody else that holds what this statement locks; its pid."""
        with psycopg.connect(self.url, application_name="somebody") as other:
            assert other.execute(sql, values).fetchall(), f"nothing to hold: {sql}"
            yield other.info.backend_pid
            other.rollback()

    def raising(self, table: str, when: str, on: str = "INSERT") -> AbstractContextManager[None]:
        """A row of this table that can not be written as long as this lasts."""
        return raising(self.url, table, when, on)

    def number(self, job: str) -> int:
        return self.jobs.get(job).number

    # --- what must hold -----------------------------------------------------------------------------------------
    def endure(self, since: float) -> None:
        """The trouble lasts, and the stream does not notice it."""
        remaining = since + TROUBLE - boot()
        if remaining > 0:
            threading.Event().wait(remaining)
        assert self.stream.worst(since) <= SOON

    def why(self, job: str) -> Why:
        return why(self.store, "default", job, TIMES)

    def health(self) -> dict[str, Any]:
        """What a person gets who asks at this moment."""
        done = subprocess.run(
            [sys.executable, "-m", "unstuck", "health", "--json", "--database", self.url],
            capture_output=True,
            timeout=30,
            check=False,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"},
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def complaints(self) -> str:
        """All that `health` does not find well, as one text."""
        return "\n".join(f"{c['name']}: {c['detail']}" for c in self.health()["checks"] if not c["ok"])


@pytest.fixture
def house(store_url: str, tmp_path: Path) -> Iterator[House]:
    store = open_store(store_url, Times())
    with workers(store_url, tmp_path, UNSTUCK_DATABASE=store_url) as start:
        built = House(store_url, store, start, tmp_path)
        yield built
        built.stream.stop()
    store.close()
