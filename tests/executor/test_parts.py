"""The small parts by themselves: the page, captured output, the context, counters of the kernel."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.executor.watch import APP
from unstuck.executor.capture import CAP, Output
from unstuck.executor.context import Context, NoAttempt, current
from unstuck.executor.page import Cell, SharedPage, memory_file, page_size
from unstuck.model.errors import Cancelled
from unstuck.worker.fleet import Fleet
from unstuck.worker.memory import oom_counters, oom_kills, resident
from unstuck.worker.output_pipe import OutputPipe
from unstuck.worker.processes import FleetPort


def test_what_one_side_writes_into_the_page_the_other_reads() -> None:
    fd = memory_file("test", page_size(4))
    ours, theirs = SharedPage(fd), SharedPage(fd)
    os.close(fd)
    theirs.beat(1.5)
    theirs.beat_loop(2.5)
    theirs.put_on_loop(42)
    theirs.enter(3, 42, 9.5, 2**62)
    ours.grant(99.5)

    assert (ours.pulse, ours.loop_pulse, ours.loop_job) == (1.5, 2.5, 42)
    assert theirs.lease_until == 99.5
    assert ours.cell(3) == Cell(42, 9.5, 2**62)
    assert ours.cell(2) == Cell(0, 0.0, 0)
    theirs.leave(3)
    assert ours.cell(3) == Cell(42, 9.5, 0)
    ours.close()
    theirs.close()


@pytest.mark.parametrize("chunk", [10, 100, 4096, 50_000, 1_000_000])
def test_output_keeps_its_beginning_and_its_end(chunk: int) -> None:
    text = "".join(f"{n:>9}\n" for n in range(100_000))
    output = Output()
    streamed = ""
    for begin in range(0, len(text), chunk):
        output.write(text[begin : begin + chunk])
        if chunk > 1000:
            streamed += output.stream()
    kept = streamed + (output.rest() or "")

    assert CAP - 100 < len(kept) <= CAP
    first, last = re.split(r"\n… [0-9,]+ characters cut …\n", kept)
    assert first == text[: CAP // 2]
    assert text.endswith("\n" + last)
    assert f"\n… {len(text) - len(first) - len(last):,} characters cut …\n" in kept


def test_short_output_is_kept_whole() -> None:
    output = Output()
    output.write("one\n")
    assert output.stream() == "one\n"
    output.write("two\n")
    assert output.rest() == "two\n"


def test_there_is_no_current_attempt_outside_of_a_handler() -> None:
    with pytest.raises(NoAttempt, match="inside a handler"):
        current()


def test_a_context_can_be_made_by_hand_for_a_users_own_tests() -> None:
    context = Context(job="j", workflow="w")
    context.check()
    context.sleep(0.001)
    context.progress(1)
    context.log("nothing happens")
    assert context.remaining() is None

    context._ask("cancel", "enough")
    assert context.cancelled
    with pytest.raises(Cancelled, match="enough"):
        context.check()
    with pytest.raises(Cancelled):
        context.sleep(30)


def test_the_context_is_light_to_import() -> None:
    script = (
        "import sys, unstuck.executor.context\n"
        "print([name for name in ('asyncio', 'msgspec', 'socket', 'sqlite3', 'logging') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)

    assert answer.stdout.strip() == "[]"


def test_out_of_memory_kills_are_read_from_either_kind_of_control_group(tmp_path: Path) -> None:
    first, second = tmp_path / "memory.oom_control", tmp_path / "memory.events"
    first.write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    second.write_text("low 0\nhigh 0\nmax 12\noom 4\noom_kill 5\n")

    assert oom_kills((str(tmp_path / "missing"), str(first))) == 3
    assert oom_kills((str(second),)) == 5
    assert oom_kills(()) == 0
    assert all("/sys/fs/cgroup" in path for path in oom_counters(os.getpid()))
    assert resident(os.getpid()) > 1 << 20


def test_spill_passes_lines_on_with_their_source_and_never_waits_for_a_full_reader() -> None:
    source, into = os.pipe()
    reader, out = os.pipe()
    output_pipe = OutputPipe(source, "executor 7", to=out)
    os.write(into, b"hello\nwor")
    assert output_pipe.drain(1.0)
    os.write(into, b"ld\n")
    output_pipe.drain(1.0)
    assert os.read(reader, 100) == b"[executor 7] hello\n[executor 7] world\n"

    for second in range(20):
        for _ in range(4):
            os.write(into, (b"x" * 99 + b"\n") * 200)
            output_pipe.drain(2.0 + second)
    os.close(into)
    assert not output_pipe.drain(30.0)
    output_pipe.close()
    os.close(out)
    os.close(reader)


def test_spill_as_json_is_an_object_per_line_each_written_in_one_piece() -> None:
    source, into = os.pipe()
    reader, out = os.pipe()
    output_pipe = OutputPipe(source, "executor 7", to=out, as_json=True)
    os.write(into, b'say "hi"\x1b[31m\n' + b"\x01" * 4000 + b"\n\xff\n")
    output_pipe.drain(1.0)
    os.close(into)
    output_pipe.close()
    os.close(out)
    with os.fdopen(reader, "rb") as stream:
        lines = stream.read().splitlines()
    assert max(map(len, lines)) < select.PIPE_BUF
    found = [json.loads(line) for line in lines]
    assert {(line["event"], line["process"]) for line in found} == {("output", "executor 7")}
    texts = [line["text"] for line in found]
    assert (texts[0], "".join(texts[1:-1]), texts[-1]) == ('say "hi"\x1b[31m', "\x01" * 4000, "\ufffd")


def test_the_fleet_is_the_port() -> None:
    port: FleetPort = Fleet(APP, incarnation="test", slots=1)
    assert port.hear(0.0) == []
    port.close()
    port.close()


def test_what_a_handler_forks_keeps_its_hands_off_the_page() -> None:
    fd = memory_file("test", page_size(1))
    ours, theirs = SharedPage(fd), SharedPage(fd)
    os.close(fd)
    theirs.introduce(2**62, 77)
    theirs.put_on_loop(5)
    ours.aim(5)
    ours.withdraw(0, 5)
    theirs.detach()
    theirs.put_on_loop(0)
    theirs.enter(0, 5, 1.0, 2)

    assert (ours.main_thread, ours.control_thread, ours.loop_job) == (2**62, 77, 5)
    assert ours.cell(0).number == 0
    assert theirs.aimed_at == 5
    assert theirs.is_withdrawn(0, 5)
    assert not theirs.is_withdrawn(0, 6)
    theirs.close()
    ours.close()


def test_a_page_cannot_be_taken_from_under_whoever_reads_it() -> None:
    """Shrunk, it would end the supervisor by SIGBUS."""
    fd = memory_file("test", page_size(1))
    page = SharedPage(fd)
    for size in (0, page_size(1) + 4096):
        with pytest.raises(PermissionError):
            os.ftruncate(fd, size)
    page.beat(1.0)
    assert page.pulse == 1.0
    page.close()
    os.close(fd)
