"""What people ask of jobs: stop them, let them go on, run them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from unstuck.cli import exits, gates, options, output
from unstuck.cli.filters import BulkFlags
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import opened
from unstuck.model.errors import InvalidInput, SchemaMismatch, UnstuckError
from unstuck.operations import jobs as operations
from unstuck.operations.table import Caller, Operation
from unstuck.views.jobs import JobView, JobWhole

Reason = Annotated[str | None, option("--reason", metavar="TEXT", help="kept in the history")]


def cancel(
    jobs: options.JobsOrFilter = None,
    reason: Reason = None,
    by: options.By = None,
    *,
    wanted: BulkFlags,
    common: options.Common,
) -> int:
    """Stop jobs for good. At once if they have not started; else their handlers are asked to stop."""
    return _these(operations.cancel, jobs, wanted, common, by, reason=reason)


def interrupt(
    jobs: options.JobsOrFilter = None,
    reason: Reason = None,
    by: options.By = None,
    *,
    wanted: BulkFlags,
    common: options.Common,
) -> int:
    """Pause jobs. Stopped like a cancel, but resumable."""
    return _these(operations.interrupt, jobs, wanted, common, by, reason=reason)


def resume(
    jobs: options.JobsOrFilter = None,
    from_start: Annotated[bool, option("--from-start", help="forget finished steps and partial results")] = False,
    by: options.By = None,
    *,
    wanted: BulkFlags,
    common: options.Common,
) -> int:
    """Let stopped jobs go on. A new, clean run of paused, failed, timed-out or cancelled ones."""
    return _these(operations.resume, jobs, wanted, common, by, from_start=from_start)


def release(
    jobs: options.JobsOrFilter = None,
    force: Annotated[bool, option("--force", help="even if they wait for other jobs to end")] = False,
    by: options.By = None,
    *,
    wanted: BulkFlags,
    common: options.Common,
) -> int:
    """Let held jobs go on. With --force they no longer wait for other jobs either."""
    return _these(operations.release, jobs, wanted, common, by, force=force)


def skip(
    jobs: options.JobsOrFilter = None, by: options.By = None, *, wanted: BulkFlags, common: options.Common
) -> int:
    """Let targets move on past jobs that block them. The jobs stay as they are."""
    return _these(operations.skip, jobs, wanted, common, by)


def retry(
    jobs: options.JobsOrFilter = None, by: options.By = None, *, wanted: BulkFlags, common: options.Common
) -> int:
    """Run jobs again from their start. One that waits for its next try is due now."""
    return _these(operations.retry, jobs, wanted, common, by)


def run_now(jobs: options.JobNames, by: options.By = None, *, common: options.Common) -> int:
    """Let jobs that wait for their time be due now."""
    return _each(jobs, common, by, operations.run_now)


def reprioritise(
    priority: Annotated[str, Argument(metavar="PRIORITY", help="a whole number; larger comes first")],
    jobs: options.JobNames,
    by: options.By = None,
    *,
    common: options.Common,
) -> int:
    """Give jobs that wait another priority. Their age stays."""
    wanted = gates.whole_number(priority, "the priority")
    return _each(jobs, common, by, lambda caller, job: operations.reprioritise(caller, job, wanted))


def resolve(
    job: options.JobName,
    result: Annotated[str, Argument(metavar="RESULT", help="in JSON, e.g. 42, '\"done\"' or null")],
    by: options.By = None,
    *,
    common: options.Common,
) -> int:
    """Complete a job by hand. A paused, failed or timed-out one ends COMPLETED with a result of yours."""
    from unstuck.model.payload import decode

    meant = decode(result, "the result")
    return _each([job], common, by, lambda caller, ident: operations.resolve(caller, ident, meant))


def replay(
    jobs: options.JobNames,
    budget: Annotated[
        list[tuple[str, float]] | None,
        option(
            "--budget",
            read=options.amount,
            metavar="UNIT=MOST",
            help="maximum use of a unit, e.g. tokens=5000; may be repeated",
        ),
    ] = None,
    by: options.By = None,
    *,
    common: options.Common,
) -> int:
    """Run ended jobs once more, as new jobs with the same workflow, arguments and policy. Prints the new ids."""

    def again(caller: Caller, job: str) -> None:
        new = operations.replay(caller, job, budget=dict(budget or ()))
        if common.json:
            output.emit_view(new)
        else:
            output.say(new.id)
            output.note(f"job {new.id} does again what {new.replay_of} did")
        if budget:
            _remark_on_units(operations.get(caller, new.replay_of or job, last=1), [unit for unit, _ in budget])

    return each_of(jobs, common, by, again)


def _remark_on_units(job: JobWhole, named: list[str]) -> None:
    """A new unit may be meant, or a slip that leaves the old limit as it was."""
    known = [unit for unit, _ in job.policy.budget]
    for unit in sorted(set(named) - set(known)):
        if known:
            others = ", ".join(known)
            output.note(
                f"the budget of job {job.id} has no {unit}, only {others}; the new job is limited in {unit} too"
            )
        else:
            output.note(f"job {job.id} had no budget; the new job is limited in {unit}")


def _these(
    verb: Operation[Any, JobView],
    jobs: list[str] | None,
    wanted: BulkFlags,
    common: options.Common,
    by: str | None,
    **how: Any,
) -> int:
    """Those that are named, or by a bulk those that a filter wants."""
    if jobs and (wanted.is_filter or wanted.watch):
        raise InvalidInput("name jobs, or say by a filter which ones: not both")
    if jobs:
        return _each(jobs, common, by, lambda caller, job: verb(caller, job, **how))
    if not wanted.is_filter:
        raise InvalidInput(
            f"which jobs? unstuck jobs {verb.verb} JOB…, or a filter: --state, --workflow, --queue, --target, --tag, "
            "--error, --older, --newer, --argument; all of the tenant: --every"
        )
    from unstuck.cli import bulks

    return bulks.start(verb.verb, wanted, common, by, **how)


def _each(jobs: list[str], common: options.Common, by: str | None, verb: Callable[[Caller, str], JobView]) -> int:
    return each_of(jobs, common, by, lambda caller, job: print_changed(verb(caller, job), common.json))


def each_of(jobs: Iterable[str], common: options.Common, by: str | None, act: Callable[[Caller, str], None]) -> int:
    """One refusal does not spare the others; the exit code is that of the first one."""
    code = exits.OK
    with opened(common) as session:
        caller = session.caller.about(by=by)
        for job in jobs:
            try:
                act(caller, job)
            except SchemaMismatch:  # true of every job alike
                raise
            except UnstuckError as error:
                output.note(f"unstuck: {error}")
                code = code or exits.code_of(error)
    return code


def print_changed(job: JobView, in_json: bool) -> None:
    if in_json:
        output.emit_view(job)
    else:
        output.say(f"{job.id}  {output.state(job.shown_state)}  {output.visible(job.meaning)}")
