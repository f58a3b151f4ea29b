"""unstuck jobs history: what happened to a job, in order."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.event_texts import narrate
from unstuck.cli.jobs.texts import print_stack, took
from unstuck.cli.parser import option
from unstuck.cli.session import opened
from unstuck.operations import jobs
from unstuck.operations.kinds import Cursor
from unstuck.views import plain
from unstuck.views.jobs import EventWhole

#: Events that are printed at a time, with the attempts that they ended.
HISTORY_SHOWN = 200


def history(
    job: options.JobName,
    limit: Annotated[int, option("--limit", "-n", metavar="N", least=1, help="number of events")] = 1000,
    all_: Annotated[bool, option("--all", help="every event, whole stacks")] = False,
    *,
    common: options.Common,
) -> None:
    """What happened to a job, in order. How long each attempt took, how it ended, and its stack."""
    with opened(common) as session:
        record = session.job(job)
        after: Cursor | None = 0 if all_ else max(0, record.events - limit)
        if after:
            output.note(f"the last {limit:,} of {record.events:,} events; --all shows all")
        while after is not None:
            page = jobs.history(session.caller, record.id, after=after, limit=HISTORY_SHOWN)
            if common.json:
                output.emit_each(map(plain, page))
            else:
                for event in page:
                    _print(event, whole=all_)
            after = page.next


def _print(event: EventWhole, *, whole: bool) -> None:
    text = output.visible(narrate(event))
    if event.ended is not None:
        text = f"attempt #{event.attempt}{took(event.ended)}: {text}"
    output.say(f"{event.number:>3}  {output.rfc3339(event.at)}  {text}")
    if event.ended is not None:
        print_stack(event.ended, whole, "       ")
