"""What applications hold, on both databases: enqueue, look, ask, wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import unstuck
from tests.app.hand import Hand
from tests.conftest import StoreClock
from unstuck import App, JobState
from unstuck.app import Call
from unstuck.executor.context import running
from unstuck.model.settlement import ErrorInfo, Raised, Returned


@dataclass
class Receipt:
    order: int
    paid_at: datetime


PAID_AT = datetime(2026, 11, 15, tzinfo=UTC)


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    with App(store_url, name="shop") as app:
        yield app


@pytest.fixture
def pay(app: App) -> unstuck.Workflow[[int], Receipt]:
    @app.workflow(retries=1)
    def pay(ctx: unstuck.Context, order: int) -> Receipt:
        return Receipt(order, PAID_AT)

    return pay


@dataclass
class _Attempt:
    context: unstuck.Context
    is_here: bool = True

    def write(self, text: str, /) -> None: ...
    def add(self, framed: str, /) -> None: ...


Pay = unstuck.Workflow[[int], Receipt]


def test_an_enqueued_job_is_stored_with_everything_that_was_said(app: App, pay: Pay) -> None:
    job = pay.using(
        priority=5, key="k-1", queue="money", delay=60, timeout=30, max_retries=7, tags=["a", "b"]
    ).enqueue(42)

    record = app.jobs.get(job.id)
    assert (record.id, record.workflow, record.tenant, record.queue) == (job.id, "pay", "default", "money")
    assert (record.priority, record.key, record.args, record.kwargs) == (5, "k-1", (42,), {})
    assert (record.policy.timeout, record.policy.retries, record.policy.grace) == (30, 7, 10.0)
    assert record.available_at - record.created_at == timedelta(seconds=60)
    assert job.is_new
    assert job.state() is JobState.QUEUED


def test_another_process_finds_the_job_by_a_prefix_of_its_id(app: App, pay: Pay, store_url: str) -> None:
    job = pay.enqueue(1)

    with App(store_url) as other:
        assert other.job(job.id[:-4]).id == job.id
        assert other.job(job.id.upper()).state() is JobState.QUEUED
        assert [found.id for found in other.jobs.list(state="queued", workflow="pay")] == [job.id]
        assert other.stats.get()["QUEUED"] == 1


def test_a_prefix_of_several_jobs_and_one_of_none_are_told_apart(app: App, pay: Pay) -> None:
    jobs = pay.enqueue_many([1, 2])

    with pytest.raises(unstuck.AmbiguousJob) as ambiguous:
        app.job(jobs[0].id[:8])
    assert set(ambiguous.value.candidates) == {job.id for job in jobs}
    for nothing in ("ffff", "%", "", "no such job"):
        with pytest.raises(unstuck.UnknownJob):
            app.job(nothing)
    nobody = app.job("0" * 36)  # a whole id is looked for when something is asked
    with pytest.raises(unstuck.UnknownJob):
        nobody.state()


def test_a_result_comes_back_as_the_annotated_type(app: App, pay: Pay) -> None:
    job = pay.enqueue(42)
    handler = app._registry.handler("pay")

    claimed = Hand(app._engine.store).run_one(Returned(handler.pack(Receipt(42, PAID_AT))))

    assert handler.unpack(claimed.payload) == ([42], {})
    assert handler.takes_context
    assert job.result(timeout=5) == Receipt(42, PAID_AT)
    assert app.job(job.id).result(timeout=5) == Receipt(42, PAID_AT)


def test_a_failed_job_raises_its_own_error_with_its_view(app: App, pay: Pay) -> None:
    job = pay.using(retries=0).enqueue(42)
    Hand(app._engine.store).run_one(Raised(ErrorInfo("ValueError", "no money", "the stack")), output="printed")

    with pytest.raises(unstuck.JobFailed, match="FAILED: ValueError: no money") as failed:
        job.result(timeout=5)

    assert failed.value.view == job.seen
    assert failed.value.view.state is JobState.FAILED
    assert (job.error_type(), job.error(), job.output()) == ("ValueError", "no money", "printed")
    assert str(job.stack()) == "the stack"
    assert [attempt.error_type for attempt in job.attempts()] == ["ValueError"]
    assert [event.kind for event in job.history()][-1] == "failed"


def test_a_wait_that_runs_out_leaves_the_job_alone(app: App, pay: Pay) -> None:
    job = pay.enqueue(42)
    began = time.monotonic()

    with pytest.raises(unstuck.StillRunning, match="still QUEUED"):
        job.result(timeout=0.1)

    assert time.monotonic() - began < 5
    assert job.state() is JobState.QUEUED
    with pytest.raises(TimeoutError):
        job.wait(timeout=0)


def test_whoever_waits_for_what_nobody_can_run_is_told_why(pay: Pay, caplog: pytest.LogCaptureFixture) -> None:
    """Once: it does not change."""
    job = pay.enqueue(42)
    with pytest.raises(unstuck.StillRunning):
        job.result(timeout=2.0)

    (line,) = [entry.getMessage() for entry in caplog.records if entry.name == "unstuck"]
    assert job.id in line
    assert "no live worker serves queue default" in line

    caplog.clear()
    with pytest.raises(unstuck.StillRunning):
        asyncio.run(job.aresult(timeout=2.0))
    assert "no live worker serves queue default" in caplog.text


def test_a_wait_ends_when_the_job_does(app: App, pay: Pay) -> None:
    job = pay.enqueue(42)
    ender = threading.Timer(
        0.2, lambda: Hand(app._engine.store).run_one(Returned('{"order":1,"paid_at":"2026-11-15T00:00Z"}'))
    )
    ender.start()

    assert job.wait(timeout=20).state is JobState.COMPLETED
    ender.join()


def test_a_cancel_at_rest_is_final_and_a_second_one_changes_nothing_a16_a18(app: App, pay: Pay) -> None:
    job = pay.enqueue(42)

    assert job.cancel("changed my mind").state is JobState.CANCELLED
    before = job.history()
    with pytest.raises(unstuck.IllegalMove, match="CANCELLED"):
        job.cancel()

    assert job.history() == before
    assert Hand(app._engine.store).claim() == []
    assert before[-1].data["reason"] == "changed my mind"
    assert before[-1].data["by"] == "shop"


def test_an_interrupted_job_is_resumed(app: App, pay: Pay) -> None:
    job = pay.enqueue(42)

    assert job.interrupt().state is JobState.PAUSED
    assert job.resume(by="me").state is JobState.QUEUED
    assert job.view().run == 2


def test_a_person_supplies_the_result(app: App, pay: Pay) -> None:
    job = pay.enqueue(42)
    job.interrupt()

    job.resolve(Receipt(7, PAID_AT))

    assert job.result(timeout=5) == Receipt(7, PAID_AT)


def test_retry_runs_an_ended_job_again_and_hurries_one_that_waits(app: App, pay: Pay) -> None:
    failed, waiting = pay.using(retries=0).enqueue(1), pay.using(delay=3600).enqueue(2)
    hand = Hand(app._engine.store)
    hand.run_one(Raised(ErrorInfo("ValueError", "no")))

    assert failed.retry().state is JobState.QUEUED
    assert waiting.retry().available_at <= app._engine.store.now()
    assert {claimed.id for claimed in hand.claim()} == {failed.id, waiting.id}


def test_a_waiting_job_is_made_due_and_gets_another_priority(app: App, pay: Pay) -> None:
    job = pay.using(delay=3600).enqueue(1)
    assert job.reprioritise(5, by="ada").priority == 5
    assert asyncio.run(job.areprioritise(6)).priority == 6
    assert job.run_now().shown_state == "QUEUED"
    assert asyncio.run(job.arun_now()).shown_state == "QUEUED"


def test_retry_of_a_completed_or_running_job_is_refused(app: App, pay: Pay) -> None:
    job = pay.enqueue(1)
    hand = Hand(app._engine.store)
    [claimed] = hand.claim(1)

    with pytest.raises(unstuck.IllegalMove, match="RUNNING job cannot be retried"):
        job.retry()
    hand.settle(claimed, Returned("1"))
    with pytest.raises(unstuck.IllegalMove, match="COMPLETED job cannot be retried"):
        job.retry()


def test_one_key_is_one_job_also_at_once_from_ten_clients_a45(store_url: str) -> None:
    def client(_: int) -> tuple[str, bool]:
        with App(store_url) as app:

            @app.workflow
            def pay(order: int) -> None: ...

            barrier.wait(20)
            job = pay.using(key="k").enqueue(42)
            return job.id, job.is_new

    barrier = threading.Barrier(10)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(client, range(10)))

    assert len({id for id, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1


def test_one_key_with_another_body_is_a_conflict_a45(app: App, pay: Pay) -> None:
    first = pay.using(key="k").enqueue(1)

    assert pay.using(key="k", priority=9).enqueue(1) == first
    with pytest.raises(unstuck.KeyConflict) as conflict:
        pay.using(key="k").enqueue(2)

    assert conflict.value.job == first.id
    assert [job.id for job in app.jobs.list()] == [first.id]
    assert pay.using(key="k", tenant="other").enqueue(2).id != first.id


def test_many_calls_become_as_many_jobs_in_order(app: App, pay: Pay) -> None:
    jobs = pay.enqueue_many([1, (2,), {"order": 3}, Call((4,)), Call(kwargs={"order": 5})])

    assert [app.jobs.get(job.id).args for job in jobs] == [(n,) for n in range(1, 6)]
    assert pay.enqueue_many([]) == []


def test_more_calls_than_one_transaction_holds_are_all_stored(app: App, pay: Pay) -> None:
    jobs = pay.enqueue_many(range(2500))

    assert len({job.id for job in jobs}) == 2500
    assert app.stats.get()["QUEUED"] == 2500


def test_one_wrong_call_among_many_stores_none(app: App, pay: Pay) -> None:
    with pytest.raises(unstuck.InvalidArguments, match="order"):
        pay.enqueue_many([1, "two", 3])

    assert [*app.jobs.list()] == []


def test_wrong_arguments_fail_in_the_caller_and_store_nothing(app: App, pay: Pay) -> None:
    with pytest.raises(unstuck.InvalidArguments, match="order"):
        pay.enqueue("42")  # type: ignore[arg-type]
    with pytest.raises(unstuck.InvalidArguments, match="missing"):
        pay.enqueue()  # type: ignore[call-arg]

    assert [*app.jobs.list()] == []


@pytest.mark.parametrize(
    "options",
    [
        {"priority": 1.5},
        {"priority": 10**6},
        {"delay": -1},
        {"delay": float("nan")},
        {"at": datetime(2026, 1, 1)},
        {"at": PAID_AT, "delay": 1},
        {"key": ""},
        {"key": "x" * 201},
        {"key": "nul\x00"},
        {"tenant": " a"},
        {"queue": "a\nb"},
        {"tags": ["x"] * 21},
        {"timeout": 0},
        {"retries": -1},
        {"timeout": 1, "timeout_seconds": 2},
        {"max_retries": -1},
        {"max_retries": True},
        {"token_limit": "many"},
        {"colour": "red"},
        {"target": ""},
    ],
    ids=str,
)
def test_options_that_cannot_hold_are_refused_before_anything_is_opened(options: dict[str, Any]) -> None:
    work = App("sqlite:///nowhere/at/all.db").workflow(name="work")(print)

    with pytest.raises(unstuck.InvalidInput):
        work.using(**options)


def test_a_timeout_above_the_highest_is_refused_and_unlimited_must_be_spelled_out(app: App, pay: Pay) -> None:
    with pytest.raises(unstuck.InvalidPolicy, match="max_timeout"):
        pay.using(timeout=7200).enqueue(1)

    job = pay.using(timeout="unlimited").enqueue(1)
    assert app.jobs.get(job.id).policy.timeout == "unlimited"


def test_a_start_in_the_future_is_kept(app: App, pay: Pay, clock: StoreClock) -> None:
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    job = pay.using(at=at).enqueue(1)

    assert job.view().available_at == at
    assert Hand(app._engine.store).claim() == []


def test_tenants_do_not_see_each_other(app: App, pay: Pay, store_url: str) -> None:
    mine, theirs = pay.enqueue(1), pay.using(tenant="acme").enqueue(2)

    with App(store_url, tenant="acme") as acme:
        assert [job.id for job in acme.jobs.list()] == [theirs.id]
        with pytest.raises(unstuck.UnknownJob):
            acme.job(mine.id).view()
        with pytest.raises(unstuck.UnknownJob):
            acme.jobs.cancel(mine.id)
    assert theirs.cancel().state is JobState.CANCELLED
    assert app.job(theirs.id, tenant="acme").state() is JobState.CANCELLED
    assert app.job(theirs.id[:-1], tenant="*").tenant == "acme"
    assert {job.tenant for job in app.jobs.list(tenant="*")} == {"acme", "default"}
    with pytest.raises(unstuck.UnknownJob):
        app.job("01900000-0000-7000-8000-000000000000", tenant="*")


def test_jobs_are_listed_newest_first_by_any_name_of_a_state(app: App, pay: Pay) -> None:
    jobs = pay.enqueue_many([1, 2, 3])
    jobs[1].cancel()

    assert [job.id for job in app.jobs.list(state=["queued"])] == [jobs[2].id, jobs[0].id]
    assert [*app.jobs.list(state=["RETRYING"])] == []
    assert [job.state for job in app.jobs.list(state="CANCELED")] == [JobState.CANCELLED]
    assert len(app.jobs.list(limit=2)) == 2
    with pytest.raises(unstuck.InvalidInput, match="there is no state PURPLE"):
        app.jobs.list(state="PURPLE")
    with pytest.raises(unstuck.InvalidInput, match="limit"):
        app.jobs.list(limit=0)


def test_a_job_that_has_ended_still_says_when_it_began_and_by_the_same_names(app: App, pay: Pay) -> None:
    job = pay.using(retries=0).enqueue(1)
    hand = Hand(app._engine.store)
    hand.settle(hand.claim()[0], Raised(ErrorInfo("ValueError", "no")))
    record, [attempt] = job.view(), job.attempts()
    assert record.started_at is not None
    assert record.finished_at is not None
    assert record.finished_at - record.started_at == timedelta(milliseconds=5)
    assert (job.error(), record.error_message, attempt.error_message) == ("no", "no", "no")
    assert (attempt.attempt, job.is_new) == (1, True)


def test_workers_and_workflows_are_seen_as_they_registered(app: App, pay: Pay) -> None:
    app._engine.store.register_workflows(app._registry.records())
    Hand(app._engine.store, "w-1")

    assert [worker.name for worker in app.workers.list()] == ["w-1"]
    [row] = app.workflows.list()
    assert (row.name, row.schema["required"], row.policy.retries) == ("pay", ["order"], 1)
    assert app.stats.get().workers.alive == 1


def test_coroutines_enqueue_and_wait(app: App, pay: Pay) -> None:
    async def main() -> None:
        jobs = await asyncio.gather(*(pay.aenqueue(n) for n in range(20)))
        hand = Hand(app._engine.store)
        ender = asyncio.get_running_loop().run_in_executor(None, _finish_all, hand)
        results = await asyncio.gather(*(job.aresult(timeout=20) for job in jobs))
        await ender
        assert results == [Receipt(1, PAID_AT)] * 20

    asyncio.run(main())


def test_more_coroutines_than_there_are_threads_wait_and_hold_up_nobody(app: App, pay: Pay) -> None:
    async def main() -> None:
        jobs = await asyncio.gather(*(pay.aenqueue(n) for n in range(20)))
        waits = [asyncio.ensure_future(app.jobs.await_(job.id, timeout="1m")) for job in jobs]
        assert await asyncio.wait_for(jobs[0].astate(), 20) is JobState.QUEUED
        assert (await app.jobs.await_(jobs[0].id[:-1], timeout=0.05)).state is JobState.QUEUED
        await asyncio.get_running_loop().run_in_executor(None, _finish_all, Hand(app._engine.store))
        assert {view.state for view in await asyncio.gather(*waits)} == {JobState.COMPLETED}
        with pytest.raises(unstuck.InvalidInput, match="at most 60 seconds"):
            await app.jobs.await_(jobs[0].id, timeout=61)

    asyncio.run(main())
    assert app.jobs.wait(next(iter(app.jobs.list())).id).state is JobState.COMPLETED
    with pytest.raises(unstuck.InvalidInput, match="at most 60 seconds"):
        app.jobs.wait("0", timeout="61s")


def _finish_all(hand: Hand) -> None:
    for claimed in hand.claim():
        hand.settle(claimed, Returned('{"order":1,"paid_at":"2026-11-15T00:00:00Z"}'))


def test_a_slow_store_does_not_hold_up_the_loop(store_url: str) -> None:
    """The store call itself blocks for a while here; the loop must go on ticking all that time."""
    app = App(store_url)

    @app.workflow
    def work() -> None: ...

    real = app._engine.store.submit

    def slow(*asked: Any) -> object:
        time.sleep(2.0)
        return real(*asked)

    app._engine.store.submit = slow  # type: ignore[method-assign, assignment]

    async def main() -> float:
        longest, last = 0.0, time.monotonic()
        waiting = asyncio.create_task(work.aenqueue())
        while not waiting.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        await waiting
        return longest

    assert asyncio.run(main()) < 1.6
    app.close()


def test_a_closed_app_opens_again_at_its_next_use(app: App, pay: Pay) -> None:
    job = pay.enqueue(1)
    app.close()
    app.close()

    assert job.state() is JobState.QUEUED


@pytest.mark.parametrize("wait", [lambda app, job: job.result(timeout=30), lambda app, job: app.jobs.wait(job.id)])
def test_a_handler_that_waits_for_another_job_hears_its_own_cancel_a17(
    app: App, pay: Pay, wait: Callable[[App, Any], object]
) -> None:
    """The wait would otherwise outlast the grace, and the waiting job be convicted as stuck."""
    attempt = _Attempt(unstuck.Context(job="j", workflow="w"))
    other = pay.enqueue(1)
    asker = threading.Timer(0.2, attempt.context._ask, ("cancel", "changed my mind"))
    asker.start()
    token = running.set(attempt)
    began = time.monotonic()

    try:
        with pytest.raises(unstuck.Cancelled, match="changed my mind"):
            wait(app, other)
    finally:
        running.reset(token)
        asker.join()

    assert time.monotonic() - began < 5
