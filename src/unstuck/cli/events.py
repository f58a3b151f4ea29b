"""unstuck events …: what happens to all jobs, in the one order that every reader sees."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from unstuck.cli import exits, options, output
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.cli.state_texts import narrate
from unstuck.model.errors import InvalidInput, told
from unstuck.model.waits import Wait, WaitKind
from unstuck.observe.feed import NOW, START, Feed, Reader, check_kinds
from unstuck.store.port import FeedEvent, FeedFilter

app = options.group("What happens to all jobs, in order: look back, or follow as it happens. Send an event to a job.")

After = Annotated[
    str | None,
    option("--after", metavar="CURSOR", help="go on after this event; `start`: all that is kept; `now`: what comes"),
]
OfJob = Annotated[str | None, option("--job", "-j", metavar="JOB", help="only of this job")]
OfWorkflow = Annotated[str | None, option("--workflow", "-w", metavar="NAME", help="only of this workflow")]
OfKind = Annotated[
    list[str] | None, option("--kind", "-k", metavar="KIND", help="only these, e.g. failed; may be repeated")
]
AllTenants = Annotated[bool, option("--all-tenants", help="of every tenant, not only this one")]


@app.command("list")
def list_(
    after: After = None,
    job: OfJob = None,
    workflow: OfWorkflow = None,
    kind: OfKind = None,
    limit: Annotated[int, options.rows(100_000)] = 100,
    all_tenants: AllTenants = False,
    *,
    common: options.Common,
) -> None:
    """What is kept of the feed, the oldest first; each event has a cursor to go on from."""
    with opened(common) as session:
        wanted = _wanted(session, job, workflow, kind, all_tenants)
        feed = Feed(_reader(session, after or START, wanted), follow=False)
        shown = list(islice(feed, limit + 1))
        cursor = shown[limit - 1].cursor if len(shown) > limit else feed.cursor
    for event in shown[:limit]:
        _print(event, common.json)
    if len(shown) > limit:
        output.note(f"there are more: --after {cursor}")
    elif not common.json:
        output.note(f"what comes next: unstuck events follow --after {cursor}" if shown else "no such events so far")


@app.command()
def follow(
    after: After = None,
    job: OfJob = None,
    workflow: OfWorkflow = None,
    kind: OfKind = None,
    all_tenants: AllTenants = False,
    *,
    common: options.Common,
) -> int:
    """Every event as it is committed, once and in order, until Ctrl-C. Begins now, or where you left off."""
    with opened(common) as session:
        wanted = _wanted(session, job, workflow, kind, all_tenants)
        feed = Feed(_reader(session, after or NOW, wanted))
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
def send(
    job: Annotated[str, Argument(metavar="JOB", help="to whom: a job's id, or enough of it; left out with --topic")],
    event: Annotated[str | None, Argument(metavar="EVENT", help="the name that a wait was begun with")] = None,
    payload: Annotated[
        str | None, option("--payload", "-p", metavar="JSON", help="what the wait gives back (default: null)")
    ] = None,
    topic: Annotated[
        str | None, option("--topic", metavar="NAME", help="to one that waits on this topic, not to a job")
    ] = None,
    by: Annotated[str | None, option("--by", metavar="NAME", help="who sends it; else whose shell this is")] = None,
    *,
    common: options.Common,
) -> None:
    """Send an event to a job, or to a topic. It answers one wait: an open one, or the next within 24 hours."""
    whom, name = _addressed(job, event, topic)
    content = None if payload is None else _read(payload)
    with opened(common) as session:
        ident = None if whom is None else session.job(whom).id
        sent = session.flow.signal(name, content, job=ident, topic=topic, by=by)
        waiting = [] if ident is None or sent.job is not None else _awaited(session, ident)
    if common.json:
        output.emit_json({"event": name, "job": ident, "topic": topic, "answered": sent.job, "number": sent.number})
    elif sent.job is not None:
        output.say(f"event {name} reached job {sent.job}: it goes on")
    else:
        where = f"topic {topic}" if ident is None else f"job {ident}"
        output.say(f"event {name} is kept for {where}: nobody waits for it yet")
        for wait in waiting:
            on = f" on topic {wait.topic}" if wait.topic else ""
            output.note(f"job {ident} waits for event {wait.name}{on}")
        output.note("the first wait for it takes it, within 24 hours")


def _addressed(first: str, second: str | None, topic: str | None) -> tuple[str | None, str]:
    """To which job, and the event's name: with a topic the only word is the event."""
    if topic is None and second is None:
        raise InvalidInput("two words are needed, JOB and EVENT; or one, EVENT, and --topic NAME")
    if topic is not None and second is not None:
        raise InvalidInput(f"an event is sent to a job or to a topic: leave out {told(first)} or --topic")
    return (None, first) if second is None else (first, second)


def _awaited(session: Session, job: str) -> list[Wait]:
    """The events that a job waits for now: the one that was sent may be a slip of the pen."""
    waits = session.store.waits_of(session.tenant, job)
    return [record.wait for record in waits if record.answer is None and record.wait.kind is WaitKind.EVENT]


def _read(payload: str) -> Any:
    from unstuck.model.payload import decode

    return decode(payload, "the payload")


def _wanted(
    session: Session, job: str | None, workflow: str | None, kinds: list[str] | None, all_tenants: bool
) -> FeedFilter:
    return FeedFilter(
        tenant=None if all_tenants else session.tenant,
        kinds=check_kinds(kinds or ()),
        job=None if job is None else session.job(job).id,
        workflow=workflow,
    )


def _reader(session: Session, after: str, wanted: FeedFilter) -> Reader:
    return Reader(session.store, after, wanted, kept=session.settings.times.feed_retention)


def _print(event: FeedEvent, as_json: bool) -> None:
    if as_json:
        output.emit_json(shape(event))
        return
    output.say(f"{output.rfc3339(event.at)}  {event.job}  {event.workflow}  {output.visible(narrate(event.event))}")


def shape(event: FeedEvent) -> dict[str, Any]:
    return {
        "cursor": event.cursor,
        "tenant": event.tenant,
        "job": event.job,
        "workflow": event.workflow,
        "queue": event.queue,
        "kind": event.kind,
        "number": event.number,
        "run": event.event.run,
        "attempt": event.event.token or None,
        "at": event.at,
        "data": event.data,
    }
