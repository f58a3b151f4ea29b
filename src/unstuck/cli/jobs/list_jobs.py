"""unstuck jobs list: the jobs that some filters leave."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.filters import JobFilterFlags
from unstuck.cli.jobs.texts import first_line, on_its_way, run_time
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import ErrorType
from unstuck.operations import jobs
from unstuck.store.port import EVERY
from unstuck.views import Page
from unstuck.views.jobs import JobView


def list_(
    limit: Annotated[int, options.rows(100_000)] = 50,
    after: Annotated[str | None, option("--after", metavar="CURSOR", help="go on where the last page ended")] = None,
    oldest: Annotated[bool, option("--oldest-first", "--oldest", help="the oldest before the newest")] = False,
    wide: Annotated[bool, option("--wide", help="whole ids and more columns")] = False,
    all_tenants: Annotated[bool, option("--all-tenants", help="of every tenant, not only this one")] = False,
    *,
    wanted: JobFilterFlags,
    common: options.Common,
) -> None:
    """The newest jobs, or those you ask for. TOOK is the last attempt's: (#3) was the third."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        now = session.now()
        page = jobs.list_(
            session.caller.about(EVERY if all_tenants else None),
            **wanted.asked(now),
            newest_first=not oldest,
            limit=limit,
            after=after,
        )
        if not page.items:
            _warn_of_misspelt(session, wanted)
    if common.json:
        output.emit_page(page)
    else:
        headers, rows = _wide(page, now) if wide else _narrow(page, now)
        if all_tenants:
            headers, rows = _with_tenants(headers, rows, page)
        output.table(headers, rows, empty="no such jobs; `unstuck enqueue WORKFLOW` makes one")
        output.tell_next(page)
    if page.looked and page.next is not None:
        output.note(f"it looked at {output.count(page.looked, 'job')}, the rest may have more")


def _warn_of_misspelt(session: Session, wanted: JobFilterFlags) -> None:
    """An empty list reads like good news: say so when a filter names what nobody has ever used."""
    for kind, name in (("workflow", wanted.workflow), ("queue", wanted.queue), ("tenant", session.tenant)):
        if name is not None:
            gates.warn_if_unheard_of(session, kind, name)
    own = {known.casefold(): known.value for known in ErrorType}
    error = wanted.error
    if error is not None and error not in set(ErrorType) and (meant := own.get(error.casefold())):
        output.note(f"errors are spelt as their classes: did you mean {meant}?")


def _with_tenants(
    headers: list[str], rows: list[list[object]], page: Page[JobView]
) -> tuple[list[str], list[list[object]]]:
    """Beside the state."""
    told = [[*row[:2], job.tenant, *row[2:]] for row, job in zip(rows, page, strict=True)]
    return [*headers[:2], "TENANT", *headers[2:]], told


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
