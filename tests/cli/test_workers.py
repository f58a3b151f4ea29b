"""unstuck workers, stack and health, as a worker's own words and answers are shown; on both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.command import Answer, Command
from tests.support.builders import a_worker, begin, claimed, settle
from unstuck.model.errors import ErrorType
from unstuck.model.job import ClaimedJob, WorkerRecord
from unstuck.model.offers import remote_incarnation
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.store.port import Store, WorkerOrder
from unstuck.views.workers import BodyView, WorkerView

PROCESS_KEYS = {
    "pid", "state", "generation", "alone", "memory", "jobs_done", "running", "reason", "silent_ms", "jobs",
}  # fmt: skip
JOB_KEYS = {"job", "workflow", "elapsed_ms", "on", "request", "grace_left_ms", "stuck"}
STACK = "\n".join(f'  File "shop.py", line {line}, in step_{line}\n    step_{line + 1}()' for line in range(1, 11))
MESSAGE = "Execution did not respond to cancellation within 10 seconds. Worker process recycled."


def a_process(pid: int, state: str = "active", **facts: Any) -> dict[str, Any]:
    plain = {"executor": pid % 100, "generation": 1, "alone": False, "memory": 50 << 20, "jobs_done": 12}
    rest = {"reason": "", "running": 0, "silent_for": 0.0, "jobs": []}
    return {"pid": pid, "state": state, **plain, **rest, **facts}


def a_body(job: str, **facts: Any) -> dict[str, Any]:
    plain = {"workflow": "crawl", "for": 3.0, "on": "thread", "asked": None, "grace_left": None, "stuck": False}
    return {"job": job, **plain, **facts}


def beats(store: Store, worker: WorkerRecord, state: str = "active", **info: Any) -> None:
    said = {"ready": state == "active", "slots": 8, "executors": [], **info}
    assert store.beat(worker.number, 60.0, [], state=state, info=said).alive


@pytest.fixture
def w1(unstuck: Command, store: Store) -> WorkerRecord:
    """A worker with a healthy process, one that drains because of a stuck job, and one that went."""
    worker = a_worker(store, "w1")
    bodies = [
        a_body("job-a", workflow="crawl.page", on="loop"),
        a_body("job-b", **{"for": 33.0}, asked="cancel", grace_left=40.0),
    ]
    stuck = a_process(
        4130, "draining", generation=1, reason="job job-c is stuck", running=1, silent_for=3.2,
        jobs=[a_body("job-c", stuck=True)],
    )  # fmt: skip
    gone = {"pid": 4100, "generation": 1, "reason": "1000 jobs done", "jobs_done": 1000, "at": "2026-01-01T00:00:00Z"}
    healthy = a_process(4121, generation=2, running=3, jobs=bodies)
    beats(store, worker, executors=[healthy, stuck], recycled=[gone])
    return worker


@contextmanager
def answering(
    store: Store, worker: WorkerRecord, answer: Callable[[WorkerOrder], tuple[str, bool]]
) -> Iterator[list[WorkerOrder]]:
    """The worker's part of an order, done by hand."""
    heard: list[WorkerOrder] = []
    over = threading.Event()

    def listen() -> None:
        while not over.wait(0.05):
            for order in store.orders(worker.number):
                heard.append(order)
                text, refused = answer(order)
                store.answer_order(order.number, text, refused=refused)

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        yield heard
    finally:
        over.set()
        listener.join(10)


def ask(unstuck: Command, *words: str) -> Answer:
    answer = unstuck(*words)
    assert answer.code == 0, answer.err
    return answer


# --- the tree -----------------------------------------------------------------------------------------------------


def test_the_tree_goes_from_worker_to_process_to_job(unstuck: Command, w1: WorkerRecord) -> None:
    told = ask(unstuck, "workers").out
    lines = told.splitlines()
    assert ask(unstuck, "workers", "list").out.splitlines()[0] == lines[0]
    assert lines[0] == "w1  active  running 0 of 8"
    place = lines.index("  process 4121  active  generation 2, 12 done, 50 MiB")
    assert "crawl.page  job-a" in lines[place + 1]
    assert lines[place + 1].endswith("on the loop")
    assert lines[place + 2].startswith("    crawl       job-b")
    assert "on a thread  cancel asked, " in lines[place + 2]
    assert lines[place + 2].endswith(" s of grace left")
    assert lines[place + 3] == "    … and 1 job more"
    assert lines[place + 4].startswith("  process 4130  draining  generation 1, 12 done, 50 MiB, silent for 3.2 s: ")
    assert lines[place + 4].endswith("job job-c is stuck")
    assert lines[place + 5].endswith("on a thread  STUCK")
    assert lines[place + 6] == "  went lately"
    assert lines[place + 7].startswith("    process 4100  generation 1, 1,000 done, ")
    assert lines[place + 7].endswith("1000 jobs done")


def test_programs_get_the_same_tree_under_stable_keys(unstuck: Command, w1: WorkerRecord) -> None:
    found = ask(unstuck, "workers", "--json").object
    assert (found["name"], found["state"], found["ready"]) == ("w1", "active", True)
    healthy, draining = found["processes"]
    assert healthy.keys() == draining.keys() == PROCESS_KEYS
    assert (healthy["pid"], draining["state"], draining["silent_ms"]) == (4121, "draining", 3200)
    assert [job["job"] for job in healthy["jobs"]] == ["job-a", "job-b"]
    for job in healthy["jobs"] + draining["jobs"]:
        assert job.keys() == JOB_KEYS
    # Seconds pass between a beat and a look at it.
    assert 33_000 <= healthy["jobs"][1]["elapsed_ms"] < 60_000
    assert 10_000 < healthy["jobs"][1]["grace_left_ms"] <= 40_000
    assert draining["jobs"][0]["stuck"] is True
    [gone] = found["recycled"]
    assert gone == {
        "pid": 4100, "generation": 1, "reason": "1000 jobs done", "jobs_done": 1000, "at": "2026-01-01T00:00:00.000Z",
    }  # fmt: skip


def test_a_worker_that_left_shows_no_job_as_running(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    store.unregister_worker(w1.number)
    gone = unstuck("workers", "--all")
    assert "gone" in gone.out
    assert "job-a" not in gone.out
    assert "process 4121" not in gone.out
    assert unstuck("workers", "--all", "--json").object["processes"] == []


def test_roles_that_fail_are_shown_and_keep_a_worker_from_being_ready(unstuck: Command, store: Store) -> None:
    worker = a_worker(store, "w1")
    roles = [{"name": "settle", "failing_for": 40.0, "failures": 12, "error": "RuntimeError: \x1b[31mcolumn gone"}]
    beats(store, worker, ready=False, roles=roles)
    told = ask(unstuck, "workers").out
    assert "w1  active, not ready" in told
    assert "  its settle has failed for " in told
    assert "(12 times): RuntimeError: \\x1b[31mcolumn gone" in told
    [role] = ask(unstuck, "workers", "--json").object["roles"]
    assert role.keys() == {"name", "failing_ms", "failures", "error"}
    assert (role["name"], role["failures"]) == ("settle", 12)
    assert role["failing_ms"] >= 40_000
    answer = unstuck("health", "--worker", "w1")
    assert answer.code == 10
    assert "w1 is active: its settle has failed for " in answer.out
    beats(store, worker, roles=[{**roles[0], "name": "janitor/timers"}])
    answer = unstuck("health", "--worker", "w1")
    assert answer.code == 0
    assert "w1 is ready, running 0; its janitor/timers has failed for " in answer.out


def test_what_a_worker_of_another_version_says_hides_nothing_else() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    info: dict[str, Any] = {
        "executors": ["nonsense", {"pid": 7, "running": [1, 2], "jobs": {"not": "a list"}, "silent_for": None}, {}],
        "recycled": [{"pid": "7", "at": "yesterday"}],
    }
    worker = WorkerRecord(
        1, "i", "w", "h", "b", "n", 1, 1, "active", (), "1", now, now, now + timedelta(seconds=30), info=info
    )
    seen = WorkerView.of(worker, now)
    assert [(p.pid, p.state, p.running) for p in seen.processes] == [(7, "?", 2), (0, "?", 0)]
    [gone] = seen.recycled
    assert (gone.pid, gone.at) == (0, None)


def test_grace_runs_out_between_two_beats_of_the_living_and_stands_still_with_the_lost() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    info = {"executors": [a_process(7, jobs=[a_body("j", asked="cancel", grace_left=6.0)])]}

    def seen(lease_until: datetime) -> BodyView:
        worker = WorkerRecord(
            1, "i", "w", "h", "b", "n", 1, 1, "active", (), "1", now, now, lease_until, info=info
        )  # fmt: skip
        [process] = WorkerView.of(worker, now + timedelta(seconds=4)).processes
        return process.jobs[0]

    living, lost = seen(now + timedelta(seconds=30)), seen(now + timedelta(seconds=1))
    assert (living.elapsed_ms, living.trouble) == (7000, "cancel asked, 2 s of grace left")
    assert (lost.elapsed_ms, lost.trouble) == (3000, "cancel asked, 6 s of grace left")


# --- recycle and drain --------------------------------------------------------------------------------------------


def test_a_process_is_recycled_by_its_pid(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    """A31"""
    with answering(store, w1, lambda o: (f"process {o.subject} is draining; 3 jobs finish first", False)) as heard:
        answer = ask(unstuck, "workers", "recycle", "4121", "--by", "kim")
    assert answer.word == "w1: process 4121 is draining; 3 jobs finish first"
    [order] = heard
    assert (order.kind, order.subject, order.by) == ("recycle", "4121", "kim")


def test_a_process_is_killed_by_its_pid(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    with answering(store, w1, lambda o: (f"process {o.subject} is killed; 3 of its jobs go back", False)) as heard:
        answer = ask(unstuck, "workers", "kill", "4121", "--by", "kim")
    assert answer.word == "w1: process 4121 is killed; 3 of its jobs go back"
    [order] = heard
    assert (order.kind, order.subject, order.by) == ("kill", "4121", "kim")
    assert unstuck("workers", "kill", "99").code == 3


def test_a_pid_that_nobody_has_is_not_found_and_names_those_there_are(unstuck: Command, w1: WorkerRecord) -> None:
    """A31"""
    answer = unstuck("workers", "recycle", "99")
    assert (answer.code, answer.out) == (3, "")
    assert "there is no process 99" in answer.err
    assert "4121, 4130" in answer.err
    assert unstuck("workers", "recycle", "4121", "--worker", "w2").code == 3
    for nonsense in ("many", "-1", "0", "4121.5"):
        assert unstuck("workers", "recycle", "--", nonsense).code == 2, nonsense


def test_an_order_that_its_worker_refuses_is_not_found(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    with answering(store, w1, lambda o: ("no process 4121 here", True)):
        answer = unstuck("workers", "recycle", "4121", "--json")
    assert answer.code == 3
    assert (answer.object["refused"], answer.object["answer"]) == (True, "no process 4121 here")


def test_a_pid_that_two_hosts_have_needs_the_workers_name(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    other = a_worker(store, "w2", host="host-2")
    beats(store, other, executors=[a_process(4121)])
    answer = unstuck("workers", "recycle", "4121")
    assert answer.code == 2
    assert "w1" in answer.err
    assert "w2" in answer.err
    with answering(store, other, lambda o: ("process 4121 is draining", False)):
        assert ask(unstuck, "workers", "recycle", "4121", "--worker", "w2").word == "w2: process 4121 is draining"


def test_a_recycle_waits_until_the_process_is_gone_and_says_what_is_left(
    unstuck: Command, store: Store, w1: WorkerRecord
) -> None:
    """A31"""

    def finish(order: WorkerOrder) -> tuple[str, bool]:
        beats(store, w1, executors=[a_process(4121, "draining", running=1)])
        threading.Timer(2.0, lambda: beats(store, w1, executors=[a_process(4200)])).start()
        return "process 4121 is draining; 1 job finishes first", False

    with answering(store, w1, finish):
        answer = ask(unstuck, "workers", "recycle", "4121", "--wait", "--timeout", "30s")
    assert answer.err.splitlines() == ["w1: 1 job still runs in process 4121"]
    assert answer.out.splitlines()[-1] == "it is gone"


def test_a_wait_that_runs_out_is_code_7(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    with answering(store, w1, lambda o: ("draining", False)):
        answer = unstuck("workers", "drain", "w1", "--wait", "--timeout", "1s")
    assert answer.code == 7
    assert "it goes on draining" in answer.err


def test_workers_are_drained_by_name_or_all_together(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    w2 = a_worker(store, "w2")
    beats(store, w2)
    with answering(store, w1, lambda o: ("draining; 1 job finishes first", False)) as first:
        answer = unstuck("workers", "drain", "w1", "nobody")
        assert answer.code == 3
        assert answer.word == "w1: draining; 1 job finishes first"
        assert "there is no worker nobody" in answer.err
        with answering(store, w2, lambda o: ("draining", False)) as second:
            told = ask(unstuck, "workers", "drain", "--all").out
    assert [order.kind for order in first + second] == ["drain"] * 3
    assert sorted(told.splitlines()) == ["w1: draining; 1 job finishes first", "w2: draining"]
    assert unstuck("workers", "drain").code == 2
    assert unstuck("workers", "drain", "w1", "--all").code == 2


def test_a_drain_waits_until_the_worker_has_left(unstuck: Command, store: Store, w1: WorkerRecord) -> None:
    def leave(order: WorkerOrder) -> tuple[str, bool]:
        threading.Timer(1.0, lambda: store.unregister_worker(w1.number)).start()
        return "draining", False

    with answering(store, w1, leave):
        answer = ask(unstuck, "workers", "drain", "w1", "--wait", "--timeout", "30s")
    assert answer.out.splitlines() == ["w1: draining", "it is gone"]


def test_names_and_pids_are_completed(unstuck: Command, w1: WorkerRecord) -> None:
    assert unstuck("__complete", "workers", "drain", "w").word == "w1"
    assert unstuck("__complete", "workers", "recycle", "41").out.split() == ["4121", "4130"]
    assert unstuck("__complete", "workers", "recycle", "--worker", "").word == "w1"
    assert unstuck("__complete", "health", "--worker", "w").word == "w1"


# --- readiness ----------------------------------------------------------------------------------------------------


def test_a_worker_is_ready_while_it_is_active_and_has_a_process(unstuck: Command, store: Store) -> None:
    worker = a_worker(store, "w1")
    stages: list[tuple[str, dict[str, Any], int, str]] = [
        ("active", {"ready": False}, 10, "it is starting"),
        ("active", {"ready": True}, 0, "w1 is ready"),
        ("draining", {"ready": False}, 10, "it takes nothing new"),
        ("active", {"ready": False, "import_error": "boom"}, 10, "cannot import the app"),
    ]
    for state, info, code, word in stages:
        beats(store, worker, state, **info)
        answer = unstuck("health", "--worker", "w1")
        assert answer.code == code, answer.out
        assert word in answer.out
    assert "not ready" in unstuck("workers").out
    store.unregister_worker(worker.number)
    answer = unstuck("health", "--worker", "w1")
    assert answer.code == 10
    assert "there is no worker w1" in answer.out


def test_the_new_one_of_two_workers_of_a_name_decides_once_it_is_ready(unstuck: Command, store: Store) -> None:
    beats(store, a_worker(store, "w1"), "draining", ready=False)
    assert unstuck("health", "--worker", "w1").code == 10
    beats(store, a_worker(store, "w1"))
    assert unstuck("health", "--worker", "w1").code == 0


# --- stacks -------------------------------------------------------------------------------------------------------


@pytest.fixture
def running(store: Store, w1: WorkerRecord) -> ClaimedJob:
    attempt = claimed(store, w1)
    begin(store, w1, attempt)
    return attempt


def test_the_stack_of_a_running_job_comes_live_from_its_worker(
    unstuck: Command, store: Store, w1: WorkerRecord, running: ClaimedJob
) -> None:
    with answering(store, w1, lambda o: (STACK, False)) as heard:
        told = ask(unstuck, "stack", running.id).out
        found = ask(unstuck, "stack", running.id[:30], "--json").object
    assert [order.kind for order in heard] == ["stack", "stack"]
    head, kind, blank, *rest = told.splitlines()
    assert head == f"{running.workflow}  {running.id}  RUNNING"
    assert kind.startswith("live: where attempt #1 is, ")
    assert "on worker w1" in kind
    assert (blank, "\n".join(rest)) == ("", STACK)
    assert (found["source"], found["attempt"], found["worker"], found["stack"]) == ("live", 1, "w1", STACK)
    assert found["at"].endswith("Z")


def test_a_worker_that_does_not_answer_is_named(
    unstuck: Command, store: Store, w1: WorkerRecord, running: ClaimedJob
) -> None:
    answer = unstuck("stack", running.id, "--timeout", "300ms")
    assert (answer.code, answer.out) == (7, "")
    assert "w1 did not answer the order to show a stack within 0.3 s" in answer.err


@pytest.fixture
def stuck(store: Store, w1: WorkerRecord, running: ClaimedJob) -> ClaimedJob:
    error = ErrorInfo(ErrorType.EXECUTION_STUCK, MESSAGE, stack=STACK)
    settle(store, w1, running.ref, Stuck(error, pid=4130))
    return running


def test_the_stack_of_a_stuck_job_is_the_stored_one(unstuck: Command, stuck: ClaimedJob) -> None:
    """A25: seen from the command line."""
    head, kind, error, blank, *rest = ask(unstuck, "stack", stuck.id).out.splitlines()
    assert blank == ""
    assert head.endswith("STUCK")
    assert kind.startswith("stored: where attempt #1 on worker w1 was when it ended, after 5 ms, ")
    assert error == f"ExecutionStuck: {MESSAGE}"
    assert "\n".join(rest) == STACK
    found = ask(unstuck, "stack", stuck.id, "--json").object
    assert (found["source"], found["error_type"], found["duration_ms"]) == ("stored", "ExecutionStuck", 5)
    assert ask(unstuck, "stack", stuck.id, "--attempt", "1").out.endswith(STACK + "\n")
    assert unstuck("stack", stuck.id, "--attempt", "2").code == 4


def test_a_job_without_a_stack_is_a_conflict_and_an_unknown_one_not_found(unstuck: Command, store: Store) -> None:
    job = unstuck.enqueue("add", "1")
    answer = unstuck("stack", job)
    assert (answer.code, answer.out) == (4, "")
    assert "QUEUED" in answer.err
    assert unstuck("stack", "0123").code == 3


def test_show_and_history_tell_how_an_attempt_got_stuck(unstuck: Command, stuck: ClaimedJob) -> None:
    """A25: state, error, duration and stack in the job's record and in its history."""
    shown = ask(unstuck, "jobs", "show", stuck.id).out
    assert "STUCK  ignored its request to stop" in shown
    attempt = next(line for line in shown.splitlines() if line.startswith("  #1"))
    assert attempt.endswith(f"on w1: STUCK after 5 ms: ExecutionStuck: {MESSAGE}")
    assert "lines before; --all shows all" in shown
    assert "in step_10" in shown
    assert "in step_1\n" not in shown
    assert "in step_1\n" in ask(unstuck, "jobs", "show", stuck.id, "--all").out

    told = ask(unstuck, "jobs", "history", stuck.id).out
    assert "attempt #1 after 5 ms: stuck: did not answer its request for the whole grace" in told
    assert "in step_10" in told
    assert "in step_1\n" not in told
    assert "in step_1\n" in ask(unstuck, "jobs", "history", stuck.id, "--all").out
    *_, last = ask(unstuck, "jobs", "history", stuck.id, "--json").lines
    assert (last["kind"], last["ended"]["error_type"], last["ended"]["stack"]) == (
        "stuck",
        "ExecutionStuck",
        STACK,
    )


def test_a_worker_at_a_distance_is_shown_with_its_key_and_its_address(unstuck: Command, store: Store) -> None:
    far = a_worker(store, "far", incarnation=remote_incarnation("k3y00001", "0" * 32))
    beats(store, far, remote={"key": "gpu-1", "address": "10.1.2.3"})
    near = a_worker(store, "near")
    beats(store, near, remote={"key": "forged", "address": "nowhere"})
    shown = {worker["name"]: worker for worker in ask(unstuck, "workers", "--json").lines}
    assert (shown["far"]["key"], shown["far"]["address"]) == ("gpu-1", "10.1.2.3")
    assert shown["near"]["key"] is None
    assert "at a distance, by the key gpu-1 from 10.1.2.3" in ask(unstuck, "workers").out
