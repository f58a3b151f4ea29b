"""An App on a server instead of a database: typed enqueue, handles, waits and streams; what needs a database says so.

A55: programs that cannot reach the database enqueue and ask all the same.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import unstuck
from tests.app.hand import Hand
from tests.client.code import deploy, with_code
from tests.client.rogue import Rogue, problem
from tests.support.eventually import eventually
from tests.support.parking import Stage
from unstuck.assembly.store import open_store
from unstuck.model.settlement import ErrorInfo, Raised, Returned
from unstuck.store.port import AttemptOutput
from unstuck.store.sql_store import SqlStore

DUE = datetime(2026, 1, 1, tzinfo=UTC)
Bill = unstuck.Workflow[[int, datetime], dict[str, datetime]]


@pytest.fixture
def app(url: str, here: unstuck.App) -> Iterator[unstuck.App]:
    with_code(here)
    deploy(here)
    with unstuck.App(url, name="far") as opened:
        yield opened


@pytest.fixture
def bill(app: unstuck.App) -> Bill:
    return with_code(app)


def test_a_call_becomes_a_job_and_its_result_has_its_type(bill: Bill, here: unstuck.App, store: SqlStore) -> None:
    job = bill.enqueue(5, DUE)

    assert job.is_new
    assert job.tenant == "default"
    whole = here.jobs.get(job.id)
    assert (whole.workflow, whole.queue, whole.policy.retries) == ("bill", "money", 0)
    assert whole.args == (5, "2026-01-01T00:00:00Z")
    assert job.state() is unstuck.JobState.QUEUED
    Hand(store).run_one(Returned('{"due": "2026-01-01T00:00:00Z"}'))
    assert job.result(timeout=5) == {"due": DUE}
    assert asyncio.run(job.aresult(timeout=5)) == {"due": DUE}
    assert job.wait(1).state is unstuck.JobState.COMPLETED
    assert job.progress() is None
    assert job.parent() is None
    assert [event.kind for event in job.history()][:1] == ["submitted"]
    assert len(job.attempts()) == 1
    assert job.why().job == job.id


def test_options_of_a_job_travel(bill: Bill, here: unstuck.App) -> None:
    first = bill.using(hold=True).enqueue(1, DUE)
    at = datetime(2030, 1, 1, tzinfo=UTC)
    job = bill.using(
        key="k", tenant="acme", queue="io", at=at, tags=["a", "b"], target="acme/{site}", limit_key=None, priority=7,
        retries=3, timeout="unlimited", budget={"tokens": 5},
    ).enqueue(1, DUE)  # fmt: skip
    whole = here.jobs.get(job.id, tenant="acme")
    assert (whole.key, whole.tenant, whole.queue, whole.available_at) == ("k", "acme", "io", at)
    assert (whole.tags, whole.target, whole.limit_key, whole.priority) == (("a", "b"), "acme/{site}", None, 7)
    assert (whole.policy.retries, whole.policy.timeout, dict(whole.policy.budget)) == (3, "unlimited", {"tokens": 5})
    again = bill.using(key="k", tenant="acme").enqueue(1, DUE)
    assert (again, again.is_new) == (job, False)
    chosen = "01900000-0000-7000-8000-00000000000a"
    assert bill.using(id=chosen, after=first, after_failure="run").enqueue(1, DUE).id == chosen
    assert here.jobs.get(chosen).waits_for[0].job == first.id


def test_what_is_wrong_with_a_call_is_told_before_anything_is_sent(bill: Bill) -> None:
    with Rogue(problem(500, "ServerError")) as rogue, unstuck.App(rogue.url) as app:
        far = with_code(app)
        with pytest.raises(unstuck.InvalidArguments):
            far.enqueue("many", DUE)  # type: ignore[arg-type]
        with pytest.raises(unstuck.InvalidArguments):
            far.enqueue_many([(1, DUE), (2,)])
        with pytest.raises(unstuck.InvalidInput):
            far.using(priority="high")  # type: ignore[arg-type]
    assert not rogue.heard


def test_many_calls_are_many_jobs(bill: Bill, here: unstuck.App) -> None:
    stored = bill.enqueue_many([(n, DUE) for n in range(1203)])

    assert len({job.id for job in stored}) == 1203
    assert len(here.jobs.list(limit=5000)) == 1203
    assert [here.jobs.get(stored[n].id).args[0] for n in (0, 500, 1202)] == [0, 500, 1202]
    assert bill.enqueue_many([]) == []


def test_calls_that_are_too_large_for_one_request_go_in_several(app: unstuck.App, here: unstuck.App) -> None:
    @app.workflow(name="note")
    def note(text: str) -> str:
        return text

    stored = note.enqueue_many(["é" * 300_000 for _ in range(7)])

    assert {job.id for job in stored} == {each.id for each in here.jobs.list()}


def test_one_refused_call_of_many_is_told_with_what_was_stored(bill: Bill, here: unstuck.App) -> None:
    here.queues.limit("money", max_queued=3)
    with pytest.raises(unstuck.TooManyQueued) as refused:
        bill.enqueue_many([(n, DUE) for n in range(5)])
    assert refused.value.retry_after > 0
    assert "3 of 5 jobs were stored" in " ".join(refused.value.__notes__)
    with pytest.raises(unstuck.TooManyQueued):
        bill.enqueue(1, DUE)


def test_the_twins_for_coroutines(bill: Bill, app: unstuck.App) -> None:
    async def story() -> None:
        job = await bill.aenqueue(5, DUE)
        assert await job.astate() is unstuck.JobState.QUEUED
        assert (await app.jobs.alist()).items[0].id == job.id
        assert (await job.acancel()).state is unstuck.JobState.CANCELLED
        with pytest.raises(unstuck.JobFailed) as failed:
            await job.aresult(timeout=5)
        assert failed.value.view.id == job.id

    asyncio.run(story())


def test_a_failed_job_and_one_that_does_not_end(
    bill: Bill, store: SqlStore, caplog: pytest.LogCaptureFixture, here: unstuck.App
) -> None:
    job = bill.enqueue(5, DUE)
    here.queues.pause("money")
    with caplog.at_level(logging.WARNING), pytest.raises(unstuck.StillRunning, match="QUEUED"):
        job.result(timeout=2.0)
    assert "paused" in caplog.text
    here.queues.unpause("money")
    Hand(store).run_one(Raised(ErrorInfo("ValueError", "no")))
    with pytest.raises(unstuck.JobFailed) as failed:
        job.result(timeout=5)
    assert (failed.value.error_type, failed.value.view.state) == ("ValueError", "FAILED")
    assert job.error_type() == "ValueError"
    assert job.replay().is_new


def test_a_job_by_its_name(app: unstuck.App, bill: Bill) -> None:
    job = bill.enqueue(5, DUE)
    assert app.job(job.id) == app.job(job.id[:33]) == job
    with pytest.raises(unstuck.UnknownJob):
        app.job("01900000-0000-7000-8000-000000000000")


# --- streams --------------------------------------------------------------------------------------------------------


def test_the_feed_is_followed_from_now_and_from_a_cursor(app: unstuck.App, bill: Bill) -> None:
    bill.enqueue(0, DUE)
    following = app.events.follow()
    seen: list[unstuck.FeedEventView] = []
    reader = threading.Thread(target=lambda: seen.extend(following))
    reader.start()
    eventually(lambda: following.cursor not in ("now", None))
    job = bill.enqueue(1, DUE)
    job.cancel()
    eventually(lambda: len(seen) == 2)
    following.close()
    reader.join(10)
    assert [(event.kind, event.job) for event in seen] == [("submitted", job.id), ("cancelled", job.id)]
    assert next(app.events.follow(after=seen[0].cursor)) == seen[1]
    assert next(app.events.follow(after="start", job=job.id)) == seen[0]


def test_news_are_published_and_followed(app: unstuck.App, bill: Bill) -> None:
    job = bill.enqueue(0, DUE)
    following = app.events.follow(after="start", topic="shop")
    told = app.events.publish("order.paid", {"n": [1]}, topic="shop", job=job.id, ttl="10m", id="7")
    assert (told.job, told.repeated, told.expires_at is None) == (job.id, False, False)
    assert app.events.publish("order.paid", {"n": [1]}, topic="shop", job=job.id, id="7").repeated
    event = next(following)
    assert (event.kind, event.data, event.topic, event.job) == ("order.paid", {"n": [1]}, "shop", job.id)
    assert (event.number, event.attempt, event.by is None) == (None, None, False)
    with pytest.raises(unstuck.InvalidInput, match="tells itself"):
        app.events.publish("completed")


def test_partial_results_are_followed_to_the_end(app: unstuck.App, store: SqlStore) -> None:
    stage = Stage(store)
    attempt = stage.begun()
    following = app.job(attempt.id).follow_partials()
    stage.part(attempt, "a", "1", 1)
    assert next(following).value == 1
    for serial in range(2, 230):
        stage.part(attempt, f"p{serial}", str(serial), serial)
    stage.end(attempt)
    assert [part.value for part in following] == [*range(2, 230)]
    assert following.cursor == "229"


def test_logs_are_followed_without_a_gap_and_without_a_repeat(
    app: unstuck.App, here: unstuck.App, bill: Bill, store: SqlStore
) -> None:
    hand = Hand(store)
    job = bill.using(retries=1, backoff_base=0).enqueue(1, DUE)
    following = app.jobs.follow_logs(job.id)
    [attempt] = hand.claim(1)

    def say(text: str) -> None:
        store.keep_output([AttemptOutput(attempt.ref, output=text)])

    say("one\n")
    assert next(following).text == "one\n"
    say("two\nthree\n")
    assert next(following).text == "two\nthree\n"
    hand.settle(attempt, Raised(ErrorInfo("ValueError", "no")), "four\n")
    assert next(following).text == "four\n"
    here.jobs.run_now(job.id)
    hand.run_one(Returned("null"), "five\n")
    rest = [*following]
    assert [(piece.text, piece.attempt) for piece in rest] == [("five\n", 2)]
    whole = "".join(piece.text for piece in app.job(job.id).logs())
    assert whole == "one\ntwo\nthree\nfour\nfive\n"
    assert [piece.text for piece in app.jobs.follow_logs(job.id, attempt=2)] == ["five\n"]
    with pytest.raises(unstuck.InvalidInput, match="no attempt 3"):
        next(app.jobs.follow_logs(job.id, attempt=3))


# --- what it does not have ------------------------------------------------------------------------------------------


def test_what_needs_the_database_says_so(app: unstuck.App, url: str) -> None:
    for ask in (app.asgi, lambda: app._engine.store, lambda: app._engine.caller()):
        with pytest.raises(unstuck.InvalidInput, match="needs the database itself"):
            ask()
    with pytest.raises(unstuck.InvalidInput, match="for a server"):
        unstuck.App("sqlite:///x.db", key="usk_a_b")
    assert app.config.database == url
    with pytest.raises(unstuck.InvalidSettings, match="a server's address, and this needs the database itself"):
        open_store(app.config.database, app.config.times)  # as a worker does


def test_a_tenant_of_the_app_goes_with_every_question(url: str, here: unstuck.App) -> None:
    with_code(here)
    deploy(here)
    with unstuck.App(url, tenant="acme") as app:
        job = with_code(app).enqueue(1, DUE)
        assert job.tenant == "acme"
        assert len(app.jobs.list()) == 1
        assert with_code(unstuck.App(url)).using(tenant="acme").enqueue(1, DUE).tenant == "acme"
        assert app.notifications.list().items == ()
    assert here.jobs.list().items == ()
    assert len(here.jobs.list(tenant="acme")) == 2


# --- AsyncClient ----------------------------------------------------------------------------------------------------


def test_an_async_client_asks_many_things_at_once_without_threads(app: unstuck.App, url: str) -> None:
    async def story() -> list[Any]:
        before = threading.active_count()
        async with unstuck.AsyncClient(url) as client:
            await asyncio.gather(*(client.jobs.enqueue("note", args=[str(n)]) for n in range(40)))
            assert threading.active_count() <= before + 9  # the server's own, in this process
            page = await client.jobs.list(limit=30)
            rest = await client.jobs.list(limit=30, after=page.next)
            seen = []
            async for event in client.events.follow(after="start"):
                seen.append(event.job or "")
                if len(seen) == 40:
                    break
            first = await client.jobs.wait(seen[0], timeout=0)
            assert first.state is unstuck.JobState.QUEUED
            with pytest.raises(unstuck.UnknownJob):
                await client.jobs.get("01900000-0000-7000-8000-000000000000")
            return [*page, *rest]

    assert len(asyncio.run(story())) == 40


def test_a_cancelled_coroutine_leaves_no_connection_behind(url: str) -> None:
    async def story() -> None:
        async with unstuck.AsyncClient(url) as client:
            for _ in range(5):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.001):
                        await client.jobs.wait("01900000-0000-7000-8000-000000000000", timeout=5)
            await client.stats.get()

    asyncio.run(story())
