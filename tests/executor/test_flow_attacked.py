"""Durable flow under attack: refusals that a handler can do something about, answers that fit, words that lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.executor.test_flow import Desk, FlowWatch, answered, desk, parked, refused, watch
from unstuck.executor.messages import (
    BadFrame,
    Gather,
    GatherAnswer,
    Park,
    RecordStep,
    Refused,
    Reply,
    Return,
)
from unstuck.model.errors import NotStorable
from unstuck.model.payload import MAX_DEPTH, encode
from unstuck.model.settlement import Parked, Returned
from unstuck.model.waits import Answer, Journal, Wait, WaitKind, WaitRecord
from unstuck.worker.testimony import check_question, outcome_of

__all__ = ["desk", "watch"]
LAST_MICROSECOND = 253_402_300_799_999_999


# --- gathers ------------------------------------------------------------------------------------------------------


def ended(*children: str) -> list[dict[str, Any]]:
    return [{"id": child, "state": "COMPLETED", "result": f"of {child}"} for child in children]


def deadlocked_unless_released(question: Any) -> Reply | None:
    if isinstance(question, Gather) and question.children == ["child-1"] and not question.release_target:
        return Refused("TargetDeadlock", "gather with release_target=True")
    return None


def test_a_gather_that_was_refused_may_be_asked_as_the_refusal_says(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    desk.says = deadlocked_unless_released
    wait = parked(watch.run(shared, "gathers_as_it_is_told"))
    assert (wait.key, wait.children, wait.release_target) == ("children#1", ("child-1",), True)


def test_after_a_refusal_a_later_run_of_the_handler_finds_each_gather_under_the_same_key(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    """Its first gather is answered by then, so that nothing is refused any more and the keys must not shift."""
    desk.says = deadlocked_unless_released
    record = gathered("children#1", "child-1")
    desk.pages = [Journal(waits=(record,))]
    assert parked(watch.run(shared, "gathers_as_it_is_told")).key == "children#2"
    desk.pages = [Journal(waits=(record, gathered("children#2", "child-2")))]
    assert watch.result(shared, "gathers_as_it_is_told") == [["of child-1"], ["of child-2"]]


def test_children_whose_results_are_too_large_together_can_be_gathered_one_by_one(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    def says(question: Any) -> Reply | None:
        if not isinstance(question, Gather):
            return None
        ends = ended(*question.children)
        if len(ends) > 1:
            ends = [{"id": end["id"], "state": "COMPLETED", "too_large": True} for end in ends]
        return GatherAnswer(json.dumps(ends))

    desk.says = says
    assert watch.result(shared, "gathers_fewer_at_a_time") == [["of child-1"], ["of child-2"]]


# --- an answer must fit what is asked now -------------------------------------------------------------------------


def gathered(key: str, *children: str) -> WaitRecord:
    return answered(key, WaitKind.CHILDREN, Answer.ENDED, ended(*children))


@pytest.mark.parametrize("children", [("other",), ("child-2", "child-1"), ("child-1",)])
def test_an_answered_gather_does_not_answer_for_other_children(
    watch: FlowWatch, shared: int, desk: Desk, children: tuple[str, ...]
) -> None:
    desk.pages = [Journal(waits=(gathered("children#1", *children),))]
    kind, message = refused(watch.run(shared, "parent"))
    assert kind == "InvalidInput"
    assert "child-1, child-2" in message
    assert children[0] in message


@pytest.mark.parametrize(
    ("asked_then", "said"),
    [
        (Wait(WaitKind.EVENT, "mine", "stop", topic="orders"), "event 'stop' on topic 'orders'"),
        (Wait(WaitKind.EVENT, "mine", "go", topic="returns"), "event 'go' on topic 'returns'"),
        (Wait(WaitKind.EVENT, "mine", "go"), "event 'go' and is now event 'go' on topic 'orders'"),
    ],
)
def test_an_answered_event_does_not_answer_for_another(
    watch: FlowWatch, shared: int, desk: Desk, asked_then: Wait, said: str
) -> None:
    record = replace(answered("mine", WaitKind.EVENT, Answer.EVENT, 1), wait=asked_then)
    desk.pages = [Journal(waits=(record,))]
    kind, message = refused(watch.run(shared, "wait_for_event", {"name": "mine", "topic": "orders"}))
    assert kind == "InvalidInput"
    assert said in message


def test_an_answer_stays_good_when_only_the_terms_of_the_wait_have_changed(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    then = Wait(WaitKind.EVENT, "mine", "go", timeout=7.0, on_timeout="default", default="3")
    desk.pages = [Journal(waits=(replace(answered("mine", WaitKind.EVENT, Answer.EVENT, 1), wait=then),))]
    assert watch.result(shared, "wait_for_event", {"name": "mine", "timeout": 5}) == 1


# --- instants -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "when",
    [
        datetime.max.replace(tzinfo=UTC),
        datetime(2200, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_997, tzinfo=UTC),
    ],
)
def test_an_instant_is_kept_to_the_microsecond(watch: FlowWatch, shared: int, desk: Desk, when: datetime) -> None:
    """By way of a float the last ones of the calendar became the year 10000, which no datetime can hold."""
    until = parked(watch.run(shared, "parks_until", when.isoformat())).until
    assert until is not None
    assert until <= LAST_MICROSECOND
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=until) == when


def test_an_instant_beyond_the_calendar_is_refused_at_the_call(watch: FlowWatch, shared: int, desk: Desk) -> None:
    kind, message = refused(watch.run(shared, "parks_until", "9999-12-31T23:59:59-05:00"))
    assert kind == "InvalidInput"
    assert "calendar" in message


def test_an_instant_before_1970_is_long_past(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert parked(watch.run(shared, "parks_until", "0001-01-01T00:00:00+00:00")).until == 0


def test_an_instant_beyond_the_calendar_is_a_bad_frame() -> None:
    last = Wait(WaitKind.TIME, "time#1", until=LAST_MICROSECOND)
    assert outcome_of(Park(1, 1, last, None), 1000) == Parked(last)
    with pytest.raises(BadFrame):
        outcome_of(Park(1, 1, replace(last, until=LAST_MICROSECOND + 1), None), 1000)


# --- nested results -----------------------------------------------------------------------------------------------


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def hidden_in_text(depth: int) -> str:
    """For whoever counts brackets without reading text: it would seem flat."""
    return r'["]\"]\\",' * depth + "1" + "]" * depth


SHAPES: list[Callable[[int], str]] = [nested, objects, hidden_in_text]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 500, 900, 50_000])
def test_a_result_nested_deeper_than_an_executor_of_ours_packs_is_a_bad_frame(
    shape: Callable[[int], str], depth: int
) -> None:
    with pytest.raises(BadFrame):
        outcome_of(Return(1, 0, shape(depth), None), 1 << 20)
    with pytest.raises(BadFrame):
        check_question(RecordStep("s", 1, shape(depth), 0), 1 << 20)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_an_executor_of_ours_packs_is_never_nested_too_deep(shape: Callable[[int], str]) -> None:
    """Otherwise an honest handler would cost its process."""
    deepest = next(depth for depth in range(MAX_DEPTH + 2, 0, -1) if is_packed(json.loads(shape(depth))))
    assert deepest >= MAX_DEPTH
    text = shape(deepest)
    assert outcome_of(Return(1, 0, text, None), 1 << 20) == Returned(text)


def is_packed(value: Any) -> bool:
    try:
        encode(value, "it")
    except NotStorable:
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        json.dumps("[" * 5000),
        json.dumps(["{[" * 500 + '"\\'] * 3),
        json.dumps([[["x\\", '"['], {"a\\\\": "]]"}]] * 1000),
        json.dumps([[]] * 5000),
    ],
)
def test_brackets_in_text_or_side_by_side_are_no_depth(text: str) -> None:
    assert outcome_of(Return(1, 0, text, None), 1 << 20) == Returned(text)


# --- after a park -------------------------------------------------------------------------------------------------


def test_a_finally_can_still_log_after_a_park(watch: FlowWatch, shared: int, desk: Desk) -> None:
    finished = watch.run(shared, "speaks_after_a_park")
    assert parked(finished).timeout == 5.0
    assert "key=True" in watch.output(finished)
