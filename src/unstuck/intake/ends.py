"""How the end of a job becomes the job of what follows it."""

from __future__ import annotations

import msgspec

from unstuck.intake.schema import pack
from unstuck.intake.submit import Options, Submitter
from unstuck.model.ends import TAG, EndedJob
from unstuck.model.errors import UnknownWorkflowName
from unstuck.model.job import NewJob
from unstuck.store.port import Store


def job_of(store: Store, follower: str, ended: EndedJob, max_timeout: float | None = None) -> NewJob:
    """Of the tenant whose job ended; checked as any submit is."""
    workflow = store.workflow(follower, ended.tenant)
    if workflow is None:
        raise UnknownWorkflowName(follower, {each.name for each in store.workflows(ended.tenant)})
    payload = pack(workflow.name, workflow.schema, [msgspec.to_builtins(ended)], {})
    options = Options().with_(tags=(f"{TAG}{ended.id}",))
    return Submitter(store, tenant=ended.tenant, max_timeout=max_timeout).job(workflow, payload, options)
