"""What handlers publish, in real executors; the database is a desk that answers by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.executor.test_flow import Desk, FlowWatch
from unstuck.executor.messages import Fenced, Publish
from unstuck.model.settlement import Raised, Stopped


@pytest.fixture(scope="module")
def watch(mode: str) -> Iterator[FlowWatch]:
    watch = FlowWatch(mode, app="tests.executor.flow_app:app")
    watch.imported()
    yield watch
    watch.close()


@pytest.fixture
def desk(watch: FlowWatch) -> Desk:
    watch.desk = Desk()
    return watch.desk


@pytest.mark.parametrize("workflow", ["publishes", "publishes_async"])
def test_each_is_told_as_it_was_when_it_was_published(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    assert watch.result(shared, workflow) == "told"
    asked = desk.questions(Publish)
    assert [one.place for one in asked] == [1, 2, 3]
    told = [(one.publication.kind, json.loads(one.publication.data)) for one in asked]
    assert told == [("begun", {"n": 1}), ("begun", {"n": 2}), ("inner", {})]
    assert (asked[0].publication.topic, asked[0].publication.ttl) == ("project:7", 60)


@pytest.mark.parametrize(
    ("how", "kind", "told"),
    [
        ("list", "InvalidInput", "the data of ok is an object"),
        ("nan", "NotStorable", "the data of ok cannot be stored"),
        ("large", "NotStorable", "the limit is 16,384"),
        ("ours", "InvalidInput", "kind completed is one that unstuck tells itself"),
        ("lines", "InvalidInput", "is no word"),
    ],
)
def test_misuse_says_what_to_do_and_is_not_tried_again(
    watch: FlowWatch, shared: int, desk: Desk, how: str, kind: str, told: str
) -> None:
    outcome = watch.run(shared, "publishes_badly", how).outcome
    assert isinstance(outcome, Raised)
    assert (outcome.error.type, outcome.retry) == (kind, False)
    assert told in outcome.error.message
    assert desk.heard == []


def test_what_is_not_awaited_fails_the_job(watch: FlowWatch, shared: int, desk: Desk) -> None:
    outcome = watch.run(shared, "forgets_to_await_what_it_publishes").outcome
    assert isinstance(outcome, Raised)
    assert outcome.error.message == "ctx.publish was not awaited: in a coroutine write `await ctx.publish(…)`"


def test_an_attempt_that_is_not_ours_any_more_stops_where_it_publishes(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    desk.says = lambda _: Fenced()
    outcome = watch.run(shared, "publishes").outcome
    assert isinstance(outcome, Stopped)
    assert len(desk.questions(Publish)) == 1
