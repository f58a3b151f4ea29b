"""Partial results in real executors; the database is a desk that answers by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.executor.test_flow import Desk, FlowWatch
from unstuck.executor.messages import Fenced, KeepPart, RecordStep, RefusedMessage
from unstuck.model.lifecycle import RequestKind
from unstuck.model.parts import one_too_many
from unstuck.model.settlement import Parked, Raised, Stopped


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


def given(desk: Desk) -> list[tuple[str, Any]]:
    return [(part.name, json.loads(part.value)) for part in desk.questions(KeepPart)]


@pytest.mark.parametrize("workflow", ["gives_parts", "gives_parts_async"])
def test_each_part_is_stored_as_it_was_when_it_was_given(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    assert watch.result(shared, workflow) == "whole"
    assert given(desk) == [("a", [1]), ("b", {"pages": [1, 2]}), ("a", [1, 2])]
    assert len(desk.heard) == 3, "nothing else is asked for: no journal is needed"


def test_the_type_of_the_result_is_not_that_of_steps_and_parts(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "declares_its_result") is True
    assert given(desk) == [("part", {"words": 1000})]


def test_a_part_is_given_on_the_main_thread_of_a_process_of_its_own(watch: FlowWatch, solo: int, desk: Desk) -> None:
    assert watch.result(solo, "gives_parts") == "whole"
    assert len(given(desk)) == 3


def test_threads_and_tasks_beside_the_handler_give_parts_too(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "gives_parts_in_threads") == "whole"
    assert sorted(given(desk)) == [(f"p{n}", n) for n in range(8)]
    desk.heard.clear()
    assert watch.result(shared, "gives_parts_beside_the_loop") == "whole"
    assert sorted(given(desk)) == sorted((f"p{n}", n) for n in range(40))


def test_a_step_may_give_parts_of_its_own(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "gives_a_part_in_a_step") is None
    assert given(desk) == [("inner", 1)]
    assert len(desk.questions(RecordStep)) == 1


@pytest.mark.parametrize(
    ("how", "kind", "told"),
    [
        ("unstorable", "NotStorable", "partial result 'p' cannot be stored"),
        ("not a number", "NotStorable", "partial result 'p' cannot be stored"),
        ("too large", "NotStorable", "it is 65,538 bytes of JSON; the limit is 65,536: give smaller parts"),
        ("no name", "InvalidInput", "partial result '' must be text"),
        ("not text", "InvalidInput", "partial result 7 must be text"),
    ],
)
def test_misuse_names_the_part_and_what_to_do_and_is_not_tried_again(
    watch: FlowWatch, shared: int, desk: Desk, how: str, kind: str, told: str
) -> None:
    outcome = watch.run(shared, "gives_a_bad_part", how).outcome
    assert isinstance(outcome, Raised)
    assert (outcome.error.type, outcome.retry) == (kind, False)
    assert told in outcome.error.message
    assert desk.heard == []


def test_one_name_too_many_is_the_databases_word_and_not_tried_again(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    desk.says = lambda _: RefusedMessage("InvalidInput", str(one_too_many("a")))
    outcome = watch.run(shared, "gives_parts").outcome
    assert isinstance(outcome, Raised)
    assert (outcome.error.type, outcome.retry) == ("InvalidInput", False)
    assert "'a' is one too many: a job has 1,000 names" in outcome.error.message
    assert len(desk.heard) == 1


def test_a_part_that_is_not_awaited_fails_the_job(watch: FlowWatch, shared: int, desk: Desk) -> None:
    outcome = watch.run(shared, "forgets_to_await_a_part").outcome
    assert isinstance(outcome, Raised)
    assert outcome.error.message == "ctx.partial was not awaited: in a coroutine write `await ctx.partial(…)`"
    assert outcome.retry is False
    assert given(desk) == []


def test_a_handler_that_has_parked_gives_no_part_any_more(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert isinstance(watch.run(shared, "gives_a_part_after_a_park").outcome, Parked)
    assert given(desk) == []


@pytest.mark.parametrize("workflow", ["gives_parts", "gives_parts_async"])
def test_an_attempt_that_is_not_ours_any_more_stops_at_its_first_part(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    desk.says = lambda _: Fenced()
    outcome = watch.run(shared, workflow).outcome
    assert isinstance(outcome, Stopped)
    assert outcome.asked is None
    assert len(given(desk)) == 1


@pytest.mark.parametrize("workflow", ["gives_parts", "gives_parts_async"])
def test_a_request_to_stop_wakes_who_waits_for_a_database_that_is_away(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    desk.is_away = True
    ref = watch.feed(shared, workflow)
    watch.flow_call(ref)
    watch.fleet.cancel(shared, ref, RequestKind.CANCEL, "enough")
    assert watch.finished(ref, within=5).outcome == Stopped(RequestKind.CANCEL, "enough")
