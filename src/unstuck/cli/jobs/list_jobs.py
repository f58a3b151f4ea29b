"""unstuck jobs list: the jobs that some filters leave."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.jobs.texts import first_line, on_its_way, run_time
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import ErrorType
from unstuck.operations import jobs
from unstuck.views import Page
from unstuck.views.jobs import JobView


def list_(
    state: Annotated[
        list[str] | None, option("--state", "-s", metavar="STATE", help="only these, e.g. BLOCKED; may be repeated")
    ] = None,
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only of this workflow")] = None,
    queue: Annotated[str | None, option("--queue", "-q", metavar="NAME", help="only of this queue")] = None,
    target: Annotated[str | None, option("--target", metavar="NAME", help="only on this target")] = None,
    tag: Annotated[str | None, option("--tag", metavar="TAG", help="only with this tag")] = None,
    error: Annotated[
        str | None, option("--error", "--error-type", metavar="NAME", help="only of this error, e.g. ExecutionStuck")
    ] = None,
    older: Annotated[
        float | None,
        option("--older", read=options.seconds, metavar="DURATION", help="submitted longer ago than, e.g. 10m"),
    ] = None,
    newer: Annotated[
        float | None, option("--newer", read=options.seconds, metavar="DURATION", help="submitted within, e.g. 1h")
    ] = None,
    limit: Annotated[int, options.rows(100_000)] = 50,
    after: Annotated[str | None, option("--after", metavar="CURSOR", help="go on where the last page ended")] = None,
    oldest: Annotated[bool, option("--oldest-first", "--oldest", help="the oldest before the newest")] = False,
    wide: Annotated[bool, option("--wide", help="whole ids and more columns")] = False,
    *,
    common: options.Common,
) -> None:
    """The newest jobs, or those you ask for. TOOK is the last attempt's: (#3) was the third."""
    with opened(common) as session:
        now = session.now()
        page = jobs.list_(
            session.caller,
            state=list(state or ()),
            workflow=workflow,
            queue=queue,
            error_type=error,
            target=target,
            tag=tag,
            before=_ago(now, older),
            since=_ago(now, newer),
            newest_first=not oldest,
            limit=limit,
            after=after,
        )
        if not page.items:
            _warn_of_misspelt(session, workflow, queue, error)
    if common.json:
        output.emit_page(page)
    else:
        headers, rows = _wide(page, now) if wide else _narrow(page, now)
        output.table(headers, rows, empty="no such jobs; `unstuck enqueue WORKFLOW` makes one")
        output.tell_next(page)


def _warn_of_misspelt(session: Session, workflow: str | None, queue: str | None, error: str | None) -> None:
    """An empty list reads like good news: say so when a filter names what nobody has ever used."""
    for kind, name in (("workflow", workflow), ("queue", queue), ("tenant", session.tenant)):
        if name is not None:
            gates.warn_if_unheard_of(session, kind, name)
    own = {known.casefold(): known.value for known in ErrorType}
    if error is not None and error not in set(ErrorType) and (meant := own.get(error.casefold())):
        output.note(f"errors are spelt as their classes: did you mean {meant}?")


def _ago(now: datetime, seconds: float | None) -> datetime | None:
    return None if seconds is None else now - timedelta(seconds=seconds)


def _narrow(page: Page[JobView], now: datetime) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = [
        [
            job.id,
            job.shown_state,
            job.workflow,
            output.age(job.created_at, now),
            _last_took(job, now),
            first_line(f"{job.error_type}: {job.error_message}") if job.error_type else None,
        ]
        for job in page
    ]
    return ["JOB", "STATE", "WORKFLOW", "CREATED", "TOOK", "ERROR"], rows


def _wide(page: Page[JobView], now: datetime) -> tuple[list[str], list[list[object]]]:
    rows: list[list[object]] = [
        [
            job.id,
            job.shown_state,
            job.workflow,
            job.queue,
            job.target,
            job.priority,
            job.attempts,
            output.rfc3339(job.created_at),
            output.duration(run_time(job, now)),
            output.duration(on_its_way(job)),
            job.worker,
            f"{job.error_type}: {job.error_message}" if job.error_type else None,
        ]
        for job in page
    ]
    headers = [
        "JOB",
        "STATE",
        "WORKFLOW",
        "QUEUE",
        "TARGET",
        "PRIORITY",
        "ATTEMPTS",
        "CREATED",
        "LAST TOOK",
        "TOTAL",
        "WORKER",
        "ERROR",
    ]
    return headers, rows


def _last_took(job: JobView, now: datetime) -> str:
    """For a column; numbered where it is not all that the job did."""
    text = output.duration(run_time(job, now))
    return f"{text} (#{job.attempts})" if job.attempts > 1 and text != "-" else text
