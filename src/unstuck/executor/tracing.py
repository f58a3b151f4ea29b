"""The spans of an attempt and of its steps, made by the handler's own process with the app's own provider.

An attempt is one span, below the one that its job was submitted in, and linked to that of the attempt before: a job
that waits for a day is two short spans and not one that lasts a day. An attempt that is killed ends without its span;
its supervisor was told the span's name when it began, so that the next one links to it all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from unstuck import tracing
from unstuck.executor.describe import describe
from unstuck.executor.messages import Park, Raise, Return, Stop
from unstuck.model.job import NewJob
from unstuck.model.trace import TraceContext
from unstuck.tracing import OpenSpan, TracedSubmit

if TYPE_CHECKING:
    from unstuck.executor.attempt import Attempt, End

_OUTCOMES = {Return: "returned", Raise: "raised", Stop: "stopped", Park: "parked"}


def begin_attempt(attempt: Attempt) -> None:
    """In the contextvars of the attempt, which end with it: the span is current until then."""
    run = attempt.run
    if not (tracing.has_provider() or (run.trace is not None and tracing.is_used())):
        return
    attributes = {
        **tracing.messaging("process", run.queue),
        "messaging.message.id": run.job,
        "unstuck.workflow": run.workflow,
        "unstuck.tenant": run.tenant,
        "unstuck.attempt": run.attempt,
        "unstuck.run": run.run,
    }
    parent, before = TraceContext.read(run.trace), TraceContext.read(run.span)
    span = tracing.begin(
        f"process {run.queue}", "CONSUMER", attributes, parent=parent, link=before, is_root=parent is None
    )
    if span is not None:
        attempt.span = span
        if span.carried is not None and span.is_sampled:
            attempt.unsaid_span = span.carried.parent


def end_attempt(attempt: Attempt, end: End) -> End:
    span = attempt.span
    if span is None:
        return end
    try:
        span.tell(unstuck_outcome=_OUTCOMES[type(end)])
        if isinstance(end, Raise):
            span.fail(end.type, end.message, end.stack)
        # Its contextvars are thrown away.
        span.end(is_here=False)
    except BaseException:  # of a processor of the app's own; the end must be told
        pass
    return end


def begin_step(name: str) -> OpenSpan | None:
    if not tracing.has_provider():
        return None
    return tracing.begin(f"step {name}", "INTERNAL", {"unstuck.step": name})


def end_step(span: OpenSpan, error: BaseException | None = None) -> None:
    """A request to stop, or to wait, is no error; and what is closed by the collector is not where it began."""
    if isinstance(error, Exception):
        span.fail(*describe(error))
    span.end(is_here=not isinstance(error, GeneratorExit))


def send_with(job: NewJob) -> None:
    """The child belongs to the trace of the attempt that starts it. The store is asked for it elsewhere: of that the
    span tells nothing."""
    if not tracing.is_used():
        return
    with TracedSubmit(job.queue, job.workflow, is_current=False) as around:
        job.trace = around.trace
        around.name_jobs([job.id])
