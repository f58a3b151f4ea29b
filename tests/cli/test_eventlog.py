"""What a worker says in a terminal: the routine only when it is asked to."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable

from unstuck.cli.eventlog import calm, human_log, is_loud, json_log, sentence
from unstuck.cli.log_writer import GATHER, LogWriter

Told = dict[str, tuple[dict[str, object], str]]

ROUTINE: Told = {
    "acquired": (
        {"worker": "w1", "jobs": 3, "workflow": "greet", "job": "j1"},
        "w1 took 3 at once, the first is greet j1",
    ),
    "beat": ({"held": 2, "lease": 30.0}, "the lease was renewed for 30 s; 2 in hand"),
}
NEWS: Told = {
    "cancellation_requested": (
        {"job": "j1", "kind": "cancel", "reason": "changed my mind"},
        "Cancellation requested for j1: changed my mind",
    ),
    "executor_ended": ({"executor": 1, "pid": 7, "status": "exit 0"}, "process 1 (pid 7) ended as asked"),
    "executor_died": ({"executor": 1, "pid": 7, "status": "SIGKILL"}, "process 1 (pid 7) died: SIGKILL"),
    "store.clock_leapt": (
        {"seconds": -3600.0, "ahead": 3600.0, "noticed": "host"},
        "the database's clock leapt by -3,600 s: our time goes on without it",
    ),
    "process_poisoned": (
        {"workflow": "crawl, fetch", "why": "no file descriptor is left in it (limit 64)", "pid": 7},
        "pid 7 cannot go on, and is replaced: no file descriptor is left in it (limit 64); "
        "in it, or just ended: crawl, fetch",
    ),
    "children_ended": (
        {"workflow": "crawl", "processes": "sleep (pid 9)", "by": "TERM", "pid": 7},
        "crawl ended and left processes behind, which were ended by TERM: sleep (pid 9)",
    ),
    "zygote_stopped": (
        {"pid": 6, "remedy": "told to go on (SIGCONT)"},
        "the process that starts the others (pid 6) was stopped: told to go on (SIGCONT)",
    ),
    "zygote_died": (
        {"status": "SIGKILL", "again_in": 1.0},
        "the process that starts the others died (SIGKILL); another one in 1 s",
    ),
    "executor_failed_to_start": (
        {"status": "exit 1", "again_in": 2.0},
        "a process could not be started (exit 1); the next try in 2 s",
    ),
    "alert_opened": (
        {"alert": 7, "rule": "job_queued", "severity": "warning", "subject": "j1", "sentence": "no worker"},
        "alert 7 (warning, job_queued): no worker",
    ),
    "alert_closed": ({"alert": 7, "rule": "job_queued", "subject": "j1"}, "alert 7 (job_queued: j1) is over"),
    "alert_rule_failed": (
        {"rule": "job_queued", "error": "boom"},
        "the alert rule job_queued failed: boom",
    ),
    "revoked": ({"job": "j1", "token": 2}, "job j1 is stopped here: another worker may own it now"),
    "fenced": (
        {"job": "j1", "token": 2},
        "job j1 ended too late: its attempt 2 is no longer this worker's, and its report was refused",
    ),
    "request_not_durable": (
        {"job": "j1", "kind": "timeout", "error": "it is away"},
        "job j1 is told to stop (timeout) although the database could not note it: it is away",
    ),
    "blacklisted": (
        {"workflow": "crawl", "tenant": "acme", "reason": "5 stuck"},
        "workflow crawl is on the blacklist now for tenant acme: 5 stuck",
    ),
}


def said(*, verbose: bool) -> list[str]:
    lines: list[str] = []
    write = human_log(lines.append, colour=False, verbose=verbose)
    for name, (facts, _) in (ROUTINE | NEWS).items():
        write(name, dict(facts))
    return [line.split("  ", 1)[1] for line in lines]


def test_a_worker_tells_news_and_with_verbose_its_routine_too() -> None:
    assert said(verbose=False) == [text for _, text in NEWS.values()]
    assert said(verbose=True) == [text for _, text in (ROUTINE | NEWS).values()]


def test_an_entry_of_the_blacklist_for_all_says_so_and_does_not_say_star() -> None:
    facts = {"workflow": "crawl", "tenant": "*", "reason": "5 stuck"}
    assert sentence("blacklisted", facts) == "workflow crawl is on the blacklist now for every tenant: 5 stuck"


def test_what_has_several_lines_or_commands_a_terminal_cannot_be_taken_for_another_line() -> None:
    """Reasons, errors and names are other people's text."""
    lines: list[str] = []
    write = human_log(lines.append, colour=False, verbose=False)
    write("store_trouble", {"loop": "claim", "error": "no\n12:00:00  worker w1 has left\x1b[2J"})
    write("odd", {"error_type": "Bad\nType"})
    [first, second] = ("".join(line).split("\n") for line in lines)
    assert first[0].endswith("the database does not answer (claim): no")
    assert first[1:] == ["          12:00:00  worker w1 has left\\x1b[2J"]
    assert second[1:] == ["          Type"]


def test_only_what_went_wrong_is_loud() -> None:
    assert [name for name in ROUTINE | NEWS if is_loud(name)] == [
        "executor_died",
        "store.clock_leapt",
        "process_poisoned",
        "zygote_died",
        "executor_failed_to_start",
        "alert_rule_failed",
        "revoked",
        "fenced",
        "blacklisted",
    ]


def test_for_machines_the_routine_is_mentioned_and_news_is_said() -> None:
    """Nobody waits until a line of the routine is written: claims write one each."""
    news: list[str] = []
    routine: list[Callable[[], str]] = []
    write = json_log(news.append, routine.append)
    for name, (facts, _) in (ROUTINE | NEWS).items():
        write(name, dict(facts))
    assert [json.loads(line)["event"] for line in news] == list(NEWS)
    assert [json.loads(line())["event"] for line in routine] == list(ROUTINE)


def test_a_line_that_is_only_mentioned_waits_for_no_reader_and_keeps_its_place() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "w") as stream:
        writer = LogWriter(stream)
        long = "x" * (1 << 20)  # more than the pipe holds: whoever waited for it would wait for the reader
        writer.mention(lambda: long)
        writer.mention(lambda: "second")
        assert len(writer._lines) == 2
        assert reader.read(len(long) + len("\nsecond\n")).decode().split("\n") == [long, "second", ""]
        writer.finish()


def test_lines_of_the_routine_are_written_together_and_before_the_next_news() -> None:
    """The thread that writes sleeps while they come; what must be out at once takes them along, in order."""
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "w") as stream:
        writer = LogWriter(stream)
        began = time.monotonic()
        for number in range(3):
            writer.mention(lambda number=number: f"routine {number}")  # type: ignore[misc]
        writer.say("news")
        assert time.monotonic() - began < GATHER, "nobody waited until they were gathered"
        assert [reader.readline() for _ in range(4)] == [b"routine 0\n", b"routine 1\n", b"routine 2\n", b"news\n"]
        writer.mention(lambda: "alone")
        assert reader.readline() == b"alone\n"
        writer.mention(lambda: "last")
        writer.finish()
        assert reader.readline() == b"last\n"


def test_a_worker_that_is_replaced_with_every_save_keeps_its_comings_and_goings_to_itself() -> None:
    names: list[str] = []
    write = calm(lambda name, facts: names.append(name))
    for name in ("worker_started", "imported", "executor_died", "unserved", "shutting_down"):
        write(name, {})
    for name in ("cancellation_requested", "executor_killed", "executor_died", "unserved", "worker_left"):
        write(name, {})  # what its own end does
    write("store_trouble", {})
    assert names == ["executor_died", "unserved", "store_trouble"]
