"""What handlers fork, and what finalizers and signals do in the middle of ours: nobody waits for a lock for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.executor.forked_app import DEEDS, FLOW
from tests.executor.test_flow import FlowWatch
from unstuck.executor.marked_coroutine import COPY_STATUS

APP = "tests.executor.forked_app:app"


@pytest.fixture(scope="module")
def watch(mode: str) -> Iterator[FlowWatch]:
    watch = FlowWatch(mode, app=APP)
    watch.imported()
    yield watch
    watch.close()


@pytest.mark.parametrize("deed", DEEDS)
def test_a_forked_child_waits_for_none_of_our_locks(watch: FlowWatch, shared: int, deed: str) -> None:
    assert watch.result(shared, "forks_at_the_worst_instant", deed) == "exit 0"


@pytest.mark.parametrize("how", ["returns", "raises"])
def test_a_forked_copy_of_the_handler_ends_whoever_held_our_locks(watch: FlowWatch, shared: int, how: str) -> None:
    assert watch.result(shared, "copy_ends_its_handler", how) == f"exit {COPY_STATUS}"


def test_a_forked_child_may_be_the_first_to_ask_for_the_context(watch: FlowWatch, shared: int) -> None:
    assert watch.result(shared, "copy_asks_for_the_context_first") == "exit 0"


@pytest.mark.parametrize("verb", FLOW)
def test_a_flow_call_in_a_forked_child_is_refused_at_once(
    watch: FlowWatch, shared: int, verb: str, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    assert watch.result(shared, "child_asks", verb, str(said)) == "exit 0"
    assert said.read_text().startswith(f"InvalidInput: ctx.{verb} in another process than the handler's: ")


def test_a_step_that_forks_is_recorded_by_the_handler_alone(watch: FlowWatch, shared: int, tmp_path: Path) -> None:
    said = tmp_path / "said"
    assert watch.result(shared, "step_forks", str(said)) == "exit 0"
    assert said.read_text().startswith("InvalidInput: a flow call in another process than the handler's: ")


def test_children_speak_while_threads_of_their_parent_do(watch: FlowWatch, shared: int) -> None:
    assert watch.result(shared, "talks_and_forks", 40) == ["exit 0"]


def test_what_forked_children_say_is_in_the_workers_log_once(
    watch: FlowWatch, shared: int, mode: str, capfd: pytest.CaptureFixture[str]
) -> None:
    finished = watch.run(shared, "children_speak", f"w-{mode}")
    assert watch.output(finished) == "before\nafter\n"
    heard = ""

    def is_all_there() -> bool | None:
        nonlocal heard
        heard += capfd.readouterr().err
        return heard.count(f" w-{mode}") >= 7 or None

    watch.wait(is_all_there, every=0.05)
    watch.hear_for(0.3)
    heard += capfd.readouterr().err
    lines = [line.partition("] ")[2] for line in heard.splitlines()]
    assert sorted(lines) == [
        f"INFO shop.till: told w-{mode}",
        f"WARNING logged w-{mode} n=1",
        f"complained w-{mode}",
        f"forked w-{mode}",
        f"odd \\ud800 w-{mode}",
        f"pending w-{mode}",
        f"printed w-{mode}",
    ]


def test_what_prints_in_the_middle_of_the_first_print_is_heard_as_well(watch: FlowWatch, shared: int) -> None:
    assert watch.output(watch.run(shared, "speaks_amid_the_first_print")) == "in between\nhello\n"


@pytest.mark.parametrize(
    "name",
    [
        "speaks_amid_the_first_context",
        "asks_amid_the_first_flow",
        "sleeps_amid_the_first_sleep",
        "starts_a_thread_amid_the_first",
    ],
)
def test_what_is_made_on_demand_is_one_also_for_who_comes_in_the_middle(
    watch: FlowWatch, shared: int, name: str
) -> None:
    assert watch.result(shared, name) is True


@pytest.mark.parametrize("allocations", range(10))
def test_a_finalizer_may_speak_at_any_time(watch: FlowWatch, shared: int, allocations: int) -> None:
    lines = watch.output(watch.run(shared, "is_collected_amid", allocations)).splitlines()
    assert sorted(lines) == ["a finalizer speaks", "hello"]
