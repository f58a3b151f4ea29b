"""unstuck schedules …: what runs by the clock."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import gates, options, output
from unstuck.cli.enqueue import parse
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.schedules import ScheduleState
from unstuck.model.spelling import about
from unstuck.operations import schedules
from unstuck.records import dataclass
from unstuck.views import Page
from unstuck.views.schedules import FiringView, ScheduleView

app = options.group(
    "Schedules: what runs by the clock. Those that code declares stand here too: app.schedules.declare(…).",
    default="list",
)

Name = Annotated[str, Argument(metavar="NAME", help="of the schedule")]
Limit = Annotated[int, options.rows(1000)]
Arguments = Annotated[
    list[str] | None,
    Argument(metavar="ARG|NAME=ARG", help="for the workflow: JSON, or plain text where it is none"),
]
Kwargs = Annotated[str | None, option("--kwargs", metavar="JSON", help="named arguments as one object")]


@dataclass(frozen=True)
class RuleFlags:
    """What is not said stays as it stands, or is as by default."""

    cron: Annotated[
        str | None, option("--cron", metavar="LINE", help="'0 3 * * *', six fields with seconds first, or @daily")
    ] = None
    every: Annotated[
        float | None, option("--every", read=options.seconds, metavar="DURATION", help="in place of a line, e.g. 5m")
    ] = None
    zone: Annotated[str | None, option("--zone", metavar="ZONE", help="of the line, e.g. Europe/Berlin (UTC)")] = None
    tick_as: Annotated[
        str | None, option("--tick-as", metavar="NAME", help="the argument that gets the tick, as a text")
    ] = None
    queue: Annotated[str | None, option("--queue", metavar="NAME", help="instead of the workflow's own")] = None
    priority: Annotated[int | None, option("--priority", help="higher goes first")] = None
    target: Annotated[
        str | None, option("--target", metavar="NAME", help="whose jobs run one at a time, instead of the workflow's")
    ] = None
    tag: Annotated[list[str] | None, option("--tag", metavar="TAG", help="to find its jobs by; may be repeated")] = (
        None
    )
    overlap: Annotated[
        str | None,
        option("--overlap", metavar="RULE", help="while an earlier job has not ended: allow, skip, queue or cancel"),
    ] = None
    catch_up: Annotated[
        str | None,
        option("--catch-up", metavar="RULE", help="of ticks that nobody was there for: none, last or all"),
    ] = None
    catch_up_most: Annotated[
        int | None, option("--catch-up-most", metavar="N", help="maximum ticks that `all` makes up for (100)")
    ] = None
    jitter: Annotated[
        float | None,
        option("--jitter", read=options.seconds, metavar="DURATION", help="fires up to so much after its tick"),
    ] = None
    begin: Annotated[
        datetime | None, option("--begin", read=options.instant, metavar="TIME", help="no tick before")
    ] = None  # fmt: skip
    end: Annotated[datetime | None, option("--end", read=options.instant, metavar="TIME", help="no tick after")] = (
        None
    )

    def given(self) -> dict[str, Any]:
        names = ("cron", "every", "zone", "tick_as", "queue", "priority", "target", "overlap", "catch_up")
        said = {name: getattr(self, name) for name in (*names, "catch_up_most", "jitter")}
        said |= {"tags": self.tag, "begin_at": self.begin, "end_at": self.end}
        return {name: value for name, value in said.items() if value is not None}


@app.command("list")
def list_(limit: Limit = 50, after: options.AfterNumber = None, *, common: options.Common) -> None:
    """All there are: what runs, when next, whether it is paused."""
    with opened(common) as session:
        page, now = schedules.list_(session.caller, after=after, limit=limit), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NAME", "WORKFLOW", "RULE", "STATE", "NEXT", "LAST", "OWNER"],
        [
            (
                s.name,
                s.workflow,
                rule(s),
                _state(s),
                output.age(s.next_at, now) if s.next_at else None,
                output.age(s.last_at, now) if s.last_at else None,
                s.owner,
            )
            for s in page
        ],
        empty="no schedules; make one: unstuck schedules create NAME WORKFLOW --cron '0 3 * * *'",
    )
    output.tell_next(page)


@app.command()
def show(name: Name, *, common: options.Common) -> None:
    """One schedule: its rule, what it runs, when next."""
    with opened(common) as session:
        view, now = schedules.get(session.caller, name), session.now()
    _print(view, now, common.json)


@app.command()
def create(
    name: Name,
    workflow: Annotated[str, Argument(metavar="WORKFLOW", help="what it runs")],
    arguments: Arguments = None,
    kwargs: Kwargs = None,
    by: options.By = None,
    *,
    rule: RuleFlags,
    common: options.Common,
) -> None:
    """Run a workflow by the clock: --cron or --every, and its arguments."""
    positional, named = parse(arguments or [], kwargs)
    with opened(common) as session:
        caller = session.caller.about(by=by)
        view = schedules.create(caller, name, workflow, args=positional, kwargs=named, **rule.given())
        now = session.now()
    _print(view, now, common.json)


@app.command()
def update(
    name: Name,
    arguments: Arguments = None,
    kwargs: Kwargs = None,
    workflow: Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="what it runs")] = None,
    by: options.By = None,
    *,
    rule: RuleFlags,
    common: options.Common,
) -> None:
    """Change a schedule; what is not said stays. Arguments that are given replace all there were."""
    said = rule.given() | ({} if workflow is None else {"workflow": workflow})
    if arguments or kwargs is not None:
        said["args"], said["kwargs"] = parse(arguments or [], kwargs)
    with opened(common) as session:
        view, now = schedules.update(session.caller.about(by=by), name, **said), session.now()
    _print(view, now, common.json)


@app.command()
def delete(name: Name, by: options.By = None, *, common: options.Common) -> None:
    """Fire it no more, and forget it. Its jobs stay."""
    with opened(common) as session:
        view = schedules.delete(session.caller.about(by=by), name)
    if common.json:
        output.emit_view(view)
    else:
        output.say(f"schedule {view.name} is deleted")


@app.command()
def pause(name: Name, by: options.By = None, *, flags: gates.PauseFlags, common: options.Common) -> None:
    """Fire no tick until it is resumed, or for a while. Those of the pause are not made up for."""
    lasting, instant = (flags.for_, None) if flags.until is None else gates.end_of(flags.until)
    with opened(common) as session:
        caller = session.caller.about(by=by)
        view = schedules.pause(caller, name, seconds=lasting, until=instant, reason=flags.reason)
    if common.json:
        output.emit_view(view)
        return
    end = "until somebody resumes it" if view.paused_until is None else f"until {output.rfc3339(view.paused_until)}"
    output.say(f"schedule {view.name} is {output.styled('paused', 'yellow')} {end}")
    output.note(f"let it go on: {about('unstuck schedules resume', view.name)}")


@app.command()
def resume(name: Name, by: options.By = None, *, common: options.Common) -> None:
    """Let a paused schedule go on, with its next tick."""
    with opened(common) as session:
        view = schedules.resume(session.caller.about(by=by), name)
    if common.json:
        output.emit_view(view)
    else:
        output.say(f"schedule {view.name} goes on; next: {output.rfc3339(view.next_at) or 'never'}")


@app.command("run-now")
def run_now(name: Name, by: options.By = None, *, common: options.Common) -> None:
    """Make its job now, besides its ticks."""
    with opened(common) as session:
        view = schedules.run_now(session.caller.about(by=by), name)
    if common.json:
        output.emit_view(view)
    elif view.job is not None:
        output.say(view.job)
    else:
        output.note(f"{view.outcome}: {output.visible(view.reason or '')}")


@app.command()
def backfill(
    name: Name,
    since: Annotated[str, Argument(metavar="SINCE", help="the first instant, e.g. 2030-01-01T00:00:00Z")],
    until: Annotated[str, Argument(metavar="UNTIL", help="the last")],
    overlap: Annotated[
        str | None,
        option("--overlap", metavar="RULE", help="allow, skip, queue or cancel (default: queue)"),
    ] = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Make a job for each tick of a range of the past that made none."""
    begin, end = options.instant(since), options.instant(until)
    with opened(common) as session:
        caller = session.caller.about(by=by)
        page = schedules.backfill(caller, name, begin, end, overlap=overlap)  # type: ignore[arg-type]
        now = session.now()
    _print_firings(page, now, common.json, empty="every tick of that range has its job")


@app.command("next")
def next_(
    name: Name,
    count: Annotated[int, option("--count", "-c", help="how many", least=1, most=1000)] = 10,
    *,
    common: options.Common,
) -> None:
    """The ticks that come next, in UTC."""
    with opened(common) as session:
        view, now = schedules.next_(session.caller, name, count=count), session.now()
    if common.json:
        output.emit_view(view)
        return
    output.table(
        ["TICK", "IN"],
        [(output.rfc3339(tick), output.age(tick, now)) for tick in view.ticks],
        empty="none: it is paused, or has ended",
    )


@app.command()
def firings(name: Name, limit: Limit = 50, after: options.AfterNumber = None, *, common: options.Common) -> None:
    """What was done about each tick, the newest first: the job, or why there is none."""
    with opened(common) as session:
        page, now = schedules.firings(session.caller, name, after=after, limit=limit), session.now()
    _print_firings(page, now, common.json, empty="it has not fired yet")


def _print_firings(page: Page[FiringView], now: datetime, as_json: bool, *, empty: str) -> None:
    if as_json:
        output.emit_page(page)
        return
    output.table(
        ["NUMBER", "TICK", "OUTCOME", "KIND", "FIRED", "JOB", "REASON"],
        [
            (
                f.number,
                output.rfc3339(f.tick_at),
                f.outcome + (f" ({f.ticks:,})" if f.ticks > 1 else ""),
                f.kind,
                output.age(f.at, now),
                f.job,
                output.visible(f.reason) if f.reason else None,
            )
            for f in page
        ],
        empty=empty,
    )
    output.tell_next(page)


def rule(view: ScheduleView) -> str:
    if view.cron is None:
        return f"every {output.duration(view.every)}"
    return view.cron if view.zone == "UTC" else f"{view.cron} {view.zone}"


def _state(view: ScheduleView) -> str:
    return f"{view.state} (silent)" if view.silent else str(view.state)


def _print(view: ScheduleView, now: datetime, as_json: bool) -> None:
    if as_json:
        output.emit_view(view)
        return
    output.say(f"schedule {view.name}: {rule(view)} → {view.workflow}  {_state(view)}")
    output.say(f"  means    {view.meaning}")
    if view.args or view.kwargs:
        output.say(f"  calls    {output.visible(str([*view.args]))} {output.visible(str(view.kwargs))}")
    output.say(f"  overlap  {view.overlap}; after an outage: {view.catch_up}")
    if view.next_at is not None:
        output.say(f"  next     {output.rfc3339(view.next_at)} ({output.age(view.next_at, now)})")
    if view.last_at is not None:
        output.say(f"  last     {output.rfc3339(view.last_at)} ({output.age(view.last_at, now)})")
    if view.state is ScheduleState.PAUSED:
        why = f": {output.visible(view.pause_reason)}" if view.pause_reason else ""
        until = f" until {output.rfc3339(view.paused_until)}" if view.paused_until else ""
        output.say(
            f"  paused   {output.age(view.paused_at, now)} by {output.visible(view.paused_by or '')}{until}{why}"
        )
    owner = (
        f"declared by the code of app {view.owner}" if view.owner else f"made by {output.visible(view.created_by)}"
    )
    output.say(f"  owner    {output.visible(owner)}, version {view.version}")
