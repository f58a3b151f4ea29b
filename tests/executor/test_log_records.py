"""What handlers log, as it arrives at the supervisor: as records, in order, and nobody can forge one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.executor.watch import Watch
from unstuck.executor.capture import CAP, Output
from unstuck.executor.context import Context
from unstuck.model.lifecycle import RequestKind
from unstuck.model.logs import MAX_RECORD, RS, LogRecord, frame, split
from unstuck.model.settlement import Returned

HANDLERS = "tests.executor.logs_app:app"


def said(watch: Watch, executor: int, name: str, *args: object) -> list[str | LogRecord]:
    return split(watch.framed(watch.run(executor, name, *args)))


def test_records_stand_between_what_is_printed(watch: Watch, shared: int) -> None:
    before, record, after = said(watch, shared, "log_sync")

    assert (before, after) == ("before\n", "after\n")
    assert isinstance(record, LogRecord)
    assert (record.level, record.message, record.logger) == ("warning", "paid", None)
    assert record.fields == {"order": 7, "tags": ["a", "b"]}
    assert timedelta(0) <= datetime.now(UTC) - record.at < timedelta(minutes=1)


def test_coroutines_and_threads_log_as_well(watch: Watch, shared: int) -> None:
    records = said(watch, shared, "log_async")

    assert [r.message for r in records if isinstance(r, LogRecord)] == ["in a thread"] * 20 + ["on the loop"]
    assert sorted(r.fields["n"] for r in records[:20] if isinstance(r, LogRecord)) == list(range(20))


def test_records_of_many_threads_at_once_stay_whole_and_in_order(watch: Watch, shared: int) -> None:
    records = [r for r in said(watch, shared, "log_in_threads", 8, 30) if isinstance(r, LogRecord)]

    for name in range(8):
        assert [r.fields["n"] for r in records if r.fields["thread"] == name] == list(range(30))


def test_records_of_the_standard_library_keep_level_logger_fields_and_traceback(watch: Watch, shared: int) -> None:
    sold, refused = said(watch, shared, "log_by_library")

    assert isinstance(sold, LogRecord)
    assert (sold.level, sold.logger, sold.message) == ("info", "shop.till", "sold a pen")
    assert sold.fields == {"order": 7, "by": "ada"}
    assert sold.text == "INFO shop.till: sold a pen order=7 by=ada\n"
    assert isinstance(refused, LogRecord)
    assert (refused.level, refused.fields) == ("error", {})
    assert re.fullmatch(r"refused\nTraceback .*\nValueError: no money", refused.message, re.S)
    below = refused.message.replace("\n", "\n  ")
    assert refused.text == f"ERROR shop.till: {below}\n"


def test_nothing_that_is_printed_passes_for_a_record(watch: Watch, shared: int) -> None:
    text, record = said(watch, shared, "forge")

    assert isinstance(text, str)
    assert text.count("␞") == 2
    assert isinstance(record, LogRecord)
    assert record.level == "info"
    assert record.text.count("\n") == 1


def test_whatever_is_logged_the_handler_goes_on(watch: Watch, shared: int) -> None:
    finished = watch.run(shared, "log_hostile")
    assert finished.outcome == Returned('"lived"')
    ours, theirs = split(watch.framed(finished))

    assert isinstance(ours, LogRecord)
    assert ours.message == ours.level.replace("hostile", "Hostile") == "<Hostile: it cannot be shown>"
    assert (ours.fields["self"], ours.fields["message"]) == (1, 2)
    assert re.fullmatch(r"x+ … [0-9,]+ characters cut … x+", ours.fields["large"])
    assert isinstance(theirs, LogRecord)
    assert theirs.fields == {"thing": "<Hostile: it cannot be shown>"}


def test_a_record_begins_a_line_of_its_own(watch: Watch, shared: int) -> None:
    assert watch.output(watch.run(shared, "mid_line")) == "half a line\na record\na line\n"


def test_of_a_flood_beginning_and_end_are_kept_and_no_record_is_broken(watch: Watch, shared: int) -> None:
    """F27."""
    finished = watch.run(shared, "log_flood", 3000)
    text = watch.framed(finished)
    pieces = split(text)

    assert len(text) <= CAP
    assert len([p for p in pieces if isinstance(p, LogRecord)]) == text.count(RS) > 50
    assert pieces[0] == "printed 0\n"
    assert isinstance(pieces[-1], LogRecord)
    assert pieces[-1].text == "the end n=3000\n"
    [cut] = [p for p in pieces if isinstance(p, str) and "characters cut" in p]
    # The end begins with a whole line, or with a record.
    assert re.fullmatch(r"(printed \d+\n)?\n… [0-9,]+ characters cut …\n(printed \d+\n)?", cut)


def a_record(size: int) -> str:
    return frame(LogRecord(datetime.now(UTC), "info", "x" * size))


def test_a_record_that_does_not_fit_into_the_beginning_goes_to_the_end() -> None:
    output = Output()
    output.write("a" * (CAP // 2 - 100) + "\n")
    output.add(a_record(500))
    output.write("b\n")

    assert output.stream() == "a" * (CAP // 2 - 100) + "\n"
    record, after = split(output.rest() or "")
    assert isinstance(record, LogRecord)
    assert after == "b\n"


def test_what_fits_is_kept_whole_wherever_a_record_fell() -> None:
    output = Output()
    output.write("a" * 20_000 + "\n")
    output.add(a_record(15_000))
    output.write("b\n" * 13_000)
    text, record, after = split(output.rest() or "")
    assert (text, after) == ("a" * 20_000 + "\n", "b\n" * 13_000)
    assert isinstance(record, LogRecord)


def test_the_end_begins_with_a_line_even_if_another_write_began_that_line() -> None:
    output = Output()
    output.write("h" * (CAP // 2 - 1) + "\n")
    output.write("torn l")
    # Exactly what is kept of the end.
    output.write("ine\n" + "".join(f"{n:>4}\n" for n in range((CAP // 2 - 64 - 4) // 5)))
    end = (output.rest() or "").partition("characters cut …\n")[2]
    assert end.startswith("   0\n")


@pytest.mark.parametrize("size", [1, 90, 5000, 11_000, 16_000])
@pytest.mark.parametrize("gap", ["", "text\n", "no line\u2028 ends here" * 300])
def test_records_are_kept_whole_or_not_at_all(size: int, gap: str) -> None:
    output, streamed = Output(), ""
    for n in range(4000 // (1 + size // 100)):
        output.add(a_record(size))
        output.write(gap)
        streamed += output.stream() if n % 7 == 0 else ""
    text = streamed + (output.rest() or "")

    assert CAP - 2 * len(a_record(size)) - 5000 < len(text) <= CAP
    records = [p for p in split(text) if isinstance(p, LogRecord)]
    assert len(records) == text.count(RS)
    assert {r.message for r in records} == {"x" * size}
    assert not any('x"}' in piece for piece in split(text) if isinstance(piece, str)), "the end of a record"


def test_the_last_words_of_who_is_asked_to_stop_are_heard_before_its_end() -> None:
    """It may be stuck, and never say its end."""
    asked: list[int] = []
    output, streamed = Output(lambda: bool(asked)), ""
    for n in range(20_000):
        output.write(f"line {n}\n")
    streamed += output.stream()
    assert "line 19999\n" not in streamed
    asked.append(1)
    streamed += output.stream()
    assert streamed.endswith("line 19998\nline 19999\n")
    output.write("asked to stop\n")
    streamed += output.stream()
    assert streamed.endswith("line 19999\nasked to stop\n")
    for n in range(20_000):
        output.write(f"again {n}\n")
    text = streamed + output.stream() + (output.rest() or "")
    assert "asked to stop\nagain 0\n" in text
    assert text.endswith("again 19999\n")
    assert text.count("characters cut") == 2
    assert CAP - 300 < len(text) <= CAP


@pytest.mark.parametrize("before", [0, 1, 3000, 100_000])
def test_records_stay_whole_after_that_as_well(before: int) -> None:
    output = Output(lambda: True)
    output.write("a" * 40_000 + "\n")
    output.write("b" * before)
    text = output.stream()
    for _ in range(3):
        output.add(frame(LogRecord(datetime.now(UTC), "info", "\x01" * MAX_RECORD, {"x": "x" * (MAX_RECORD // 3)})))
        text += output.stream()
        output.add(a_record(MAX_RECORD - 80))
        output.write("half a line")
    text += output.rest() or ""
    assert len(text) <= CAP
    *_, last, half = split(text)
    assert isinstance(last, LogRecord)
    assert (last.message, half) == ("x" * (MAX_RECORD - 80), "half a line")
    assert not any('x"}' in piece for piece in split(text) if isinstance(piece, str))


def test_a_stuck_handler_is_heard_before_the_verdict(watch: Watch, shared: int, tmp_path: Path) -> None:
    """Of its last words nobody knows once its process is killed."""
    go_on = tmp_path / "go on"
    ref = watch.begin(shared, "talk_and_hang", str(go_on))
    watch.wait(lambda: watch.said(ref, "output") or None)
    assert "my last words" not in "".join(watch.said(ref, "output"))
    watch.fleet.cancel(shared, ref, RequestKind.CANCEL, "enough")
    watch.wait(lambda: "my last words" in "".join(watch.said(ref, "output")) or None)
    go_on.touch()
    assert watch.output(watch.finished(ref)).endswith("my last words\nI was deaf\n")


def test_an_end_without_lines_is_kept_all_the_same() -> None:
    output = Output()
    for _ in range(1000):
        output.write("x" * 333)
    output.write("\nlast\n")
    kept = output.rest() or ""
    assert CAP - 100 < len(kept) <= CAP
    assert kept.endswith("x\nlast\n")


def test_a_thread_that_was_left_behind_may_print_for_ever() -> None:
    output = Output()
    output.write("x\n" * CAP)
    output.rest()
    for _ in range(100):
        output.write("y" * 1000)
        output.add(a_record(100))


class Shout(str):
    """Text with ideas of its own."""

    def endswith(self, *_: object) -> bool:
        raise AssertionError("called")

    __len__ = replace = __contains__ = __getitem__ = endswith  # type: ignore[assignment]


def test_what_prints_in_the_middle_of_a_print_does_not_wait_for_itself() -> None:
    def finalizer() -> bool:
        output.write("in between\n")
        return False

    output = Output(finalizer)
    output.write("x\n" * CAP)
    thread = threading.Thread(target=output.stream, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert (output.rest() or "").endswith("in between\n")


def test_printed_text_is_taken_as_text_and_nothing_else() -> None:
    output = Output()
    output.write(Shout("hello\n"))
    assert output.stream() == "hello\n"


def test_a_context_made_by_hand_hears_its_records() -> None:
    heard: list[str] = []
    Context(job="j", workflow="w", add=heard.append).log("said", level="debug", n=1)
    [[record]] = [split(text) for text in heard]
    assert isinstance(record, LogRecord)
    assert (record.level, record.message, record.fields) == ("debug", "said", {"n": 1})


def test_an_app_with_handlers_of_its_own_keeps_its_format() -> None:
    script = """
import logging, contextvars
from unstuck.executor.capture import Output, route_streams, route_logging
from unstuck.executor.context import running
route_streams()
logging.basicConfig(format="MINE %(message)s", level="INFO")
route_logging()
class Here(Output):
    is_here = True
out = Here()
running.set(out)
logging.info("hello")
running.set(None)
assert out.rest() == "MINE hello\\n", out
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30, env={**os.environ})


def test_levels_of_an_apps_own_keep_their_name_and_their_weight(watch: Watch, shared: int) -> None:
    found = [r for r in said(watch, shared, "log_by_levels_of_its_own") if isinstance(r, LogRecord)]

    assert [(r.level, r.severity) for r in found] == [("audit 45", 45), ("level 35", 35)]
