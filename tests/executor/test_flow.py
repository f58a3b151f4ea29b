"""Durable flow in real executors; the database is a desk that answers by hand."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from tests.executor.watch import Watch
from unstuck.executor.messages import (
    MAX_FLOW_CALLS,
    ChildAnswer,
    Done,
    Fenced,
    FlowCallMessage,
    GatherAnswer,
    GatherMessage,
    JournalPage,
    KeepPart,
    LoadJournal,
    Publish,
    RecordStep,
    RefusedMessage,
    Reply,
    SpawnMessage,
    Spend,
    SpentAnswer,
    pack,
)
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import RequestKind
from unstuck.model.news import Publication
from unstuck.model.settlement import Parked, Raised, Returned, Stopped
from unstuck.model.waits import Answer, Child, Journal, Spent, StepRecord, Wait, WaitKind, WaitRecord
from unstuck.worker.processes import Finished, FlowCall, LeftBehind

E = TypeVar("E")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Desk:
    """Answers flow calls from a journal; `is_away`: not at all."""

    pages: list[Journal] = field(default_factory=lambda: [Journal()])
    heard: list[FlowCall] = field(default_factory=list)
    is_away: bool = False
    gathered: str | None = None
    budget: float = 100.0
    used: float = 0.0
    says: Callable[[Any], Reply | None] = lambda _: None

    def reply(self, question: Any) -> Reply:
        if (said := self.says(question)) is not None:
            return said
        match question:
            case LoadJournal(after=after):
                return JournalPage(self.pages[after])
            case RecordStep() | KeepPart() | Publish():
                return Done()
            case SpawnMessage(name=name, ordinal=ordinal, job=job):
                return ChildAnswer(Child(f"child-{ordinal}", name, ordinal, 1, "QUEUED", job.workflow))
            case GatherMessage():
                return GatherAnswer(self.gathered)
            case Spend(amounts=amounts):
                self.used += amounts["tokens"]
                exceeded = f"used {self.used:g} of {self.budget:g} tokens" if self.used > self.budget else None
                return SpentAnswer(Spent({"tokens": self.used}, {"tokens": self.budget}, exceeded))
        raise AssertionError(question)

    def questions(self, kind: type[E]) -> list[E]:
        return [call.question for call in self.heard if isinstance(call.question, kind)]


class FlowWatch(Watch):
    """Its desk answers while it listens."""

    desk = Desk()
    run_number = 1

    def wait(self, check: Callable[[], E | None], within: float = 15.0, every: float = 0.2) -> E:
        seen = len(self.events)

        def served() -> E | None:
            nonlocal seen
            fresh, seen = self.events[seen:], len(self.events)
            for event in fresh:
                if isinstance(event, FlowCall):
                    self.desk.heard.append(event)
                    if not self.desk.is_away:
                        self.fleet.answer(event, self.desk.reply(event.question))
            return check()

        return super().wait(served, within, every)

    def flow_call(self, ref: AttemptRef) -> FlowCall:
        return self.hear_one(FlowCall, ref=ref)


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


def step(name: str, result: Any, ordinal: int = 1) -> StepRecord:
    return StepRecord(name, ordinal, json.dumps(result), 2, 7, NOW, 1)


def answered(key: str, kind: WaitKind, answer: Answer, payload: Any = None, **more: Any) -> WaitRecord:
    text = None if payload is None else json.dumps(payload)
    name = "go" if kind is WaitKind.EVENT else ""
    children = tuple(end["id"] for end in payload) if kind is WaitKind.CHILDREN else ()
    return WaitRecord("job", 2, Wait(kind, key, name, children=children), NOW, NOW, answer, text, NOW, **more)


def parked(finished: Finished) -> Wait:
    assert isinstance(finished.outcome, Parked), finished.outcome
    return finished.outcome.wait


def refused(finished: Finished) -> tuple[str, str]:
    assert isinstance(finished.outcome, Raised), finished.outcome
    return finished.outcome.error.type, finished.outcome.error.message


# --- steps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workflow", ["two_steps", "two_steps_async"])
def test_the_first_attempt_of_a_job_asks_for_no_journal(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be in it: no attempt came before."""
    monkeypatch.setattr(watch, "token", 1)
    assert watch.result(shared, workflow) == [3, 13, "[1, 2]"]
    assert desk.questions(LoadJournal) == []
    assert len(desk.questions(RecordStep)) == 3


@pytest.mark.parametrize("workflow", ["two_steps", "two_steps_async"])
def test_steps_run_once_each_and_give_what_json_gives_back(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    assert watch.result(shared, workflow) == [3, 13, "[1, 2]"]
    recorded = [(s.name, s.ordinal, s.result) for s in desk.questions(RecordStep)]
    assert recorded == [("add", 1, "3"), ("add", 2, "13"), ("pair", 1, "[1,2]")]
    assert len(desk.questions(LoadJournal)) == 1


@pytest.mark.parametrize("workflow", ["two_steps", "two_steps_async"])
def test_recorded_steps_are_not_run_again_and_are_told_apart_by_ordinal(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    """The journal comes in pages."""
    desk.pages = [Journal(steps=(step("add", 100),), after=1), Journal(steps=(step("pair", "kept"),))]
    assert watch.result(shared, workflow) == [100, 110, "'kept'"]
    assert [(s.name, s.ordinal) for s in desk.questions(RecordStep)] == [("add", 2)]


def test_an_answer_that_another_thread_cannot_send_whole_is_sent_to_its_end(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    """The thread that has the answer sends it. What the executor does not take yet goes out once there is room."""
    desk.is_away = True
    ref = watch.feed(shared, "two_steps")
    call = watch.flow_call(ref)
    large = "x" * (600 << 10)
    answer = JournalPage(Journal(steps=(step("add", 100), step("pair", large))))
    pid = watch.fleet._members[shared].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(watch.fleet.answer, call, answer).result(10) is False
    finally:
        os.kill(pid, signal.SIGCONT)
    desk.is_away = False
    outcome = watch.finished(ref).outcome
    assert isinstance(outcome, Returned), outcome
    assert json.loads(outcome.result or "") == [100, 110, repr(large)]


def test_steps_work_by_the_current_context_and_on_the_main_thread_of_a_process_of_its_own(
    watch: FlowWatch, shared: int, solo: int, desk: Desk
) -> None:
    assert watch.result(shared, "step_by_current") == 4
    assert watch.result(solo, "step_by_current") == 4
    assert watch.result(solo, "two_steps_async") == [3, 13, "[1, 2]"]


def test_a_hundred_steps_at_once_keep_to_the_number_of_flow_calls_under_way(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    assert watch.result(shared, "many_steps_at_once", 100) == list(range(100))
    assert len(desk.questions(RecordStep)) == 100


def test_threads_of_a_handler_may_run_steps_but_not_wait(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "step_in_threads") == list(range(8))
    assert len(desk.questions(LoadJournal)) == 1
    assert "thread beside the handler" in watch.result(shared, "wait_in_thread")


def test_results_that_cannot_be_stored_name_their_step_and_are_not_tried_again(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    finished = watch.run(shared, "unstorable")
    kind, message = refused(finished)
    assert kind == "NotStorable"
    assert "step 'odd'" in message
    assert isinstance(finished.outcome, Raised)
    assert finished.outcome.retry is False
    assert "step 'big'" in refused(watch.run(shared, "too_large", max_result=1000))[1]
    assert desk.questions(RecordStep) == []


def test_a_step_is_retried_within_its_attempt(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "retried_step") == 3
    assert len(desk.questions(RecordStep)) == 1


def test_a_step_that_takes_too_long_raises_and_its_thread_is_left_behind(watch: FlowWatch, desk: Desk) -> None:
    own = watch.executor()
    assert watch.result(own, "slow_step", 3.0) == "step 'slow' took longer than 0.1 seconds"
    left = watch.hear_one(LeftBehind, executor=own)
    assert "step slow" in left.threads
    assert watch.result(own, "slow_step_async", 3.0) == "step 'slow' took longer than 0.1 seconds"
    assert watch.result(own, "slow_step", 0.0, 30) == watch.result(own, "slow_step_async", 0.0, 30) == "done"


def test_a_timed_step_has_its_attempt_and_its_own_errors(watch: FlowWatch, shared: int, desk: Desk) -> None:
    job, thread = watch.result(shared, "timed_step")
    assert job.startswith("job-")
    assert thread == "step timed"
    assert refused(watch.run(shared, "raising_timed_step"))[0] == "KeyError"


def test_a_coroutine_is_no_step_of_a_sync_handler(watch: FlowWatch, shared: int, desk: Desk) -> None:
    kind, message = refused(watch.run(shared, "coroutine_in_sync"))
    assert kind == "InvalidInput"
    assert "async def" in message


@pytest.mark.parametrize("workflow", ["inside_a_step", "inside_a_step_async"])
def test_inside_a_step_nothing_durable_may_be_asked_for(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    said = watch.result(shared, workflow)
    assert len(said) == 6
    assert all("not inside a step" in text for text in said), said


# --- waits --------------------------------------------------------------------------------------------------------


def test_an_unanswered_wait_parks_and_an_answered_one_gives_its_payload(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    wait = parked(watch.run(shared, "wait_for_event", {"timeout": 5, "topic": "orders"}))
    assert wait == Wait(WaitKind.EVENT, "event:go#1", "go", timeout=5.0, topic="orders")
    with_default = parked(watch.run(shared, "wait_for_event", {"default": None, "name": "mine"}))
    assert with_default == Wait(WaitKind.EVENT, "mine", "go", on_timeout="default", default="null")

    desk.pages = [Journal(waits=(answered("event:go#1", WaitKind.EVENT, Answer.EVENT, {"n": 1}),))]
    assert watch.result(shared, "wait_for_event", {}) == {"n": 1}
    desk.pages = [Journal(waits=(answered("event:go#1", WaitKind.EVENT, Answer.DEFAULT),))]
    assert watch.result(shared, "wait_for_event", {}) is None


def test_a_wait_without_an_end_is_refused(watch: FlowWatch, shared: int, desk: Desk) -> None:
    said = watch.result(shared, "bad_waits")
    assert len(said) == 7
    assert "omit it for the default" in said[0]


def test_two_approvals_in_a_loop_are_two(watch: FlowWatch, shared: int, desk: Desk) -> None:
    first = answered("approval#1", WaitKind.APPROVAL, Answer.APPROVED, by="ann")
    assert parked(watch.run(shared, "approvals_in_a_loop")).name == "Round 0?"
    desk.pages = [Journal(waits=(first,))]
    assert parked(watch.run(shared, "approvals_in_a_loop")).name == "Round 1?"
    second = answered("approval#2", WaitKind.APPROVAL, Answer.APPROVED, by="bob")
    desk.pages = [Journal(waits=(first, second))]
    assert watch.result(shared, "approvals_in_a_loop") == ["ann", "bob"]


def test_an_approval_of_a_coroutine_says_who_may_and_gives_the_decision(
    watch: FlowWatch, shared: int, desk: Desk
) -> None:
    wait = parked(watch.run(shared, "approval_async"))
    assert (wait.who, wait.on_timeout, wait.timeout) == (("ann", "bob"), "reject", 60.0)
    yes = answered("approval#1", WaitKind.APPROVAL, Answer.APPROVED, by="ann", comment="fine")
    desk.pages = [Journal(waits=(yes,))]
    assert watch.result(shared, "approval_async") == ["ann", "fine"]


def test_a_rejection_is_raised_with_who_and_why(watch: FlowWatch, shared: int, desk: Desk) -> None:
    no = answered("approval#1", WaitKind.APPROVAL, Answer.REJECTED, by="ann", comment="no")
    desk.pages = [Journal(waits=(no,))]
    assert watch.result(shared, "rejected") == ["Push?", "ann", "no"]


def test_a_bare_except_does_not_keep_a_handler_from_parking(watch: FlowWatch, shared: int, desk: Desk) -> None:
    finished = watch.run(shared, "bare_except")
    assert parked(finished).name == "Push?"
    assert watch.output(finished) == "raised,raised,raised,raised\n"
    assert parked(watch.run(shared, "parks_and_raises")).timeout == 5.0


@pytest.mark.parametrize("workflow", ["wait_in_task_group", "wait_in_forgotten_task"])
def test_a_wait_in_a_task_of_its_own_parks_the_whole_handler(
    watch: FlowWatch, shared: int, desk: Desk, workflow: str
) -> None:
    finished = watch.finished(watch.feed(shared, workflow), within=10)
    assert parked(finished).name == "go"


def test_two_waits_of_one_name_are_refused(watch: FlowWatch, shared: int, desk: Desk) -> None:
    desk.pages = [Journal(waits=(answered("w", WaitKind.EVENT, Answer.EVENT, 1),))]
    assert "two waits named 'w'" in refused(watch.run(shared, "same_name_twice"))[1]


def test_an_answer_to_another_kind_of_wait_is_not_taken(watch: FlowWatch, shared: int, desk: Desk) -> None:
    desk.pages = [Journal(waits=(answered("event:go#1", WaitKind.TIME, Answer.DUE),))]
    assert refused(watch.run(shared, "wait_for_event", {}))[0] == "InvalidInput"


# --- children and budget ------------------------------------------------------------------------------------------


def test_children_are_spawned_once_and_gathered_in_order(watch: FlowWatch, shared: int, desk: Desk) -> None:
    wait = parked(watch.run(shared, "parent"))
    assert wait == Wait(WaitKind.CHILDREN, "children#1", children=("child-1", "child-2"))
    assert [(s.name, s.ordinal, s.job.tenant) for s in desk.questions(SpawnMessage)] == [
        ("child_work", 1, "default"),
        ("child_work", 2, "default"),
    ]

    children = tuple(Child(f"kept-{n}", "child_work", n, 1, "COMPLETED") for n in (1, 2))
    ends = [{"id": "kept-1", "state": "COMPLETED", "result": 1}, {"id": "kept-2", "state": "COMPLETED", "result": 2}]
    desk.pages = [Journal(waits=(answered("children#1", WaitKind.CHILDREN, Answer.ENDED, ends),), children=children)]
    desk.heard.clear()
    assert watch.result(shared, "parent") == [1, 2]
    assert not desk.questions(SpawnMessage)
    assert not desk.questions(GatherMessage)


def test_a_child_of_an_earlier_run_is_asked_for_again(watch: FlowWatch, shared: int, desk: Desk) -> None:
    desk.pages = [Journal(children=(Child("old", "child_work", 1, 0, "FAILED"),))]
    parked(watch.run(shared, "parent"))
    assert [s.ordinal for s in desk.questions(SpawnMessage)] == [1, 2]


def test_children_that_have_ended_already_park_nobody(watch: FlowWatch, shared: int, desk: Desk) -> None:
    failed = {"id": "child-2", "state": "FAILED", "result": None, "error_type": "ValueError", "error_message": "no"}
    desk.gathered = json.dumps([{"id": "child-1", "state": "COMPLETED", "result": 1}, failed])
    assert watch.result(shared, "parent") == [["child-2", "FAILED"]]


def test_a_child_gathered_twice_and_a_deadlock_are_refused(watch: FlowWatch, shared: int, desk: Desk) -> None:
    desk.gathered = json.dumps([{"id": "child-1", "state": "COMPLETED", "result": 1}])
    assert "gathered twice" in refused(watch.run(shared, "gathers_twice"))[1]
    desk.says = lambda q: (
        RefusedMessage("TargetDeadlock", "they would wait for each other") if isinstance(q, GatherMessage) else None
    )
    assert refused(watch.run(shared, "gathers_twice")) == ("TargetDeadlock", "they would wait for each other")


def test_spending_over_the_budget_is_raised_with_the_limit(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "spends") == "used 120 of 100 tokens"
    desk.budget, desk.used = 1000.0, 0.0
    assert watch.result(shared, "spends") == [{"tokens": 60.0}, {"tokens": 120.0}]


# --- a store that is away, requests, ends -------------------------------------------------------------------------


@pytest.mark.parametrize("workflow", ["two_steps", "two_steps_async", "many_steps_at_once"])
@pytest.mark.parametrize("alone", [False, True])
def test_a_request_to_stop_wakes_who_waits_for_an_answer(
    watch: FlowWatch, shared: int, solo: int, desk: Desk, workflow: str, alone: bool
) -> None:
    desk.is_away = True
    executor = solo if alone else shared
    ref = watch.feed(executor, workflow, *([30] if workflow == "many_steps_at_once" else []))
    watch.flow_call(ref)
    watch.fleet.cancel(executor, ref, RequestKind.CANCEL, "enough")
    outcome = watch.finished(ref, within=5).outcome
    assert outcome == Stopped(RequestKind.CANCEL, "enough")


def test_an_attempt_that_is_not_ours_any_more_stops(watch: FlowWatch, shared: int, desk: Desk) -> None:
    desk.says = lambda _: Fenced()
    outcome = watch.run(shared, "two_steps").outcome
    assert isinstance(outcome, Stopped)
    assert outcome.asked is None


def test_what_a_finished_step_gave_is_sent_before_the_stop(watch: FlowWatch, shared: int, desk: Desk) -> None:
    """A19: interrupted while its result was on the way; whoever resumes it finds the step."""
    desk.says = lambda question: _never() if isinstance(question, RecordStep) else None
    ref = watch.feed(shared, "two_steps")
    with pytest.raises(_Never):
        watch.finished(ref)
    watch.fleet.cancel(shared, ref, RequestKind.INTERRUPT, "")
    desk.says = lambda _: None
    watch.finished(ref)
    events = [event for event in watch.events if getattr(event, "ref", None) == ref]
    assert isinstance(events[-1], Finished)
    assert any(isinstance(e, FlowCall) and isinstance(e.question, RecordStep) for e in events[:-1])


class _Never(Exception):
    pass


def _never() -> Any:
    raise _Never


def test_a_thread_that_outlives_its_attempt_asks_for_nothing_any_more(watch: FlowWatch, desk: Desk) -> None:
    own = watch.executor()
    assert watch.result(own, "leaves_a_thread_that_steps") == "done"
    watch.hear_for(0.6)
    assert watch.result(own, "step_by_current") == 4
    assert "late" not in {s.name for s in desk.questions(RecordStep)}


def test_a_deaf_step_on_the_main_thread_is_interrupted(watch: FlowWatch, solo: int, desk: Desk) -> None:
    """What a step calls is the handler's, as what the handler itself calls."""
    ref = watch.begin(solo, "deaf_step")
    watch.flow_call(ref)
    with pytest.raises(AssertionError):
        watch.wait(lambda: None, within=0.3)
    watch.fleet.interrupt(solo, ref)
    outcome = watch.finished(ref, within=5).outcome
    assert isinstance(outcome, Stopped)


def test_a_sync_handler_may_have_a_loop_of_its_own(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "own_loop", False) == 3
    assert parked(watch.run(shared, "own_loop", True)).name == "Push?"
    desk.is_away = True
    ref = watch.feed(shared, "own_loop", False)
    watch.flow_call(ref)
    watch.fleet.cancel(shared, ref, RequestKind.CANCEL, "enough")
    assert watch.finished(ref, within=5).outcome == Stopped(RequestKind.CANCEL, "enough")


def test_a_step_too_many_is_not_even_called(watch: FlowWatch, shared: int, desk: Desk) -> None:
    desk.pages = [Journal(steps=tuple(step(f"s{n}", 1) for n in range(10_000)))]
    kind, message = refused(watch.run(shared, "one_step_more"))
    assert (kind, "one too many" in message) == ("InvalidInput", True)
    assert desk.questions(RecordStep) == []


# --- hostile executors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        RecordStep("", 1, "1", 0),
        RecordStep("x", 0, "1", 0),
        RecordStep("x", 1, "{", 0),
        RecordStep("x", 1, '"' + "x" * 5000 + '"', 0),
        Spend({"tokens": -1.0}),
        Spend({"tokens": float("nan")}),
        GatherMessage(["c" * 1000], False),
        LoadJournal(-1),
        KeepPart("", "1"),
        KeepPart("x", "{"),
        KeepPart("x", '"' + "x" * (64 << 10) + '"'),
        KeepPart("x", "[" * 200 + "]" * 200),
        Publish(0, Publication("ok", "{}")),
        Publish(10_001, Publication("ok", "{}")),
        Publish(1, Publication("completed", "{}")),
        Publish(1, Publication("a\nb", "{}")),
        Publish(1, Publication("ok", "[]")),
        Publish(1, Publication("ok", "{")),
        Publish(1, Publication("ok", "{" + " " * (16 << 10) + "}")),
        Publish(1, Publication("ok", "{}", topic="a\nb")),
        Publish(1, Publication("ok", "{}", ttl=-1.0)),
        Publish(1, Publication("ok", "{}", ttl=float("nan"))),
    ],
)
def test_nonsense_costs_the_executor_that_said_it(question: Any) -> None:
    from unstuck.executor.messages import BadFrame
    from unstuck.worker.validate import check_question

    with pytest.raises(BadFrame):
        check_question(question, 1000)


def test_more_flow_calls_than_an_executor_of_ours_sends_are_a_bad_frame(watch: FlowWatch, desk: Desk) -> None:
    desk.is_away = True
    own = watch.executor()
    ref = watch.feed(own, "many_steps_at_once", 5)
    watch.flow_call(ref)
    member = watch.fleet._members[own]
    (number,) = member.fed
    frame = pack([FlowCallMessage(number, 100 + n, LoadJournal(0)) for n in range(MAX_FLOW_CALLS)])
    for message in member.inbox.take(frame)[: MAX_FLOW_CALLS - 1]:
        watch.fleet._channel._take(member, message)
    with pytest.raises(Exception, match="flow calls"):
        watch.fleet._channel._take(member, FlowCallMessage(number, 999, LoadJournal(0)))
    watch.fleet.kill(own, "enough")


def test_a_wait_that_no_executor_of_ours_asks_for_is_a_bad_frame() -> None:
    from unstuck.executor.messages import BadFrame, Park
    from unstuck.worker.validate import outcome_of

    good = Wait(WaitKind.EVENT, "event:go#1", "go", timeout=1.0)
    assert outcome_of(Park(1, 1, good, None), 1000) == Parked(good)
    for change in (
        {"timeout": 0.0},
        {"timeout": float("inf")},
        {"key": "k" * 1000},
        {"name": "a\x00b"},
        {"default": "{"},
        {"on_timeout": "default"},
        {"children": ("c",) * 2000},
    ):
        with pytest.raises(BadFrame):
            outcome_of(Park(1, 1, replace(good, **change), None), 1000)


def test_a_job_that_uses_no_flow_asks_for_nothing(watch: FlowWatch, shared: int, desk: Desk) -> None:
    finished = watch.run(shared, "uses_no_flow")
    assert isinstance(finished.outcome, Returned)
    assert not [e for e in watch.events if isinstance(e, FlowCall) and e.ref == finished.ref]


# awaited or not, side by side, and again after a failure


@pytest.mark.parametrize("how", ["dropped", "kept", "kept alone"])
def test_a_wait_that_is_not_awaited_fails_the_job(watch: FlowWatch, shared: int, desk: Desk, how: str) -> None:
    """One that is dropped at once, as without `await`, is noticed before the next step is taken."""
    outcome = watch.run(shared, "forget_an_approval", how).outcome

    assert isinstance(outcome, Raised)
    assert outcome.error.message == "ctx.approval was not awaited: in a coroutine write `await ctx.approval(…)`"
    assert outcome.retry is False
    assert any(isinstance(heard.question, RecordStep) for heard in desk.heard) == (how == "kept")


def test_steps_of_one_name_in_one_task_keep_their_order(watch: FlowWatch, shared: int, desk: Desk) -> None:
    assert watch.result(shared, "fetch_side_by_side", "one task") == [0, 1, 2]

    steps = {(h.question.ordinal, h.question.result) for h in desk.heard if isinstance(h.question, RecordStep)}
    assert steps == {(1, "0"), (2, "1"), (3, "2")}


def test_steps_of_one_name_in_several_tasks_are_refused(watch: FlowWatch, shared: int, desk: Desk) -> None:
    """In a later attempt one of them might get what belongs to another."""
    outcome = watch.run(shared, "fetch_side_by_side", "tasks").outcome

    assert isinstance(outcome, Raised)
    assert "'fetch' is under way in another task or thread" in outcome.error.message


def test_a_step_that_failed_and_is_called_again_is_the_same_step(watch: FlowWatch, shared: int, desk: Desk) -> None:
    """Else the next attempt, finding nothing under the first one's number, would pay once more."""
    assert watch.result(shared, "pay_twice_at_most") == "paid"

    assert [h.question.ordinal for h in desk.heard if isinstance(h.question, RecordStep)] == [1]


def test_a_wait_of_a_later_run_has_a_key_of_its_own(
    watch: FlowWatch, shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision that was meant for the first run's question must not pass for one to the second's."""
    first = parked(watch.run(shared, "wait_for_event", {}))
    monkeypatch.setattr(watch, "run_number", 3)
    third = parked(watch.run(shared, "wait_for_event", {}))

    assert (first.key, third.key) == ("event:go#1", "3:event:go#1")
