"""job.partials and its followers, in both colours; on both databases."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import unstuck
from tests.support.builders import claim_all
from tests.support.parking import Stage
from unstuck.model.job import ClaimedJob
from unstuck.model.settlement import Stopped
from unstuck.observe import parts as observed
from unstuck.observe.lookup import Lookup
from unstuck.observe.parts import PartialsReader


@pytest.fixture
def app(store_url: str) -> Iterator[unstuck.App]:
    with unstuck.App(store_url, name="shop") as opened:
        yield opened


@pytest.fixture
def stage(app: unstuck.App) -> Stage:
    return Stage(app._engine.store)


def test_partials_are_the_latest_values_by_name(app: unstuck.App, stage: Stage) -> None:
    attempt = stage.begun()
    job = app.job(attempt.id)
    assert job.partials() == []
    for serial, (name, value) in enumerate([("a", "1"), ("b", '{"x":[1,null]}'), ("a", "2")], start=1):
        stage.part(attempt, name, value, serial)
    assert [(part.name, part.value) for part in job.partials()] == [("b", {"x": [1, None]}), ("a", 2)]
    with pytest.raises(unstuck.UnknownJob):
        app.job(attempt.id, tenant="acme").partials()


def test_a_follower_sees_what_is_there_and_what_comes_until_the_end(app: unstuck.App, stage: Stage) -> None:
    attempt = stage.begun()
    stage.part(attempt, "a", "1", 1)
    stage.part(attempt, "b", "[2]", 2)
    following = app.job(attempt.id).follow_partials()

    first = next(following)
    assert (first.name, first.value, first.number, first.run, first.attempt) == ("a", 1, 1, 1, 1)
    assert next(following).value == [2]
    stage.part(attempt, "a", "3", 3)
    assert (again := next(following)).name == "a"
    assert again.value == 3
    stage.part(attempt, "c", "4", 4)
    stage.end(attempt)

    assert [(part.name, part.value) for part in following] == [("c", 4)]


def test_a_coroutine_follows_too(app: unstuck.App, stage: Stage) -> None:
    attempt = stage.begun()
    stage.part(attempt, "a", "1", 1)

    async def follow() -> list[unstuck.PartialView]:
        found = []
        async for part in app.job(attempt.id).afollow_partials():
            found.append(part)
            if part.name == "a":
                await app._engine.in_thread(stage.part, attempt, "last", "2", 2)
                await app._engine.in_thread(stage.end, attempt)
        return found

    found = asyncio.run(asyncio.wait_for(follow(), 30))
    assert [(part.name, part.value) for part in found] == [("a", 1), ("last", 2)]


def test_a_follower_of_many_reads_them_in_pages_and_misses_none(
    app: unstuck.App, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed, "PAGE", 3)
    attempt = stage.begun()
    for serial in range(1, 8):
        stage.part(attempt, f"p{serial}", str(serial), serial)
    stage.end(attempt)
    assert [part.value for part in app.job(attempt.id).follow_partials()] == [1, 2, 3, 4, 5, 6, 7]


def test_what_is_given_right_before_the_end_is_always_seen(
    app: unstuck.App, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part and the end fall between the two questions of one look, whichever comes first."""
    attempt = stage.begun()
    following = app.job(attempt.id).follow_partials()
    is_over = False

    def ends_meanwhile(asked: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*words: Any) -> Any:
            nonlocal is_over
            answer = asked(*words)
            if not is_over:
                is_over = True
                stage.part(attempt, "last", "1", 1)
                stage.end(attempt)
            return answer

        return ask

    for question in ("job", "parts"):
        monkeypatch.setattr(Lookup, question, ends_meanwhile(getattr(Lookup, question)))
    assert [part.name for part in following] == ["last"]


def test_whoever_writes_at_the_end_is_seen_whatever_the_timing(app: unstuck.App, stage: Stage) -> None:
    for _ in range(10):
        attempt = stage.begun()
        writer = threading.Thread(target=_give_and_end, args=(stage, attempt))
        writer.start()
        seen = [part.value for part in app.job(attempt.id).follow_partials()]
        writer.join(20)
        assert seen == sorted(seen)
        assert seen[-1] == 5


def _give_and_end(stage: Stage, attempt: ClaimedJob) -> None:
    for serial in range(1, 6):
        stage.part(attempt, "a", str(serial), serial)
    stage.end(attempt)


def test_a_follower_goes_on_with_a_job_that_begins_anew_from_the_start(app: unstuck.App, stage: Stage) -> None:
    attempt = stage.begun()
    for serial, name in enumerate("abc", start=1):
        stage.part(attempt, name, "1", serial)
    reader = PartialsReader(app._engine.lookup(None), attempt.id)
    assert [part.number for part in reader.look()[0]] == [1, 2, 3]
    job = app.job(attempt.id)
    job.interrupt()
    stage.end(attempt, Stopped())
    job.resume(from_start=True)
    assert job.partials() == []
    (again,) = claim_all(app._engine.store, stage.worker)
    stage.part(again, "a", "2", 1)

    assert [(part.name, part.value) for part in reader.look()[0]] == [("a", "2")]
