"""docs/ladder.md works as written, on both databases."""

from __future__ import annotations

import configparser
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.command import ROOT, Command
from tests.cli.test_order_guide import run, shell_of
from tests.support.eventually import eventually
from unstuck.config import seconds
from unstuck.model.times import Times

GUIDE = (ROOT / "docs" / "ladder.md").read_text()
BLOCKS: list[tuple[str, str]] = re.findall(r"```(python|sh|ini|yaml)\n(.*?)```", GUIDE, re.S)


#: The guide waits for graces, and a loaded machine takes seconds to start each command.
patient = pytest.mark.timeout(300)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCKS if found == language]


@pytest.fixture
def worker(unstuck: Command) -> Iterator[Command]:
    """The guide's own app, and the worker that it starts."""
    for text in blocks("python"):
        name = text.split("\n", 1)[0].removeprefix("# ")
        (unstuck.directory / name).write_text(text)
    line = blocks("sh")[0].partition("#")[0]
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"exec {line} --drain 5s"],
        cwd=unstuck.directory,
        env=shell_of(unstuck),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: unstuck("health", "--worker", "w1").code == 0, timeout=30, every=0.2)
        yield unstuck
    finally:
        process.terminate()
        process.wait(30)


@patient
def test_the_guide_shows_a_job_get_stuck_as_written(worker: Command) -> None:
    """A25, A28: followed by hand."""
    _start, stuck, alone, _old, _stop = blocks("sh")

    told = run(worker, stuck)
    assert "live: where attempt #1 is" in told
    assert told.count("in wait_for_the_partner") >= 2, told
    # A machine under load may look only after the verdict.
    assert re.search(r"export +[0-9a-f-]{36} .* (cancel asked, \d+ s of grace left|STUCK)$", told, re.M), told
    assert "exit code 9" in told
    assert "stored: where attempt #1 on worker w1 was" in told
    assert "did not respond to cancellation within 8 seconds. Worker process recycled." in told
    assert '"100 frames"' in told

    assert "exit code 8" in run(worker, alone)


@patient
def test_the_guide_recycles_and_drains_as_written(worker: Command) -> None:
    """A31, A53: followed by hand."""
    *_, old, stop = blocks("sh")

    told = run(worker, old)
    assert "draining" in told
    assert "it is gone" in told
    assert "exit code 3" in told

    told = run(worker, f"{sys.executable} look.py")
    assert "ExecutionStuck Execution did not respond" in told
    assert told.count("in wait_for_the_partner") >= 2
    assert "w1 active" in told

    told = run(worker, stop)
    assert "it is gone" in told
    assert "exit code 10" in told


def test_the_guides_service_files_leave_room_for_the_drain(bare: Command) -> None:
    """Both name a stop time that the worker itself accepts, and start it with options that it has."""
    (bare.directory / "shop.py").write_text("import unstuck\n\napp = unstuck.App()\n")
    [unit], [pod] = blocks("ini"), blocks("yaml")
    service = configparser.ConfigParser(interpolation=None)  # %H is for systemd
    service.optionxform = str  # type: ignore[assignment,method-assign]
    service.read_string(unit)
    _, *line = shlex.split(service["Service"]["ExecStart"])
    stop_time = service["Service"]["Environment"].removeprefix("UNSTUCK_STOP_TIME=")
    assert service["Service"]["TimeoutStopSec"] == stop_time
    _fits(bare, line, stop_time)

    [command] = re.findall(r"^      command: (\[.*\])$", pod, re.M)
    [stop_time] = re.findall(r"terminationGracePeriodSeconds: (\d+)", pod)
    assert f'value: "{stop_time}"' in pod
    _, *line = [word.strip().strip('"') for word in command.strip("[]").split(",")]
    assert line[-1] in re.findall(r'"test", "-e", "([^"]+)"', pod)
    _fits(bare, line, stop_time)


def _fits(bare: Command, line: list[str], stop_time: str) -> None:
    drain = seconds(line[line.index("--drain") + 1])
    assert float(stop_time) > drain + Times().kill_grace
    answer = bare(*line, "--check", UNSTUCK_STOP_TIME=stop_time)
    assert answer.code == 0, answer.err
    refused = bare(*line, "--check", UNSTUCK_STOP_TIME=str(int(drain)))
    assert refused.code == 2
    assert "service manager's stop time" in refused.err
