"""unstuck stack JOB: where a running job is right now, or where one that got stuck, crashed or failed was."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.operations import jobs
from unstuck.views.jobs import StackView

app = options.single()


@app.command()
def stack(
    job: options.JobName,
    attempt: Annotated[
        int | None, option("--attempt", metavar="N", least=1, help="the stored one of this attempt")
    ] = None,
    timeout: Annotated[
        float, option("--timeout", read=options.seconds, metavar="DURATION", help="how long its worker may take")
    ] = 10.0,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Where a job is. Of a running one its worker is asked, else the stack is shown that its last attempt left."""
    with opened(common) as session:
        shown = jobs.stack(session.caller.about(by=by), job, attempt=attempt, timeout=timeout)
        now = session.now()
    if common.json:
        output.emit_view(shown)
        return
    for line in _head(shown, now):
        output.say(line)
    output.say("")
    output.say(output.visible(shown.stack.rstrip()))


def _head(shown: StackView, now: datetime) -> list[str]:
    """Which job, which of the two kinds of stack, since when, and what became of the attempt."""
    lines = [f"{output.styled(shown.workflow, 'bold')}  {shown.job}  {output.state(shown.shown_state)}"]
    return lines + (_live_lines(shown, now) if shown.source == "live" else _stored_lines(shown, now))


def _live_lines(shown: StackView, now: datetime) -> list[str]:
    process = f", process {shown.pid}" if shown.pid else ""
    lasts = output.duration(max(0.0, (shown.at - (shown.since_at or shown.at)).total_seconds()))
    lines = [f"live: where attempt #{shown.attempt} is, {lasts} after its start, on worker {shown.worker}{process}"]
    if shown.request:
        lines.append(f"it was asked to stop ({shown.request}) {output.age(shown.requested_at, now)}")
    return lines


def _stored_lines(shown: StackView, now: datetime) -> list[str]:
    took = "" if shown.duration_ms is None else f", after {output.duration(shown.duration_ms / 1000)}"
    at = f"{output.rfc3339(shown.at)} ({output.age(shown.at, now)})"
    lines = [f"stored: where attempt #{shown.attempt} on worker {shown.worker} was when it ended{took}, {at}"]
    if shown.error_type:
        lines.append(output.visible(f"{shown.error_type}: {shown.error_message}"))
    return lines
