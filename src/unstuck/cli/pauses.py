"""unstuck pauses: everything that somebody paused, in one list."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.operations import pauses as operation
from unstuck.store.port import EVERY
from unstuck.views import plain

app = options.single()


@app.command()
def pauses(
    all_tenants: Annotated[bool, option("--all-tenants", help="not only those that touch this tenant")] = False,
    *,
    common: options.Common,
) -> None:
    """What is paused: by whom, since when, until when, why. Set by: queues, targets, tenants or workflows pause."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        everybodys = operation.list_(session.caller.about(EVERY)).items
        found = everybodys if all_tenants else operation.list_(session.caller).items
        now = session.now()
    if common.json:
        output.emit_each(map(plain, found))
        return
    output.table(
        ["PAUSED", "NAME", "TENANT", "SINCE", "ENDS", "BY", "INFO"],
        [
            (
                p.kind,
                p.name,
                p.tenant,
                output.age(p.since_at, now),
                output.age(p.until_at, now) if p.until_at else "when lifted",
                p.by,
                p.reason,
            )
            for p in found
        ],
        empty="nothing is paused",
    )
    if len(found) < len(everybodys):
        output.note(f"{len(everybodys) - len(found)} more touch other tenants only: --all-tenants")
