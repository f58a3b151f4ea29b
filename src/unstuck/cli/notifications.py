"""unstuck notifications …: news for the operators of the platform."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.operations import notifications

app = options.group("Notifications: news for operators, until one of them takes note.", default="list")


@app.command("list")
def list_(
    all_: Annotated[bool, option("--all", help="also those that somebody took note of")] = False,
    limit: Annotated[int, options.rows(10_000)] = 50,
    after: options.AfterNumber = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """What nobody has taken note of yet, the newest first."""
    with opened(common) as session:
        page = notifications.list_(session.caller, acked=all_, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NUMBER", "WHEN", "TITLE", "WORKFLOW", "TENANT", "NOTED", "MESSAGE"],
        [
            (
                n.number,
                output.age(n.at, now),
                n.title,
                n.workflow,
                n.tenant,
                f"{output.age(n.acked_at, now)} by {n.acked_by}" if n.acked_at else None,
                n.message,
            )
            for n in page
        ],
        empty="no news",
    )
    output.tell_next(page)


@app.command()
def ack(
    number: Annotated[str, Argument(metavar="NUMBER", help="of the notification, as the list shows it")],
    by: options.By = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """Take note of one, so that others need not."""
    wanted = gates.whole_number(number, "the notification")
    with opened(common) as session:
        found = notifications.ack(session.caller.about(by=by), wanted)
    if common.json:
        output.emit_view(found)
    else:
        noted = output.visible(found.acked_by or "?")
        output.say(f"notification {found.number} ({found.title}: {found.workflow}) was noted by {noted}")
