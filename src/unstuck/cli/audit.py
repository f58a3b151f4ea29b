"""unstuck audit: who did what, and when."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.operations import audit as operation

app = options.single()


@app.command()
def audit(
    verb: Annotated[
        str | None, option("--verb", metavar="VERB", help='one, e.g. "jobs.cancel", or a noun: "blacklist"')
    ] = None,
    subject: Annotated[
        str | None, option("--subject", metavar="NAME", help="what it was done to: a job's id, a queue's name")
    ] = None,
    limit: Annotated[int, options.rows(10_000)] = 50,
    after: options.AfterNumber = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """What operators did, the newest first. Without --tenant: of all tenants."""
    with opened(common) as session:
        page = operation.list_(session.caller, verb=verb, subject=subject, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["WHEN", "BY", "KEY", "FROM", "VERB", "SUBJECT", "TENANT", "DETAIL"],
        [
            (
                output.age(a.at, now),
                a.by,
                a.key,
                a.address,
                a.verb,
                a.subject,
                "all" if a.tenant == "*" else a.tenant,
                ", ".join(f"{name}: {value}" for name, value in a.detail.items()),
            )
            for a in page
        ],
        empty="nothing of that kind was done"
        if verb is not None or subject is not None
        else "nothing was done so far",
    )
    output.tell_next(page)
