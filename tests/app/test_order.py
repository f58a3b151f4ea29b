"""Targets, limit keys, holds and dependencies as applications say them. On both databases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import unstuck
from tests.app.hand import Hand
from tests.support.tables import counts_of_tables
from unstuck import App, JobState
from unstuck.cli.session import CheckedRequest, Session
from unstuck.intake.submit import Options
from unstuck.model.errors import Conflict, IllegalMove, InvalidArguments, InvalidInput, InvalidPolicy, UnknownJob
from unstuck.model.settlement import ErrorInfo, Raised, Returned


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    with App(store_url, name="forge") as app:
        yield app


Deploy = unstuck.Workflow[[str, str], str]


@pytest.fixture
def deploy(app: App) -> Deploy:
    @app.workflow(target="{repo}", limit_key="host:{host}", concurrency=4, rate="100/m", on_failure="continue")
    def deploy(ctx: unstuck.Context, repo: str, host: str = "a") -> str:
        return repo

    return deploy


def ingest(app: App) -> None:
    while app._engine.store.ingest().entries:
        pass


def test_a_job_gets_target_and_limit_key_from_its_arguments(deploy: Deploy) -> None:
    job = deploy.enqueue("acme/site", "b").view()
    assert (job.target, job.limit_key) == ("acme/site", "host:b")
    assert deploy.enqueue(repo="acme/site").view().limit_key == "host:a"  # type: ignore[call-arg]


def test_a_caller_names_another_target_or_none(deploy: Deploy) -> None:
    assert deploy.using(target="{braces} stay").enqueue("x", "b").view().target == "{braces} stay"
    free = deploy.using(target=None, limit_key=None).enqueue("x", "b").view()
    assert (free.target, free.limit_key) == (None, None)
    again = deploy.using(target=None).using(priority=3).enqueue("x", "b").view()
    assert (again.target, again.limit_key) == (None, "host:b")


def test_the_row_of_a_workflow_gives_the_same_target_as_its_code(app: App, deploy: Deploy) -> None:
    app._engine.store.register_workflows(app._registry.records())
    row = app._engine.store.workflow("deploy")
    assert row is not None
    assert (row.target, row.limit_key) == ("{repo}", "host:{host}")
    session = Session(app.config, app._engine.store, "default")
    found = session.submit(CheckedRequest("deploy", ["acme/site"], {}, Options(), None))
    assert (found.target, found.limit_key) == ("acme/site", "host:a")


def test_arguments_that_cannot_name_a_target_are_refused_and_nothing_is_written(
    app: App, deploy: Deploy, store_url: str
) -> None:
    deploy.enqueue("acme/site", "b")
    before = counts_of_tables(store_url)
    for wrong in ("", "x" * 201, " x"):
        with pytest.raises(InvalidArguments, match=r"deploy cannot .* target '\{repo\}' cannot be made of repo"):
            deploy.enqueue_many([("fine", "b"), (wrong, "b")])
    assert counts_of_tables(store_url) == before


@pytest.mark.parametrize(
    "options",
    [
        {"target": ""},
        {"target": "x" * 201},
        {"target": 5},
        {"target": "*"},
        {"limit_key": "forge:*"},
        {"tenant": "*"},
        {"tenant": ""},
        {"hold": "yes"},
        {"after": [1]},
        {"after": [""]},
        {"after": [f"j{n}" for n in range(101)]},
        {"after_failure": "ignore"},
        {"on_failure": "ignore"},
    ],
)
def test_options_that_cannot_hold_are_refused_at_once(deploy: Deploy, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        deploy.using(**options)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"target": "{rope}"}, InvalidInput),
        ({"target": "{ctx}"}, InvalidInput),
        ({"limit_key": "{repo!r}"}, InvalidInput),
        ({"concurrency": 0}, InvalidInput),
        ({"concurrency": True}, InvalidInput),
        ({"rate": "often"}, InvalidInput),
        *[
            ({"limit_key": "{repo}", "key_concurrency": wrong}, InvalidInput)
            for wrong in (0, -1, True, 1.5, "2", 1_000_001)
        ],
        *[
            ({"limit_key": "{repo}", "key_rate": wrong}, InvalidInput)
            for wrong in ("often", "0/s", 5, "1/999999999d")
        ],
        ({"key_concurrency": 1}, InvalidInput),
        ({"key_rate": "1/s", "limit_key": None}, InvalidInput),
        ({"on_failure": "ignore"}, InvalidPolicy),
    ],
)
def test_a_workflow_that_cannot_hold_is_refused_when_it_is_defined(
    app: App, options: dict[str, Any], error: type[Exception]
) -> None:
    def build(ctx: unstuck.Context, repo: str) -> None: ...

    with pytest.raises(error, match="build"):
        app.workflow(**options)(build)


def test_limits_of_the_code_are_in_the_workflows_record(app: App, deploy: Deploy) -> None:
    (record,) = app._registry.records()
    assert (record.concurrency, record.rate, record.policy.on_failure) == (4, "100/m", "continue")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"key_concurrency": 1},
            r"workflow build: key_concurrency limits the jobs of each limit key, and no limit_key",
        ),
        ({"key_rate": "1/s"}, r"workflow build: key_rate limits .* add one, like limit_key=\"host:\{host\}\""),
        ({"limit_key": "{repo}", "key_rate": "often"}, r"workflow build: key_rate 'often' is not a number of starts"),
        ({"limit_key": "{repo}", "key_concurrency": 0}, r"workflow build: key_concurrency=0 is not a whole number"),
    ],
)
def test_a_limit_of_each_key_that_cannot_hold_says_what_is_wrong(
    app: App, options: dict[str, Any], sentence: str
) -> None:
    def build(ctx: unstuck.Context, repo: str) -> None: ...

    with pytest.raises(InvalidInput, match=sentence):
        app.workflow(**options)(build)


def test_a_limit_of_each_key_is_no_option_of_a_single_job(deploy: Deploy) -> None:
    for option in ("key_concurrency", "key_rate"):
        with pytest.raises(InvalidInput, match=option):
            deploy.using(**{option: 1})  # type: ignore[arg-type]


def test_limits_of_each_key_travel_from_the_decorator_to_the_claim(app: App) -> None:
    """A decorated function, its registration, jobs from the app's own door, and `why` of one that waits."""

    @app.workflow(limit_key="host:{host}", key_concurrency=2, key_rate="50/m")
    def fetch(host: str) -> str:
        return host

    (record,) = app._registry.records()
    assert (record.key_concurrency, record.key_rate) == (2, "50/m")
    app._engine.store.register_workflows([record])
    jobs = [fetch.enqueue(host) for host in "aaabbb"]
    assert len(Hand(app._engine.store).claim()) == 4
    waiting = [job for job in jobs if job.state() is JobState.QUEUED]
    assert [job.view().limit_key for job in waiting] == ["host:a", "host:b"]
    why = waiting[0].why()
    assert "key host:a of workflow fetch (all tenants together) has 2 of 2 running" in str(why)
    assert why.reasons[0].remedy == "unstuck workflows limit fetch --each-key --concurrency N --all-tenants"


def test_a_held_job_runs_when_it_is_released(app: App, deploy: Deploy) -> None:
    job = deploy.using(hold=True).enqueue("acme/site", "b")
    assert job.state() is JobState.PENDING
    assert job.view().on_hold
    assert job.release(by="ada").state is JobState.QUEUED
    with pytest.raises(IllegalMove):
        job.release()
    assert job.history()[-1].data == {"by": "ada"}


def test_a_job_runs_after_others_given_as_handles_or_ids(app: App, deploy: Deploy) -> None:
    hand = Hand(app._engine.store)
    first = deploy.using(target=None).enqueue("one", "b")
    second = deploy.using(after=first, target=None).enqueue("two", "b")
    third = deploy.using(after=[first, second.id], after_failure="run").enqueue("three", "b")
    ingest(app)
    for job in (first, second, third):
        assert hand.run_one(Returned('"ok"')).id == job.id
        ingest(app)
    with pytest.raises(Conflict):
        third.release()


def test_a_job_whose_dependency_fails_says_so(app: App, deploy: Deploy) -> None:
    first = deploy.using(retries=0).enqueue("one", "b")
    second = deploy.using(after=[first]).enqueue("two", "b")
    ingest(app)
    Hand(app._engine.store).run_one(Raised(ErrorInfo("ValueError", "boom")))
    ingest(app)
    with pytest.raises(unstuck.JobFailed, match=f"DependencyFailed.*{first.id}"):
        second.result(timeout=1)


def test_an_unknown_or_foreign_dependency_is_refused_and_nothing_is_written(
    app: App, deploy: Deploy, store_url: str
) -> None:
    foreign = deploy.using(tenant="other").enqueue("acme/site", "b")
    deploy.enqueue("acme/site", "b")
    before = counts_of_tables(store_url)
    for wrong in (foreign, "no-such-job"):
        with pytest.raises(UnknownJob):
            deploy.using(after=[wrong]).enqueue("acme/site", "b")
    assert counts_of_tables(store_url) == before


def test_a_blocker_can_be_skipped(app: App) -> None:
    @app.workflow(target="t", retries=0)
    def build() -> None: ...

    first, second = build.enqueue(), build.enqueue()
    ingest(app)
    hand = Hand(app._engine.store)
    [attempt] = hand.claim()
    beat = app._engine.store.beat(
        hand.record.number, 60, [attempt.ref], started={attempt.ref.job: app._engine.store.now()}
    )
    assert beat.alive
    hand.settle(attempt, Raised(ErrorInfo("ValueError", "boom")))
    ingest(app)
    assert first.view().is_blocker
    assert hand.claim() == []

    assert not first.skip(by="ada").is_blocker

    assert [job.id for job in hand.claim()] == [second.id]
    with pytest.raises(Conflict):
        first.skip()
