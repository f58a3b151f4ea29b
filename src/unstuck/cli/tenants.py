"""unstuck tenants …: whose jobs; their shares, pauses and limits."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import gates, options, output, shapes
from unstuck.cli.gates import Where
from unstuck.cli.parser import Argument, option
from unstuck.cli.queues import waiting
from unstuck.cli.session import Session, opened
from unstuck.cli.stats import count_text
from unstuck.model.lifecycle import JobState
from unstuck.model.spelling import given
from unstuck.store.port import EVERY, Limit, Pause, Tally, TenantRecord

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
        found = session.gates.tenants(after=after, limit=limit)
        seen = [_Seen(session, record) for record in found]
        now = session.now()
    if common.json:
        for tenant in seen:
            output.emit_json(tenant.shape())
    else:
        output.table(
            ["TENANT", "WEIGHT", "WAITING", "RUNNING", "LIMIT", "PAUSED"],
            [tenant.row(now) for tenant in seen],
            empty="no tenant has had a job so far",
        )
    if len(found) == limit:
        output.note(f"there may be more: {given('--after', found[-1].name)}")


class _Seen:
    """A tenant with everything the lists say about it."""

    def __init__(self, session: Session, record: TenantRecord) -> None:
        self.record = record
        self.tally: Tally = session.store.tally(record.name)
        self.pauses: list[Pause] = [p for p in session.gates.pauses(tenant=record.name) if p.kind == "tenant"]
        self.limits = _limits_of(session, record.name)

    def row(self, now: datetime) -> tuple[object, ...]:
        return (
            self.record.name,
            self.record.weight,
            waiting(self.tally),
            count_text(self.tally, JobState.RUNNING),
            gates.limits_text(self.limits),
            gates.pause_text(self.pauses, now),
        )

    def shape(self) -> dict[str, Any]:
        return {
            "name": self.record.name,
            "weight": self.record.weight,
            "states": {state.value: self.tally.states[state] for state in JobState},
            "at_least": [state.value for state in JobState if state in self.tally.at_least],
            "scheduled": self.tally.scheduled,
            "blocked": self.tally.blocked,
            "pauses": [shapes.pause(p) for p in self.pauses],
            "limits": [shapes.limit(x) for x in self.limits],
        }


def _limits_of(session: Session, name: str) -> list[Limit]:
    """Its own, else those that hold for each tenant."""
    found = [x for x in session.gates.limits(tenant=name) if x.kind == "tenant"]
    return [x for x in found if x.name == name] or [x for x in found if x.name == EVERY]


@app.command()
def show(who: Name, *, common: options.CommonPlatform) -> None:
    """One tenant. Its jobs by state, its weight, and every pause and limit that touches it."""
    with opened(common) as session:
        tenant = _Seen(session, session.gates.tenant(who))
        pauses, limits = session.gates.pauses(tenant=who), session.gates.limits(tenant=who)
        blocked = session.store.targets(who, blocked=True, limit=100)
        now = session.now()
    if common.json:
        told = {"pauses": [shapes.pause(p) for p in pauses], "limits": [shapes.limit(x) for x in limits]}
        output.emit_json(tenant.shape() | told | {"blocked_targets": [t.name for t in blocked]})
        return
    output.say(f"tenant {output.styled(who, 'bold')}, weight {tenant.record.weight}\n")
    states = [state for state in JobState if tenant.tally.states[state]]
    output.table(["STATE", "JOBS"], [(s.value, count_text(tenant.tally, s)) for s in states], empty="no jobs")
    for pause_ in pauses:
        output.say(f"paused   {pause_.kind} {pause_.name} {gates.pause_text([pause_], now)}")
    for limit_ in limits:
        output.say(f"limit    {limit_.kind} {limit_.name}: {gates.limit_text(limit_)}")
    if blocked:
        more = "+" if len(blocked) == 100 else ""
        output.say(f"blocked  {len(blocked)}{more} targets: unstuck targets --blocked {given('--tenant', who)}")


@app.command()
def pause(
    who: Name,
    *,
    flags: gates.PauseFlags,
    common: options.CommonPlatform,
) -> None:
    """Start nothing new of a tenant. What runs goes on, what comes waits."""
    gates.pause("tenant", who, flags, Where(common))


@app.command()
def unpause(who: Name, *, common: options.CommonPlatform) -> None:
    """Lift the pause of a tenant."""
    gates.unpause("tenant", who, Where(common))


@app.command()
def weight(
    who: Name,
    turns: Annotated[str, Argument(metavar="N", help="turns for each turn of a tenant of weight 1")],
    *,
    common: options.CommonPlatform,
) -> None:
    """Give a tenant a larger or smaller share. Workers take it up within some seconds."""
    number = gates.whole_number(turns, "the weight")
    with opened(common) as session:
        record = session.gates.weigh(who, number)
    if common.json:
        output.emit_json({"name": record.name, "weight": record.weight})
    else:
        output.say(f"tenant {record.name} has weight {record.weight}")


@app.command()
def limit(
    who: NameOrEach,
    *,
    flags: gates.QueueLimitFlags,
    common: options.CommonPlatform,
) -> None:
    """Limit how much of a tenant runs, starts or waits. What you do not name stays as it stands."""
    gates.limit("tenant", who, flags, Where(common))
