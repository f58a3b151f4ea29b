"""unstuck jobs history: what happened to a job, in order."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from unstuck.cli import options, output, shapes
from unstuck.cli.jobs.texts import print_stack, took
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.cli.state_texts import narrate
from unstuck.model.job import AttemptRecord, EventRecord

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
        after = 0 if all_ else max(0, record.events - limit)
        if after:
            output.note(f"the last {limit:,} of {record.events:,} events; --all shows all")
        events = session.lookup.events(record.id, after)
        while page := list(islice(events, HISTORY_SHOWN)):
            _print_events(page, _attempts_in(session, record.id, page), all_, as_json=common.json)


def _attempts_in(session: Session, job: str, events: list[EventRecord]) -> dict[int, AttemptRecord]:
    tokens = [event.token for event in events]
    first = max(0, min(tokens) - 1)
    found = session.lookup.attempts(job, first, max(tokens) - first)
    return {attempt.token: attempt for attempt in found}


def _print_events(
    events: list[EventRecord], attempts: dict[int, AttemptRecord], whole: bool, *, as_json: bool
) -> None:
    for event in events:
        ended = _ended_by(event, attempts)
        if as_json:
            output.emit_json(shapes.event(event) | {"ended": shapes.attempt(ended) if ended else None})
            continue
        output.say(f"{event.number:>3}  {output.rfc3339(event.at)}  {_narrated(event, ended)}")
        if ended is not None:
            print_stack(ended, whole, "       ")


def _ended_by(event: EventRecord, attempts: dict[int, AttemptRecord]) -> AttemptRecord | None:
    """The attempt that this event ended, if it did."""
    attempt = attempts.get(event.token)
    is_end = attempt is not None and (attempt.outcome, attempt.ended_at) == (event.kind, event.at)
    return attempt if is_end else None


def _narrated(event: EventRecord, ended: AttemptRecord | None) -> str:
    text = output.visible(narrate(event))
    return f"attempt #{event.token}{took(ended)}: {text}" if ended is not None else text
