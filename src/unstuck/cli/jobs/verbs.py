"""What people ask of jobs: stop them, let them go on, run them again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from unstuck.cli import exits, options, output, shapes
from unstuck.cli.parser import Argument, option
from unstuck.cli.session import Session, opened
from unstuck.cli.state_texts import explain
from unstuck.model.errors import SchemaMismatch, UnstuckError
from unstuck.model.job import JobRecord

Reason = Annotated[str | None, option("--reason", metavar="TEXT", help="kept in the history")]


def cancel(jobs: options.JobNames, reason: Reason = None, *, common: options.Common) -> int:
    """Stop jobs for good. At once if they have not started; else their handlers are asked to stop."""
    return _each(jobs, common, lambda s, job: s.control.cancel(job, reason))


def interrupt(jobs: options.JobNames, reason: Reason = None, *, common: options.Common) -> int:
    """Pause jobs. Stopped like a cancel, but resumable."""
    return _each(jobs, common, lambda s, job: s.control.interrupt(job, reason))


def resume(
    jobs: options.JobNames,
    from_start: Annotated[bool, option("--from-start", help="forget finished steps and partial results")] = False,
    *,
    common: options.Common,
) -> int:
    """Let stopped jobs go on. A new, clean run of paused, failed, timed-out or cancelled ones."""
    return _each(jobs, common, lambda s, job: s.control.resume(job, from_start=from_start))


def release(
    jobs: options.JobNames,
    force: Annotated[bool, option("--force", help="even if they wait for other jobs to end")] = False,
    *,
    common: options.Common,
) -> int:
    """Let held jobs go on. With --force they no longer wait for other jobs either."""
    return _each(jobs, common, lambda s, job: s.control.release(job, force=force))


def skip(jobs: options.JobNames, *, common: options.Common) -> int:
    """Let targets move on past jobs that block them. The jobs stay as they are."""
    return _each(jobs, common, lambda s, job: s.control.skip(job))


def retry(jobs: options.JobNames, *, common: options.Common) -> int:
    """Run jobs again from their start. One that waits for its next try is due now."""
    return _each(jobs, common, lambda s, job: s.control.retry(job))


def resolve(
    job: options.JobName,
    result: Annotated[str, Argument(metavar="RESULT", help="in JSON, e.g. 42, '\"done\"' or null")],
    *,
    common: options.Common,
) -> int:
    """Complete a job by hand. A paused, failed or timed-out one ends COMPLETED with a result of yours."""
    from unstuck.model.payload import decode, encode

    stored = encode(decode(result, "the result"), "the result")
    return _each([job], common, lambda s, ident: s.control.resolve(ident, stored))


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
    *,
    common: options.Common,
) -> int:
    """Run ended jobs once more, as new jobs with the same workflow, arguments and policy. Prints the new ids."""

    def again(session: Session, ident: str) -> None:
        new = session.job(session.flow.replay(ident, budget=dict(budget or ())).id)
        if common.json:
            output.emit_json(shapes.job(new, session.now()))
        else:
            output.say(new.id)
            output.note(f"job {new.id} does again what {ident} did")
        _remark_on_units(session.job(ident), [unit for unit, _ in budget or ()])

    return _each_of(jobs, common, again)


def _remark_on_units(record: JobRecord, named: list[str]) -> None:
    """A new unit may be meant, or a slip that leaves the old limit as it was."""
    known = [unit for unit, _ in record.policy.budget]
    for unit in sorted(set(named) - set(known)):
        if known:
            others = ", ".join(known)
            output.note(
                f"the budget of job {record.id} has no {unit}, only {others}; the new job is limited in {unit} too"
            )
        else:
            output.note(f"job {record.id} had no budget; the new job is limited in {unit}")


def _each(jobs: list[str], common: options.Common, verb: Callable[[Session, str], JobRecord]) -> int:
    return _each_of(jobs, common, lambda s, job: _print_changed(s, verb(s, job), common.json))


def _each_of(jobs: list[str], common: options.Common, act: Callable[[Session, str], None]) -> int:
    """One refusal does not spare the others; the exit code is that of the first one."""
    code = exits.OK
    with opened(common) as session:
        for job in jobs:
            try:
                act(session, session.job(job).id)
            except SchemaMismatch:  # true of every job alike
                raise
            except UnstuckError as error:
                output.note(f"unstuck: {error}")
                code = code or exits.code_of(error)
    return code


def _print_changed(session: Session, record: JobRecord, as_json: bool) -> None:
    now = session.now()
    if as_json:
        output.emit_json(shapes.job(record, now))
    else:
        meaning = output.visible(explain(record, now))
        output.say(f"{record.id}  {output.state(shapes.shown_state(record, now))}  {meaning}")
