"""app.feed and job.logs: what a program follows, in both colours."""

from __future__ import annotations

import asyncio
from itertools import islice

import pytest

from tests.support.builders import TENANT, a_worker, claim_all, settle
from unstuck import App
from unstuck.app import Workflow
from unstuck.clock import wall
from unstuck.model.errors import InvalidInput, UnknownJob
from unstuck.model.job import ClaimedJob
from unstuck.model.logs import LogRecord, frame
from unstuck.model.settlement import Returned
from unstuck.store.port import AttemptOutput, Report


@pytest.fixture
def app(store_url: str) -> App:
    app = App(store_url, name="shop")
    app.workflow(greet)
    return app


def greet(name: str = "ada") -> str:
    return name


def attempt_of(app: App) -> tuple[int, ClaimedJob]:
    worker = a_worker(app._engine.store)
    [attempt] = claim_all(app._engine.store, worker)
    return worker.number, attempt


def enqueue(app: App) -> str:
    return Workflow(app._code, "greet", greet).enqueue().id


def test_a_program_goes_on_where_it_left_off(app: App) -> None:
    with app:
        jobs = [enqueue(app) for _ in range(4)]
        feed = app.events.follow(after="start")
        handled = [event.job for event in islice(feed, 2)]
        later = app.events.list(after=feed.cursor)
        assert handled + [event.job for event in later] == jobs
        assert [*app.events.list(after=later.next)] == []


def test_a_feed_from_now_on_shows_what_comes(app: App) -> None:
    with app:
        enqueue(app)
        feed = app.events.follow()
        job = enqueue(app)
        assert next(feed).job == job


def test_a_feed_can_be_of_one_job_of_some_kinds_or_of_every_tenant(app: App) -> None:
    with app:
        first, second = enqueue(app), enqueue(app)
        app.job(second).cancel()
        assert [e.kind for e in app.events.list(job=second)] == ["submitted", "cancelled"]
        assert [e.kind for e in app.events.list(job=first)] == ["submitted"]
        assert [e.job for e in app.events.list(kinds="cancelled")] == [second]
        assert len(list(app.events.list(kinds=["cancelled", "submitted"], workflow="greet"))) == 3
        assert [*app.events.list(tenant="acme")] == []
        assert len(list(app.events.list(tenant="*"))) == 3


def test_what_cannot_be_is_refused_at_once(app: App) -> None:
    with app:
        with pytest.raises(InvalidInput, match="there is no kind of event ex ploded; known: submitted"):
            app.events.follow(kinds="ex ploded")
        with pytest.raises(InvalidInput, match="kinds=7"):
            app.events.follow(kinds=7)  # type: ignore[arg-type]
        with pytest.raises(UnknownJob):
            app.events.follow(job="nobody")
        with pytest.raises(InvalidInput, match="not a cursor"):
            next(app.events.follow(after="yesterday"))


def test_coroutines_follow_without_holding_up_the_loop(app: App) -> None:
    async def story() -> tuple[list[str | None], list[str | None]]:
        feed = app.events.afollow()
        follower = asyncio.ensure_future(anext(feed))
        while feed.cursor is None:
            await asyncio.sleep(0.01)
        job = await app._engine.in_thread(enqueue, app)
        event = await asyncio.wait_for(follower, 10)
        rest = [e.job for e in await app.events.alist()]
        assert event.job == job
        return [event.job], rest

    with app:
        enqueue(app)
        seen, rest = asyncio.run(story())
    assert rest[-1:] == seen
    assert len(rest) == 2


def test_what_a_job_says_is_seen_as_it_comes_until_it_ends(app: App) -> None:
    """Its last words are written together with its end, so a follower has them all."""
    with app:
        job = app.job(enqueue(app))
        worker, attempt = attempt_of(app)
        app._engine.store.keep_output([AttemptOutput(attempt.ref, output="one\n", progress='{"done": 1}')])
        logs = job.logs(follow=True)
        assert next(logs).text == "one\n"
        assert job.progress() == {"done": 1}
        app._engine.store.keep_output([AttemptOutput(attempt.ref, output="two\n")])
        piece = next(logs)
        assert (piece.attempt, piece.worker, piece.text) == (1, "ada", "two\n")
        app._engine.store.settle(worker, [Report(attempt.ref, Returned('"ok"'), output="three\n")])
        assert [piece.text for piece in logs] == ["three\n"]
        assert [piece.text for piece in job.logs()] == ["one\ntwo\nthree\n"]
        assert [piece.text for piece in job.logs(attempt=1)] == ["one\ntwo\nthree\n"]
        for follow in (False, True):
            with pytest.raises(InvalidInput, match="has no attempt 2; it has 1"):
                list(job.logs(attempt=2, follow=follow))


def test_records_come_one_by_one_and_never_by_halves(app: App) -> None:
    with app:
        job = app.job(enqueue(app))
        worker, attempt = attempt_of(app)
        first, second = (LogRecord(wall(), level, "paid", {"order": 7}) for level in ("info", "error"))
        app._engine.store.keep_output([AttemptOutput(attempt.ref, output="half a line")])
        logs = job.logs(follow=True)
        assert next(logs).text == "half a line"
        framed = frame(second)
        app._engine.store.keep_output([AttemptOutput(attempt.ref, output=f"\n{frame(first)}{framed[:20]}")])
        assert [next(logs).at for _ in range(2)] == [None, first.at]
        app._engine.store.keep_output([AttemptOutput(attempt.ref, output=framed[20:] + "end")])
        piece = next(logs)
        assert (piece.attempt, piece.worker, piece.text) == (1, "ada", "ERROR paid order=7\n")
        assert (piece.at, piece.level, piece.message, piece.fields) == (second.at, "error", "paid", {"order": 7})
        app._engine.store.settle(worker, [Report(attempt.ref, Returned('"ok"'), output=f"{framed[:30]}")])
        assert [piece.text for piece in logs] == ["end", framed[1:30]]
        assert [piece.level for piece in job.logs()] == [None, "info", "error", None]
        assert job.output() == f"half a line\npaid order=7\nERROR paid order=7\nend{framed[1:30]}"


def test_records_are_chosen_by_their_level(app: App) -> None:
    async def story() -> list[str]:
        return [piece.text async for piece in app.job(job).alogs(level="WARN")]

    with app:
        job = enqueue(app)
        _, attempt = attempt_of(app)
        said = "".join(frame(LogRecord(wall(), level, "x")) for level in ("debug", "info", "warning", "critical"))
        app._engine.store.keep_output([AttemptOutput(attempt.ref, output=f"printed\n{said}")])
        assert [piece.text for piece in app.job(job).logs(level="warning")] == ["WARNING x\n", "CRITICAL x\n"]
        assert asyncio.run(story()) == ["WARNING x\n", "CRITICAL x\n"]
        assert len(list(app.job(job).logs(level="debug"))) == 4
        with pytest.raises(InvalidInput, match="there is no level 'loud'; known: debug, info, warning"):
            app.job(job).logs(level="loud")


def test_coroutines_follow_what_a_job_says(app: App) -> None:
    async def story() -> list[str]:
        return [piece.text async for piece in app.job(job).alogs(follow=True)]

    with app:
        job = enqueue(app)
        worker = a_worker(app._engine.store)
        [attempt] = claim_all(app._engine.store, worker)
        app._engine.store.keep_output([AttemptOutput(attempt.ref, output="one\n")])
        settle(app._engine.store, worker, attempt.ref)
        assert asyncio.run(story()) == ["one\n"]
        assert app._engine.lookup(TENANT).job(job).state == "COMPLETED"
