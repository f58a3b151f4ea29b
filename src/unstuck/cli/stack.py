"""unstuck stack JOB: where a running job is right now, or where one that got stuck, crashed or failed was."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from unstuck.cli import options, output, shapes
from unstuck.cli.parser import option
from unstuck.cli.session import Session, opened
from unstuck.model.errors import Conflict, NoStack
from unstuck.model.job import AttemptRecord, JobRecord
from unstuck.views.workers import where_is

if TYPE_CHECKING:
    from unstuck.intake.workers import Stack

app = options.single()


@app.command()
def stack(
    job: options.JobName,
    attempt: Annotated[
        int | None, option("--attempt", metavar="N", least=1, help="the stored one of this attempt")
    ] = None,
    timeout: Annotated[
        float, option("--timeout", read=options.seconds, metavar="DURATION", help="how long its worker may take")
    ] = 10.0,
    *,
    common: options.Common,
) -> None:
    """Where a job is. Of a running one its worker is asked, else the stack is shown that its last attempt left."""
    with opened(common) as session:
        ident = session.lookup.job_id(job)
        sample = _asked(session, ident, timeout) if attempt is None else _stored(session, ident, attempt)
    if common.json:
        output.emit_json(shape(sample))
        return
    for line in _head(sample):
        output.say(line)
    output.say("")
    output.say(output.visible(sample.stack.text.rstrip()))


@dataclass(frozen=True, slots=True)
class Sample:
    """A stack with the job and the attempt that it is of, as they stood after it was taken."""

    stack: Stack
    record: JobRecord
    now: datetime
    attempt: AttemptRecord | None
    pid: int | None = None


def _asked(session: Session, ident: str, timeout: float) -> Sample:
    from unstuck.intake import workers as doors

    found = where_is(session.store.live_workers(), ident)
    shown = doors.stack(session.store, session.tenant, ident, session.who(), timeout)
    sample = _sample(session, ident, shown)
    return replace(sample, pid=found[1].pid) if found and shown.is_live else sample


def _stored(session: Session, ident: str, number: int) -> Sample:
    from unstuck.intake.workers import Stack

    record = session.job(ident)
    kept = next(iter(session.lookup.attempts(ident, number - 1, 1)), None)
    if kept is None:
        raise Conflict(f"job {ident} has had no attempt #{number}; `unstuck jobs show {ident}` lists those it had")
    if not kept.stack:
        raise NoStack(ident, record.state, f"attempt #{number} left none")
    return _sample(session, ident, Stack(kept.stack, False, kept.worker, number, kept.ended_at or kept.claimed_at))


def _sample(session: Session, ident: str, shown: Stack) -> Sample:
    record, now = session.job(ident), session.now()
    attempt = next(iter(session.lookup.attempts(ident, shown.attempt - 1, 1)), None)
    return Sample(shown, record, now, attempt)


def _head(sample: Sample) -> list[str]:
    """Which job, which of the two kinds of stack, since when, and what became of the attempt."""
    record, state = sample.record, shapes.shown_state(sample.record, sample.now)
    lines = [f"{output.styled(record.workflow, 'bold')}  {record.id}  {output.state(state)}"]
    return lines + (_live_lines(sample) if sample.stack.is_live else _stored_lines(sample))


def _live_lines(sample: Sample) -> list[str]:
    record, shown = sample.record, sample.stack
    process = f", process {sample.pid}" if sample.pid else ""
    since = record.started_at or record.claimed_at or shown.at
    lasts = output.duration(max(0.0, (shown.at - since).total_seconds()))
    lines = [f"live: where attempt #{shown.attempt} is, {lasts} after its start, on worker {shown.worker}{process}"]
    if record.request:
        lines.append(f"it was asked to stop ({record.request}) {output.age(record.requested_at, sample.now)}")
    return lines


def _stored_lines(sample: Sample) -> list[str]:
    shown, attempt = sample.stack, sample.attempt
    took = "" if attempt is None or attempt.duration_ms is None else f", after {_took(attempt.duration_ms)}"
    at = f"{output.rfc3339(shown.at)} ({output.age(shown.at, sample.now)})"
    lines = [f"stored: where attempt #{shown.attempt} on worker {shown.worker} was when it ended{took}, {at}"]
    if attempt is not None and attempt.error_type:
        lines.append(output.visible(f"{attempt.error_type}: {attempt.error_message}"))
    return lines


def _took(milliseconds: int) -> str:
    return output.duration(milliseconds / 1000)


def shape(sample: Sample) -> dict[str, Any]:
    """What --json prints."""
    record, attempt = sample.record, sample.attempt
    return {
        "job": record.id,
        "workflow": record.workflow,
        "state": record.state.value,
        "shown_state": shapes.shown_state(record, sample.now),
        "source": "live" if sample.stack.is_live else "stored",
        "at": output.rfc3339(sample.stack.at),
        "attempt": sample.stack.attempt,
        "worker": sample.stack.worker,
        "pid": sample.pid,
        "error_type": attempt.error_type if attempt else None,
        "error_message": attempt.error_message if attempt else None,
        "duration_ms": attempt.duration_ms if attempt else None,
        "stack": sample.stack.text,
    }
