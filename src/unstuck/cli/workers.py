"""unstuck workers: who runs jobs, in which processes, and what keeps them from it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from unstuck.cli import options, output, shapes
from unstuck.cli.excerpt import users_part
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.model.job import WorkerRecord

app = options.single()


@app.command()
def workers(
    all_: Annotated[bool, option("--all", help="also those that left or fell silent")] = False,
    json_: options.Json = False,
    database: options.Database = None,
) -> None:
    """Workers and their processes: state, memory, jobs done; the traceback of an app that cannot be imported."""
    with opened(database, None) as session:
        now = session.now()
        found = [(w, state) for w, state in session.workers() if all_ or is_worth_showing(w, state, now)]
    if json_:
        for worker, state in found:
            output.emit_json(shapes.worker(worker, state))
        return
    if not found:
        output.note("no workers; start one: unstuck worker MODULE:APP")
    for place, (worker, state) in enumerate(found):
        if place:
            output.say("")
        _print_worker(worker, state, now)


def is_worth_showing(worker: WorkerRecord, state: str, now: datetime) -> bool:
    """Those who left in order are history; who fell silent is news for an hour."""
    return state != "gone" and now - worker.heartbeat_at < timedelta(hours=1)


def _print_worker(worker: WorkerRecord, state: str, now: datetime) -> None:
    shown = output.styled(state, {"active": "green", "draining": "yellow"}.get(state, "red"))
    queues = ", ".join(worker.queues) or "every queue of its workflows"
    output.say(f"{output.styled(worker.name, 'bold')}  {shown}  running {worker.running}")
    version = worker.info.get("code_version") or worker.code_version
    output.say(f"  pid {worker.pid} on {worker.host}, code {version}, serves {queues}")
    output.say(f"  started {output.age(worker.started_at, now)}, last beat {output.age(worker.heartbeat_at, now)}")
    if mode := worker.info.get("mode"):
        why = worker.info.get("mode_reason")
        output.say(f"  processes start by {mode}{f': {why}' if why else ''}")
    if problem := import_error(worker.info):
        _print_problem("its app cannot be imported", problem)
    if problem := start_error(worker.info):
        _print_problem("its processes cannot start", problem)
    for process in processes(worker.info):
        output.say(f"  {process_line(process)}")


def _print_problem(what: str, problem: str) -> None:
    output.say(output.styled(f"  {what}; it is tried again, later each time:", "red"))
    for line in users_part(problem).splitlines():
        output.say(f"    {line}")


def import_error(info: dict[str, Any]) -> str | None:
    found = info.get("import_error")
    return str(found) if found else None


def start_error(info: dict[str, Any]) -> str | None:
    found = info.get("start_error")
    return str(found) if found else None


def processes(info: dict[str, Any]) -> list[dict[str, Any]]:
    return [process for process in info.get("executors") or [] if isinstance(process, dict)]


def process_line(process: dict[str, Any]) -> str:
    """One executor as its supervisor sees it."""
    parts = [
        f"process {process.get('executor', '?')}",
        f"pid {process.get('pid', '?')}",
        str(process.get("state", "?")),
    ]
    running = process.get("running")
    if running is not None:
        parts.append(f"running {len(running) if isinstance(running, list) else running}")
    if (done := process.get("jobs_done")) is not None:
        parts.append(f"{done} done")
    if memory := process.get("memory"):
        parts.append(output.size(memory))
    if reason := process.get("reason"):
        parts.append(str(reason))
    return "  ".join(parts)
