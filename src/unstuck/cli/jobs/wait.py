"""unstuck jobs wait: until it ends."""

from __future__ import annotations

from unstuck.cli import exits, options, output, shapes
from unstuck.cli.session import Session, opened
from unstuck.model.errors import ErrorType
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState


def wait(job: options.JobName, timeout: options.Timeout = None, *, common: options.Common) -> int:
    """Wait until a job ends; the exit code says how. 0 completed, 1 failed, 7 still going, 8 cancelled, 9 stuck."""
    with opened(common) as session:
        record = session.wait(session.job(job).id, timeout)
        return finish(session, record, common.json, timeout)


def finish(session: Session, record: JobRecord, as_json: bool, waited: float | None) -> int:
    """Print how a job that was waited for stands; the result is data, the rest are remarks."""
    if as_json:
        output.emit_json(shapes.job(record, session.now()))
    elif record.state is JobState.COMPLETED:
        output.say(record.result if record.result is not None else "null")
    elif record.state.is_final:
        error = f": {record.error_type}: {record.error_message}" if record.error_type else ""
        closer = "stack" if record.error_type == ErrorType.EXECUTION_STUCK else "jobs show"
        output.note(f"job {record.id} is {record.state}{error}\nlook closer: unstuck {closer} {record.id}")
    else:
        output.note(
            f"job {record.id} is still {record.state} after {output.duration(waited)}; it goes on\n"
            f"wait again: unstuck jobs wait {record.id}"
        )
    return exits.code_of_job(record)
