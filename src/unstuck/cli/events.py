"""unstuck events …: what happens to all jobs, in the one order that every reader sees."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

from unstuck.cli import exits, options, output
from unstuck.cli.event_texts import narrate
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import InvalidInput, told
from unstuck.model.news import OURS, is_kind
from unstuck.observe.feed import NOW
from unstuck.observe.stream import Stream
from unstuck.operations import events
from unstuck.operations.table import Caller
from unstuck.store.port import EVERY
from unstuck.views.flow import FeedEventView

app = options.group(
    "What happens, in order: look back, or follow it. Publish news of your own, send an event to a job."
)

After = Annotated[
    str | None,
    option("--after", metavar="CURSOR", help="go on after this event; `start`: all that is kept; `now`: what comes"),
]
OfJob = Annotated[str | None, option("--job", "-j", metavar="JOB", help="only of this job")]
OfWorkflow = Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only of this workflow")]
OfTarget = Annotated[str | None, option("--target", metavar="NAME", help="only of this target, and of jobs on it")]
OfTopic = Annotated[str | None, option("--topic", metavar="NAME", help="only what was published on this topic")]
OfKind = Annotated[
    list[str] | None, option("--kind", "-k", metavar="KIND", help="only these, e.g. failed; may be repeated")
]
AllTenants = Annotated[bool, option("--all-tenants", help="of every tenant, not only this one")]


@app.command("list")
def list_(
    after: After = None,
    job: OfJob = None,
    workflow: OfWorkflow = None,
    target: OfTarget = None,
    topic: OfTopic = None,
    kind: OfKind = None,
    limit: Annotated[int, options.rows(100_000)] = 100,
    all_tenants: AllTenants = False,
    *,
    common: options.Common,
) -> None:
    """What is kept of the feed, the oldest first; each event has a cursor to go on from."""
    with opened(common) as session:
        caller = _caller(session, all_tenants)
        _note_kinds(kind)
        page = events.list_(
            caller,
            after=after,
            kinds=kind or (),
            job=job,
            workflow=workflow,
            target=target,
            topic=topic,
            limit=limit,
        )
    for event in page:
        _print(event, common.json)
    if len(page) == limit:
        output.tell_next(page)
    elif not common.json:
        output.note(
            f"what comes next: unstuck events follow --after {page.next}" if page.items else "no such events so far"
        )


@app.command()
def follow(
    after: After = None,
    job: OfJob = None,
    workflow: OfWorkflow = None,
    target: OfTarget = None,
    topic: OfTopic = None,
    kind: OfKind = None,
    all_tenants: AllTenants = False,
    *,
    common: options.Common,
) -> int:
    """Every event as it is committed, once and in order, until Ctrl-C. Begins now, or where you left off."""
    with opened(common) as session:
        caller = _caller(session, all_tenants)
        _note_kinds(kind)
        source = events.follow(
            caller, after=after or NOW, kinds=kind or (), job=job, workflow=workflow, target=target, topic=topic
        )
        feed = Stream(source)
        printed, is_printing = feed.cursor, False
        try:
            for event in feed:
                is_printing = True
                _print(event, common.json)
                printed, is_printing = event.cursor, False
        except KeyboardInterrupt:
            # An event that may not have been printed is printed again rather than never.
            output.note(f"\ngo on later: unstuck events follow --after {printed if is_printing else feed.cursor}")
    return exits.INTERRUPTED


@app.command()
def publish(
    kind: Annotated[str, Argument(metavar="KIND", help="a word of yours, e.g. order.paid")],
    data: Annotated[
        str | None, option("--data", metavar="JSON", help="an object with what there is to say (default: {})")
    ] = None,
    topic: Annotated[str | None, option("--topic", metavar="NAME", help="by which followers choose it")] = None,
    job: Annotated[str | None, option("--job", "-j", metavar="JOB", help="the job that it is about")] = None,
    ttl: Annotated[
        str | None, option("--ttl", metavar="TIME", help="kept for so long, e.g. 10m; left out: as long as the feed")
    ] = None,
    ident: Annotated[
        str | None, option("--id", metavar="ID", help="published again under the same id it counts once")
    ] = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Tell everybody who follows the feed."""
    content = None if data is None else _read(data, "the data")
    with opened(common) as session:
        told_of = events.publish(session.caller.about(by=by), kind, content, topic=topic, job=job, ttl=ttl, id=ident)
    if common.json:
        output.emit_view(told_of)
    elif told_of.repeated:
        output.note(f"{kind} was published under this id before, and counts once")
    else:
        output.say(f"published {kind}")


@app.command()
def send(
    job: Annotated[str, Argument(metavar="JOB", help="to whom: a job's id, or enough of it; left out with --topic")],
    event: Annotated[str | None, Argument(metavar="EVENT", help="the name that a wait was begun with")] = None,
    payload: Annotated[
        str | None, option("--payload", "-p", metavar="JSON", help="what the wait gives back (default: null)")
    ] = None,
    topic: Annotated[
        str | None, option("--topic", metavar="NAME", help="to one that waits on this topic, not to a job")
    ] = None,
    ident: Annotated[
        str | None, option("--id", metavar="ID", help="sent again under the same id it counts once")
    ] = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> None:
    """Send an event to a job, or to a topic. It answers one wait: an open one, or the next within 24 hours."""
    whom, name = _addressed(job, event, topic)
    content = None if payload is None else _read(payload, "the payload")
    with opened(common) as session:
        sent = events.send(session.caller.about(by=by), name, content, job=whom, topic=topic, id=ident)
    if common.json:
        output.emit_view(sent)
    elif sent.repeated:
        output.note(f"event {name} was sent under this id before, and counts once")
    elif sent.answered is not None:
        output.say(f"event {name} reached job {sent.answered}: it goes on")
    else:
        where = f"topic {topic}" if sent.job is None else f"job {sent.job}"
        output.say(f"event {name} is kept for {where}: nobody waits for it yet")
        for wait in sent.awaited:
            on = f" on topic {wait.topic}" if wait.topic else ""
            output.note(f"job {sent.job} waits for event {wait.event}{on}")
        output.note("the first wait for it takes it, within 24 hours")


def _addressed(first: str, second: str | None, topic: str | None) -> tuple[str | None, str]:
    """To which job, and the event's name: with a topic the only word is the event."""
    if topic is None and second is None:
        raise InvalidInput("two words are needed, JOB and EVENT; or one, EVENT, and --topic NAME")
    if topic is not None and second is not None:
        raise InvalidInput(f"an event is sent to a job or to a topic: leave out {told(first)} or --topic")
    return (None, first) if second is None else (first, second)


def _read(text: str, where: str) -> Any:
    from unstuck.model.payload import decode

    return decode(text, where)


def _note_kinds(kinds: list[str] | None) -> None:
    """What is published may be of any kind, so a slip of the pen is no error."""
    for kind in kinds or ():
        if kind not in OURS and is_kind(kind):
            near = difflib.get_close_matches(kind, OURS, 1)
            meant = f" ({near[0]}?)" if near else ""
            output.note(f"{kind} is no kind of unstuck's own{meant}: shown is what is published under that name")


def _caller(session: Session, all_tenants: bool) -> Caller:
    return session.caller.about(EVERY if all_tenants else None)


def _print(event: FeedEventView, as_json: bool) -> None:
    if as_json:
        output.emit_view(event)
        return
    names = (event.worker, event.target if event.number is None else None, event.topic, event.job, event.workflow)
    whose = "  ".join(output.visible(name) for name in names if name is not None)
    output.say(f"{output.rfc3339(event.at)}  {whose or '-'}  {output.visible(narrate(event))}")
