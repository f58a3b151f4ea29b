"""What a job's state means for it, in a sentence."""

from __future__ import annotations

from datetime import datetime

from unstuck.model.errors import ErrorType
from unstuck.model.job import JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.why import how_to_raise, how_to_renew, how_to_try_again, of_tenant
from unstuck.model.wording import age


def explain(record: JobRecord, now: datetime, *, is_skipped: bool = False) -> str:
    """One sentence: what this state means for this job, and what happens or can be done next."""
    match record.state:
        case JobState.FAILED | JobState.TIMEOUT | JobState.CANCELLED if is_skipped:
            return f"skipped: its target {record.target} went on without it; {_again(record)}"
        case JobState.PENDING if record.on_hold:
            return f"accepted, held back on purpose; let it go: {_command('jobs release', record)}"
        case JobState.PENDING:
            return "accepted, waits for other jobs to end"
        case JobState.QUEUED if record.held:
            return "waits until its last process is known to be gone"
        case JobState.QUEUED if record.available_at > now and record.failures:
            return f"failed {_times(record.failures)}, tried again {age(record.available_at, now)}"
        case JobState.QUEUED if record.available_at > now:
            return f"starts {age(record.available_at, now)}"
        case JobState.QUEUED if record.is_blocked:
            return f"a job that failed or paused blocks its target {record.target}: {_command('why', record)}"
        case JobState.QUEUED:
            return f"ready since {age(record.available_at, now)}; a worker that serves queue {record.queue} takes it"
        case JobState.RUNNING if record.request:
            asked = f"asked to stop ({record.request}) {age(record.requested_at, now)}"
            return f"{asked}; it has not ended yet: {_command('why', record)}"
        case JobState.RUNNING:
            return f"attempt #{record.token} on {record.worker or 'a worker'}"
        case JobState.WAITING:
            return f"parked: holds no slot; what it waits for: {_command('why', record)}"
        case JobState.PAUSED | JobState.FAILED | JobState.TIMEOUT if record.is_blocker:
            return f"and blocks target {record.target} until somebody resumes, resolves or skips it"
        case JobState.PAUSED:
            return f"interrupted; goes on with: {how_to_try_again(record)}"
        case JobState.COMPLETED:
            return "its result is stored" + (", after its time limit" if record.late else "")
        case JobState.FAILED if record.held:
            return (
                f"ignored its request to stop; its process is being ended. Where it was: {_command('stack', record)}"
            )
        case JobState.FAILED if record.error_type == ErrorType.EXECUTION_STUCK:
            return f"it got stuck. Where it was: {_command('stack', record)}; {_again(record)}"
        case JobState.FAILED if record.error_type == ErrorType.BUDGET_EXCEEDED:
            return (
                "the budget is used up\n"
                f"  with the whole budget anew, finished steps kept: {how_to_renew(record)}\n"
                f"  all of it again, with a larger budget:           {how_to_raise(record)}"
            )
        case JobState.FAILED:
            return f"for good; {_again(record)}"
        case JobState.TIMEOUT:
            return f"stopped at its time limit; {_again(record)}"
        case JobState.CANCELLED:
            return one_line(record.error_message or "by request").removeprefix("cancelled ")
        case JobState.DEAD:
            return f"a dead letter: it was never run; what can be done: {_command('why', record)}"


def _command(verb: str, record: JobRecord) -> str:
    """To paste as it stands."""
    return f"unstuck {verb} {record.id} {of_tenant(record.tenant)}".rstrip()


def _again(record: JobRecord) -> str:
    """As `why` says it: a retry would forget the finished steps."""
    return f"another try: {how_to_try_again(record)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def one_line(value: object, most: int = 100) -> str:
    """What somebody else wrote, no longer than this."""
    text = str(value).replace("\n", " ")
    return text if len(text) <= most else text[: most - 1] + "…"
