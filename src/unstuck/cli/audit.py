"""unstuck audit: who did what, and when."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output, shapes
from unstuck.cli.parser import option
from unstuck.cli.session import opened

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
    *,
    common: options.CommonOneTenant,
) -> None:
    """What operators did, the newest first. Without --tenant: of all tenants."""
    with opened(common) as session:
        found, now = session.guard.audit(verb=verb, subject=subject, limit=limit), session.now()
    if common.json:
        output.emit_each(map(shapes.action, found))
        return
    output.table(
        ["WHEN", "BY", "VERB", "SUBJECT", "TENANT", "DETAIL"],
        [
            (
                output.age(a.at, now),
                a.by,
                a.verb,
                a.subject,
                "all" if a.tenant == "*" else a.tenant,
                ", ".join(f"{name}: {value}" for name, value in a.detail.items()),
            )
            for a in found
        ],
        empty="nothing of that kind was done"
        if verb is not None or subject is not None
        else "nothing was done so far",
    )
