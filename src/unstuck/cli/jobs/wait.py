"""unstuck jobs wait: until it ends."""

from __future__ import annotations

from unstuck.cli import exits, options, output
from unstuck.cli.jobs.texts import as_json
from unstuck.cli.session import opened
from unstuck.clock import boot
from unstuck.model.errors import ErrorType
from unstuck.model.lifecycle import JobState
from unstuck.views.jobs import JobView


def wait(jobs: options.JobNames, timeout: options.Timeout = None, *, common: options.Common) -> int:
    """Wait until jobs end; the exit code says how. 0 completed, 1 failed, 7 still going, 8 cancelled, 9 stuck: that
    of the first that did not complete. Their results come in the order in which they are named."""
    until = None if timeout is None else boot() + timeout
    codes = []
    with opened(common) as session:
        for job in jobs:
            left = None if until is None else max(0.0, until - boot())
            codes.append(finish(session.wait(job, left), common.json, timeout))
    return next((code for code in codes if code != exits.OK), exits.OK)


def finish(job: JobView, in_json: bool, waited: float | None) -> int:
    """Print how a job that was waited for stands; the result is data, the rest are remarks."""
    if in_json:
        output.emit_view(job)
    elif job.state is JobState.COMPLETED:
        output.say(as_json(job.result))
    elif job.state.is_final:
        error = f": {job.error_type}: {job.error_message}" if job.error_type else ""
        closer = "stack" if job.error_type == ErrorType.EXECUTION_STUCK else "jobs show"
        output.note(f"job {job.id} is {job.state}{error}\nlook closer: unstuck {closer} {job.id}")
    else:
        output.note(
            f"job {job.id} is still {job.state} after {output.duration(waited)}; it goes on\n"
            f"wait again: unstuck jobs wait {job.id}"
        )
    return exits.code_of_job(job)
