"""app.signal, app.approvals, and what a job handle tells of steps, waits, usage and children."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import unstuck
from tests.support.parking import Stage
from unstuck.model.errors import NotWaiting
from unstuck.model.settlement import Returned
from unstuck.model.waits import Answer, Wait, WaitKind


@pytest.fixture
def app(store_url: str) -> Iterator[unstuck.App]:
    with unstuck.App(store_url, name="shop") as opened:
        yield opened


@pytest.fixture
def stage(app: unstuck.App) -> Stage:
    return Stage(app._engine.store)


def test_an_event_is_sent_to_a_job_by_id_or_beginning(app: unstuck.App, stage: Stage) -> None:
    for name in (str, lambda ident: ident[:-2]):
        job = stage.awaits("paid")
        assert app.events.send("paid", {"amount": 12}, job=name(job)).answered == job
        [wait] = app.job(job).waits()
        assert (wait.answer, wait.payload, wait.answered_by) == (Answer.EVENT, {"amount": 12}, "shop")


def test_an_event_on_a_topic_reaches_who_has_waited_longest(app: unstuck.App, stage: Stage) -> None:
    first, second = stage.awaits("paid", topic="orders"), stage.awaits("paid", topic="orders")
    assert asyncio.run(app.events.asend("paid", topic="orders", by="till")).answered == first
    assert app.events.send("paid", topic="orders").answered == second
    assert app.events.send("paid", topic="orders").answered is None


def test_an_event_needs_a_name_and_one_address(app: unstuck.App, stage: Stage) -> None:
    job = stage.awaits("paid")
    wrong: list[dict[str, Any]] = [
        {"job": job, "event": None}, {"event": "paid"}, {"job": job, "event": "paid", "topic": "orders"},
        {"job": job, "event": "paid", "tenant": "*"}, {"job": job, "event": ""}, {"job": 7, "event": "paid"},
    ]  # fmt: skip
    for words in wrong:
        with pytest.raises(unstuck.InvalidInput):
            app.events.send(**words)
    with pytest.raises(unstuck.UnknownJob):
        app.events.send("paid", job="nonsense")
    with pytest.raises(unstuck.UnknownJob):
        app.events.send("paid", job=job, tenant="acme")
    [wait] = app.job(job).waits()
    assert wait.answer is None


def test_open_approvals_are_listed_and_decided(app: unstuck.App, stage: Stage) -> None:
    first = stage.asks("Deploy 1?", who=("kim", "lee"), on_timeout="reject", of={"workflow": "deploy"})
    second = stage.asks("Deploy 2?", timeout=60.0)
    theirs = stage.asks("Deploy 3?", of={"tenant": "acme"})

    one, two = app.approvals.list()

    assert (one.job, one.question, one.who, one.on_timeout) == (first, "Deploy 1?", ("kim", "lee"), "reject")
    assert (one.workflow, one.tenant, one.key) == ("deploy", "default", "approval#1")
    assert (one.until_at - one.asked_at).total_seconds() == 600
    assert (two.job, (two.until_at - two.asked_at).total_seconds()) == (second, 60)
    assert [a.job for a in app.approvals.list(limit=1)] == [first]
    assert [a.job for a in app.approvals.list(after=one.cursor)] == [second]
    assert [a.job for a in app.approvals.list(tenant="*")] == [first, second, theirs]
    [other] = app.approvals.list(tenant="acme")
    assert app.approvals.approve(other.job, tenant="acme", by="ada").answer == "approved"
    assert app.approvals.approve(one.job, key=one.key, by="kim", comment="go").comment == "go"
    assert app.job(second).reject(by="lee").answer is Answer.REJECTED
    assert [*app.approvals.list(tenant="*")] == []
    with pytest.raises(NotWaiting, match="kim"):
        app.job(first).approve(by="lee")
    for limit in (0, True, "7", 10_001):
        with pytest.raises(unstuck.InvalidInput):
            app.approvals.list(limit=limit)  # type: ignore[arg-type]


def test_a_job_tells_what_it_has_done_and_whose_it_is(app: unstuck.App, stage: Stage) -> None:
    attempt = stage.begun(budget=(("tokens", 1000.0),))
    stage.step(attempt, "build", '{"size":3}')
    stage.step(attempt, "check", "[1,2]")
    stage.step(attempt, "check", "null", ordinal=2)
    app._engine.store.spend(attempt.ref, 1, {"tokens": 120, "euros": 0.5})
    children = [stage.spawn(attempt, "crawl", ordinal) for ordinal in (1, 2)]
    job = app.job(stage.park(attempt, Wait(WaitKind.CHILDREN, "children#1", children=tuple(c.id for c in children))))

    assert [(s.name, s.ordinal, s.result) for s in job.steps()] == [
        ("build", 1, {"size": 3}),
        ("check", 1, [1, 2]),
        ("check", 2, None),
    ]
    assert {(s.run, s.attempt, s.duration_ms) for s in job.steps()} == {(1, 1, 12)}
    assert (job.usage().used, job.usage().budget) == ({"tokens": 120, "euros": 0.5}, {"tokens": 1000})
    assert [(c.id, c.name, c.ordinal, c.state) for c in job.children()] == [
        (child.id, "crawl", place, "QUEUED") for place, child in enumerate(children, start=1)
    ]
    assert app.job(children[0].id).parent() == job
    assert job.parent() is None
    [reason] = job.why().reasons
    assert (reason.code, reason.details["open"]) == ("waiting_children", 2)
    assert "2 of 2 child jobs have not ended" in reason.sentence


@pytest.mark.parametrize(
    ("code", "wait"),
    [
        ("waiting_event", Wait(WaitKind.EVENT, "event:paid#1", "paid")),
        ("waiting_approval", Wait(WaitKind.APPROVAL, "approval#1", "Deploy?")),
        ("waiting_time", Wait(WaitKind.TIME, "time#1", timeout=60.0)),
    ],
)
def test_a_parked_job_says_why(app: unstuck.App, stage: Stage, code: str, wait: Wait) -> None:
    """A57 of every new wait"""
    job = app.job(stage.park(stage.begun(), wait))
    [reason] = job.why().reasons
    assert (reason.code, reason.since_at is not None, reason.until_at is not None) == (code, True, True)


def test_an_ended_job_is_replayed_as_a_new_one(app: unstuck.App, stage: Stage) -> None:
    @app.workflow
    def double(number: int) -> int:
        return 2 * number

    job = double.enqueue(7)
    with pytest.raises(unstuck.IllegalMove, match="cannot be replayed"):
        job.replay()
    from tests.support.builders import claim_all

    [attempt] = claim_all(app._engine.store, stage.worker)
    stage.end(attempt, Returned("14"))

    again = job.replay(by="kim")

    assert (again == job, again.is_new, again.state()) == (False, True, unstuck.JobState.QUEUED)
    assert (again.view().replay_of, app.jobs.get(again.id).args) == (job.id, (7,))
    [attempt] = claim_all(app._engine.store, stage.worker)
    stage.end(attempt, Returned("14"))
    assert again.result(timeout=5) == 14
