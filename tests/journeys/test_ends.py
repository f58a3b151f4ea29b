"""What follows ends, with real workers that die: once for each run and function."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.journeys.conftest import Jobs, Marks
from tests.support.eventually import eventually
from tests.support.workers import Worker
from tests.tiers import slow
from unstuck.model.lifecycle import JobState
from unstuck.store.port import JobFilter, Store

APP = "tests.journeys.ends_app:app"


def followed(store: Store, follower: str) -> list[Any]:
    return list(store.jobs("default", JobFilter(workflow=follower), 1000).jobs)


@slow
def test_every_end_is_followed_once_while_workers_are_killed(
    start: Callable[..., Worker], db: Store, marks: Marks
) -> None:
    """A KILL anywhere: between the end and its follower's job, or between that and the place in the feed."""
    from tests.journeys.ends_app import app

    dice = random.Random(7)
    crew = [start(f"w{place}", app=APP) for place in range(3)]
    eventually(lambda: len(db.followers()) == 3, timeout=60)
    work = app._code.drafts["work"].resolved()
    with_store = [
        _submitted(db, work.pack((str(marks.path), "raise" if n % 4 == 0 else "return"), {})) for n in range(60)
    ]
    for generation in range(6):
        time.sleep(dice.uniform(0.3, 1.2))
        place = dice.randrange(3)
        crew[place].kill_all()
        crew[place] = start(f"w{place}-{generation}", app=APP)
    ended = {job: _end(db, job) for job in with_store}
    wanted = Counter("cheer" if state is JobState.COMPLETED else "mourn" for state in ended.values())

    def is_whole() -> bool:
        # A follower whose own worker was killed is run again, or fails, and is followed by nothing.
        return all(len(followed(db, name)) >= count for name, count in wanted.items())

    eventually(is_whole, timeout=90)
    time.sleep(2.5)  # whoever would make one twice has had its turn by now
    for name in ("cheer", "mourn"):
        found = [json.loads(job.payload)["args"][0] for job in followed(db, name)]
        runs = Counter((each["id"], each["run"]) for each in found)
        assert set(runs.values()) == {1}, name
        assert {each["id"] for each in found} <= set(with_store), "what follows is followed by nothing"
        assert len(found) == wanted[name]


def _submitted(store: Store, payload: str) -> str:
    from tests.support.builders import a_job

    job = a_job(workflow="work", payload=payload, max_lost=0)
    store.submit([job])
    return job.id


def _end(store: Store, job: str) -> JobState:
    def is_over() -> bool:
        record = store.get("default", job)
        return record is not None and record.state.is_final

    eventually(is_over, timeout=90)
    record = store.get("default", job)
    assert record is not None
    return record.state


@slow
def test_a_stuck_job_calls_both_and_a_cancelled_one_none(
    start: Callable[..., Worker], db: Store, jobs: Jobs, tmp_path: Path
) -> None:
    from tests.journeys.ends_app import app

    start("w", app=APP)
    eventually(lambda: len(db.followers()) == 3, timeout=60)
    pack = app._code.drafts["work"].resolved().pack
    hangs = tmp_path / "hangs"
    hung = _submitted(db, pack((str(hangs), "hang"), {}))
    eventually(hangs.exists, timeout=40)  # cancelled before its handler has begun, it would be CANCELLED
    db.cancel("default", hung, by="ada")
    assert _end(db, hung) is JobState.FAILED, "it ignored its cancel"
    eventually(lambda: len(followed(db, "alarm")) == len(followed(db, "mourn")) == 1, timeout=40)
    [alarm] = followed(db, "alarm")
    done = jobs.until(alarm.id, JobState.COMPLETED, within=40)
    assert json.loads(str(done.result)) == f"{hung} ExecutionStuck"
    assert followed(db, "cheer") == []
