"""How a checked call becomes a job, for every face: known by its workers' row, or by the code of an app.

Alone or many together: each is checked by itself, what must be read is read once for all, and each has its own
outcome.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unstuck.intake.schema import pack
from unstuck.intake.submit import Options, Submitter
from unstuck.model.errors import InvalidInput, OutcomeUnknown, StoreError, UnknownWorkflowName, quoted
from unstuck.model.job import NewJob, WorkflowRecord
from unstuck.model.redaction import NOTHING, Redactions
from unstuck.operations.kinds import Duration, seconds_or_none
from unstuck.operations.table import Caller, Role
from unstuck.store.port import Submitted
from unstuck.views.jobs import NewJobView


@dataclass(frozen=True, slots=True)
class AskedJob:
    """A job that somebody who may asks for, checked as far as that needs no workflow's row."""

    caller: Caller
    workflow: str
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    options: Options

    @classmethod
    def of(
        cls,
        caller: Caller,
        workflow: str,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        options: Options,
        before: Collection[str] = (),
    ) -> AskedJob:
        """Those that it comes `after` may be named by the beginnings of their ids. `before`: the ids of jobs that
        will be stored before it, if they can be."""
        if options.after:
            coming = {job for job in options.after if job in before and _may_name(caller, job)}
            after = tuple(job if job in coming else caller.lookup.job(job).id for job in options.after)
            options = replace(options, after=after)
        return cls(caller, workflow, args, kwargs, options)


def _may_name(caller: Caller, job: str) -> bool:
    """Whether the id of a job that is to be stored is not that of one that a key may not touch: the store refuses
    other tenants' jobs, and knows nothing of keys."""
    return caller.within is None or caller.store.get(caller.one, job) is None


def asked(
    caller: Caller,
    workflow: str,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    delay: Duration | None = None,
    policy: Mapping[str, Any] | None = None,
    before: Collection[str] = (),
    **said: Any,
) -> AskedJob:
    """`said`: the other options of a job."""
    chosen = _options(policy=policy or {}, delay=seconds_or_none(delay, "delay"), **said)
    return AskedJob.of(caller, workflow, args, kwargs or {}, chosen, before)


def _options(*, policy: Mapping[str, Any], **said: Any) -> Options:
    if not isinstance(policy, Mapping):
        raise InvalidInput(f"policy={quoted(policy)} is not a mapping of options")
    if strays := sorted(set(policy) & set(said)):
        raise InvalidInput(f"{strays[0]} is an option of the job, not of its policy")
    return Options().with_(**said, **policy)


def registered(caller: Caller, workflow: str, read: dict[str, WorkflowRecord | None] | None = None) -> WorkflowRecord:
    """`read`: the rows of workflows that were read already, for whoever."""
    caller.check_within(workflow=workflow)
    read = {} if read is None else read
    if workflow not in read:
        read[workflow] = caller.store.workflow(workflow)
    if (row := read[workflow]) is not None:
        return row
    known = {known.name for known in caller.store.workflows()}
    raise UnknownWorkflowName(workflow, known if caller.workflows is None else known & caller.workflows)


def submit(asked: AskedJob, known: WorkflowRecord | None = None) -> NewJobView:
    """One job; `known`: the workflow, if it is known by the code of an app."""
    job = new_job(asked, known or registered(asked.caller, asked.workflow))
    [stored] = Submitter(asked.caller.store).submit([job])
    [view] = views([asked], [stored])
    if isinstance(view, Exception):
        raise view
    return view


def new_job(asked: AskedJob, known: WorkflowRecord) -> NewJob:
    caller = asked.caller
    caller.check_within(asked.options.queue or known.queue, known.name)
    submitter = Submitter(caller.store, tenant=caller.one, max_timeout=caller.times.max_timeout)
    return submitter.job(known, pack(known.name, known.schema, asked.args, asked.kwargs), asked.options)


def new_jobs(asked: Sequence[AskedJob]) -> list[NewJob | Exception]:
    """Of many, each with its own error; a workflow's row is read once."""
    read: dict[str, WorkflowRecord | None] = {}
    made: list[NewJob | Exception] = []
    for one in asked:
        try:
            made.append(new_job(one, registered(one.caller, one.workflow, read)))
        except Exception as error:
            made.append(error)
    return made


def views(asked: Sequence[AskedJob], stored: Sequence[Submitted]) -> list[NewJobView | Exception]:
    """The jobs as they are stored, read together; each as its caller may see it. OutcomeUnknown if they cannot be
    read: they are stored all the same."""
    store = asked[0].caller.store
    try:
        seen = store.get_many([each.id for each in stored])
        hidden: dict[Role, Redactions] = {}
        if any(each.is_redacted for each in seen.values()):
            callers = {one.caller.role: one.caller for one in asked}
            hidden = {role: caller.redactions for role, caller in callers.items()}
    except StoreError as error:
        return [OutcomeUnknown(f"job {each.id} is stored, but cannot be read now: {error}") for each in stored]
    found: list[NewJobView | Exception] = []
    for one, each in zip(asked, stored, strict=True):
        try:
            known = seen.get(each.id)
            record = one.caller.lookup.seen(known.job if known else None, each.id)
            assert known is not None
            hide = hidden[one.caller.role][record.workflow] if known.is_redacted else NOTHING
            found.append(NewJobView.of(record, known.at, hide, created=each.created))
        except Exception as error:
            found.append(error)
    return found
