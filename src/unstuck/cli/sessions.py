"""unstuck sessions …: the browsers that somebody has logged in with a key."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.parser import Argument
from unstuck.cli.session import opened
from unstuck.operations import sessions

app = options.group(
    "Browser sessions: who is logged in. Without --tenant: with the keys of all tenants.", default="list"
)


@app.command("list")
def list_(
    limit: Annotated[int, options.rows(sessions.MOST_SESSIONS)] = 50,
    after: options.AfterNumber = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """The browsers that are logged in, the newest first."""
    with opened(common) as session:
        page, now = sessions.list_(session.caller, after=after, limit=limit), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["SESSION", "KEY", "BY", "TENANT", "ROLE", "FROM", "BEGAN", "IDLE UNTIL", "ENDS"],
        [
            (
                str(s.number),
                s.key,
                s.by,
                s.tenant,
                s.role,
                s.address,
                output.age(s.began_at, now),
                output.rfc3339(s.idle_until),
                output.rfc3339(s.ends_at),
            )
            for s in page
        ],
        empty="nobody is logged in",
    )
    output.tell_next(page)


@app.command()
def end(
    number: Annotated[str, Argument(metavar="SESSION", help="its number, as `unstuck sessions` shows it")],
    by: options.By = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """Log a browser out, everywhere within 5 seconds. Its key goes on working."""
    wanted = gates.whole_number(number, "the session")
    with opened(common) as session:
        view = sessions.end(session.caller.about(by=by), wanted)
    if common.json:
        output.emit_view(view)
        return
    output.say(f"session {view.number} of {output.visible(view.by)} has ended")
