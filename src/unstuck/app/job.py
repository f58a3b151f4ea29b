"""Job: the handle of one job, with everything a person may ask about it or of it.

Every method asks the database, or its server, and has a twin for coroutines with an `a` in front: `await
job.astate()`.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast

from unstuck.app.cancellable_clock import CancellableClock
from unstuck.app.engine import Engine
from unstuck.app.reading import Looked, Reading
from unstuck.intake.arguments import typed_result
from unstuck.model.errors import JobFailed, StillRunning
from unstuck.model.lifecycle import JobState
from unstuck.observe.outlook import Outlook
from unstuck.observe.wait import await_end, wait_for_end

if TYPE_CHECKING:
    from unstuck.app.nouns import ApprovalsNoun, JobsNoun
    from unstuck.observe.stream import Stream
    from unstuck.operations.kinds import Duration
    from unstuck.views import Page
    from unstuck.views.flow import ChildView, PartialView, StepView, UsageView, WaitView
    from unstuck.views.jobs import AttemptView, EventView, JobView, LogView, StackView
    from unstuck.views.why import WhyAnswer

P = ParamSpec("P")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)


class Job(Generic[R_co]):
    """One job. `seen` is the job as the last answer showed it whole, if one did."""

    __slots__ = ("_engine", "_returns", "id", "is_new", "seen", "tenant")

    def __init__(
        self, engine: Engine, id: str, tenant: str, *, returns: Callable[[str], Any], is_new: bool = False
    ) -> None:
        self._engine = engine
        #: The annotated type of a workflow's results.
        self._returns = returns
        self.id = id
        self.tenant = tenant
        #: False when an idempotency key led to an earlier job.
        self.is_new = is_new
        self.seen: JobView | None = None

    def __repr__(self) -> str:
        return f"<Job {self.id}{f' {self.seen.state}' if self.seen else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and (self.id, self.tenant) == (other.id, other.tenant)

    def __hash__(self) -> int:
        return hash((self.id, self.tenant))

    # --- look -------------------------------------------------------------------------------------------------

    def view(self) -> JobView:
        """The job as it stands now; `app.jobs.get(job.id)` says everything about it."""
        return self._see(self._look())

    async def aview(self) -> JobView:
        return await self._in_thread(self.view)

    def state(self) -> JobState:
        """As it is stored, "QUEUED" for one; `job.view().shown_state` says it more precisely."""
        return self._look().state

    async def astate(self) -> JobState:
        return await self._in_thread(self.state)

    def error_type(self) -> str | None:
        """The name of the error that it ended with, or was last tried again for."""
        return self._look().error_type

    async def aerror_type(self) -> str | None:
        return await self._in_thread(self.error_type)

    def error(self) -> str | None:
        """The message of that error."""
        return self._look().error_message

    async def aerror(self) -> str | None:
        return await self._in_thread(self.error)

    def progress(self) -> Any:
        """What `ctx.progress` said last."""
        return self._reading.progress(self.id)

    async def aprogress(self) -> Any:
        return await self._in_thread(self.progress)

    def output(self) -> str | None:
        """What the last attempt that said anything printed and logged, for people."""
        said = None
        for attempt in _read_on(functools.partial(self._jobs.attempts, self.id, tenant=self.tenant)):
            said = attempt.output or said
        return said

    async def aoutput(self) -> str | None:
        return await self._in_thread(self.output)

    def history(self) -> list[EventView]:
        """All that happened to it; page by page: `app.jobs.history(job.id)`."""
        return [*_read_on(functools.partial(self._jobs.history, self.id, tenant=self.tenant))]

    async def ahistory(self) -> list[EventView]:
        return await self._in_thread(self.history)

    def attempts(self) -> list[AttemptView]:
        """All of them, with what they printed; page by page: `app.jobs.attempts(job.id)`."""
        return [*_read_on(functools.partial(self._jobs.attempts, self.id, tenant=self.tenant))]

    async def aattempts(self) -> list[AttemptView]:
        return await self._in_thread(self.attempts)

    def steps(self) -> list[StepView]:
        """What it has finished, in the order it did."""
        return [*_read_on(functools.partial(self._jobs.steps, self.id, tenant=self.tenant))]

    async def asteps(self) -> list[StepView]:
        return await self._in_thread(self.steps)

    def partials(self) -> list[PartialView]:
        """What its handler has given of its result so far, each name once, in the order they were last given."""
        return [*_read_on(functools.partial(self._jobs.partials, self.id, tenant=self.tenant))]

    async def apartials(self) -> list[PartialView]:
        return await self._in_thread(self.partials)

    def waits(self) -> list[WaitView]:
        """All that it ever waited for, the oldest first; `answer` None: it still does."""
        return [*_read_on(functools.partial(self._jobs.waits, self.id, tenant=self.tenant))]

    async def awaits(self) -> list[WaitView]:
        return await self._in_thread(self.waits)

    def usage(self) -> UsageView:
        """What it has used of its budget in its present run."""
        return self._jobs.usage(self.id, tenant=self.tenant)

    async def ausage(self) -> UsageView:
        return await self._in_thread(self.usage)

    def children(self) -> list[ChildView]:
        """The jobs that it spawned, as they stand."""
        return [*self._jobs.children(self.id, tenant=self.tenant)]

    async def achildren(self) -> list[ChildView]:
        return await self._in_thread(self.children)

    def parent(self) -> Job[Any] | None:
        """The job that spawned it."""
        parent = self._reading.parent(self.id)
        return None if parent is None else Job(self._engine, parent, self.tenant, returns=self._returns)

    async def aparent(self) -> Job[Any] | None:
        return await self._in_thread(self.parent)

    def why(self) -> WhyAnswer:
        """Why it is not running: the verdict, every reason, who must act, and the command to type."""
        return self._jobs.why(self.id, tenant=self.tenant)

    async def awhy(self) -> WhyAnswer:
        return await self._in_thread(self.why)

    def stack(self, timeout: Duration = 10.0, *, attempt: int | None = None, by: str | None = None) -> StackView:
        """Where it is in its code now, as its worker shows it; of a job that does not run, the stack that its last
        attempt left. NoStack if there is none, NoAnswer if the worker is silent for so long."""
        return self._jobs.stack(self.id, attempt=attempt, timeout=timeout, tenant=self.tenant, by=by)

    async def astack(
        self, timeout: Duration = 10.0, *, attempt: int | None = None, by: str | None = None
    ) -> StackView:
        return await self._in_thread(self.stack, timeout, attempt=attempt, by=by)

    # --- wait -------------------------------------------------------------------------------------------------

    def wait(self, timeout: Duration | None = None) -> JobView:
        """The job once it has ended, however it did; StillRunning when the time is over first."""
        return self._see(self._wait(timeout))

    async def await_(self, timeout: Duration | None = None) -> JobView:
        """`wait` for coroutines."""
        return await self._in_thread(self._see, await self._await(timeout))

    def result(self, timeout: Duration | None = None) -> R_co:
        """What the handler returned. JobFailed if it ended otherwise, StillRunning if it has not ended in time."""
        return self._result_of(self._wait(timeout))

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        ended = await self._await(timeout)
        return self._result_of(ended) if _is_well(ended) else await self._in_thread(self._result_of, ended)

    def logs(
        self, *, follow: bool = False, attempt: int | None = None, level: str | None = None
    ) -> Iterator[LogView]:
        """What its attempts printed and logged; with `follow` also what comes, until the job has ended. With a
        `level` only records of this level and above."""
        if follow:
            return self._jobs.follow_logs(self.id, attempt=attempt, level=level, tenant=self.tenant)
        return _read_on(functools.partial(self._jobs.logs, self.id, attempt=attempt, level=level, tenant=self.tenant))

    async def alogs(
        self, *, follow: bool = False, attempt: int | None = None, level: str | None = None
    ) -> AsyncIterator[LogView]:
        if follow:
            async for piece in self._jobs.afollow_logs(self.id, attempt=attempt, level=level, tenant=self.tenant):
                yield piece
            return
        for piece in await self._in_thread(lambda: [*self.logs(attempt=attempt, level=level)]):
            yield piece

    def follow_partials(self) -> Stream[PartialView]:
        """What is there and what comes, until the job has ended; a name that is given again comes again."""
        return self._jobs.follow_partials(self.id, tenant=self.tenant)

    async def afollow_partials(self) -> AsyncIterator[PartialView]:
        async for part in self._jobs.afollow_partials(self.id, tenant=self.tenant):
            yield part

    # --- ask --------------------------------------------------------------------------------------------------

    def cancel(self, reason: str | None = None, *, by: str | None = None) -> JobView:
        """Stop it for good: at once if it has not started, else its handler is asked to."""
        return self._saw(self._jobs.cancel(self.id, reason=reason, tenant=self.tenant, by=by))

    async def acancel(self, reason: str | None = None, *, by: str | None = None) -> JobView:
        return await self._in_thread(self.cancel, reason, by=by)

    def interrupt(self, reason: str | None = None, *, by: str | None = None) -> JobView:
        """As cancel, but PAUSED, so that it can be resumed."""
        return self._saw(self._jobs.interrupt(self.id, reason=reason, tenant=self.tenant, by=by))

    async def ainterrupt(self, reason: str | None = None, *, by: str | None = None) -> JobView:
        return await self._in_thread(self.interrupt, reason, by=by)

    def resume(self, *, from_start: bool = False, by: str | None = None) -> JobView:
        """A new, clean run; `from_start`: finished steps and partial results are forgotten."""
        return self._saw(self._jobs.resume(self.id, from_start=from_start, tenant=self.tenant, by=by))

    async def aresume(self, *, from_start: bool = False, by: str | None = None) -> JobView:
        return await self._in_thread(self.resume, from_start=from_start, by=by)

    def resolve(self, result: Any, *, by: str | None = None) -> JobView:
        """Supply the result by hand: COMPLETED, without running."""
        return self._saw(self._jobs.resolve(self.id, result, tenant=self.tenant, by=by))

    async def aresolve(self, result: Any, *, by: str | None = None) -> JobView:
        return await self._in_thread(self.resolve, result, by=by)

    def release(self, *, force: bool = False, by: str | None = None) -> JobView:
        """Let go of a job that was enqueued with `hold`; with `force` it no longer waits for other jobs either."""
        return self._saw(self._jobs.release(self.id, force=force, tenant=self.tenant, by=by))

    async def arelease(self, *, force: bool = False, by: str | None = None) -> JobView:
        return await self._in_thread(self.release, force=force, by=by)

    def skip(self, *, by: str | None = None) -> JobView:
        """Let the target that this job blocks move on; the job itself stays as it is."""
        return self._saw(self._jobs.skip(self.id, tenant=self.tenant, by=by))

    async def askip(self, *, by: str | None = None) -> JobView:
        return await self._in_thread(self.skip, by=by)

    def retry(self, *, by: str | None = None) -> JobView:
        """Run it again from its start; one that waits for its next try is due now."""
        return self._saw(self._jobs.retry(self.id, tenant=self.tenant, by=by))

    async def aretry(self, *, by: str | None = None) -> JobView:
        return await self._in_thread(self.retry, by=by)

    def run_now(self, *, by: str | None = None) -> JobView:
        """Let it be due now, if it waits for its time."""
        return self._saw(self._jobs.run_now(self.id, tenant=self.tenant, by=by))

    async def arun_now(self, *, by: str | None = None) -> JobView:
        return await self._in_thread(self.run_now, by=by)

    def reprioritise(self, priority: int, *, by: str | None = None) -> JobView:
        """Another priority, while it waits; its age stays."""
        return self._saw(self._jobs.reprioritise(self.id, priority, tenant=self.tenant, by=by))

    async def areprioritise(self, priority: int, *, by: str | None = None) -> JobView:
        return await self._in_thread(self.reprioritise, priority, by=by)

    def replay(self, *, by: str | None = None, budget: Mapping[str, float] | None = None) -> Job[R_co]:
        """A new job with the same workflow, arguments and policy as this one, which must have ended. `budget`: the
        units in which it may use more, or less."""
        new = self._jobs.replay(self.id, budget=budget, tenant=self.tenant, by=by)
        job: Job[R_co] = Job(self._engine, new.id, self.tenant, returns=self._returns, is_new=True)
        job.seen = new
        return job

    async def areplay(self, *, by: str | None = None, budget: Mapping[str, float] | None = None) -> Job[R_co]:
        return await self._in_thread(self.replay, by=by, budget=budget)

    def approve(self, *, by: str | None = None, comment: str | None = None, key: str | None = None) -> WaitView:
        """Say yes to the question that it asks (`key`: to this one). NotWaiting if none is open."""
        return self._approvals.approve(self.id, comment=comment, key=key, tenant=self.tenant, by=by)

    async def aapprove(
        self, *, by: str | None = None, comment: str | None = None, key: str | None = None
    ) -> WaitView:
        return await self._in_thread(self.approve, by=by, comment=comment, key=key)

    def reject(self, *, by: str | None = None, comment: str | None = None, key: str | None = None) -> WaitView:
        """Say no to it."""
        return self._approvals.reject(self.id, comment=comment, key=key, tenant=self.tenant, by=by)

    async def areject(self, *, by: str | None = None, comment: str | None = None, key: str | None = None) -> WaitView:
        return await self._in_thread(self.reject, by=by, comment=comment, key=key)

    # --- steps ------------------------------------------------------------------------------------------------

    @property
    def _jobs(self) -> JobsNoun:
        """The same questions about any job; imported when first asked, as every executor imports this module."""
        from unstuck.app.nouns import JobsNoun

        return JobsNoun(self._engine)

    @property
    def _approvals(self) -> ApprovalsNoun:
        from unstuck.app.nouns import ApprovalsNoun

        return ApprovalsNoun(self._engine)

    @property
    def _reading(self) -> Reading:
        return self._engine.reading(self.tenant)

    def _in_thread(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return self._engine.in_thread(functools.partial(method, *args, **kwargs))

    def _look(self) -> Looked:
        return self._reading.look(self.id)

    def _see(self, looked: Looked) -> JobView:
        return self._saw(self._reading.view(looked))

    def _saw(self, view: JobView) -> JobView:
        self.seen = view
        return view

    def _wait(self, timeout: Duration | None) -> Looked:
        watched, limit = _Watched(self.id, self._reading), _seconds(timeout)
        patient = watched.look if self._reading.is_patient else None
        return watched.ended(wait_for_end(watched.look, limit, CancellableClock(), patient), limit)

    async def _await(self, timeout: Duration | None) -> Looked:
        watched, limit = _Watched(self.id, self._reading), _seconds(timeout)
        return watched.ended(await await_end(lambda: self._engine.in_thread(watched.look), limit), limit)

    def _result_of(self, looked: Looked) -> R_co:
        if not _is_well(looked):
            view = self._see(looked)
            raise JobFailed(looked.id, looked.state, looked.error_type, looked.error_message, view=view)
        return cast(R_co, typed_result(self._reading.result(looked), self._returns(looked.workflow)))


class _Watched:
    """A job that is waited for. What keeps it from running is logged."""

    def __init__(self, job: str, reading: Reading) -> None:
        self._job = job
        self._reading = reading
        self._outlook = Outlook(lambda: reading.why(job), logging.getLogger("unstuck").warning)
        self._state = "unknown"

    def look(self, within: float = 0.0) -> Looked:
        looked = self._outlook.of(self._reading.look(self._job, within))
        self._state = looked.state
        return looked

    def ended(self, looked: Looked | None, timeout: float | None) -> Looked:
        if looked is None:
            raise StillRunning(self._job, self._state, timeout or 0.0)
        return looked


def _read_on(ask: Callable[..., Page[T]]) -> Iterator[T]:
    """The first page, asked for at once so that a bad question is told where it is asked, and those behind it as far
    as somebody reads."""
    first = ask()

    def items() -> Iterator[T]:
        page = first
        yield from page
        while page.next is not None:
            page = ask(after=page.next)
            yield from page

    return items()


def _is_well(looked: Looked) -> bool:
    return looked.state is JobState.COMPLETED


def _seconds(timeout: Duration | None) -> float | None:
    from unstuck.operations.kinds import seconds_or_none

    return seconds_or_none(timeout, "timeout")
