"""Every culprit of the gallery beside innocents in one process: verdict, time, stack, innocents, capacity, family."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.conftest import Jobs, spawn_once
from tests.journeys.ladder import (
    SLACK,
    TIMES,
    Start,
    accompanied,
    capacity_is_whole,
    ended,
    executors,
    family_is_gone,
    is_alive,
    is_stuck,
    on_sqlite_in_both_modes,
    recycled,
    replaced_at_once,
    rerun_as_suspects,
    rerun_at_no_cost,
    story,
    turns,
    undisturbed,
)
from tests.support.eventually import eventually
from tests.support.workers import ROOT
from tests.tiers import at_a_distance
from unstuck.examples import stuck
from unstuck.model.lifecycle import JobState
from unstuck.observe.why import why
from unstuck.store.port import Store

LIMIT, GRACE = 0.5, 1.0
SHORT: dict[str, Any] = {"timeout": LIMIT, "grace": GRACE}


@pytest.fixture
def jobs(db: Store) -> Jobs:
    return Jobs(db, stuck.app)


def test_the_gallery_tells_of_every_culprit_once() -> None:
    told = re.findall(r"`((?:stuck|innocent)\.[a-z_]+)`", (ROOT / "examples/stuck/README.md").read_text())
    assert sorted(told) == sorted(stuck.app._registry.handlers)
    assert all(handler.doc for handler in stuck.app._registry.handlers.values())


@at_a_distance("postgres", mode="fork", culprit="thread_sleep")
@pytest.mark.parametrize(
    "culprit", ["thread_spin", "thread_sleep", "blocking_recv", "swallows_cancel", "coroutine_swallows_cancel"]
)
@spawn_once
def test_a25_a27_a28_who_ignores_its_limit_is_stuck_and_its_neighbours_finish_where_they_are(
    start: Start, jobs: Jobs, culprit: str
) -> None:
    company = accompanied(start, jobs)
    job = jobs.enqueue(f"stuck.{culprit}", **SHORT)

    ending = ended(jobs, job)

    is_stuck(ending, GRACE)
    assert f"in {culprit}" in ending.stack, ending.stack
    replaced_at_once(company, ending.seen_at)
    undisturbed(company, company.all)
    family_is_gone(company, within=SLACK + 1)
    capacity_is_whole(company)
    eventually(lambda: not jobs.get(job).held)


@pytest.mark.parametrize(
    ("culprit", "verb"),
    [("thread_sleep", "cancel"), ("swallows_cancel", "interrupt"), ("coroutine_swallows_cancel", "cancel")],
)
@spawn_once
def test_a25_who_ignores_a_persons_request_is_stuck(start: Start, jobs: Jobs, culprit: str, verb: str) -> None:
    """A19: an interrupt that is ignored is no pause."""
    company = accompanied(start, jobs, sync=0, coroutines=0)
    job = jobs.enqueue(f"stuck.{culprit}", timeout=60, grace=GRACE)
    eventually(lambda: jobs.get(job).started_at is not None)

    getattr(jobs.store, verb)("default", job, "a person")
    ending = ended(jobs, job)

    is_stuck(ending, GRACE)
    assert f"in {culprit}" in ending.stack, ending.stack
    family_is_gone(company)


@pytest.mark.parametrize("culprit", ["loop_sleep", "loop_spin", "subtask_blocks_loop", "regex_in_coroutine"])
@spawn_once
def test_a29_who_blocks_the_loop_is_interrupted_inside_its_grace_and_nobody_else_notices(
    start: Start, jobs: Jobs, culprit: str
) -> None:
    """A25's coroutines: the interrupt ends them, so that not even their process has to go."""
    company = accompanied(start, jobs)

    ending = ended(jobs, jobs.enqueue(f"stuck.{culprit}", **SHORT))

    assert ending.record.state is JobState.TIMEOUT, story(ending)
    assert GRACE / 2 - 0.1 <= ending.took("requested") <= GRACE + 0.3, story(ending)
    undisturbed(company, company.all)
    assert is_alive(company.pid)
    assert [post["state"] for post in executors(company)] == ["active"]
    capacity_is_whole(company)


@pytest.mark.parametrize("culprit", ["loop_sleep", "regex_in_coroutine"])
@on_sqlite_in_both_modes
def test_a_cancelled_coroutine_that_blocks_the_loop_is_interrupted(start: Start, jobs: Jobs, culprit: str) -> None:
    company = accompanied(start, jobs, sync=1, coroutines=1)
    job = jobs.enqueue(f"stuck.{culprit}", timeout=60, grace=GRACE)
    eventually(lambda: jobs.get(job).started_at is not None)

    jobs.store.cancel("default", job, "a person")

    ending = ended(jobs, job)
    assert ending.record.state is JobState.CANCELLED, story(ending)
    undisturbed(company, company.all)


def test_why_knows_of_grace_that_did_not_count(start: Start, jobs: Jobs) -> None:
    """A coroutine cannot hear of its cancel while another blocks their loop: its grace stands still meanwhile."""
    company = accompanied(start, jobs, sync=0, coroutines=1)
    [innocent] = company.coroutines
    blocker = jobs.enqueue("stuck.loop_sleep", 12.0, timeout=60)
    eventually(lambda: jobs.get(blocker).started_at is not None)

    jobs.store.cancel("default", innocent, "a person")

    def told() -> None:
        [reason] = why(jobs.store, "default", innocent, TIMES).reasons
        assert re.search(r"[45]s of its grace left \(\d+s did not count: something kept", reason.sentence), reason

    eventually(told, timeout=12)
    assert ended(jobs, innocent).record.state is JobState.CANCELLED


@pytest.mark.parametrize("culprit", ["loop_swallows_interrupt", "deaf_to_signals"])
@spawn_once
def test_a25_a29_who_blocks_the_loop_and_cannot_be_interrupted_is_stuck_and_only_the_loop_suffers(
    start: Start, jobs: Jobs, culprit: str
) -> None:
    company = accompanied(start, jobs)
    job = jobs.enqueue(f"stuck.{culprit}", **SHORT)

    ending = ended(jobs, job)

    is_stuck(ending, GRACE)
    assert f"in {culprit}" in ending.stack, ending.stack
    replaced_at_once(company, ending.seen_at)
    undisturbed(company, company.sync)
    rerun_at_no_cost(company, company.coroutines, because_of=job)
    family_is_gone(company)
    capacity_is_whole(company)


@pytest.mark.parametrize("culprit", ["regex_in_thread", "holds_gil"])
@spawn_once
def test_a25_a29_who_holds_the_interpreter_is_stuck_and_its_neighbours_run_again_at_no_cost(
    start: Start, jobs: Jobs, culprit: str
) -> None:
    company = accompanied(start, jobs)
    job = jobs.enqueue(f"stuck.{culprit}", **SHORT)

    ending = ended(jobs, job)

    is_stuck(ending, GRACE)
    assert f"in {culprit}" in ending.stack, ending.stack
    replaced_at_once(company, ending.seen_at)
    rerun_at_no_cost(company, company.all, because_of=job)
    family_is_gone(company)
    capacity_is_whole(company)


@pytest.mark.parametrize("culprit", ["os_exit", "kills_itself", "daemon_then_dies", "closes_descriptors"])
@spawn_once
def test_a12_who_ends_its_process_without_a_trace_runs_alone_next_and_then_pays(
    start: Start, jobs: Jobs, culprit: str
) -> None:
    company = accompanied(start, jobs)
    job = jobs.enqueue(f"stuck.{culprit}", timeout=60, max_lost=0)

    ending = ended(jobs, job, within=20)

    assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "ProcessDied"), story(ending)
    assert (ending.record.suspects, ending.record.losses) == (1, 1)
    assert turns(jobs, job) == ["submitted", "claimed", "lost", "claimed", "failed"], story(ending)
    left_at = next(event.at for event in ending.events if event.kind == "lost")
    assert (left_at - ending.events[1].at).total_seconds() < 5, story(ending)
    rerun_as_suspects(company, company.all)
    family_is_gone(company)
    capacity_is_whole(company)


@at_a_distance("sqlite", mode="fork")
@spawn_once
def test_a12_a29_a_crash_names_its_culprit_by_the_stack(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs)
    job = jobs.enqueue("stuck.segfault", timeout=60, max_lost=0)

    ending = ended(jobs, job)

    assert (ending.record.state, ending.record.error_type) == (JobState.FAILED, "ProcessDied"), story(ending)
    assert "in segfault" in ending.stack, ending.stack
    assert ending.took("claimed") < 5
    rerun_at_no_cost(company, company.all, because_of=job)
    family_is_gone(company)
    capacity_is_whole(company)


@spawn_once
def test_who_stops_a_process_that_it_shares_is_continued_and_nobody_loses_anything(start: Start, jobs: Jobs) -> None:
    """A25: nothing tells who did it, and nobody has to pay for it."""
    company = accompanied(start, jobs)

    ending = ended(jobs, jobs.enqueue("stuck.stops_itself", **SHORT))

    assert (ending.record.state, ending.record.late) == (JobState.COMPLETED, True), story(ending)
    told = eventually(lambda: [post["reason"] for post in executors(company) if post["reason"]])
    assert told == ["somebody stopped it (state T), and it was continued, once"]
    undisturbed(company, company.all)
    assert is_alive(company.pid)
    capacity_is_whole(company)


@spawn_once
def test_a25_who_stops_a_process_that_it_has_to_itself_is_stuck(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs, sync=0, coroutines=0)

    ending = ended(jobs, jobs.enqueue("stuck.stops_itself", **SHORT))

    is_stuck(ending, GRACE)
    assert "stopped" in ending.stack, ending.stack
    family_is_gone(company)
    capacity_is_whole(company)


@on_sqlite_in_both_modes
def test_who_obeys_but_leaves_by_os_exit_ends_as_it_was_asked(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs)

    ending = ended(jobs, jobs.enqueue("stuck.exits_in_finally", **SHORT))

    assert ending.record.state is JobState.TIMEOUT, story(ending)
    rerun_as_suspects(company, company.all)
    family_is_gone(company)


@on_sqlite_in_both_modes
def test_bad_manners_end_their_own_job_and_nothing_else(start: Start, jobs: Jobs) -> None:
    """Exits, floods, handlers of signals, foreign exceptions: one process and the same innocents survive them all."""
    company = accompanied(start, jobs, slots=16)
    asked = {name: jobs.enqueue(f"stuck.{name}", timeout=30, grace=GRACE) for name in _MANNERS}
    asked["leaks_task"] = jobs.enqueue("stuck.leaks_task")

    ends = {name: ended(jobs, job).record for name, job in asked.items()}

    told = {name: (record.state, record.error_type) for name, record in ends.items()}
    assert told == {**_MANNERS, "leaks_task": (JobState.COMPLETED, None)}
    undisturbed(company, company.all)
    # Its worker tells of its processes twice a second.
    eventually(lambda: [post["pid"] for post in executors(company)] == [company.pid])
    (flood,) = jobs.store.attempts("default", asked["floods_stdout"])
    assert 0 < len(flood.output or "") < 200_000
    assert "characters cut" in (flood.output or "")
    assert json.loads(ends["leaks_task"].result or "") == "left a task behind"
    capacity_is_whole(company)


@on_sqlite_in_both_modes
def test_who_replaces_and_closes_the_standard_output_silences_nobody_after_it(start: Start, jobs: Jobs) -> None:
    company = accompanied(start, jobs)
    assert ended(jobs, jobs.enqueue("stuck.replaces_stdout")).record.state is JobState.COMPLETED
    time.sleep(3 * TIMES.pulse)

    job = jobs.enqueue("stuck.floods_stdout", 1)

    ending = ended(jobs, job)
    assert ending.record.state is JobState.COMPLETED, story(ending)
    assert "all work and no play" in (ending.last.output or "")
    undisturbed(company, company.all)


_MANNERS = {
    "floods_stdout": (JobState.COMPLETED, None),
    "installs_signal_handlers": (JobState.FAILED, "ValueError"),
    "installs_signal_handlers_on_loop": (JobState.COMPLETED, None),
    "sys_exit": (JobState.FAILED, "SystemExit"),
    "keyboard_interrupt": (JobState.FAILED, "KeyboardInterrupt"),
    "base_exception": (JobState.FAILED, "Oddity"),
    "sys_exit_in_subtask": (JobState.FAILED, "SystemExit"),
}


@pytest.mark.parametrize(
    ("culprit", "state"),
    [
        ("leaks_thread", JobState.COMPLETED),
        ("leaks_stubborn_task", JobState.COMPLETED),
        ("to_thread_outlives", JobState.TIMEOUT),
    ],
)
@spawn_once
def test_who_leaves_work_behind_keeps_its_end_and_its_process_is_recycled(
    start: Start, jobs: Jobs, culprit: str, state: JobState
) -> None:
    company = accompanied(start, jobs)
    policy = SHORT if state is JobState.TIMEOUT else {}

    ending = ended(jobs, jobs.enqueue(f"stuck.{culprit}", **policy))

    assert ending.record.state is state, story(ending)
    assert ending.record.failures == 0
    undisturbed(company, company.all)
    family_is_gone(company)
    reasons = eventually(lambda: [gone["reason"] for gone in recycled(company) if gone["pid"] == company.pid])
    assert f"stuck.{culprit}" in reasons[0]
    capacity_is_whole(company)


@spawn_once
def test_a_daemon_that_outlives_its_job_is_gone_with_the_process(start: Start, jobs: Jobs) -> None:
    """It left the session and kept every descriptor of its process."""
    company = accompanied(start, jobs, seconds=0.5, max_jobs_per_process=4)
    job = jobs.enqueue("stuck.daemon_then_returns", timeout=30)

    daemon = int(jobs.until(job, JobState.COMPLETED).result or "0")

    undisturbed(company, company.all)
    family_is_gone(company)
    eventually(lambda: not is_alive(daemon), timeout=5)
    capacity_is_whole(company)


@on_sqlite_in_both_modes
def test_who_is_alone_in_its_process_and_blocks_is_interrupted(start: Start, jobs: Jobs) -> None:
    accompanied(start, jobs, sync=0, coroutines=0)
    ending = ended(jobs, jobs.enqueue("stuck.alone_sleep", **SHORT))
    assert ending.record.state is JobState.TIMEOUT, story(ending)
    assert ending.took("requested") <= GRACE + 0.3, story(ending)


@spawn_once
def test_a25_who_is_alone_in_its_process_and_ignores_everything_gets_term_then_kill(
    start: Start, jobs: Jobs, tmp_path: Path
) -> None:
    """No drain: its own TERM handler has the kill grace to clean up, its slot is whole afterwards."""
    company = accompanied(start, jobs)
    note = tmp_path / "note"

    ending = ended(jobs, jobs.enqueue("stuck.alone_swallows_interrupt", str(note), **SHORT))

    is_stuck(ending, GRACE)
    assert "in alone_swallows_interrupt" in ending.stack, ending.stack
    pid = int(eventually(lambda: note.read_text() if note.exists() else "").split()[0])
    assert pid != company.pid
    eventually(lambda: not is_alive(pid), timeout=3)
    undisturbed(company, company.all)
    assert is_alive(company.pid)
    again = ended(jobs, jobs.enqueue("stuck.alone_sleep", 0.2, timeout=30))
    assert again.record.state is JobState.COMPLETED, story(again)
    assert again.took("claimed") < 5
