"""The demo's window: counts, processes, running jobs, the news, and what to try next."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from unstuck.cli import output
from unstuck.cli.output import STYLES, duration
from unstuck.cli.output import size as size_text
from unstuck.cli.stage.snapshot import Blocked, Change, DemoSnapshot, RunningRow
from unstuck.model.guard import BlacklistEntry, how_to_lift
from unstuck.model.lifecycle import JobState
from unstuck.observe.flow import Approval
from unstuck.views.workers import BodyView, GoneProcess, ProcessView

SHOWN = (
    (JobState.QUEUED, "wait for a free slot or for their time"),
    (JobState.RUNNING, "a handler works on them"),
    (JobState.WAITING, "parked for a person, without a slot"),
    (JobState.COMPLETED, "their result is stored"),
    (JobState.CANCELLED, "stopped by request"),
    (JobState.TIMEOUT, "stopped at their time limit"),
    (JobState.FAILED, "out of tries, or stuck; error and stack are kept"),
)


#: Below these, ids are shortened to what still names one job, and only the most telling hints stay.
NARROW = 100
LOW = 32
NEWS_FOR = 12.0
#: Seconds for which a line stays where there is place for one only.
TURN = 3.0


def draw(
    snapshot: DemoSnapshot,
    news: Sequence[Change],
    *,
    title: str,
    time: str,
    hints: Sequence[str],
    size: tuple[int, int],
) -> Layout:
    """The whole window, for whatever size (columns, lines) the terminal has."""
    width, height = size
    if height < LOW:
        hints = [hints[0], hints[-2], hints[-1]]
    inside = width - 4  # of a panel: its borders and their padding
    lines = [line for hint in hints for line in folded(hint, inside)]
    layout = Layout()
    layout.split_column(
        Layout(_title(title, time), size=1),
        Layout(name="top", size=len(SHOWN) + 2),
        Layout(_panel("now", _now(snapshot, size)), ratio=3, minimum_size=4),
        Layout(_panel("what just happened", _News(news)), ratio=4, minimum_size=4),
        Layout(_hints(lines), size=len(lines) + 2),
    )
    layout["top"].split_row(
        Layout(_panel("jobs", _counts(snapshot)), ratio=2 if width < NARROW else 3),
        Layout(_panel("worker", _workers(snapshot)), ratio=2),
    )
    return layout


def folded(hint: str, width: int) -> list[str]:
    """Between commands (three blanks or more) if that is enough, then between words, inside one only if it must."""
    lines: list[str] = []
    for part in re.split(r" {3,}", hint):
        if lines and len(lines[-1]) + 4 + len(part) <= width:
            lines[-1] += f"    {part}"
        else:
            lines += textwrap.wrap(part, width, break_on_hyphens=False)
    return lines


def _panel(title: str, body: RenderableType) -> Panel:
    return Panel(body, title=title, title_align="left", border_style="dim", padding=(0, 1))


def _title(title: str, time: str) -> Table:
    line = Table.grid(expand=True)
    line.add_column(ratio=1, no_wrap=True)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(Text.assemble(("unstuck demo", "bold"), "  ", (title, "dim")), Text(time, "dim"))
    return line


def _counts(snapshot: DemoSnapshot) -> Table:
    grid = Table.grid(padding=(0, 2), expand=True)
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for state, meaning in SHOWN:
        number = snapshot.counts.get(state, 0)
        style = STYLES[state.value] if number else "dim"
        grid.add_row(Text(state.value, style), Text(f"{number}", style), Text(meaning, "dim"))
    return grid


def _workers(snapshot: DemoSnapshot) -> RenderableType:
    if not snapshot.workers:
        return Text("starting …", "dim")
    lines: list[Text] = []
    for worker in snapshot.workers:
        lines.append(_line((worker.name, "bold"), (f"  {worker.state}", "green"), f"  pid {worker.pid}"))
        # Processes that drain stand first: they are the news, and the place is small.
        seen = sorted(worker.processes, key=lambda process: process.state != "draining")
        lines.extend(_process(process) for process in seen)
        lines.extend(_gone(process) for process in reversed(worker.recycled) if _is_news(process, snapshot))
    return Group(*lines)


def _is_news(process: GoneProcess, snapshot: DemoSnapshot) -> bool:
    """The clocks of worker and database may differ a little."""
    return process.at is not None and abs((snapshot.now - process.at).total_seconds()) < NEWS_FOR


def _gone(process: GoneProcess) -> Text:
    return _line((f"  pid {process.pid} went: {process.reason}", "dim"))


def _process(process: ProcessView) -> Text:
    """A short line: the panel is narrow, and a draining process has more to tell than a busy one."""
    head = f"  pid {process.pid or '?'}"
    if process.state == "draining":
        stuck = sum(body.stuck for body in process.jobs)
        inside = (
            f"{stuck} stuck, {process.running - stuck} ok" if stuck else f"{process.running} left: {process.reason}"
        )
        return _line(head, ("  draining", "yellow"), f"  {inside}")
    style = {"active": "green", "starting": "cyan"}.get(process.state, "dim")
    silent = f"  silent {process.silent_ms / 1000:.0f} s" if process.silent_ms >= 1000 else ""
    return _line(
        head,
        (f"  {process.state}", style),
        (silent, "yellow"),
        f"  {process.running} now, {process.jobs_done} done  {size_text(process.memory)}",
    )


def _line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _now(snapshot: DemoSnapshot, size: tuple[int, int]) -> RenderableType:
    """What is stuck stands first: it is about to be news. Then what waits for a person; in a low window in turns."""
    width, height = size
    id_length = 18 if width < NARROW else 36
    found = [(p, body) for w in snapshot.workers for p in w.processes for body in p.jobs]
    stuck = [_stuck(process, body) for process, body in found if body.stuck]
    barred = [_barred(entry, width) for entry in snapshot.barred]
    asked = [_asked(approval, id_length) for approval in snapshot.asked[:1]]
    waiting = [*barred[:1], *asked, *(_blocked(blocked, snapshot) for blocked in snapshot.blocked)]
    if height < LOW and waiting:
        waiting = [waiting[int(snapshot.now.timestamp() / TURN) % len(waiting)]]
    bodies = {body.job: body for _, body in found}
    return Group(*[*stuck, *waiting][: 1 if height < LOW else 3], _running(snapshot, bodies, id_length))


def _stuck(process: ProcessView, body: BodyView) -> Text:
    return _line(
        ("STUCK", STYLES["STUCK"]),
        f"  {body.workflow} in pid {process.pid}: unstuck stack {body.job[:18]}",
    )


def _barred(entry: BlacklistEntry, width: int) -> Text:
    times = f" {output.count(entry.stuck_count, 'stuck execution')}:" if entry.stuck_count and width >= NARROW else ""
    return _line(("BLACKLISTED", STYLES["BLACKLISTED"]), f" {times} {how_to_lift(entry.tenant, entry.workflow)}")


def _asked(approval: Approval, id_length: int) -> Text:
    """How you say yes, before the release manager does."""
    return _line(
        ("APPROVAL", STYLES["WAITING"]),
        f"  {approval.question} unstuck approvals approve {approval.job[:id_length]}",
    )


def _blocked(blocked: Blocked, snapshot: DemoSnapshot) -> Text:
    """The beginning of an id is enough for a command; a line that is cut off is not."""
    target, since = blocked.target, blocked.target.blocked_at
    lasts = f" {duration(int((snapshot.now - since).total_seconds()))}" if since else ""
    error = blocked.blocker.error_message if blocked.blocker else None
    ask = f": unstuck why {blocked.next.id[:18]}" if blocked.next else ""
    return _line(
        ("BLOCKED", STYLES["BLOCKED"]),
        f"  {error or target.name}{lasts}, {target.waiting} wait{ask}",
    )


def _running(snapshot: DemoSnapshot, bodies: dict[str, BodyView], id_length: int) -> RenderableType:
    if not snapshot.running:
        return Text("nothing this very moment", "dim")
    grid = Table.grid(padding=(0, 2), expand=True)
    grid.add_column(no_wrap=True, style="bold blue")
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(ratio=1, no_wrap=True)
    for job in snapshot.running:
        since = job.record.started_at or job.record.claimed_at
        seconds = max(0.0, (snapshot.now - since).total_seconds()) if since else None
        grid.add_row(
            job.record.workflow,
            job.record.id[:id_length],
            duration(seconds),
            _progress(job, bodies.get(job.record.id)),
        )
    return grid


def _progress(job: RunningRow, body: BodyView | None) -> Text:
    if job.record.request:
        # Its worker says more, but only with its next beat.
        return Text((body.trouble if body else "") or f"asked to stop ({job.record.request})", "yellow")
    match job.progress:
        case {"done": int(done), "of": int(of)} if of > 0:
            filled = round(24 * min(1.0, done / of))
            return Text.assemble(("━" * filled, "green"), ("━" * (24 - filled), "dim"), f" {done}/{of}")
        case None:
            tries = job.record.failures + job.record.losses
            return Text(f"attempt {tries + 1}" if tries else "", "yellow")
        case other:
            return Text(str(other))


class _News:
    """As many of the latest lines as fit, the newest at the bottom."""

    def __init__(self, news: Sequence[Change]) -> None:
        self._news = news

    def __rich_console__(self, console: Any, options: Any) -> Iterable[RenderableType]:
        height = options.height or options.max_height
        grid = Table.grid(padding=(0, 2), expand=True)
        for _ in range(3):
            grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for change in list(self._news)[-height:]:
            grid.add_row(
                Text(f"{change.at.astimezone():%H:%M:%S}", "dim"),
                Text(change.workflow),
                Text(change.state, STYLES.get(change.state, "")),
                Text(change.text, "dim"),
            )
        yield grid


def _hints(lines: Sequence[str]) -> Panel:
    """Whole, over as many lines as they need: a command that is cut cannot be tried."""
    return Panel(
        Group(*(Text(line, no_wrap=True) for line in lines)),
        title="try this in another terminal; Ctrl-C here ends the demo",
        title_align="left",
        border_style="cyan",
        padding=(0, 1),
    )
