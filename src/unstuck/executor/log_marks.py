"""Records of the standard library's loggers say whose they are: job, workflow, tenant, attempt, trace and span.

So an app that sends its log to a place of its own finds there what belongs to a job, with a formatter that knows
these names (`%(unstuck_job)s`) or writes all that a record has. Every record has them, None outside of an attempt.
"""

from __future__ import annotations

import logging
from typing import Any

from unstuck import tracing
from unstuck.executor.attempt import Attempt
from unstuck.executor.context import running
from unstuck.model.logs import RECORD_FIELDS
from unstuck.model.trace import TraceContext

_NOBODY = dict.fromkeys(RECORD_FIELDS)


class RecordMaker:
    """Around the factory that was there before: the app may have one of its own."""

    def __init__(self, make: Any) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record: logging.LogRecord = self._make(*args, **kwargs)
        attempt = running.get()
        record.__dict__.update(_NOBODY if not isinstance(attempt, Attempt) else _facts(attempt))
        return record


def mark_records() -> None:
    make = logging.getLogRecordFactory()
    if not isinstance(make, RecordMaker):
        logging.setLogRecordFactory(RecordMaker(make))


def _facts(attempt: Attempt) -> dict[str, Any]:
    run, trace = attempt.run, tracing.current()
    # Without a span here its trace is known all the same, if it was submitted in one.
    known = trace or TraceContext.read(run.trace)
    said = run.job, run.workflow, run.tenant, run.attempt, known and known.trace_id, trace and trace.span_id
    return dict(zip(RECORD_FIELDS, said, strict=True))
