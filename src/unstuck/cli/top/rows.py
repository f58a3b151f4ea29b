"""What the panes of `unstuck top` list, from one look: a row each, in the order they are shown. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from unstuck.cli.output import STYLES, duration, size, visible
from unstuck.records import dataclass
from unstuck.views.gates import QueueView
from unstuck.views.top import NeedView, RunningView, TopView
from unstuck.views.workers import ProcessView, WorkerView

Pane = Literal["needs", "queues", "jobs", "workers"]
PANES: tuple[Pane, ...] = ("needs", "queues", "jobs", "workers")
BAR = 12


@dataclass(frozen=True, slots=True)
class PaneRow:
    """`name` tells it from the others of its pane, also when they have moved. `job`: the one that it is about."""

    name: str
    cells: tuple[str, ...]
    style: str = ""
    job: str | None = None
    #: Of what stands behind it: a question that can be answered, a queue that can be paused.
    need: NeedView | None = None
    queue: QueueView | None = None

    def matches(self, words: str) -> bool:
        """Every word of a filter is somewhere in it."""
        text = " ".join((*self.cells, self.job or "")).lower()
        return all(word in text for word in words.lower().split())


#: Of each pane its columns: what it is called and how wide it is; 0: as wide as there is room.
COLUMNS: dict[Pane, tuple[tuple[str, int], ...]] = {
    "needs": (("KIND", 9), ("ABOUT", 16), ("SINCE", 7), ("WHAT", 0)),
    "queues": (("QUEUE", 20), ("WAIT", 7), ("LATER", 7), ("RUN", 6), ("OLDEST", 8), ("NOTE", 0)),
    "jobs": (("WORKFLOW", 18), ("JOB", 18), ("AGE", 7), ("WORKER", 12), ("PROGRESS", 0)),
    "workers": (("WORKER", 18), ("STATE", 9), ("RUN", 7), ("BEAT", 6), ("NOTE", 0)),
}


def rows_of(view: TopView, words: str = "") -> dict[Pane, list[PaneRow]]:
    found: dict[Pane, list[PaneRow]] = {
        "needs": [_need(each, view.at) for each in view.needs],
        "queues": [_queue(each, view.at) for each in view.queues],
        "jobs": [_job(each, view.at) for each in view.running],
        "workers": [row for each in view.workers for row in _worker(each, view.at)],
    }
    return {pane: [row for row in rows if row.matches(words)] for pane, rows in found.items()}


def _need(need: NeedView, now: datetime) -> PaneRow:
    until = "" if need.until_at is None else f" (ends in {_since(now, need.until_at)})"
    style = "bold red" if need.urgent else "magenta" if need.kind == "approval" else "yellow"
    name = "/".join((need.kind, need.about, need.job or "", need.key or ""))
    cells = (need.kind, need.about, _since(need.since_at, now), f"{need.text}{until}")
    return PaneRow(name, cells, style, job=need.job, need=need)


def _queue(queue: QueueView, now: datetime) -> PaneRow:
    more = "+" if queue.at_least else ""
    cells = (
        queue.name,
        f"{queue.waiting:,}{more}",
        f"{queue.scheduled:,}",
        f"{queue.running:,}",
        _since(queue.oldest_due_at, now),
        _queue_note(queue, now),
    )
    return PaneRow(queue.name, cells, "yellow" if queue.pauses else "", queue=queue)


def _queue_note(queue: QueueView, now: datetime) -> str:
    if queue.pauses:
        pause = queue.pauses[0]
        until = "" if pause.until_at is None else f" for {_since(now, pause.until_at)}"
        return f"PAUSED{until} by {pause.by}{f': {pause.reason}' if pause.reason else ''}"
    return "" if queue.workers or not queue.waiting else "no worker serves it"


def _job(job: RunningView, now: datetime) -> PaneRow:
    since = job.started_at or job.claimed_at
    if job.request:
        told, style = f"asked to stop ({job.request}) {_since(job.requested_at, now)} ago", STYLES["CANCELLING"]
    else:
        tries = job.failures + job.losses
        told, style = _progress(job.progress) or (f"attempt {tries + 1}" if tries else ""), ""
    return PaneRow(job.id, (job.workflow, job.id, _since(since, now), job.worker or "", told), style, job=job.id)


def _progress(progress: Any) -> str:
    match progress:
        case None:
            return ""
        case {"done": int(done), "of": int(of)} if of > 0:
            filled = round(BAR * min(1.0, max(0.0, done / of)))
            return f"{'━' * filled}{'┄' * (BAR - filled)} {done:,}/{of:,}"
        case float() | int() if not isinstance(progress, bool) and 0 <= progress <= 1:
            filled = round(BAR * progress)
            return f"{'━' * filled}{'┄' * (BAR - filled)} {progress:.0%}"
        case other:
            return str(other)


def _worker(worker: WorkerView, now: datetime) -> list[PaneRow]:
    slots = f"{worker.running}/{worker.slots}" if worker.slots is not None else str(worker.running)
    # A traceback ends with what it is about.
    error = (worker.import_error or worker.start_error or "").strip().rpartition("\n")[2]
    note = error or (worker.roles[0].text if worker.roles else "")
    where = f"{worker.host} pid {worker.pid}  {', '.join(worker.queues)}"
    style = {"active": "", "draining": "yellow"}.get(worker.state, "dim" if worker.state == "gone" else "bold red")
    cells = (worker.name, worker.state, slots, _since(worker.heartbeat_at, now), note or where)
    head = PaneRow(f"{worker.number}", cells, "bold red" if note else style)
    return [head, *(_process(worker, process) for process in worker.processes)]


def _process(worker: WorkerView, process: ProcessView) -> PaneRow:
    stuck = sum(body.stuck for body in process.jobs)
    silent = f"silent {process.silent_ms / 1000:.0f} s  " if process.silent_ms >= 1000 else ""
    note = f"{silent}{f'{stuck} stuck  ' if stuck else ''}{process.reason}".strip()
    cells = (
        f"  pid {process.pid or '?'}",
        process.state,
        str(process.running),
        "",
        note or f"{process.jobs_done:,} done, {size(process.memory)}",
    )
    style = "bold red" if stuck else "yellow" if process.state == "draining" else "dim"
    return PaneRow(f"{worker.number}/{process.pid}", cells, style)


def _since(at: datetime | None, now: datetime) -> str:
    """Short: 12s, 3m, 2h, 4d."""
    if at is None:
        return "-"
    seconds = max(0.0, (now - at).total_seconds())
    return f"{seconds:.0f}s" if seconds < 60 else duration(seconds).split()[0]


def shown_cell(text: str) -> str:
    """On one line, with what a terminal would obey spelt out."""
    return visible(text).replace("\n", " ").replace("\t", " ")
