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
    limit: Annotated[int, option("--limit", "-n", help="at most so many", least=1, most=10_000)] = 50,
    json_: options.Json = False,
    database: options.Database = None,
    tenant: options.OneTenant = None,
) -> None:
    """What operators did, the newest first. Without --tenant: of all tenants."""
    with opened(database, tenant) as session:
        found, now = session.guard.audit(verb=verb, subject=subject, limit=limit), session.now()
    if json_:
        for action in found:
            output.emit_json(shapes.action(action))
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
