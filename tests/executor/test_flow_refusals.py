"""Durable flow under attack: refusals that a handler can do something about, answers that fit, words that lie."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.executor.test_flow import Desk, FlowWatch, answered, desk, parked, refused, watch
from tests.support.eventually import eventually
from unstuck.executor.messages import (
    BadFrame,
    ChildAnswer,
    Done,
    GatherAnswer,
    GatherMessage,
    Park,
    RecordStep,
    RefusedMessage,
    Reply,
    Return,
    SpawnMessage,
)
from unstuck.model.errors import NotStorable
from unstuck.model.lifecycle import RequestKind
from unstuck.model.payload import MAX_DEPTH, encode
from unstuck.model.settlement import Parked, Raised, Returned, Stopped
from unstuck.model.waits import MOST_WAITS, Answer, Child, Journal, Wait, WaitKind, WaitRecord
from unstuck.worker.validate import check_question, outcome_of

__all__ = ["desk", "watch"]
LAST_MICROSECOND = 253_402_300_799_999_999


# --- gathers ------------------------------------------------------------------------------------------------------


def ended(*children: str) -> list[dict[str, Any]]:
    return [{"id": child, "state": "COMPLETED", "result": f"of {child}"} for child in children]


def deadlocked_unless_released(question: Any) -> Reply | None:
    if isinstance(question, GatherMessage) and question.children == ["child-1"] and not question.release_target:
        return RefusedMessage("TargetDeadlock", "gather with release_target=True")
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
        if not isinstance(question, GatherMessage):
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


# --- too many -----------------------------------------------------------------------------------------------------


def test_a_wait_too_many_is_refused_and_never_tried_again(watch: FlowWatch, shared: int, desk: Desk) -> None:
    """The last one that is granted parks as any; of the one after it nobody hears but the handler."""
    records = [answered(f"time#{n}", WaitKind.TIME, Answer.DUE) for n in range(1, MOST_WAITS + 1)]
    desk.pages = [Journal(waits=tuple(records[:-1]))]
    assert parked(watch.run(shared, "parks_for_ever")).key == f"time#{MOST_WAITS}"
    desk.pages = [Journal(waits=tuple(records))]
    finished = watch.run(shared, "parks_for_ever")
    kind, message = refused(finished)
    assert (kind, "10,000 times at most" in message) == ("InvalidInput", True)
    assert isinstance(finished.outcome, Raised)
    assert finished.outcome.retry is False


# --- waits side by side -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("verb", ["approval", "park_for", "gather"])
def test_a_wait_of_chance_order_is_refused_before_it_gets_the_answer_of_another(
    watch: FlowWatch, shared: int, desk: Desk, verb: str, turned: bool
) -> None:
    """The yes for staging is there. In tasks of their own, either branch may be the first to ask in this attempt."""
    desk.pages = [Journal(waits=(answered("approval#1", WaitKind.APPROVAL, Answer.APPROVED, by="kim"),))]
    kind, message = refused(watch.run(shared, "waits_side_by_side", verb, [None, None], turned))
    assert (kind, f"ctx.{verb} in a task beside the handler" in message) == ("InvalidInput", True)


@pytest.mark.parametrize("turned", [False, True])
def test_waits_with_names_of_their_own_get_their_own_answers_in_any_order(
    watch: FlowWatch, shared: int, desk: Desk, turned: bool
) -> None:
    first = answered("s", WaitKind.APPROVAL, Answer.APPROVED, by="kim")
    desk.pages = [Journal(waits=(first,))]
    wait = parked(watch.run(shared, "waits_side_by_side", "approval", ["s", "p"], turned))
    assert (wait.key, wait.name) == ("p", "production?")
    desk.pages = [Journal(waits=(first, answered("p", WaitKind.APPROVAL, Answer.APPROVED, by="lee")))]
    outcome = watch.run(shared, "waits_side_by_side", "approval", ["s", "p"], turned).outcome
    assert outcome == Returned('[["staging?","kim"],["production?","lee"]]')


def test_events_of_different_names_may_be_waited_for_side_by_side(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert (
        parked(watch.run(shared, "waits_side_by_side", "wait_for", [None, None], True)).key == "event:production?#1"
    )


def test_waits_that_are_called_in_the_handler_itself_may_be_awaited_together(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    rested = [answered(f"time#{n}", WaitKind.TIME, Answer.DUE) for n in (1, 2)]
    desk.pages = [Journal(waits=tuple(rested))]
    assert parked(watch.run(shared, "parks_side_by_side_in_its_own_task")).key == "approval#1"


def test_a_misuse_that_comes_out_of_a_task_group_is_never_tried_again(watch: FlowWatch, shared: int) -> None:
    finished = watch.run(shared, "misuse_in_task_group")
    assert isinstance(finished.outcome, Raised)
    assert finished.outcome.retry is False, finished.outcome


def test_a_sync_handler_with_a_loop_of_its_own_may_not_forget_an_await_either(watch: FlowWatch, shared: int) -> None:
    assert refused(watch.run(shared, "loop_of_its_own_forgets")) == (
        "InvalidInput",
        "ctx.approval was not awaited: in a coroutine write `await ctx.approval(…)`",
    )


@pytest.mark.parametrize("how", ["operator", "attribute"])
def test_who_uses_what_was_not_awaited_is_told_of_the_await(watch: FlowWatch, shared: int, how: str) -> None:
    finished = watch.run(shared, "uses_what_it_did_not_await", how)
    kind, message = refused(finished)
    assert (kind, "ctx.step was not awaited" in message) == ("InvalidInput", True)
    assert isinstance(finished.outcome, Raised)
    assert finished.outcome.retry is False
    assert "'Promise'" in (finished.outcome.error.stack or "")


# --- steps beside waits -------------------------------------------------------------------------------------------


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "notes"


def recorded(desk: Desk) -> list[tuple[str, int, Any]]:
    return [(step.name, step.ordinal, json.loads(step.result)) for step in desk.questions(RecordStep)]


@pytest.mark.parametrize(
    ("workflow", "key"),
    [
        ("steps_beside_a_wait", "event:go#1"),
        ("steps_in_a_thread_beside_a_wait", "event:go#1"),
        ("steps_in_a_group_with_waits", "event:go#1"),
        ("parks_beside_a_step_of_a_pool", "time#1"),
        ("runs_a_loop_with_a_step_beside_a_wait", "event:go#1"),
    ],
)
def test_a_job_does_not_park_before_its_steps_under_way_are_recorded(
    watch: FlowWatch, shared: int, desk: Desk, notes: Path, workflow: str, key: str
) -> None:
    assert parked(watch.run(shared, workflow, str(notes))).key == key
    assert recorded(desk) == [("slow", 1, "slow")]
    assert notes.read_text() == "begin\nend\n"


@pytest.mark.parametrize(
    "workflow",
    [
        "parks_beside_a_long_step",
        "parks_beside_a_step_of_a_pool",
        "runs_a_loop_with_a_step_beside_a_wait",
        "steps_beside_a_wait_in_a_task",
    ],
)
@pytest.mark.parametrize("kind", [RequestKind.CANCEL, RequestKind.INTERRUPT])
def test_a_request_to_stop_reaches_a_wait_that_lets_a_step_end(
    watch: FlowWatch, desk: Desk, notes: Path, workflow: str, kind: RequestKind
) -> None:
    own = watch.executor()
    ref = watch.feed(own, workflow, str(notes), 30)
    watch.wait(lambda: notes.exists() or None)
    watch.fleet.cancel(own, ref, kind, "enough")
    assert watch.finished(ref, within=5).outcome == Stopped(kind, "enough")
    assert recorded(desk) == []


def test_a_step_beside_a_wait_may_go_on_spending_and_giving_parts(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert parked(watch.run(shared, "spends_in_a_step_beside_a_wait")).key == "event:go#1"
    assert recorded(desk) == [("spends", 1, "spent")]
    assert desk.used == 1


def test_a_wait_that_its_handler_cuts_off_before_it_has_parked_is_none(
    watch: FlowWatch, shared: int, desk: Desk, notes: Path
) -> None:
    """Nor does it count: the event would be sent to a wait that a later attempt does not come to."""
    assert parked(watch.run(shared, "cuts_off_its_wait", str(notes))).key == "event:go#1"
    assert recorded(desk) == [("else", 1, None), ("slow", 1, "slow")]


def test_a_wait_that_is_cut_off_together_with_its_step_is_none(
    watch: FlowWatch, shared: int, desk: Desk, notes: Path
) -> None:
    assert watch.result(shared, "cuts_off_its_wait_and_its_step", str(notes)) == "cut off"


def test_a_step_that_fails_beside_a_wait_leaves_the_job_waiting(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert parked(watch.run(shared, "fails_in_a_step_beside_a_wait")).key == "event:go#1"
    assert recorded(desk) == []


# --- cut off and called again -------------------------------------------------------------------------------------


class _Unanswered(Exception):
    pass


def _answer_late(watch: FlowWatch, executor: int, workflow: str, notes: Path, kind: type, answer: Reply) -> Any:
    """The first flow call of this kind only once its handler asks for the same again."""

    def silent(question: Any) -> None:
        if isinstance(question, kind):
            raise _Unanswered

    watch.desk.says = silent
    ref = watch.feed(executor, workflow, str(notes))
    with pytest.raises(_Unanswered):
        watch.finished(ref)
    with notes.open("a") as file:
        file.write("asked\n")
    eventually(lambda: "again" in notes.read_text())
    watch.desk.says = lambda _: None
    watch.fleet.answer(watch.desk.heard[-1], answer)
    outcome = watch.finished(ref).outcome
    assert isinstance(outcome, Returned), outcome
    return json.loads(outcome.result or "null")


def test_a_step_that_was_cut_off_while_it_was_recorded_is_not_called_again(
    watch: FlowWatch, shared: int, desk: Desk, notes: Path
) -> None:
    """The handler goes on with what the journal has."""
    got = _answer_late(watch, shared, "repeats_a_step_that_was_cut_off", notes, RecordStep, Done())
    assert (got, recorded(desk)) == ([1, 2], [("a", 1, 1), ("a", 2, 2)])


def test_a_spawn_that_was_cut_off_while_it_was_asked_for_gives_the_same_child(
    watch: FlowWatch, shared: int, desk: Desk, notes: Path
) -> None:
    child = ChildAnswer(Child("first", "scan", 1, 1, "QUEUED", "scan"))
    got = _answer_late(watch, shared, "repeats_a_spawn_that_was_cut_off", notes, SpawnMessage, child)
    assert (got, [spawn.ordinal for spawn in desk.questions(SpawnMessage)]) == (["first", "child-2"], [1, 2])


@pytest.mark.parametrize("what", ["step", "spawn"])
def test_a_task_cancelled_before_its_first_turn_gives_back_the_use_of_its_name(
    watch: FlowWatch, shared: int, desk: Desk, what: str
) -> None:
    assert watch.result(shared, "cancels_before_the_first_turn", what) == {"step": 1, "spawn": "child-1"}[what]
    assert [use.ordinal for use in desk.questions(RecordStep) + desk.questions(SpawnMessage)] == [1]


@pytest.mark.parametrize(("what", "key"), [("gather", "children#1"), ("wait_for", "event:go#1")])
def test_a_wait_cancelled_before_its_first_turn_gives_back_its_key(
    watch: FlowWatch, shared: int, desk: Desk, what: str, key: str
) -> None:
    assert parked(watch.run(shared, "cancels_before_the_first_turn", what)).key == key


def test_who_gathers_what_was_not_awaited_is_told_of_the_await(watch: FlowWatch, shared: int) -> None:
    kind, message = refused(watch.run(shared, "gathers_what_it_did_not_await"))
    assert (kind, "ctx.spawn was not awaited" in message) == ("InvalidInput", True)


def test_a_sleep_that_is_not_awaited_is_none_and_python_says_so(watch: FlowWatch, shared: int) -> None:
    finished = watch.run(shared, "forgets_to_await_its_sleep")
    assert finished.outcome == Returned('"awake"')
    assert "was never awaited" in watch.output(finished)
