"""unstuck bulks …: one verb over all the jobs that a filter wants: count, look, watch, cancel. `jobs` starts them."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import exits, gates, options, output
from unstuck.cli.filters import BulkFlags, JobFilterFlags
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.model.bulk import BulkState
from unstuck.model.errors import InvalidInput
from unstuck.operations import bulks
from unstuck.views.bulks import BulkView, CountView, FilterView

REMARK = "cancel, interrupt, resume, retry, release and skip of `unstuck jobs` take a filter in place of ids."

app = options.group(
    "Bulks: one verb over all the jobs that a filter wants, as `unstuck jobs cancel --workflow NAME` starts it.",
    default="list",
    remark=REMARK,
)

Number = Annotated[str, Argument(metavar="NUMBER", help="of the bulk, as the list shows it")]


@app.command()
def count(*, wanted: JobFilterFlags, common: options.Common) -> None:
    """How many jobs a filter wants."""
    with opened(common) as session:
        view = bulks.count(session.caller, **wanted.asked(session.now()))
    if common.json:
        output.emit_view(view)
    else:
        output.say(_counted(view))


def start(verb: str, wanted: BulkFlags, common: options.Common, by: str | None, **how: Any) -> int:
    """What `unstuck jobs VERB` does without ids: counts the jobs that a filter wants, asks, and leaves the rest to
    the workers. `how`: the options of the verb."""
    with opened(common) as session:
        caller, asked = session.caller.about(by=by), wanted.asked(session.now())
        found = bulks.count(caller, **asked)
        if not wanted.yes:
            confirm(f"{verb} {_counted(found)} ({words(found.filter)})?")
        expected = found.number if found.exact and not wanted.yes else None
        view = bulks.start(caller, verb, **asked, **how, everything=wanted.every, expected=expected)
        if wanted.watch:
            return follow(session, view, common.json)
        if common.json:
            output.emit_view(view)
            return exits.OK
    output.say(f"bulk {view.number} is started: workers {verb} {_counted(found)}, from within some seconds on")
    output.note(
        f"how far it is: unstuck bulks show {view.number} --watch    stop it: unstuck bulks cancel {view.number}"
    )
    return exits.OK


def confirm(question: str) -> None:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidInput(f"{question} Nobody is there to be asked: say --yes")
    output.note(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InvalidInput("nothing was started")


def _counted(view: CountView) -> str:
    return f"{'' if view.exact else 'at least '}{output.count(view.number, 'job')}"


@app.command("list")
def list_(
    state: Annotated[
        str | None, option("--state", "-s", metavar="STATE", help="RUNNING, DONE, CANCELLED or FAILED")
    ] = None,
    limit: Annotated[int, options.rows(10_000)] = 50,
    after: options.AfterNumber = None,
    *,
    common: options.Common,
) -> None:
    """The bulks of a tenant, the newest first."""
    with opened(common) as session:
        wanted = None if state is None else state.upper()
        page, now = bulks.list_(session.caller, state=wanted, after=after, limit=limit), session.now()
    if common.json:
        output.emit_page(page)
        return
    output.table(
        ["NUMBER", "VERB", "STATE", "DONE", "REFUSED", "LEFT", "BEGAN", "BY", "JOBS"],
        [
            (
                b.number,
                b.verb,
                b.state,
                b.done,
                b.refused,
                _left(b),
                output.age(b.began_at, now),
                b.by,
                words(b.filter),
            )
            for b in page
        ],
        empty="no bulks; start one: unstuck jobs retry --state FAILED --workflow NAME",
    )
    output.tell_next(page)


@app.command()
def show(
    number: Number,
    watch: Annotated[bool, option("--watch", "-w", help="again every second, until it has ended")] = False,
    *,
    common: options.Common,
) -> int:
    """One bulk: how far it is, and the first jobs that it was refused for."""
    wanted = gates.whole_number(number, "the bulk")
    with opened(common) as session:
        view = bulks.get(session.caller, wanted)
        return follow(session, view, common.json) if watch else _print(view, session.now(), common.json)


@app.command()
def cancel(number: Number, by: options.By = None, *, common: options.Common) -> int:
    """Do nothing more of a bulk. What it has done stays done."""
    wanted = gates.whole_number(number, "the bulk")
    with opened(common) as session:
        return _print(bulks.cancel(session.caller.about(by=by), wanted), session.now(), common.json)


def follow(session: Session, view: BulkView, as_json: bool) -> int:
    """A line whenever something changed, and all of it at the end."""
    seen = None
    while view.state is BulkState.RUNNING:
        if as_json and view != seen:
            output.emit_view(view)
        elif not as_json and (seen is None or line(view) != line(seen)):
            output.note(line(view))
        seen = view
        session.pause(1.0)
        view = bulks.get(session.caller, view.number)
    return _print(view, session.now(), as_json)


def line(bulk: BulkView) -> str:
    so_far = f"{bulk.done:,} done, {bulk.refused:,} refused, {bulk.moved_on:,} moved on"
    return f"bulk {bulk.number} ({bulk.verb}) {bulk.state}: {so_far}, {_left(bulk)} left"


def _print(bulk: BulkView, now: datetime, as_json: bool) -> int:
    code = exits.FAILURE if bulk.state is BulkState.FAILED else exits.OK
    if as_json:
        output.emit_view(bulk)
        return code
    output.say(line(bulk))
    ended = f", ended {output.age(bulk.ended_at, now)}" if bulk.ended_at else ""
    by = f" by {output.visible(bulk.ended_by)}" if bulk.ended_by else ""
    output.say(f"  jobs     {words(bulk.filter)}")
    output.say(f"  began    {output.age(bulk.began_at, now)} by {output.visible(bulk.by)}{ended}{by}")
    if bulk.error:
        output.say(f"  error    {output.visible(bulk.error)}")
    for refusal in bulk.refusals:
        output.say(f"  refused  {refusal.job}: {output.visible(refusal.reason)}")
    if len(bulk.refusals) < bulk.refused:
        output.say(f"  refused  {bulk.refused - len(bulk.refusals):,} more")
    return code


def _left(bulk: BulkView) -> str:
    """Until it has looked at all there is, nobody knows how many more match."""
    return f"{bulk.left:,}" + ("" if bulk.looked_through or bulk.state.is_final else "+")


def words(wanted: FilterView) -> str:
    """The filter as it would be typed."""
    from unstuck.model.spelling import given

    parts = [] if wanted.dead_letter is None else [f"dead letters ({wanted.dead_letter})"]
    parts += [given("--state", state) for state in wanted.state]
    named = {
        "workflow": "--workflow",
        "queue": "--queue",
        "error_type": "--error",
        "target": "--target",
        "tag": "--tag",
    }
    parts += [given(flag, value) for name, flag in named.items() if (value := getattr(wanted, name)) is not None]
    if wanted.argument is not None:
        parts.append(given("--argument", f"{wanted.argument[0]}={json.dumps(wanted.argument[1])}"))
    if wanted.since is not None:
        parts.append(f"submitted since {output.rfc3339(wanted.since)}")
    if wanted.before is not None:
        parts.append(f"submitted before {output.rfc3339(wanted.before)}")
    return " ".join(parts) or "all"
