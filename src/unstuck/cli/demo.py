"""unstuck demo: see it work, with nothing to set up."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from unstuck import clock
from unstuck.cli import exits, options, output
from unstuck.cli.companion import Companion
from unstuck.cli.parser import option
from unstuck.model.errors import StoreError
from unstuck.model.lifecycle import JobState
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.cli.stage.snapshot import DemoSnapshot, Watcher
    from unstuck.cli.stage.trickle import Trickle
    from unstuck.cli.stop_signals import StopSignals

app = options.single()

FOLDER = Path("demo-data")
LOOK_EVERY = 0.25
STEP_EVERY = 0.5
START_WITHIN = 30.0


@app.command()
def demo(
    for_: Annotated[
        float | None,
        option("--for", read=options.seconds, metavar="DURATION", help="end by itself after, e.g. 30s"),
    ] = None,
    plain: Annotated[bool, option("--plain", help="lines instead of a window")] = False,
    fresh: Annotated[bool, option("--fresh", help="forget what earlier demos left in ./demo-data")] = False,
    concurrency: Annotated[int, option("--concurrency", "-c", help="jobs at once", least=1)] = 8,
    processes: Annotated[int, option("--processes", "-p", help="executor processes", least=1)] = 2,
    database: options.Database = None,
) -> int:
    """A worker, a server with its dashboard, an example app and a trickle of jobs: watch them live, and play along in
    your browser or from another terminal."""
    url = database or _demo_file(fresh)
    # The example app asks the environment for its database, as yours would.
    os.environ["UNSTUCK_DATABASE"] = url
    from unstuck.chance import SystemChance
    from unstuck.cli.stage.snapshot import Watcher
    from unstuck.cli.stage.trickle import Trickle
    from unstuck.cli.stop_signals import StopSignals
    from unstuck.examples.demo import app as shop

    FOLDER.mkdir(exist_ok=True)
    watcher, trickle = Watcher(shop._engine.store, "default"), Trickle(SystemChance())
    how = ["--concurrency", str(concurrency), "--processes", str(processes), "--name", "demo-worker"]
    with shop, StopSignals() as stop:
        if database is None:  # on somebody's own database their rules stay
            trickle.lose_patience()
        started = watcher.look().now
        worker = Companion.worker("unstuck.examples.demo:app", url, FOLDER / "worker.log", how)
        with worker as companion, _server(url) as address:
            show = _lines if plain or output.is_plain(sys.stdout) else _window
            show(Demo(url, address, for_, stop, companion, watcher, trickle))
            output.note("stopping: the worker finishes what ends in time, and hands the rest back …")
        _summarize(watcher, started, url)
    return exits.OK


@dataclass(frozen=True, slots=True)
class Demo:
    """Everything the loop needs."""

    url: str
    address: str | None
    seconds: float | None
    stop: StopSignals
    companion: Companion
    watcher: Watcher
    trickle: Trickle


def _demo_file(fresh: bool) -> str:
    path = FOLDER / "demo.db"
    FOLDER.mkdir(exist_ok=True)
    if fresh:
        for leftover in FOLDER.glob("demo.db*"):
            leftover.unlink()
    output.note(f"the demo keeps its jobs in {path} (a SQLite file; --fresh starts anew)")
    return f"sqlite:///{path.resolve()}"


@contextmanager
def _server(url: str) -> Iterator[str | None]:
    """The address of everything over HTTP; None: the extra for it is not installed."""
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        yield None
        return
    with Companion.server(url, FOLDER / "server.log") as server:
        yield server.address(START_WITHIN)


def _looks(stage: Demo) -> Iterator[tuple[float, DemoSnapshot]]:
    """Look, enqueue now and then, until it is time to end; a database that is busy for a moment is no reason to.

    The time runs from when the worker is up: a slow machine shows as much as a fast one. A signal ends it in order; a
    second one changes nothing, since every step is bounded."""
    opened = started = next_step = clock.boot()
    is_up = False
    while not stage.stop.asked:
        if not is_up and clock.boot() - opened < START_WITHIN:
            started = clock.boot()
        elapsed = clock.boot() - started
        if stage.seconds is not None and elapsed >= stage.seconds:
            return
        stage.companion.check()
        try:
            if clock.boot() >= next_step:
                stage.trickle.step()
                next_step = clock.boot() + STEP_EVERY
            snapshot = stage.watcher.look()
            is_up = is_up or _a_process(snapshot) is not None
            yield elapsed, snapshot
        except StoreError as error:
            output.note(f"the database did not answer, trying again: {error}")
        stage.stop.wait(LOOK_EVERY)


def _window(stage: Demo) -> None:
    from rich.live import Live

    from unstuck.cli.stage.screen import draw

    screen = output.console()
    with Live(console=screen, screen=True, auto_refresh=False, redirect_stderr=False) as live:
        for elapsed, snapshot in _looks(stage):
            picture = draw(
                snapshot,
                stage.watcher.news,
                title=_title(stage.address),
                time=_clock_text(elapsed, stage.seconds),
                hints=_hints(stage.url, snapshot, stage.watcher.stuck, stage.address),
                size=screen.size,
            )
            live.update(picture, refresh=True)


def _title(address: str | None) -> str:
    return "every job reaches a state that explains itself" if address is None else f"in your browser: {address}"


def _lines(stage: Demo) -> None:
    output.say(f"unstuck demo: jobs in {stage.url}")
    if stage.address is not None:
        output.say(f"  the dashboard, in your browser: {stage.address}")
    for hint in _hints(stage.url, None, address=stage.address):
        output.say(f"  {hint}")
    counted = -5.0
    for elapsed, snapshot in _looks(stage):
        for change in snapshot.news:
            at = f"{change.at.astimezone():%H:%M:%S}"
            output.say(f"{at}  {change.workflow:<14} {change.state:<10} {change.job}  {change.text}")
        if elapsed - counted >= 5:
            counted = elapsed
            output.say(f"{_clock_text(elapsed, stage.seconds)}  {_count_text(snapshot.counts)}")


def _clock_text(elapsed: float, limit: float | None) -> str:
    shown = f"{int(elapsed) // 60}:{int(elapsed) % 60:02}"
    return shown if limit is None else f"{shown} of {int(limit) // 60}:{int(limit) % 60:02}"


def _count_text(counts: dict[JobState, int]) -> str:
    return " · ".join(f"{state} {number}" for state, number in counts.items() if number) or "no jobs yet"


def _hints(
    url: str, snapshot: DemoSnapshot | None, stuck: str | None = None, address: str | None = None
) -> list[str]:
    """The first and the last two stay when the window is low."""
    over_http = [] if address is None else [f"curl -s {address}/api/v1/stats    everything over HTTP"]
    job = snapshot.running[-1].record.id if snapshot and snapshot.running else "JOB"
    return [
        f"export UNSTUCK_DATABASE={url}{_activation()}",
        "unstuck jobs list    unstuck stats --watch    unstuck targets --blocked    unstuck health",
        "unstuck approvals    unstuck blacklist    unstuck notifications    unstuck events follow",
        f"unstuck jobs show {job} (or cancel, logs --follow, …)",
        "unstuck enqueue greet '\"you\"' --wait",
        *over_http,
        f"unstuck workers    unstuck stack {stuck or 'JOB'}",
        f"kill -9 {(snapshot and _a_process(snapshot)) or 'PID'}    a process dies: watch its jobs run again",
    ]


def _activation() -> str:
    """`unstuck` must be found in that other terminal too; after `make demo` it is in a virtual environment. Folded at
    its space it is two commands that do the same."""
    folder = Path(sys.executable).parent
    if shutil.which("unstuck") or not (folder / "unstuck").exists():
        return ""
    return f" PATH={folder}:$PATH"


def _a_process(snapshot: DemoSnapshot) -> int | None:
    """A worker that runs jobs."""
    for worker in snapshot.workers:
        for process in worker.processes:
            if process.state == "active" and not process.alone and process.pid:
                return process.pid
    return None


def _summarize(watcher: Watcher, started: datetime, url: str) -> None:
    """Of this demo's own jobs: what earlier ones left behind may have gone on meanwhile, and would not add up."""
    watcher.look()
    states = watcher.states_since(started)
    accepted = states.total()
    output.say(f"\n{output.count(accepted, 'job')} {_were(accepted)} accepted, and every one is accounted for:")
    for state in JobState:
        if states[state]:
            output.say(f"  {states[state]:>5}  {output.state(state.value)}")
    tally, open_ = watcher.tally, sum(states[state] for state in JobState if not state.is_final)
    output.say(
        f"{tally.retries} failed attempts were tried again, {tally.losses} died with their process and ran again, "
        f"{tally.stuck} got stuck and harmed nobody, {open_} will go on when a worker is back."
    )
    if tally.barred:
        output.say(blacklisted(tally.barred))
    output.say(f"look around:  {f'{_activation()} unstuck'.strip()} jobs list --database {url}")


def blacklisted(barred: Counter[str]) -> str:
    """Of each workflow how often: the shop lifts its own, and they get stuck again."""
    workflows, times = len(barred), barred.total()
    often = f", {times} times in all" if times > workflows else ""
    return f"{output.count(workflows, 'workflow')} got stuck too often and {_were(workflows)} blacklisted{often}."


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
