"""The quarantine: what the database refused to write, or somebody holds. Nothing else waits for it."""

from __future__ import annotations

from unstuck.model.errors import AmbiguousJob, NotQuarantined, UnknownJob
from unstuck.operations.table import OPERATOR, READER, Caller, operation
from unstuck.views import Page
from unstuck.views.guard import QuarantineRetry, QuarantineView


@operation(role=READER, whose="own")
def list_(caller: Caller, *, limit: int = 50) -> Page[QuarantineView]:
    """What is set aside: what could not be done, since when, how often it was tried, and why it fails."""
    found = caller.guard.quarantined(limit=limit)
    return Page(items=tuple(QuarantineView.of(record) for record in found))


@operation(
    role=OPERATOR,
    effect="change",
    whose="own",
    repeat="same",
    audited="quarantine.retry",
    errors=(UnknownJob, AmbiguousJob, NotQuarantined),
)
def retry(caller: Caller, job: str | None = None) -> QuarantineRetry:
    """Try what was set aside of this job, or all of it, before all others in the next sweep."""
    record = None if job is None else caller.lookup.job(job)
    count = caller.guard.retry_quarantined(record)
    return QuarantineRetry(job=record.id if record else None, tried=count)
