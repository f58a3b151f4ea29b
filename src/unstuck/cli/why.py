"""unstuck why: why a job is not running, since when, until when, who must act, and the command to type."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import Session, is_postgres, opened
from unstuck.model.errors import StoreError
from unstuck.model.why import Reason, Why
from unstuck.operations.checks import leapt

app = options.single()

_LOOK_EVERY = 1.0


@app.command()
def why(
    job: options.JobName,
    watch: Annotated[bool, option("--watch", help="say it again whenever it changes, until the job ends")] = False,
    *,
    common: options.Common,
) -> None:
    """Why a job is not running. The verdict first, then every reason and what to do about it."""
    with opened(common) as session:
        ident = session.lookup.job_id(job)
        found = _ask(session, ident)
        _print(found, common.json)
        _note_outage(session, found)
        _note_leap(session, found)
        while watch and not found.state.is_final:
            session.pause(_LOOK_EVERY)
            before, found = found, _ask(session, ident)
            if _gist(found) != _gist(before):
                if not common.json:
                    output.say("")
                _print(found, common.json)


def _ask(session: Session, ident: str) -> Why:
    from unstuck.observe.why import why

    return why(session.store, session.tenant, ident, session.settings.times)


def _note_outage(session: Session, found: Why) -> None:
    """A SQLite file may answer every question and take nothing from anybody: then no job moves, whatever its gates
    say. PostgreSQL names who holds what, and that is among the reasons."""
    if found.state.is_final or is_postgres(session.settings.database):
        return
    try:
        session.store.probe()
    except StoreError as error:
        output.note(f"But nothing moves until the database can be written again: {error}. See: unstuck health")


def _note_leap(session: Session, found: Why) -> None:
    """A leap of the clock, said where a job waits for a time: its hour on the clock on the wall has changed."""
    waits_for_a_time = any(reason.until is not None for reason in found.reasons)
    if waits_for_a_time and (told := leapt(session.caller, found.at)) is not None:
        output.note(f"Note that {told}. See: unstuck health")


def _gist(found: Why) -> tuple[object, ...]:
    """What is news when it changes: seconds that pass and beats that come are not."""
    return (found.state, [(r.code, r.since, r.until, r.actor, r.remedy) for r in found.reasons])


def _print(found: Why, as_json: bool) -> None:
    if as_json:
        output.emit_json(shape(found))
        return
    output.say(f"{found.job}  {output.state(found.state.value)}")
    output.say(output.styled(output.visible(found.verdict), "bold"))
    for reason in found.reasons:
        output.say("")
        _print_reason(reason, found.at)


def _print_reason(reason: Reason, now: datetime) -> None:
    output.say(f"  {output.styled(reason.code.value, 'cyan')}  {output.visible(reason.sentence)}")
    for label, value in _facts(reason, now):
        output.say(f"    {label:<6} {output.visible(value)}")


def _facts(reason: Reason, now: datetime) -> list[tuple[str, str]]:
    facts = []
    if reason.since is not None:
        facts.append(("since", f"{output.rfc3339(reason.since)} ({output.age(reason.since, now)})"))
    if reason.until is not None:
        facts.append(("until", f"{output.rfc3339(reason.until)} ({output.age(reason.until, now)})"))
    facts.append(("who", reason.actor.value))
    commands = [reason.remedy, *reason.details.get("other_remedies", ())]
    facts += [("do" if place == 0 else "or", command) for place, command in enumerate(commands) if command]
    return facts


def shape(found: Why) -> dict[str, Any]:
    """What --json prints."""
    return {
        "job": found.job,
        "state": found.state.value,
        "is_runnable": found.is_runnable,
        "verdict": found.verdict,
        "reasons": [_reason(reason) for reason in found.reasons],
        "at": output.rfc3339(found.at),
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {
        "code": reason.code.value,
        "sentence": reason.sentence,
        "actor": reason.actor.value,
        "since_at": output.rfc3339(reason.since),
        "until_at": output.rfc3339(reason.until),
        "remedy": reason.remedy,
        "details": reason.details,
    }
