"""What a handler does and what the supervisor hears of it, with real processes, forked and spawned."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.executor.watch import Watch
from unstuck.model.lifecycle import RequestKind
from unstuck.model.settlement import Raised, Returned, Stopped
from unstuck.worker.processes import Finished, Started


def raised(finished: Finished) -> Raised:
    assert isinstance(finished.outcome, Raised), finished
    return finished.outcome


@pytest.mark.parametrize("name", ["add", "add_async"])
def test_a_handler_returns_its_result(watch: Watch, shared: int, name: str) -> None:
    assert watch.run(shared, name, 1, 2).outcome == Returned("3")


@pytest.mark.parametrize("name", ["add", "add_async"])
def test_a_start_is_heard_before_its_end_or_not_at_all(watch: Watch, shared: int, name: str) -> None:
    """Some of so many are caught between the two; of the others the end says it all."""
    for _ in range(10):
        refs = [watch.feed(shared, name, 1, 2) for _ in range(20)]
        for ref in refs:
            watch.finished(ref)

    order = [event.ref for event in watch.events if isinstance(event, Started | Finished)]
    ends = [event.ref for event in watch.events if isinstance(event, Finished)]
    assert len(ends) == len(set(ends))
    for event in watch.events:
        if isinstance(event, Started) and event.ref in ends:
            assert order.count(event.ref) == 2
            assert watch.events.index(event) < watch.events.index(watch.finished(event.ref))


@pytest.mark.parametrize("name", ["add", "add_async"])
def test_an_executor_that_is_alone_runs_both_kinds(watch: Watch, solo: int, name: str) -> None:
    assert watch.run(solo, name, 1, 2).outcome == Returned("3")


def test_sync_handlers_run_on_threads_async_ones_and_those_alone_on_the_main_thread(
    watch: Watch, shared: int, solo: int
) -> None:
    assert watch.result(shared, "who")["main"] is False
    assert watch.result(shared, "who_async")["main"] is True
    assert watch.result(solo, "who")["main"] is True
    assert watch.result(solo, "who_async")["main"] is True


def test_the_context_says_which_attempt_this_is(watch: Watch, shared: int) -> None:
    job = watch.job("who", timeout=60.0, tenant="acme")
    watch.fleet.feed(shared, [job])
    seen = json.loads(watch.finished(job.ref).outcome.result)  # type: ignore[union-attr,arg-type]

    assert seen["job"] == job.id
    assert seen["fence"] == [job.id, job.ref.token, job.ref.claim]
    assert (seen["workflow"], seen["attempt"], seen["run"], seen["tenant"]) == ("who", 3, 2, "acme")
    assert seen["key"] == f"{job.id}:2:mail"
    assert seen["same"] is True
    assert 50 < seen["remaining"] <= 60
    assert seen["stdin"] == ""


def test_current_follows_into_the_threads_of_to_thread(watch: Watch, shared: int) -> None:
    assert watch.result(shared, "who_async")["same"] is True


def test_on_start_hooks_ran_in_this_very_process(watch: Watch, shared: int) -> None:
    seen = watch.result(shared, "who")

    assert seen["hooks"] == [f"sync in {seen['pid']}", f"async in {seen['pid']}"]


@pytest.mark.parametrize("name", ["boom", "boom_async"])
def test_an_exception_keeps_its_name_its_message_and_the_users_stack(watch: Watch, shared: int, name: str) -> None:
    outcome = raised(watch.run(shared, name))

    assert (outcome.error.type, outcome.error.message) == ("ValueError", "no good")
    assert outcome.retry is None
    assert "apps.py" in (outcome.error.stack or "")
    assert "unstuck/executor" not in (outcome.error.stack or "")


def test_retry_and_fail_are_the_handlers_own_word(watch: Watch, shared: int) -> None:
    again = raised(watch.run(shared, "retry", 12.5))
    assert (again.retry, again.after) == (True, 12.5)

    never = raised(watch.run(shared, "fail"))
    assert (never.retry, never.error.type) == (False, "Fail")


@pytest.mark.parametrize(("kind", "retried"), [("os", True), ("value", False)])
def test_retry_on_retries_only_what_it_names(watch: Watch, shared: int, kind: str, retried: bool) -> None:
    assert raised(watch.run(shared, "only_os_errors", kind)).retry is retried


def test_hostile_exceptions_are_captured_bounded(watch: Watch, shared: int) -> None:
    """F29."""
    assert raised(watch.run(shared, "hostile")).error.type == "Hostile"

    huge = raised(watch.run(shared, "huge_message")).error
    assert len(huge.message) < 20_000
    assert "\x00" not in huge.message
    huge.message.encode()

    deep = raised(watch.run(shared, "deep", 10_000)).error
    assert deep.message == "the bottom"
    assert len(deep.stack or "") < 40_000


@pytest.mark.parametrize("executor", ["shared", "solo"])
def test_leaving_the_interpreter_fails_the_job_and_nothing_else(
    watch: Watch, executor: str, request: pytest.FixtureRequest
) -> None:
    """F02."""
    number = request.getfixturevalue(executor)
    before = watch.pid(number)

    assert raised(watch.run(number, "leave", 0)).error.type == "SystemExit"
    assert raised(watch.run(number, "interrupt")).error.type == "KeyboardInterrupt"
    assert raised(watch.run(number, "leave_in_subtask")).error.type == "SystemExit"
    assert watch.run(number, "leave_in_forgotten_subtask").outcome == Returned('"True"')
    assert watch.pid(number) == before


def test_arguments_that_cannot_be_read_are_an_invalid_job(watch: Watch, shared: int) -> None:
    job = watch.job("add")._replace(payload="not json")
    watch.fleet.feed(shared, [job])

    outcome = raised(watch.finished(job.ref))
    assert (outcome.error.type, outcome.retry) == ("InvalidJob", False)


def test_a_workflow_this_app_does_not_have_is_refused(watch: Watch, shared: int) -> None:
    outcome = raised(watch.run(shared, "nobody_knows"))

    assert (outcome.error.type, outcome.retry) == ("UnknownWorkflow", False)


def test_results_that_cannot_be_stored_fail_at_once(watch: Watch, shared: int) -> None:
    """F28."""
    for name in ("not_json", "too_big"):
        outcome = raised(watch.run(shared, name, max_result=100))
        assert (outcome.error.type, outcome.retry) == ("ResultNotStorable", False)

    assert raised(watch.run(shared, "unreadable_result")).error.type == "NotStorable"


def test_a_result_of_another_type_than_declared_fails_at_once(watch: Watch, shared: int) -> None:
    outcome = raised(watch.run(shared, "wrong_type"))
    assert (outcome.error.type, outcome.retry) == ("InvalidResult", False)
    assert (
        outcome.error.message == "the result of wrong_type is not what its signature says: Expected `int`, got `str`"
    )


def test_a_big_result_arrives_and_does_not_hold_up_others(watch: Watch, shared: int) -> None:
    big = watch.feed(shared, "big", 20 << 20, max_result=64 << 20)
    small = watch.feed(shared, "add", 1, 1)

    assert watch.finished(small).outcome == Returned("2")
    assert len(watch.finished(big).outcome.result or "") == (20 << 20) + 2  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("executor", "name", "args"),
    [
        ("shared", "sleep", [30]),
        ("shared", "sleep_async", [30]),
        ("shared", "ctx_sleep_async", [30]),
        ("shared", "sleep_in_own_loop", [30]),
        ("shared", "check_forever", []),
        ("solo", "sleep", [30]),
        ("solo", "sleep_async", [30]),
        ("solo", "sleep_in_own_loop", [30]),
    ],
)
def test_a_cooperative_handler_stops_within_a_second(
    watch: Watch, executor: str, name: str, args: list[float], request: pytest.FixtureRequest
) -> None:
    """A17, the executor's part."""
    number = request.getfixturevalue(executor)
    ref = watch.begin(number, name, *args)

    watch.fleet.cancel(number, ref, RequestKind.INTERRUPT, "enough")

    assert watch.finished(ref, within=1.0).outcome == Stopped(RequestKind.INTERRUPT, "enough")


def test_a_handler_that_returns_after_its_cancel_has_returned(watch: Watch, shared: int) -> None:
    ref = watch.begin(shared, "returns_anyway")

    watch.fleet.cancel(shared, ref, RequestKind.TIMEOUT, "too long")

    assert watch.finished(ref).outcome == Returned('"timeout: too long"')


def test_a_handler_that_raises_while_it_cleans_up_has_raised(watch: Watch, shared: int) -> None:
    ref = watch.begin(shared, "swallow")

    watch.fleet.cancel(shared, ref, RequestKind.CANCEL, "")

    assert raised(watch.finished(ref)).error.message == "while cleaning up"


def test_a_cancel_by_the_worker_itself_names_no_request(watch: Watch, shared: int) -> None:
    ref = watch.begin(shared, "sleep", 30)

    watch.fleet.cancel(shared, ref, None, "lease lost")

    assert watch.finished(ref).outcome == Stopped(None, "lease lost")


def test_what_has_not_started_is_recalled_or_cancelled_without_running(watch: Watch, solo: int) -> None:
    busy = watch.begin(solo, "sleep", 30)
    recalled, cancelled, kept = (watch.feed(solo, "add", 1, 1) for _ in range(3))

    watch.fleet.recall(solo, [busy, recalled])
    assert watch.recalled(recalled).refs == (recalled,)
    watch.fleet.cancel(solo, cancelled, RequestKind.CANCEL, "not needed")
    assert watch.recalled(cancelled).refs == (cancelled,)
    watch.fleet.cancel(solo, busy, RequestKind.CANCEL, "go")

    assert watch.finished(kept).outcome == Returned("2")
    assert watch.first(Started, ref=recalled) is None
    assert watch.first(Started, ref=cancelled) is None


def test_blocked_threads_and_a_blocked_loop_do_not_keep_others_waiting(
    watch: Watch, shared: int, tmp_path: Path
) -> None:
    go_on = tmp_path / "go on"
    names = ["block_until"] * 4 + ["block_loop_until"]
    blocked = [watch.begin(shared, name, str(go_on)) for name in names]

    assert watch.result(shared, "add", 1, 1) == 2
    assert not [ref for ref in blocked if watch.first(Finished, ref=ref)]
    go_on.touch()
    for ref in blocked:
        watch.finished(ref)


def test_never_more_handlers_at_once_than_slots(watch: Watch, shared: int) -> None:
    jobs = [watch.job(name, 0.2) for name in ["block", "sleep_async"] for _ in range(12)]
    watch.fleet.feed(shared, jobs)
    watch.wait(lambda: sum(1 for job in jobs if watch.first(Started, ref=job.ref)) >= 16 or None)

    view = next(view for view in watch.fleet.views() if view.executor == shared)
    assert len(view.running) <= 16
    for job in jobs:
        watch.finished(job.ref)


def test_what_a_handler_prints_and_logs_is_its_own(watch: Watch, shared: int) -> None:
    finished = watch.run(shared, "talk")

    assert watch.output(finished) == "printed\nto stderr\nINFO tests: logged line\nsaid n=1\n"
    assert watch.said(finished.ref, "progress") == ['{"done":2}']


def test_interleaved_coroutines_keep_their_output_apart(watch: Watch, shared: int) -> None:
    refs = {name: watch.feed(shared, "talk_async", name) for name in "abc"}

    for name, ref in refs.items():
        assert watch.output(watch.finished(ref)) == "".join(f"{name} {n}\n" for n in range(3))


def test_output_is_streamed_while_the_handler_runs(watch: Watch, shared: int, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    ref = watch.begin(shared, "talk_until", str(go_on))
    watch.wait(lambda: watch.said(ref, "output") or None)
    assert watch.said(ref, "output") == ["first words\n"]
    go_on.touch()
    assert watch.finished(ref).output == "last words\n"


def test_a_flood_of_output_is_capped_with_its_middle_cut(watch: Watch, shared: int) -> None:
    """F27."""
    finished = watch.run(shared, "flood", 20)
    text = watch.output(finished)

    assert finished.outcome == Returned('"flooded"')
    assert len(text) < 70_000
    assert text.startswith("0  ")
    assert text.rstrip().endswith("20479")
    assert "characters cut" in text


def test_a_flood_past_the_capture_neither_blocks_nor_reaches_the_attempt(
    watch: Watch, shared: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """F27."""
    finished = watch.run(shared, "flood_descriptor", 20)

    assert finished.outcome == Returned('"flooded"')
    assert watch.output(finished) == ""
    assert 1000 < len(capfd.readouterr().err) < 1 << 20


@pytest.mark.parametrize("executor", ["shared", "solo"])
@pytest.mark.parametrize("name", ["set_variable", "set_variable_async"])
def test_context_variables_of_one_job_are_not_seen_by_the_next(
    watch: Watch, executor: str, name: str, request: pytest.FixtureRequest
) -> None:
    """F25."""
    number = request.getfixturevalue(executor)

    assert [watch.result(number, name, "dirty") for _ in range(10)] == ["clean"] * 10


def test_middleware_is_around_every_attempt(watch: Watch, shared: int) -> None:
    for name in ("add", "add_async"):
        finished = watch.run(shared, name, 1, 1, tenant="watched")
        assert watch.output(finished) == f"before {name}\nafter {name}\n"

    failed = watch.run(shared, "boom", tenant="watched")
    assert watch.output(failed) == "before boom\nafter boom\n"


@pytest.mark.parametrize("executor", ["shared", "solo"])
def test_a_handler_that_stops_its_loop_stops_nobody(
    watch: Watch, executor: str, request: pytest.FixtureRequest
) -> None:
    number = request.getfixturevalue(executor)

    assert watch.result(number, "stop_the_loop") == "still here"
    assert watch.result(number, "add_async", 1, 1) == 2


def test_nothing_is_said_of_an_attempt_after_its_end(mode: str) -> None:
    """Reports of running attempts race their ends: with a pulse this short, hundreds of times."""
    watch = Watch(mode, pulse=0.0001)
    try:
        executor = watch.executor()
        watch.run(executor, "switch_threads_often")
        jobs = [watch.job("talk_briefly", n % 5) for n in range(400)]
        watch.fleet.feed(executor, jobs)
        for job in jobs:
            finished = watch.finished(job.ref)
            assert watch.output(finished) == "one\ntwo\n"
            assert watch.said(job.ref, "progress")[-1] == "2"
    finally:
        watch.close()


def test_tasks_that_a_handler_left_behind_are_cancelled(watch: Watch, shared: int, tmp_path: Path) -> None:
    path = tmp_path / "late"
    watch.run(shared, "stray_task", str(path))

    watch.hear_for(0.6)

    assert not path.exists()


def test_a_termination_signal_is_left_to_the_supervisor(watch: Watch, shared: int) -> None:
    assert watch.result(shared, "ignore_termination") == "still here"


def test_four_thousand_jobs_come_back_each_exactly_once(watch: Watch, shared: int) -> None:
    jobs = [watch.job("add", n, 1) for n in range(2000)] + [watch.job("add_async", n, 1) for n in range(2000)]
    before = len(watch.events)
    for begin in range(0, len(jobs), 200):
        watch.fleet.feed(shared, jobs[begin : begin + 200])

    def all_finished() -> bool | None:
        return sum(isinstance(event, Finished) for event in watch.events[before:]) >= len(jobs) or None

    watch.wait(all_finished, within=30.0)
    finished = [event for event in watch.events[before:] if isinstance(event, Finished)]
    assert sorted(event.ref.job for event in finished) == sorted(job.ref.job for job in jobs)
    expected = {job.ref: Returned(str(json.loads(job.payload)[0][0] + 1)) for job in jobs}
    assert {event.ref: event.outcome for event in finished} == expected
