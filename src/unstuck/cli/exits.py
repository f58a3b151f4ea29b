"""Exit codes: a script can tell what happened without reading a word."""

from __future__ import annotations

# A name that type checkers take for true, without the price of importing `typing`.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from unstuck.views.jobs import JobView

OK = 0  # ok
FAILURE = 1  # failure, or the job that was waited for failed
USAGE = 2  # wrong usage: an option, argument or setting that cannot be
NOT_FOUND = (
    3  # no such job, workflow, worker, process, target, tenant, setting, …; or not blacklisted, set aside or dead
)
CONFLICT = 4  # its state does not allow this, or it does not wait for this; queue full, or workflow blacklisted
PERMISSION = 5  # not permitted
UNREACHABLE = 6  # the database could not be reached or used
TIMED_OUT = 7  # the wait ran out; what was waited for goes on
CANCELLED = 8  # the job was cancelled
STUCK = 9  # the job got stuck or is a dead letter
UNHEALTHY = 10  # unhealthy
UNFIT = 69  # the worker left: a part of it failed for good, and another should be started
BUG = 70  # a bug in unstuck itself
INTERRUPTED = 130  # ended by Ctrl-C
TERMINATED = 143  # ended by TERM


def code_of(error: BaseException) -> int:
    """The exit code that an error of ours stands for."""
    from unstuck.model import errors

    table: list[tuple[type[BaseException] | tuple[type[BaseException], ...], int]] = [
        ((errors.InvalidInput, errors.AmbiguousJob), USAGE),
        ((errors.UnknownJob, errors.UnknownWorkflowName, errors.UnknownWorker, errors.UnknownProcess), NOT_FOUND),
        ((errors.UnknownTarget, errors.UnknownTenant, errors.UnknownSetting, errors.UnknownSession), NOT_FOUND),
        ((errors.UnknownNotification, errors.UnknownAlert, errors.UnknownBulk), NOT_FOUND),
        ((errors.UnknownOrder, errors.UnknownKey), NOT_FOUND),
        ((errors.UnknownSchedule, errors.UnknownHook, errors.UnknownWebhook, errors.UnknownDelivery), NOT_FOUND),
        ((errors.NotBlacklisted, errors.NotQuarantined, errors.NoDeadLetter), NOT_FOUND),
        ((errors.Conflict, errors.TooManyQueued), CONFLICT),
        (errors.StoreError, UNREACHABLE),
        ((errors.StillRunning, errors.NoAnswer), TIMED_OUT),
        ((PermissionError, errors.Unauthenticated, errors.TooManyAttempts), PERMISSION),
    ]
    return next((code for kind, code in table if isinstance(error, kind)), FAILURE)


def code_of_job(job: JobView) -> int:
    """How the job that was waited for ended."""
    from unstuck.model.errors import ErrorType
    from unstuck.model.lifecycle import JobState

    match job.state:
        case JobState.COMPLETED:
            return OK
        case JobState.CANCELLED:
            return CANCELLED
        case JobState.DEAD:
            return STUCK
        case JobState.FAILED if job.error_type == ErrorType.EXECUTION_STUCK:
            return STUCK
        case state if state.is_final:
            return FAILURE
        case _:
            return TIMED_OUT
