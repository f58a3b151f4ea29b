"""Why: why a job is not running, from the claim's own gates."""

from __future__ import annotations

from unstuck.model.errors import UnknownJob
from unstuck.model.job import DEFAULT_TENANT
from unstuck.model.reasons import Why, explain
from unstuck.model.times import Times
from unstuck.store.port import Store


def why(store: Store, tenant: str, job: str, times: Times | None = None) -> Why:
    """About the job with this whole id; the store's clock decides what has passed."""
    facts = store.standing(tenant, job)
    if facts is None:
        raise UnknownJob(job, None if tenant == DEFAULT_TENANT else tenant)
    return explain(facts, facts.at, times)
