"""Job: the handle of one job, with everything a person may ask about it or of it."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from unstuck.app.engine import Engine
from unstuck.app.records import Partial, Step
from unstuck.clock import MachineClock
from unstuck.executor.context import current, running
from unstuck.intake.arguments import decode_result, encode_result
from unstuck.intake.control import JobVerbs
from unstuck.intake.flow import FlowVerbs
from unstuck.intake.workers import live_stack
from unstuck.model.errors import JobFailed, StillRunning
from unstuck.model.job import AttemptRecord, EventRecord, JobRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.waits import Child, Spent, WaitRecord
from unstuck.model.why import Why
from unstuck.observe.follow import afollow, follow
from unstuck.observe.logs import LogPiece, Logs, pieces
from unstuck.observe.lookup import Lookup
from unstuck.observe.outlook import Outlook
from unstuck.observe.parts import PartialsReader
from unstuck.observe.wait import await_end, wait_for_end
from unstuck.observe.why import why

R_co = TypeVar("R_co", covariant=True)


class CancellableClock(MachineClock):
    """A handler that waits for another job still hears when its own is asked to stop."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        happened = super().wait(event, seconds)
        if running.get() is not None:
            current().check()
        return happened


class Job(Generic[R_co]):
    """One job. Its properties ask the store each time; `seen` is what the last question found, if any."""

    __slots__ = ("_engine", "_returns", "id", "is_new", "seen", "tenant")

    def __init__(
        self, engine: Engine, id: str, tenant: str, *, returns: Any = inspect.Parameter.empty, is_new: bool = False
    ) -> None:
        self._engine = engine
        self._returns = returns
        self.id = id
        self.tenant = tenant
        #: False when an idempotency key led to an earlier job.
        self.is_new = is_new
        self.seen: JobRecord | None = None

    def __repr__(self) -> str:
        return f"<Job {self.id}{f' {self.seen.state}' if self.seen else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and (self.id, self.tenant) == (other.id, other.tenant)

    def __hash__(self) -> int:
        return hash((self.id, self.tenant))

    def refresh(self) -> JobRecord:
        """The job as it stands now."""
        return self._see(self._lookup.job(self.id))

    @property
    def record(self) -> JobRecord:
        return self.refresh()

    @property
    def state(self) -> JobState:
        return self.refresh().state

    @property
    def error_type(self) -> str | None:
        return self.refresh().error_type

    @property
    def error(self) -> str | None:
        return self.refresh().error_message

    @property
    def stack(self) -> str | None:
        """Of the last attempt that left one."""
        return next((a.stack for a in reversed(self.attempts) if a.stack), None)

    @property
    def output(self) -> str | None:
        """What the last attempt that said anything printed and logged, for people."""
        said = None
        for attempt in self._lookup.tries(self.id):
            said = attempt.output or said
        return said

    @property
    def progress(self) -> Any:
        return decode_result(self._lookup.progress(self.id))

    @property
    def history(self) -> list[EventRecord]:
        """All that happened to it; page by page: `events`."""
        return self._lookup.history(self.id)

    @property
    def attempts(self) -> list[AttemptRecord]:
        """All of them, with what they printed; page by page: `tries`."""
        return self._lookup.attempts(self.id)

    def events(self, after: int = 0) -> Iterator[EventRecord]:
        """Its history above this event's number, read as far as you go."""
        return self._lookup.events(self.id, after)

    def tries(self, after: int = 0) -> Iterator[AttemptRecord]:
        """Its attempts above this one's token, read as far as you go."""
        return self._lookup.tries(self.id, after)

    def logs(
        self, *, follow: bool = False, attempt: int | None = None, level: str | None = None
    ) -> Iterator[LogPiece]:
        """What its attempts printed and logged; with `follow` also what comes, until the job has ended.

        With a `level` only records of this level and above.
        """
        return pieces(Logs(self._lookup, self.id, attempt, level, follow=follow), CancellableClock())

    async def alogs(
        self, *, follow: bool = False, attempt: int | None = None, level: str | None = None
    ) -> AsyncIterator[LogPiece]:
        """`logs` for coroutines."""
        logs = Logs(self._lookup, self.id, attempt, level, follow=follow)
        async for piece in afollow(lambda: self._engine.in_thread(logs.look)):
            yield piece

    def wait(self, timeout: float | None = None) -> JobRecord:
        """The job once it has ended, however it did; StillRunning when the time is over first."""
        return self._ended(wait_for_end(self._watched(), timeout, CancellableClock()), timeout)

    async def await_end(self, timeout: float | None = None) -> JobRecord:
        """`wait` for coroutines."""
        look = self._watched()
        return self._ended(await await_end(lambda: self._engine.in_thread(look), timeout), timeout)

    def result(self, timeout: float | None = None) -> R_co:
        """What the handler returned. JobFailed if it ended otherwise, StillRunning if it has not ended in time."""
        return self._result_of(self.wait(timeout))

    async def aresult(self, timeout: float | None = None) -> R_co:
        return self._result_of(await self.await_end(timeout))

    def cancel(self, reason: str | None = None, *, by: str | None = None) -> JobRecord:
        return self._see(self._control.cancel(self.id, reason, by=by))

    def interrupt(self, reason: str | None = None, *, by: str | None = None) -> JobRecord:
        return self._see(self._control.interrupt(self.id, reason, by=by))

    def resume(self, *, from_start: bool = False, by: str | None = None) -> JobRecord:
        return self._see(self._control.resume(self.id, from_start=from_start, by=by))

    def resolve(self, result: Any, *, by: str | None = None) -> JobRecord:
        """Supply the result by hand: COMPLETED, without running."""
        return self._see(self._control.resolve(self.id, encode_result(result), by=by))

    def release(self, *, force: bool = False, by: str | None = None) -> JobRecord:
        """Let go of a job that was enqueued with `hold`; with `force` it no longer waits for other jobs either."""
        return self._see(self._control.release(self.id, force=force, by=by))

    def skip(self, *, by: str | None = None) -> JobRecord:
        """Let the target that this job blocks move on; the job itself stays as it is."""
        return self._see(self._control.skip(self.id, by=by))

    def retry(self, *, by: str | None = None) -> JobRecord:
        return self._see(self._control.retry(self.id, by=by))

    def replay(self, *, by: str | None = None, budget: Mapping[str, float] | None = None) -> Job[R_co]:
        """A new job with the same workflow, arguments and policy as this one, which must have ended. `budget`: the
        units in which it may use more, or less."""
        stored = self._flow.replay(self.id, by=by, budget=budget)
        return Job(self._engine, stored.id, self.tenant, returns=self._returns, is_new=stored.created)

    def approve(self, *, by: str | None = None, comment: str | None = None, key: str | None = None) -> WaitRecord:
        """Say yes to the question that it asks (`key`: to this one). NotWaiting if none is open."""
        return self._flow.approve(self.id, by=by, comment=comment, key=key)

    def reject(self, *, by: str | None = None, comment: str | None = None, key: str | None = None) -> WaitRecord:
        return self._flow.reject(self.id, by=by, comment=comment, key=key)

    def steps(self) -> list[Step]:
        """What it has finished, in the order it did."""
        return [Step.of(record) for record in self._lookup.steps(self.id)]

    def partials(self) -> dict[str, Any]:
        """What its handler has given of its result so far, by name, in the order it was last given."""
        return {part.name: decode_result(part.value) for part in self._lookup.parts(self.id)}

    def follow_partials(self) -> Iterator[Partial]:
        """What is there and what comes, until the job has ended; a name that is given again comes again."""
        return map(Partial.of, follow(PartialsReader(self._lookup, self.id).look, CancellableClock()))

    async def afollow_partials(self) -> AsyncIterator[Partial]:
        """`follow_partials` for coroutines."""
        parts = PartialsReader(self._lookup, self.id)
        async for part in afollow(lambda: self._engine.in_thread(parts.look)):
            yield Partial.of(part)

    def waits(self) -> list[WaitRecord]:
        """All that it ever waited for, the oldest first; `answer` None: it still does."""
        return self._lookup.waits(self.id)

    def usage(self) -> Spent:
        """What it has used of its budget in its present run."""
        return self._lookup.usage(self.id)

    def children(self) -> list[Child]:
        """The jobs that it spawned, as they stand."""
        return self._lookup.children(self.id)

    @property
    def parent(self) -> Job[Any] | None:
        """The job that spawned it."""
        parent = self._lookup.parent(self.id)
        return None if parent is None else Job(self._engine, parent, self.tenant)

    def why(self) -> Why:
        """Why it is not running: the verdict, every reason, who must act, and the command to type."""
        return why(self._engine.store, self.tenant, self.id, self._engine.config.times)

    async def awhy(self) -> Why:
        return await self._engine.in_thread(self.why)

    def live_stack(self, timeout: float = 5.0, *, by: str | None = None) -> str:
        """Where it stands in its code now, as its worker shows it; of a job that does not run, the stack its last
        attempt left. NoStack if there is none, NoAnswer if the worker is silent for so long."""
        return live_stack(self._engine.store, self.tenant, self.id, by or self._engine.name, timeout)

    @property
    def _lookup(self) -> Lookup:
        return self._engine.lookup(self.tenant)

    @property
    def _control(self) -> JobVerbs:
        return self._engine.control(self.tenant)

    @property
    def _flow(self) -> FlowVerbs:
        return self._engine.flow(self.tenant)

    def _see(self, record: JobRecord) -> JobRecord:
        self.seen = record
        return record

    def _watched(self) -> Callable[[], JobRecord]:
        """`refresh`, which logs what keeps the job from running."""
        outlook = Outlook(self.why, logging.getLogger("unstuck").warning)
        return lambda: outlook.of(self.refresh())

    def _ended(self, record: JobRecord | None, timeout: float | None) -> JobRecord:
        if record is None:
            raise StillRunning(self.id, self.seen.state if self.seen else "unknown", timeout or 0.0)
        return record

    def _result_of(self, record: JobRecord) -> R_co:
        if record.state is not JobState.COMPLETED:
            raise JobFailed(record.id, record.state, record.error_type, record.error_message, record=record)
        return cast(R_co, decode_result(record.result, self._returns))
