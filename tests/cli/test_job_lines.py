"""A worker in a terminal: a line per job that ended, bounded; in a log for machines one per job that failed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.command import APP, Command, ended
from tests.support.eventually import eventually
from unstuck import telemetry
from unstuck.cli import job_lines
from unstuck.cli.eventlog import human_log
from unstuck.cli.job_lines import LINES, JobLines, job_line
from unstuck.model.job import AttemptRef
from unstuck.model.lifecycle import JobState
from unstuck.store.port import Settled, Verdict

IDENT = "01a1ea5e-cc4b-7842-9271-f3b49aca6484"


def ends(number: int, state: JobState = JobState.COMPLETED) -> list[Settled]:
    return [Settled(AttemptRef(job, 1, "c"), Verdict.DONE, state) for job in range(number)]


def facts(settled: Settled | None = None, **more: Any) -> dict[str, Any]:
    plain = {"job": IDENT, "workflow": "greet", "duration_ms": 1250, "error_type": None, "error_message": None}
    return {**plain, "state": str(settled.state if settled else "COMPLETED"), **more}


def test_a_line_says_how_it_ended_what_it_is_how_long_it_ran_and_what_went_wrong() -> None:
    assert job_line(facts()) == "COMPLETED  greet  01a1ea5e-cc4b-7842-9271  1.2 s"
    broken = facts(state="FAILED", error_type="ValueError", error_message="no\n12:00:00  COMPLETED\x1b[2J")
    assert job_line(broken).endswith("1.2 s  ValueError: no 12:00:00 COMPLETED\\x1b[2J")
    assert job_line(facts(state="QUEUED", error_type="ValueError")).startswith("RETRYING   greet")
    assert job_line(facts(state="QUEUED", duration_ms=None)) == "QUEUED     greet  01a1ea5e-cc4b-7842-9271"
    assert len(job_line(facts(error_type="ValueError", error_message="x" * 5000))) < 300
    assert (
        job_line(facts(duration_ms=0), colour=True)
        == "\x1b[32mCOMPLETED\x1b[0m  greet  01a1ea5e-cc4b-7842-9271  <1 ms"
    )


def test_of_a_flood_some_are_told_failures_among_them_and_the_rest_is_counted() -> None:
    lines: list[str] = []
    asked: list[Settled] = []
    tell = JobLines(lambda line: lines.append(line()), colour=False)

    def look(settled: Settled) -> dict[str, Any]:
        asked.append(settled)
        return facts(settled)

    for _ in range(3):
        tell([*ends(400), *ends(15, JobState.FAILED)], look)
    assert len(asked) == len(lines) == 2 * LINES, "what is not told is not put together either"
    assert sum("FAILED" in line for line in lines) == LINES
    # No other job ends, and it is told all the same.
    last = eventually(lambda: lines[2 * LINES :])
    assert last[0].endswith("… 1,225 jobs more ended, 35 of them not COMPLETED; -v tells each")
    tell.finish()
    assert len(lines) == 2 * LINES + 1


def test_machines_are_told_of_those_that_failed_for_good_and_how_many_more() -> None:
    lines: list[dict[str, Any]] = []
    tell = JobLines(lambda line: lines.append(json.loads(line())), colour=False, as_json=True, only_failed=True)

    tell([*ends(3), *ends(1, JobState.QUEUED), *ends(1, JobState.WAITING), *ends(1, JobState.CANCELLED)], facts)
    assert lines == []
    tell([*ends(1, JobState.TIMEOUT), *ends(LINES + 4, JobState.FAILED)], facts)
    assert [line["state"] for line in lines] == ["TIMEOUT", *["FAILED"] * (LINES - 1)]
    assert {(line["event"], line["job"], line["workflow"]) for line in lines} == {("job_ended", IDENT, "greet")}
    tell.finish()
    assert (lines[-1]["event"], lines[-1]["failed"]) == ("more_jobs_ended", 5)


def test_each_span_has_room_for_lines_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_lines, "SPAN", 0.0)
    lines: list[str] = []
    tell = JobLines(lambda line: lines.append(line()), colour=False)
    for _ in range(3):
        tell(ends(LINES), facts)
    assert len(lines) == 3 * LINES


def test_whoever_wants_every_job_gets_every_job_and_who_only_looks_gets_them_together() -> None:
    every: list[str] = []
    together: list[int] = []
    stops: list[Callable[[], None]] = [
        telemetry.subscribe(human_log(every.append, colour=False, verbose=True), every_job=True),
        telemetry.watch_jobs(lambda jobs, facts: together.clear() if 1 / 0 else None),
        telemetry.watch_jobs(lambda jobs, facts: together.append(len(jobs))),
    ]
    try:
        telemetry.emit_jobs("job_ended", ends(30), facts)
    finally:
        for stop in stops:
            stop()
    assert (len(every), together, telemetry.wants_jobs()) == (30, [30], False)
    assert every[0].endswith(f"COMPLETED  greet  {IDENT}  1.2 s")


@pytest.mark.parametrize("words", [(), ("--log-format", "json")])
def test_a_worker_tells_the_person_at_its_terminal_of_each_job(unstuck: Command, words: tuple[str, ...]) -> None:
    master, slave = pty.openpty()
    told = bytearray()

    def read() -> None:
        while True:
            try:
                told.extend(os.read(master, 65536))
            except OSError:  # nobody has the other end any more
                return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    process = subprocess.Popen(
        unstuck.words("worker", APP, "--drain", "5s", *words),
        env=unstuck.environment(NO_COLOR="1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=slave,
    )
    os.close(slave)
    with ended(process, 20):
        good = unstuck("enqueue", "add", "2", "--app", APP, "--wait", "--timeout", "30s", "--json").object["id"]
        bad = unstuck("enqueue", "refuse", "out of stock", "--app", APP, "--wait", "--timeout", "30s").err.split()[1]
    reader.join(10)
    os.close(master)
    lines = told.decode().splitlines()
    if words:
        assert not [line for line in lines if "COMPLETED" in line]
        [end] = [json.loads(line) for line in lines if '"job_ended"' in line]
        assert (end["job"], end["error_message"]) == (bad, "out of stock")
        return
    # More may be said of a job where the machine stood still, that it was given back for one: how it ended, once.
    completed = [line for line in lines if f"  COMPLETED  add  {good[:23]}" in line]
    failed = [line for line in lines if f"  FAILED     refuse  {bad[:23]}" in line]
    assert (len(completed), len(failed)) == (1, 1), "\n".join(lines)
    assert completed[0].endswith((" ms", " s"))
    assert failed[0].endswith("  ValueError: out of stock")
