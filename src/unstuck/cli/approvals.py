"""unstuck approvals …: the questions that jobs ask of people, and the answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.model.why import how_to_decide, what_then
from unstuck.operations import approvals
from unstuck.store.port import EVERY
from unstuck.views.flow import ApprovalView, WaitView

app = options.group("The questions that jobs ask of people: look, approve, reject.", default="list")

By = Annotated[str | None, option("--by", metavar="NAME", help="who decides; else whose shell this is")]
Comment = Annotated[
    str | None, option("--comment", "-m", metavar="TEXT", help="kept in the history; the job sees it")
]
Key = Annotated[
    str | None, option("--key", metavar="KEY", help="only this question of the job, as `approvals list` names it")
]


@app.command("list")
def list_(
    limit: Annotated[int, options.rows(10_000)] = 50,
    after: Annotated[str | None, option("--after", metavar="CURSOR", help="go on where a page ended")] = None,
    all_tenants: Annotated[bool, option("--all-tenants", help="of every tenant, not only this one")] = False,
    *,
    common: options.Common,
) -> None:
    """What waits for a decision, the oldest first. Who is asked, until when, and what happens then."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        caller = session.caller.about(EVERY if all_tenants else None)
        page, now = approvals.list_(caller, after=after, limit=limit), session.now()
        if not page.items and not all_tenants:
            gates.warn_if_unheard_of(session, "tenant", session.tenant)
    if common.json:
        output.emit_page(page)
    else:
        _print(page.items, now)
        output.tell_next(page)


@app.command()
def approve(
    job: options.JobName, by: By = None, comment: Comment = None, key: Key = None, *, common: options.Common
) -> None:
    """Say yes: the job goes on."""
    with opened(common) as session:
        decided = approvals.approve(session.caller.about(by=by), job, comment=comment, key=key)
    _print_decided(decided, common.json)


@app.command()
def reject(
    job: options.JobName, by: By = None, comment: Comment = None, key: Key = None, *, common: options.Common
) -> None:
    """Say no: the job hears of it, and fails unless it knows what to do then."""
    with opened(common) as session:
        decided = approvals.reject(session.caller.about(by=by), job, comment=comment, key=key)
    _print_decided(decided, common.json)


def _print(found: Sequence[ApprovalView], now: datetime) -> None:
    if not found:
        output.note("nothing waits for a decision")
    for place, approval in enumerate(found):
        if place:
            output.say("")
        _print_card(approval, now)


def _print_card(approval: ApprovalView, now: datetime) -> None:
    """A question may be a paragraph, and a command must stand in one piece: no table holds the two."""
    output.say(output.styled(output.visible(approval.question), "bold"))
    who = ", ".join(approval.who) or "anybody"
    until = f"{output.age(approval.until_at, now)}, at {output.rfc3339(approval.until_at)}"
    if approval.until_at <= now:
        until = f"passed {output.age(approval.until_at, now)}"
    facts = [
        ("job", f"{approval.job}  {approval.workflow}  {_tenant(approval)}".rstrip()),
        ("asked", f"{output.age(approval.asked_at, now)}, of {who}"),
        ("deadline", f"{until}; then {what_then(approval.on_timeout)}"),
        ("yes", how_to_decide("approve", approval.job, approval.key, approval.tenant)),
        ("no", how_to_decide("reject", approval.job, approval.key, approval.tenant)),
    ]
    for label, value in facts:
        output.say(f"  {label:<9} {output.indented(output.visible(value), 12)}")


def _tenant(approval: ApprovalView) -> str:
    return "" if approval.tenant == options.DEFAULT_TENANT else f"tenant {approval.tenant}"


def _print_decided(decided: WaitView, as_json: bool) -> None:
    if as_json:
        output.emit_view(decided)
        return
    answer = str(decided.answer)
    shown = output.styled(answer, "green" if answer == "approved" else "red")
    output.say(f"{shown} by {output.visible(decided.answered_by or '?')}: {output.visible(decided.question or '')}")
    output.note(f"what it makes of it: unstuck jobs show {decided.job}")
