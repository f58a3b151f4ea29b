"""Targets with several real workers: one body at a time, blocked, resumed, resolved, paused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

import unstuck
from tests.journeys import lines
from tests.support.eventually import eventually
from tests.support.lines import whole_lines
from tests.support.workers import Worker
from tests.tiers import commit_on_sqlite
from unstuck.intake.submit import Options
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Pause

Start = Callable[..., Worker]
APP = "tests.journeys.lines:app"


class Diary:
    """What the bodies wrote down: (repo, job, begun, ended)."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def lines(self, word: str) -> list[tuple[str, str, float]]:
        found = [line.split() for line in whole_lines(Path(self.path))]
        return [(repo, job, float(at)) for said, repo, job, _, at in found if said == word]

    def order(self, repo: str) -> list[str]:
        return [job for where, job, _ in self.lines("begun") if where == repo]


@pytest.fixture
def diary(tmp_path: Path) -> Diary:
    return Diary(tmp_path / "diary")


@pytest.fixture
def app(store_url: str) -> Iterator[unstuck.App]:
    """The program that enqueues: another process's view of the same workflows."""
    client = unstuck.App(store_url, name="client")
    for draft in lines.app._code.drafts.values():
        client._code.drafts[draft.name] = draft
    yield client
    client.close()


def enqueue(app: unstuck.App, workflow: str, *args: object, **options: object) -> unstuck.Job[object]:
    (job,) = app._code.prepared(workflow, Options().with_(**options))([(args, {})])
    return job


@pytest.mark.timeout(120)
def test_a38_ten_jobs_on_one_target_and_ten_workers_never_run_two_at_once(
    start: Start, app: unstuck.App, diary: Diary
) -> None:
    """By priority, then age; other targets run beside it."""
    for _ in range(4):
        start(app=APP, concurrency=3)
    low = [enqueue(app, "build", diary.path, "acme") for _ in range(5)]
    # In one transaction: the first of them may run as soon as it is there.
    call: tuple[tuple[object, ...], dict[str, object]] = ((diary.path, "acme"), {})
    high = list(app._code.prepared("build", Options().with_(priority=5))([call] * 5))
    others = [enqueue(app, "build", diary.path, f"repo{n}") for n in range(20)]

    eventually(lambda: app.stats.get()["COMPLETED"] == 30, timeout=60)

    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    ends = {job: at for _, job, at in diary.lines("ended")}
    for repo, job, begun in diary.lines("begun"):
        spans[repo].append((begun, ends[job]))
    for repo, bodies in spans.items():
        for (_, end), (begin, _) in pairwise(sorted(bodies)):
            assert begin >= end, f"two bodies at once on {repo}"
    ran = diary.order("acme")
    first = ran.index(high[0].id)
    assert ran[first : first + 5] == [job.id for job in high], "once they were there, the high ones went first"
    assert [job for job in ran if job in {j.id for j in low}] == [job.id for job in low]
    assert len(others) == len({repo for repo in spans if repo != "acme"})


@commit_on_sqlite
@pytest.mark.timeout(120)
def test_a39_a40_what_fails_blocks_its_target_until_it_is_resumed_and_then_runs_first(
    start: Start, app: unstuck.App, diary: Diary
) -> None:
    start(app=APP)
    start(app=APP)
    broken = enqueue(app, "breaks", diary.path, "acme")
    eventually(lambda: broken.state() is JobState.FAILED, timeout=20)
    later = [enqueue(app, "build", diary.path, "acme", priority=9), enqueue(app, "build", diary.path, "acme")]
    beside = enqueue(app, "build", diary.path, "other")
    eventually(lambda: beside.state() is JobState.COMPLETED, timeout=20)

    assert [job.state() for job in later] == [JobState.QUEUED] * 2
    (blocked,) = app._engine.store.targets("default", blocked=True)
    assert (blocked.name, blocked.blocked_by, blocked.waiting) == ("acme", broken.id, 2)

    broken.resume(by="me")

    eventually(lambda: [job.state() for job in (broken, *later)] == [JobState.COMPLETED] * 3, timeout=20)
    assert diary.order("acme") == [broken.id, broken.id, later[0].id, later[1].id]
    assert broken.error_type() is None


@pytest.mark.timeout(120)
def test_a39_a40_a_timeout_blocks_and_a_resolve_moves_the_target_within_a_poll(
    start: Start, app: unstuck.App, diary: Diary
) -> None:
    start(app=APP)
    slow = enqueue(app, "dawdles", diary.path, "acme")
    eventually(lambda: slow.state() is JobState.TIMEOUT, timeout=20)
    waiting = enqueue(app, "build", diary.path, "acme")
    assert app._engine.store.targets("default", blocked=True)

    slow.resolve("done by hand", by="me")

    eventually(lambda: waiting.state() is JobState.COMPLETED, timeout=10)
    assert slow.state() is JobState.COMPLETED
    assert app._engine.store.targets("default", blocked=True) == []


@pytest.mark.timeout(120)
def test_a4_a38_the_target_of_a_killed_worker_goes_on_with_the_same_job(
    start: Start, app: unstuck.App, diary: Diary
) -> None:
    victim = start(app=APP)
    first = enqueue(app, "build", diary.path, "acme", 30.0)
    second = enqueue(app, "build", diary.path, "acme")
    eventually(lambda: diary.order("acme") == [first.id], timeout=20)
    victim.kill_all()
    start(app=APP)

    eventually(lambda: diary.order("acme") == [first.id, first.id], timeout=30)
    first.cancel()
    eventually(lambda: second.state() is JobState.COMPLETED, timeout=20)
    assert first.state() is JobState.CANCELLED


@commit_on_sqlite
@pytest.mark.timeout(120)
def test_a41_a_paused_target_finishes_what_runs_and_starts_nothing_until_its_time(
    start: Start, app: unstuck.App, diary: Diary
) -> None:
    start(app=APP)
    running = enqueue(app, "build", diary.path, "acme", 2.0)
    waiting = enqueue(app, "build", diary.path, "acme")
    eventually(lambda: running.state() is JobState.RUNNING, timeout=20)
    store = app._engine.store
    until = store.now() + timedelta(seconds=4)
    store.pause(Pause("target", "acme", "default", "me", until_at=until, reason="vendor outage"))
    eventually(lambda: running.state() is JobState.COMPLETED, timeout=20)
    beside = enqueue(app, "build", diary.path, "other")
    eventually(lambda: beside.state() is JobState.COMPLETED, timeout=20)
    if store.now() < until:
        assert waiting.state() is JobState.QUEUED

    eventually(lambda: waiting.state() is JobState.COMPLETED, timeout=20)

    claimed = next(event.at for event in store.history("default", waiting.id) if event.kind == "claimed")
    assert claimed >= until
