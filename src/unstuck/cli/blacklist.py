"""unstuck blacklist …: workflows of which nothing is accepted or started."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.guard import how_to_lift
from unstuck.operations import blacklist
from unstuck.store.port import EVERY
from unstuck.views import Page
from unstuck.views.guard import BlacklistView

app = options.group(
    "The blacklist: workflows of which nothing is accepted or started. Without --tenant: of all tenants.",
    default="list",
)

Name = Annotated[str, Argument(metavar="WORKFLOW", help="the workflow's name")]
AllTenants = Annotated[bool, option("--all-tenants", help="for every tenant, whatever UNSTUCK_TENANT says")]
Limit = Annotated[int, options.rows(10_000)]


@app.command("list")
def list_(common: options.CommonOneTenant) -> None:
    """What is on it: why, by whom, since when."""
    with opened(common) as session:
        page, now = blacklist.list_(session.caller), session.now()
    _print(page, now, common.json, empty="nothing is blacklisted")


@app.command()
def add(
    workflow: Name,
    reason: Annotated[str | None, option("--reason", metavar="TEXT", help="why, for those who are refused")] = None,
    all_tenants: AllTenants = False,
    by: options.By = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """Shut a workflow out on every path. What runs goes on; what waits fails, or is held by its own policy."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        entry = blacklist.add(session.caller.about(EVERY if all_tenants else None, by), workflow, reason=reason)
        gates.warn_if_unheard_of(session, "workflow", workflow)
    if common.json:
        output.emit_view(entry)
        return
    if entry.created:
        output.say(f"workflow {workflow} is {output.styled('blacklisted', 'red')} {_whose(entry)}")
    else:
        output.note(
            f"workflow {workflow} was blacklisted already {_whose(entry)}, by {entry.blacklisted_by}: {entry.reason}"
        )
    output.note(f"nothing of it is accepted or started; lift it: {how_to_lift(entry.tenant, workflow)}")


@app.command()
def remove(
    workflow: Name, all_tenants: AllTenants = False, by: options.By = None, *, common: options.CommonOneTenant
) -> None:
    """Let a workflow run again. Its stuck executions count from 0, and what was held goes on."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        view = blacklist.remove(session.caller.about(EVERY if all_tenants else None, by), workflow)
    if common.json:
        output.emit_view(view)
        return
    for entry in view.removed:
        reason = output.visible(entry.reason)
        output.say(f"workflow {workflow} is off the blacklist {_whose(entry)}; it stood there for: {reason}")
    for entry in view.left:
        output.note(f"it is still blacklisted {_whose(entry)}")


@app.command()
def history(
    workflow: Annotated[str | None, Argument(metavar="WORKFLOW", help="only of this one")] = None,
    limit: Limit = 50,
    after: options.AfterNumber = None,
    *,
    common: options.CommonOneTenant,
) -> None:
    """Everything that ever was on it, the newest first."""
    with opened(common) as session:
        page, now = blacklist.history(session.caller, workflow, after=after, limit=limit), session.now()
    never = "nothing was ever blacklisted" if workflow is None else f"workflow {workflow} was never blacklisted"
    _print(page, now, common.json, empty=never)


def _print(page: Page[BlacklistView], now: datetime, as_json: bool, *, empty: str) -> None:
    if as_json:
        output.emit_page(page)
        return
    output.table(
        ["WORKFLOW", "TENANT", "SINCE", "BY", "REASON", "LIFTED"],
        [
            (
                e.workflow,
                "all" if e.tenant == EVERY else e.tenant,
                output.age(e.blacklisted_at, now),
                e.blacklisted_by,
                e.reason,
                f"{output.age(e.removed_at, now)} by {e.removed_by}" if e.removed_at else None,
            )
            for e in page
        ],
        empty=empty,
    )
    output.tell_next(page)


def _whose(entry: BlacklistView) -> str:
    return "for every tenant" if entry.tenant == EVERY else f"for tenant {entry.tenant}"
