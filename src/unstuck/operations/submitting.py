"""How a checked call becomes a job, for every face: known by its workers' row, or by the code of an app."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from unstuck.intake.schema import pack
from unstuck.intake.submit import Options, Submitter
from unstuck.model.errors import InvalidInput, UnknownWorkflowName, quoted
from unstuck.model.job import WorkflowRecord
from unstuck.operations.table import Caller
from unstuck.views.jobs import NewJobView


def options(*, policy: Mapping[str, Any], **said: Any) -> Options:
    """Checked, as far as that needs no database."""
    if not isinstance(policy, Mapping):
        raise InvalidInput(f"policy={quoted(policy)} is not a mapping of options")
    if strays := sorted(set(policy) & set(said)):
        raise InvalidInput(f"{strays[0]} is an option of the job, not of its policy")
    return Options().with_(**said, **policy)


def registered(caller: Caller, workflow: str) -> WorkflowRecord:
    caller.check_within(workflow=workflow)
    if (row := caller.store.workflow(workflow)) is not None:
        return row
    known = {known.name for known in caller.store.workflows()}
    raise UnknownWorkflowName(workflow, known if caller.workflows is None else known & caller.workflows)


def submit(
    caller: Caller, known: WorkflowRecord, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options
) -> NewJobView:
    """One job; those that it comes `after` may be named by the beginnings of their ids."""
    caller.check_within(options.queue or known.queue, known.name)
    submitter = Submitter(caller.store, tenant=caller.one, max_timeout=caller.times.max_timeout)
    options = replace(options, after=tuple(caller.lookup.job(job).id for job in options.after))
    payload = pack(known.name, known.schema, args, kwargs)
    [stored] = submitter.submit([submitter.job(known, payload, options)])
    record = caller.lookup.job(stored.id)
    return NewJobView.of(record, caller.store.now(), caller.redactions[record.workflow], created=stored.created)
