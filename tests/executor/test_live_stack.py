"""Where an attempt is: the chain of awaits of a coroutine, the frames of a thread, and nothing of ours above them."""

from __future__ import annotations

import pytest

from tests.executor.watch import Watch
from unstuck.executor.describe import MAX_FRAMES, MAX_STACK
from unstuck.model.job import AttemptRef

HANDLERS = "tests.executor.hard_cases:app"


def shown(watch: Watch, executor: int, ref: AttemptRef) -> str:
    watch.hear_for(0.1)
    watch.fleet.dump(executor, [ref])
    return watch.wait(lambda: watch.fleet.stack(executor, ref))


def functions(text: str) -> list[str]:
    """Names of the functions in the order they are shown."""
    return [line.rpartition(" in ")[2] for line in text.splitlines() if line.startswith("  File ")]


@pytest.mark.parametrize("name", ["sleep_async", "ctx_sleep_async"])
def test_a_suspended_coroutine_is_shown_from_its_handler_to_where_it_waits(
    watch: Watch, shared: int, name: str
) -> None:
    ref = watch.begin(shared, name, 30)

    text = shown(watch, shared, ref)

    assert text.startswith("In its coroutine (most recent call last):\n")
    assert functions(text)[0] == name
    assert functions(text)[-1] == "sleep"
    assert "tests/executor/apps.py" in text


def test_the_chain_goes_on_through_tasks_and_async_generators(watch: Watch, shared: int) -> None:
    ref = watch.begin(shared, "waits_deep_inside")

    assert functions(shown(watch, shared, ref)) == ["waits_deep_inside", "third", "fourth", "fifth", "sleep"]


def test_a_coroutine_that_swallows_its_cancel_is_found(watch: Watch, shared: int) -> None:
    """A25: it is on no thread's stack."""
    ref = watch.begin(shared, "swallows_cancels")
    watch.fleet.cancel(shared, ref, None, "enough")

    assert functions(shown(watch, shared, ref)) == ["swallows_cancels", "fifth", "sleep"]


def test_a_long_chain_is_cut_to_its_innermost_frames(watch: Watch, shared: int) -> None:
    text = shown(watch, shared, watch.begin(shared, "awaits_for_ever"))

    assert len(functions(text)) == MAX_FRAMES
    assert functions(text)[-2:] == ["down", "sleep"]
    assert len(text) <= MAX_STACK + 20


def test_work_in_a_thread_of_the_pool_is_shown_with_its_coroutine(watch: Watch, shared: int) -> None:
    text = shown(watch, shared, watch.begin(shared, "waits_for_a_thread"))

    assert "In the thread of asyncio.to_thread(sleep_inside_a_thread) (most recent call last):" in text
    assert functions(text)[0] == "waits_for_a_thread"
    assert functions(text)[-1] == "sleep_inside_a_thread"


@pytest.mark.parametrize(
    ("name", "title"), [("hang_async", "On the event loop right now"), ("hang", "In its thread")]
)
def test_a_handler_that_blocks_is_shown_where_it_does(watch: Watch, name: str, title: str) -> None:
    executor = watch.executor()
    text = shown(watch, executor, watch.begin(executor, name, "event"))

    assert text.startswith(f"{title} (most recent call last):\n")
    assert functions(text)[:2] == [name, "<lambda>"]
    assert functions(text)[-1] == "wait"
    watch.fleet.kill(executor, "done")
    watch.died(executor)


def test_one_that_has_ended_or_not_begun_is_not_shown(watch: Watch) -> None:
    executor = watch.executor(alone=True)
    watch.begin(executor, "block", 0.5)
    waiting = watch.feed(executor, "add", 1, 2)
    watch.fleet.dump(executor, [waiting])
    watch.hear_for(0.2)

    assert watch.fleet.stack(executor, waiting) is None
    watch.finished(waiting)


def test_a_hundred_questions_do_not_disturb_who_is_asked_about(watch: Watch) -> None:
    executor = watch.executor()
    refs = [watch.feed(executor, "short_steps", n) for n in range(100)]
    for _ in range(20):
        watch.fleet.dump(executor, refs)
        watch.hear_for(0.005)
    for n, ref in enumerate(refs):
        assert watch.finished(ref).outcome.result == str(n)  # type: ignore[union-attr]
