"""unstuck quarantine …: single things that could not be written, and wait alone."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput
from unstuck.operations import quarantine
from unstuck.views.guard import QuarantineView

app = options.group(
    "The quarantine: what the database refused to write, or somebody holds. Nothing else waits for it.",
    default="list",
)


@app.command("list")
def list_(
    limit: Annotated[int, options.rows(10_000)] = 50,
    *,
    common: options.CommonOneTenant,
) -> None:
    """What is set aside: what could not be done, since when, how often it was tried, and why it fails."""
    with opened(common) as session:
        page, now = quarantine.list_(session.caller, limit=limit), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["DUTY", "WHAT", "WORKFLOW", "TENANT", "SINCE", "TRIES", "LAST", "ERROR"],
        [
            (
                each.duty,
                _what(each),
                each.workflow,
                each.tenant or None,
                output.age(each.since_at, now),
                each.tries,
                output.age(each.tried_at, now),
                each.error,
            )
            for each in page
        ],
        empty="nothing is set aside",
    )


@app.command()
def retry(
    job: Annotated[str | None, Argument(metavar="JOB", help="a job's id, or enough of its beginning")] = None,
    all_: Annotated[bool, option("--all", help="everything that is set aside")] = False,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Try it next: the coming sweep takes what was asked for before all others."""
    if (job is None) != all_:
        raise InvalidInput("name one job, or --all")
    with opened(common) as session:
        view = quarantine.retry(session.caller.about(by=by), job)
    if common.json:
        output.emit_view(view)
        return
    output.say(f"{output.count(view.tried, 'thing')} will be tried again with the next sweep")
    output.note("what is left after it: unstuck quarantine")


def _what(each: QuarantineView) -> str | None:
    return f"target {each.target}" if each.duty == "target" else each.job
