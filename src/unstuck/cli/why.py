"""unstuck why: why a job is not running, since when, until when, who must act, and the command to type."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from unstuck.cli import options, output
from unstuck.cli.parser import option
from unstuck.cli.session import Session, is_postgres, opened
from unstuck.model.errors import StoreError
from unstuck.operations import jobs
from unstuck.operations.checks import leapt
from unstuck.store.port import EVERY
from unstuck.store.port.refused import refusal
from unstuck.views.why import ReasonView, WhyAnswer

app = options.single()

_LOOK_EVERY = 1.0


@app.command()
def why(
    job: options.JobName,
    watch: Annotated[bool, option("--watch", help="say it again whenever it changes, until the job ends")] = False,
    all_tenants: options.Anybodys = False,
    *,
    common: options.Common,
) -> None:
    """Why a job is not running. The verdict first, then every reason and what to do about it."""
    options.check_whose(all_tenants, common)
    with opened(common) as session:
        caller = session.caller.about(EVERY if all_tenants else None)
        found = jobs.why(caller, job)
        _print(found, common.json)
        _note_outage(session, found)
        _note_leap(session, found)
        while watch and not found.state.is_final:
            session.pause(_LOOK_EVERY)
            before, found = found, jobs.why(caller, found.job)
            if _gist(found) != _gist(before):
                if not common.json:
                    output.say("")
                _print(found, common.json)


def _note_outage(session: Session, found: WhyAnswer) -> None:
    """A SQLite file may answer every question and take nothing from anybody: then no job moves, whatever its gates
    say. PostgreSQL names who holds what, and that is among the reasons."""
    if found.state.is_final or is_postgres(session.settings.database):
        return
    try:
        session.store.probe()
    except StoreError as error:
        output.note(f"But nothing moves until the database can be written again: {error}. See: unstuck health")
    except Exception as error:
        if refusal(error) is None:  # `health` tells of it: other rows may fare better than the one that was tried
            raise


def _note_leap(session: Session, found: WhyAnswer) -> None:
    """A leap of the clock, said where a job waits for a time: its hour on the clock on the wall has changed."""
    if (
        any(reason.until_at is not None for reason in found.reasons)
        and (told := leapt(session.caller, found.at)) is not None
    ):
        output.note(f"Note that {told}. See: unstuck health")


def _gist(found: WhyAnswer) -> tuple[object, ...]:
    """What is news when it changes: seconds that pass and beats that come are not."""
    return (found.state, [(r.code, r.since_at, r.until_at, r.actor, r.remedy) for r in found.reasons])


def _print(found: WhyAnswer, in_json: bool) -> None:
    if in_json:
        output.emit_view(found)
        return
    output.say(f"{found.job}  {output.state(found.state.value)}")
    output.say(output.styled(output.visible(found.verdict), "bold"))
    for reason in found.reasons:
        output.say("")
        _print_reason(reason, found.at)


def _print_reason(reason: ReasonView, now: datetime) -> None:
    output.say(f"  {output.styled(reason.code.value, 'cyan')}  {output.visible(reason.sentence)}")
    for label, value in _facts(reason, now):
        output.say(f"    {label:<6} {output.visible(value)}")


def _facts(reason: ReasonView, now: datetime) -> list[tuple[str, str]]:
    facts = []
    if reason.since_at is not None:
        facts.append(("since", f"{output.rfc3339(reason.since_at)} ({output.age(reason.since_at, now)})"))
    if reason.until_at is not None:
        facts.append(("until", f"{output.rfc3339(reason.until_at)} ({output.age(reason.until_at, now)})"))
    facts.append(("who", reason.actor.value))
    commands = [reason.remedy, *reason.details.get("other_remedies", ())]
    facts += [("do" if place == 0 else "or", command) for place, command in enumerate(commands) if command]
    return facts
