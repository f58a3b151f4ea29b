"""The handle of a job: what it asks it asks when it is called, in both colours, and answers with views."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator

import pytest

import unstuck
from tests.support.builders import boom, claim_all
from tests.support.parking import Stage
from unstuck import App, Job, JobState
from unstuck.model.settlement import Returned
from unstuck.store.port import AttemptOutput


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    with App(store_url, name="shop") as opened:
        yield opened


@pytest.fixture
def stage(app: App) -> Stage:
    return Stage(app._engine.store)


def test_every_question_has_a_twin_for_coroutines() -> None:
    asked = {name for name, _ in inspect.getmembers(Job, inspect.isfunction) if not name.startswith("_")}
    twins = {name for name in asked if inspect.iscoroutinefunction(getattr(Job, name))}
    twins |= {name for name in asked if inspect.isasyncgenfunction(getattr(Job, name))}
    plain = asked - twins
    assert len(plain) > 25
    assert {"await_" if name == "wait" else f"a{name}" for name in plain} == twins
    for name in plain:
        twin = getattr(Job, "await_" if name == "wait" else f"a{name}")
        assert inspect.signature(twin).parameters == inspect.signature(getattr(Job, name)).parameters, name


def test_a_handle_answers_with_views_in_both_colours(app: App, stage: Stage) -> None:
    attempt = stage.begun(retries=0)
    stage.step(attempt, "fetch", "[1]")
    stage.part(attempt, "page", "2", 1)
    child = stage.spawn(attempt, "crawl")
    job = app.job(attempt.id[:-2])
    app._engine.store.keep_output([AttemptOutput(attempt.ref, output="hello")])
    stage.end(attempt, boom())

    async def asked() -> list[object]:
        return [
            await job.aview(), await job.astate(), await job.aerror_type(), await job.aerror(), await job.aprogress(),
            await job.aoutput(), await job.ahistory(), await job.aattempts(), await job.asteps(),
            await job.apartials(), await job.awaits(), await job.ausage(), await job.achildren(), await job.aparent(),
            await job.awhy(), [piece async for piece in job.alogs()],
            [part async for part in job.afollow_partials()],
        ]  # fmt: skip

    found = asyncio.run(asked())
    expected: list[object] = [
        job.view(), job.state(), job.error_type(), job.error(), job.progress(), job.output(), job.history(),
        job.attempts(), job.steps(), job.partials(), job.waits(), job.usage(), job.children(), job.parent(),
        job.why(), [*job.logs()], [*job.follow_partials()],
    ]  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, unstuck.WhyAnswer):
            assert isinstance(other, unstuck.WhyAnswer)
            assert one.codes == other.codes == ("ended",)
        elif isinstance(one, unstuck.JobView):
            assert isinstance(other, unstuck.JobView)
            assert (one.id, one.state, one.events) == (other.id, other.state, other.events)
        else:
            assert one == other
    assert (job.state(), job.error_type(), job.error(), job.output()) == (
        JobState.FAILED,
        "ValueError",
        "boom",
        "hello",
    )
    assert [(part.name, part.value) for part in job.partials()] == [("page", 2)]
    assert [each.id for each in job.children()] == [child.id]
    assert app.job(child.id).parent() == job
    assert job.attempts()[0].attempt == 1
    assert [event.kind for event in job.history()][-1] == "failed"


def test_what_is_asked_of_a_job_leaves_what_was_seen(app: App, stage: Stage) -> None:
    @app.workflow(retries=0)
    def work() -> int:
        return 1

    async def story() -> None:
        job = await work.using(hold=True).aenqueue()
        assert job.seen is None
        assert (await job.arelease(by="kim")).state is JobState.QUEUED
        assert job.seen is not None
        assert job.seen.state is JobState.QUEUED
        assert (await job.ainterrupt("lunch")).state is JobState.PAUSED
        assert (await job.aresume(from_start=True)).state is JobState.QUEUED
        assert (await job.aretry()).state is JobState.QUEUED
        assert (await job.acancel("no")).state is JobState.CANCELLED
        again = await job.areplay()
        assert (again.is_new, again.seen.replay_of if again.seen else None) == (True, job.id)
        await again.ainterrupt()
        assert (await again.aresolve(5)).result == 5
        assert await again.aresult("1s") == 5
        assert (await again.await_(1)).state is JobState.COMPLETED
        with pytest.raises(unstuck.NotBlocking):
            await again.askip()
        with pytest.raises(unstuck.NoStack):
            await again.astack()
        with pytest.raises(unstuck.JobFailed) as failed:
            await job.aresult()
        assert failed.value.view == job.seen
        assert failed.value.view.request_reason is None

    asyncio.run(story())


def test_a_question_is_decided_in_both_colours(app: App, stage: Stage) -> None:
    first, second = app.job(stage.asks()), app.job(stage.asks())
    assert asyncio.run(first.aapprove(by="kim", comment="fine")).answer == "approved"
    decided = asyncio.run(second.areject(by="lee"))
    assert (decided.answer, decided.answered_by) == ("rejected", "lee")
    with pytest.raises(unstuck.NotWaiting):
        first.approve()


@pytest.mark.parametrize("timeout", ["50ms", 0.05])
def test_a_wait_takes_a_duration_as_people_write_it(app: App, timeout: float | str) -> None:
    @app.workflow
    def work() -> int:
        return 1

    job = work.enqueue()
    with pytest.raises(unstuck.StillRunning, match=r"still QUEUED after 0\.05 s"):
        job.wait(timeout)
    with pytest.raises(unstuck.StillRunning):
        asyncio.run(job.aresult(timeout))
    for wrong in ("soon", -1, True):
        with pytest.raises(unstuck.InvalidInput, match="timeout"):
            job.result(wrong)


def test_a_result_has_its_type_whoever_holds_the_job(app: App, stage: Stage) -> None:
    @app.workflow
    def pair() -> tuple[int, str]:
        return 1, "a"

    ident = pair.enqueue().id
    [attempt] = claim_all(app._engine.store, stage.worker)
    stage.end(attempt, Returned('[1, "a"]'))
    assert app.job(ident).result() == (1, "a")
    assert app.jobs.get(ident).result == [1, "a"]
