"""unstuck tenants …: whose jobs; their shares, pauses and limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import gates, options, output
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import given
from unstuck.operations import tenants
from unstuck.views.gates import TenantView

app = options.group("Tenants: whose jobs. Their weights, pauses and limits.", default="list")

Name = Annotated[str, Argument(metavar="TENANT", help="the tenant's name")]
NameOrEach = Annotated[str, Argument(metavar="TENANT", help="its name, or '*': each tenant by itself")]


@app.command("list")
def list_(
    limit: Annotated[int, options.rows(1000)] = 20,
    after: Annotated[str, option("--after", metavar="NAME", help="go on where the last page ended")] = "",
    *,
    common: options.CommonPlatform,
) -> None:
    """The tenants, and how each stands."""
    with opened(common) as session:
        page = tenants.list_(session.caller, after=after, limit=limit)
        now = session.now()
    if common.json:
        output.emit_page(page)
    else:
        output.table(
            ["TENANT", "WEIGHT", "WAITING", "RUNNING", "LIMIT", "PAUSED"],
            [_row(tenant, now) for tenant in page],
            empty="no tenant has had a job so far",
        )
        output.tell_next(page)


def _row(tenant: TenantView, now: datetime) -> tuple[object, ...]:
    waiting = max(0, tenant.states[JobState.QUEUED] - tenant.scheduled)
    return (
        tenant.name,
        tenant.weight,
        f"{waiting:,}" + ("+" if JobState.QUEUED in tenant.at_least else ""),
        _counted(tenant, JobState.RUNNING),
        gates.limits_text(tenant.limits),
        gates.pause_text(tenant.pauses, now),
    )


def _counted(tenant: TenantView, state: JobState) -> str:
    return f"{tenant.states[state]:,}" + ("+" if state in tenant.at_least else "")


@app.command()
def show(who: Name, *, common: options.CommonPlatform) -> None:
    """One tenant. Its jobs by state, its weight, and every pause and limit that touches it."""
    with opened(common) as session:
        tenant = tenants.get(session.caller, who)
        now = session.now()
    if common.json:
        output.emit_view(tenant)
        return
    output.say(f"tenant {output.styled(who, 'bold')}, weight {tenant.weight}\n")
    states = [state for state in JobState if tenant.states[state]]
    output.table(["STATE", "JOBS"], [(s.value, _counted(tenant, s)) for s in states], empty="no jobs")
    for pause_ in tenant.pauses:
        output.say(f"paused   {pause_.kind} {pause_.name} {gates.pause_text([pause_], now)}")
    for limit_ in tenant.limits:
        output.say(f"limit    {limit_.kind} {limit_.name}: {gates.limit_text(limit_)}")
    if blocked := len(tenant.blocked_targets):
        more = "+" if blocked == tenants.BLOCKED_SHOWN else ""
        output.say(f"blocked  {blocked}{more} targets: unstuck targets --blocked {given('--tenant', who)}")


@app.command()
def pause(who: Name, *, flags: gates.PauseFlags, by: options.By = None, common: options.CommonPlatform) -> None:
    """Start nothing new of a tenant. What runs goes on, what comes waits."""
    gates.pause(tenants.pause, who, flags, Where(common), by)


@app.command()
def unpause(who: Name, by: options.By = None, *, common: options.CommonPlatform) -> None:
    """Lift the pause of a tenant."""
    gates.unpause(tenants.unpause, who, Where(common), by)


@app.command()
def weight(
    who: Name,
    turns: Annotated[str, Argument(metavar="N", help="turns for each turn of a tenant of weight 1")],
    by: options.By = None,
    *,
    common: options.CommonPlatform,
) -> None:
    """Give a tenant a larger or smaller share. Workers take it up within some seconds."""
    number = gates.whole_number(turns, "the weight")
    with opened(common) as session:
        view = tenants.weigh(session.caller.about(by=by), who, number)
    if common.json:
        output.emit_view(view)
    else:
        output.say(f"tenant {view.name} has weight {view.weight}")


@app.command()
def limit(
    who: NameOrEach, *, flags: gates.QueueLimitFlags, by: options.By = None, common: options.CommonPlatform
) -> None:
    """Limit how much of a tenant runs, starts or waits. What you do not name stays as it stands."""
    gates.limit(tenants.limit, tenants.unlimit, who, flags, Where(common), by)
