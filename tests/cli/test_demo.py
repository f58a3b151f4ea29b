"""unstuck demo: runs by itself, ends by itself, leaves nothing behind but its file."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from tests.cli.command import Command, environment
from tests.support.eventually import eventually
from unstuck.cli.demo import _hints
from unstuck.cli.stage.screen import draw
from unstuck.cli.stage.snapshot import Snapshot


def tagged(folder: Path) -> list[str]:
    """Processes of any kind that work in this test's own folder, by their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_text().replace("\0", " "))
        except OSError:  # it ended meanwhile, or is another user's
            continue
    return found


def test_a_demo_for_some_seconds_ends_by_itself_and_leaves_no_process(bare: Command, tmp_path: Path) -> None:
    answer = bare("demo", "--for", "6", NO_COLOR="1")
    assert answer.code == 0, answer.err
    assert "COMPLETED" in answer.out
    assert "jobs were accepted" in answer.out
    assert "\x1b[" not in answer.out
    assert tagged(tmp_path) == []
    stats = bare("stats", "--json", "--database", f"sqlite:///{tmp_path}/demo-data/demo.db").object
    assert stats["states"]["COMPLETED"] > 5
    assert stats["states"]["RUNNING"] == 0


def test_in_a_terminal_the_demo_is_a_window_that_closes_behind_itself(bare: Command, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        bare.words("demo", "--for", "5"), cwd=tmp_path, env=environment(), stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # how Linux says that nobody holds the other end any more
        pass
    os.close(ours)
    text = shown.decode()
    assert process.wait(30) == 0, text[-2000:]
    assert "\x1b[?1049h" in text, "the alternate screen is used"
    assert text.index("\x1b[?1049l") < text.index("jobs were accepted"), "and left before the summary"
    assert "what just happened" in text
    assert "Traceback" not in text
    assert tagged(tmp_path) == []


def test_the_demo_runs_on_any_database(unstuck: Command, store_url: str, tmp_path: Path) -> None:
    answer = unstuck("demo", "--for", "5s", "--plain", "--database", store_url)
    assert answer.code == 0, answer.err
    assert unstuck("stats", "--json").object["states"]["COMPLETED"] > 0
    assert tagged(tmp_path) == []


def test_the_summary_adds_up_although_older_jobs_go_on_too(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "demo-data").mkdir()
    url = f"sqlite:///{tmp_path}/demo-data/demo.db"
    for name in ("Ada", "Grace", "Linus"):
        assert bare("enqueue", "greet", name, "--app", "unstuck.examples.demo:app", "--database", url).code == 0
    answer = bare("demo", "--for", "4", "--plain")
    assert answer.code == 0, answer.err
    summary = answer.out[: answer.out.index("failed attempts were")].splitlines()
    first = next(place for place, line in enumerate(summary) if "accounted for" in line)
    rows = [int(line.split()[0]) for line in summary[first + 1 :] if line.startswith("  ")]
    assert sum(rows) == int(summary[first].split()[0])


def test_the_hints_are_whole_in_the_smallest_usual_terminal() -> None:
    url = "sqlite:///a-folder-of-somebody/projects/a-shop-with-a-long-name/demo-data/demo.db"
    hints = _hints(url, None)
    snapshot = Snapshot(datetime.now(UTC), {}, (), (), ())
    paper = io.StringIO()
    screen = Console(width=80, height=24, file=paper, color_system=None)
    screen.print(draw(snapshot, [], title="a title", time="0:01", hints=hints, size=(80, 24)))
    drawn = [line[2:-2].rstrip() for line in paper.getvalue().splitlines()]
    text = "".join(drawn)
    assert f"export UNSTUCK_DATABASE={url}" in text
    assert "watch its jobs run again" in text
    assert "Ctrl-C" in text
    assert "…" not in text[text.index("in another terminal") :]


def test_ctrl_c_ends_the_demo_in_order(bare: Command, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            bare.words("demo", "--plain"), cwd=tmp_path, env=environment(), stdout=out, stderr=subprocess.STDOUT
        )
    eventually(lambda: "COMPLETED" in (tmp_path / "out").read_text(), timeout=30)
    process.send_signal(signal.SIGINT)
    assert process.wait(40) == 0
    assert "jobs were accepted" in (tmp_path / "out").read_text()
    assert tagged(tmp_path) == []


def test_killing_the_demo_takes_its_worker_along(bare: Command, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        process = subprocess.Popen(
            bare.words("demo", "--plain"), cwd=tmp_path, env=environment(), stdout=out, stderr=subprocess.STDOUT
        )
    eventually(lambda: "COMPLETED" in (tmp_path / "out").read_text(), timeout=30)
    process.kill()
    process.wait(10)
    eventually(lambda: tagged(tmp_path) == [], timeout=40)


def test_bench_measures_in_a_place_of_its_own(bare: Command, tmp_path: Path) -> None:
    answer = bare("bench", "--jobs", "200", "--json")
    assert answer.code == 0, answer.err
    facts = answer.object
    assert facts["jobs"] == 200
    assert facts["drain_per_s"] > 0
    assert list(tmp_path.glob("unstuck-bench-*")) == []
    assert tagged(tmp_path) == []
