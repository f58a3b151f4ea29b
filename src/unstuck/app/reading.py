"""Reading: what the handle of a job reads of it, from the store; `remote.py` has the same over HTTP.

`look` is asked again and again by whoever waits, so it costs as little as it can: here it is the job's record alone,
and what people see of it is made by `view` when it is wanted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from unstuck.model.lifecycle import JobState
from unstuck.observe.why import why

if TYPE_CHECKING:
    from unstuck.app.engine import Engine
    from unstuck.model.job import JobRecord
    from unstuck.model.why import Why
    from unstuck.observe.outlook import Explanation
    from unstuck.views.jobs import JobView


class Looked(Protocol):
    """A job as a look shows it."""

    @property
    def id(self) -> str: ...
    @property
    def workflow(self) -> str: ...
    @property
    def state(self) -> JobState: ...
    @property
    def error_type(self) -> str | None: ...
    @property
    def error_message(self) -> str | None: ...


class Reading(Protocol):
    """Of the jobs of one tenant. `view` and `result` are asked about what the same reading's `look` gave."""

    #: Whether a look can wait for the end of a job, `within` so many seconds.
    is_patient: bool

    def look(self, job: str, within: float = 0.0) -> Looked: ...
    def view(self, looked: Any) -> JobView: ...
    def result(self, looked: Any) -> Any: ...
    def progress(self, job: str) -> Any: ...
    def parent(self, job: str) -> str | None: ...
    def why(self, job: str) -> Explanation: ...


class StoreReading:
    is_patient = False

    def __init__(self, engine: Engine, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant
        self._lookup = engine.lookup(tenant)

    def look(self, job: str, within: float = 0.0) -> JobRecord:
        return self._lookup.job(job)

    def view(self, looked: JobRecord) -> JobView:
        from unstuck.views.jobs import JobView

        return JobView.of(looked, self._engine.store.now())

    def result(self, looked: JobRecord) -> Any:
        return _loaded(looked.result)

    def progress(self, job: str) -> Any:
        return _loaded(self._lookup.progress(job))

    def parent(self, job: str) -> str | None:
        return self._lookup.parent(job)

    def why(self, job: str) -> Why:
        return why(self._engine.store, self._tenant, job, self._engine.config.times)


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)
