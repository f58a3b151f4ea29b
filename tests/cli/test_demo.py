"""unstuck demo: runs by itself, ends by itself, leaves nothing behind but its file."""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.cli.command import Command, environment
from tests.support.builders import a_worker, begin, claimed, settle
from tests.support.eventually import eventually
from unstuck.cli.demo import _hints, blacklisted
from unstuck.cli.stage.screen import draw, folded
from unstuck.cli.stage.snapshot import DemoSnapshot, Watcher
from unstuck.model.guard import BlacklistEntry
from unstuck.model.job import WorkerRecord
from unstuck.model.settlement import ErrorInfo, Stuck
from unstuck.observe.flow import Approval
from unstuck.store.port import Store
from unstuck.views.workers import WorkerView


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
    assert unstuck("settings", "get", "stuck_circuit_breaker_threshold").word == "5", "their rules stay"
    assert tagged(tmp_path) == []


def _says(file: Path, words: str) -> bool:
    return words in file.read_text()


@pytest.mark.timeout(600)
def test_the_demo_shows_a_workflow_being_blacklisted_and_releases_that_people_decide(
    bare: Command, tmp_path: Path
) -> None:
    """Within a minute, on a machine that has nothing else to do."""
    said = tmp_path / "out"
    with said.open("wb") as out:
        process = subprocess.Popen(
            bare.words("demo", "--plain"), cwd=tmp_path, env=environment(), stdout=out, stderr=subprocess.STDOUT
        )
    try:
        for words in (
            "asks: deploy shop:1.1?",
            "Margaret said yes",
            "was blacklisted after 2 stuck executions. All execution paths are blocked until manually re-enabled.",
            "WorkflowBlacklisted: Workflow is blacklisted due to repeated stuck executions.",
            "Margaret said no",
            "LIFTED",
        ):
            eventually(partial(_says, said, words), timeout=150)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 0
    text = said.read_text()
    assert "off the blacklist by the shop" in text
    assert "1 workflow got stuck too often and was blacklisted." in text
    assert "Traceback" not in text


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
    snapshot = DemoSnapshot(datetime.now(UTC), {}, (), (), ())
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
    assert "accepted, and every one is accounted for" in (tmp_path / "out").read_text()
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


def drawn(snapshot: DemoSnapshot, width: int, height: int, hints: list[str]) -> str:
    paper = io.StringIO()
    screen = Console(width=width, height=height, file=paper, color_system=None)
    screen.print(draw(snapshot, [], title="a title", time="0:01", hints=hints, size=(width, height)))
    return paper.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_hints_are_folded_between_commands_and_never_inside_a_word_that_fits(width: int) -> None:
    stuck = "01a1e249-e24d-7f42-9271-f3b49aca6484"
    lines = [line for hint in _hints("sqlite:///demo-data/demo.db", None, stuck) for line in folded(hint, width - 4)]
    for command in ("unstuck targets --blocked", "unstuck stats --watch", "unstuck health", f"unstuck stack {stuck}"):
        assert any(command in line for line in lines), lines
    assert all(len(line) <= width - 4 for line in lines)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (100, 30), (120, 40)])
def test_the_window_shows_who_is_stuck_and_which_process_goes(width: int, height: int) -> None:
    now = datetime.now(UTC)
    body: dict[str, Any] = {
        "job": "01a1e249-e24d-7f42-9271-f3b49aca6484",
        "workflow": "stuck.thread_sleep",
        "stuck": True,
    }
    worn = {"pid": 4130, "state": "draining", "reason": "a stuck job", "running": 1, "jobs": [body]}
    fresh = {"pid": 4131, "state": "active", "running": 2, "jobs_done": 7}
    worker = WorkerRecord(
        1, "i", "demo-worker", "h", "b", "n", 4100, 1, "active", (), "1", now, now, now + timedelta(minutes=1),
        info={"executors": [fresh, worn]},
    )  # fmt: skip
    text = drawn(
        DemoSnapshot(now, {}, (WorkerView.of(worker, now),), (), ()),
        width,
        height,
        _hints("sqlite:///demo.db", None, body["job"]),
    )
    lines = text.splitlines()
    assert len(lines) == height
    assert "unstuck stack 01a1e249-e24d-7f42" in text
    assert any("STUCK  stuck.thread_sleep in pid 4130: unstuck stack 01a1e249-e24d-7f42 " in line for line in lines)
    places = [next(place for place, line in enumerate(lines) if f"pid {pid}" in line) for pid in (4130, 4131)]
    assert places == sorted(places), "the news first"
    assert "draining  1 stuck, 0 ok " in lines[places[0]]
    assert "active" in lines[places[1]]


def test_a_job_that_got_stuck_is_news_even_if_its_process_is_gone_at_the_next_look(store: Store) -> None:
    watcher = Watcher(store, "default")
    watcher.look()
    worker = a_worker(store)
    attempt = claimed(store, worker)
    begin(store, worker, attempt)
    watcher.look()
    settle(store, worker, attempt.ref, Stuck(ErrorInfo("ExecutionStuck", "did not respond"), pid=4130))
    store.lift_body_mark(worker.number, attempt.ref.job)
    [change] = watcher.look().news
    assert (change.state, change.job) == ("STUCK", attempt.id)
    assert (watcher.stuck, watcher.tally.stuck) == (attempt.id, 1)
    assert watcher.look().news == ()


def test_a_workflow_that_is_blacklisted_is_news_in_the_words_of_its_notification(store: Store) -> None:
    watcher, worker = Watcher(store, "default"), a_worker(store)
    watcher.look()
    store.set_setting("stuck_circuit_breaker_threshold", "1", "kim")
    settle(store, worker, claimed(store, worker).ref, Stuck(ErrorInfo("ExecutionStuck", "did not respond"), pid=1))
    [entry] = store.blacklist()
    [news] = store.notifications()
    told = [(change.state, change.text) for change in watcher.look().news]
    assert told[-1] == ("BLACKLISTED", news.message)
    assert watcher.tally.barred == {entry.workflow: 1}
    assert watcher.look().news == ()
    store.blacklist_remove(None, entry.workflow, "kim")
    [lifted] = watcher.look().news
    assert (lifted.state, lifted.text.startswith("off the blacklist by kim")) == ("LIFTED", True)


def test_what_stood_on_the_blacklist_before_is_no_news(store: Store) -> None:
    store.blacklist_add("*", "add", "x", "kim")
    watcher = Watcher(store, "default")
    assert watcher.look().news == ()
    assert [entry.workflow for entry in watcher.look().barred] == ["add"]


@pytest.mark.parametrize(
    ("barred", "told"),
    [
        ({"a": 1}, "1 workflow got stuck too often and was blacklisted."),
        ({"a": 14}, "1 workflow got stuck too often and was blacklisted, 14 times in all."),
        ({"a": 1, "b": 1}, "2 workflows got stuck too often and were blacklisted."),
        ({"a": 2, "b": 1}, "2 workflows got stuck too often and were blacklisted, 3 times in all."),
    ],
)
def test_the_summary_tells_workflows_from_the_times_they_were_blacklisted(barred: dict[str, int], told: str) -> None:
    assert blacklisted(Counter(barred)) == told


@pytest.mark.parametrize(("width", "height"), [(80, 24), (110, 34)])
def test_the_window_says_how_to_lift_an_entry_and_how_to_decide_a_question(width: int, height: int) -> None:
    now = datetime.fromtimestamp(1_800_000_000, UTC)
    entry = BlacklistEntry(1, "default", "stuck.thread_sleep", "auto:stuck:2", "system", now, stuck_count=2)
    job = "01a1e249-e24d-7f42-9271-f3b49aca6484"
    question = Approval(job, "release", "default", "approval#1", "deploy shop:1.1?", (), now, now, "reject")
    pictures = [
        drawn(
            DemoSnapshot(now + timedelta(seconds=seconds), {}, (), (), (), barred=(entry,), asked=(question,)),
            width,
            height,
            _hints("sqlite:///demo.db", None),
        )
        for seconds in range(0, 12, 3)
    ]
    assert all(len(text.splitlines()) == height for text in pictures)
    shown = "".join(pictures)
    assert "unstuck blacklist remove stuck.thread_sleep --tenant default" in shown
    assert f"deploy shop:1.1? unstuck approvals approve {job[: 18 if width < 100 else 36]}" in shown
    if height >= 34:
        assert all("BLACKLISTED  2 stuck executions: unstuck" in text and "APPROVAL" in text for text in pictures)
