"""App, Workflow and Job: what applications hold.

An App is inert: it collects handlers and opens nothing before its first use. Then it opens one store for its
process; a fork opens its own, and leaves its parent's alone.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from unstuck import config
from unstuck.app.draft import Draft, name_of
from unstuck.app.flow import Approvals, signal
from unstuck.app.guard import Audit, Blacklist, Notifications, Runtime
from unstuck.app.job import Job
from unstuck.app.order import Order
from unstuck.app.workers import Workers
from unstuck.app.workflow import Call, Decorator, Workflow
from unstuck.config import Settings
from unstuck.intake.arguments import Unresolved
from unstuck.intake.control import JobVerbs
from unstuck.intake.flow import FlowVerbs
from unstuck.intake.submit import Options, Submitter
from unstuck.model.errors import InvalidInput, SchemaMismatch
from unstuck.model.job import JobRecord, NewJob, WorkflowRecord
from unstuck.model.lifecycle import JobState
from unstuck.model.payload import check_name, check_wording
from unstuck.model.waits import Signalled
from unstuck.model.why import Why
from unstuck.model.workflow import UNVERSIONED, Registry
from unstuck.observe.lookup import Lookup, Stats
from unstuck.observe.why import why

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from unstuck.app.feed import AsyncFeed
    from unstuck.observe.feed import Feed
    from unstuck.store.port import Store

__all__ = ["App", "Call", "Decorator", "Job", "Order", "Stats", "Workers", "Workflow"]

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


class _Opened(NamedTuple):
    """A store and the process it belongs to."""

    pid: int
    store: Store


#: Stores of a parent process. Closing one here would say goodbye on the parent's own connections, and so would
#: collecting it as garbage: they are kept and never touched.
_INHERITED: list[_Opened] = []

#: Apps with a store, for the end of the process; weakly, so that being listed keeps none of them alive.
_IN_USE: weakref.WeakSet[App] = weakref.WeakSet()


@atexit.register
def _close_at_exit() -> None:
    """Programs rarely close their App. In a fork this runs too; `close` leaves alone what is its parent's."""
    for app in list(_IN_USE):
        app.close()


class App:
    """What a program can run, and the database its jobs live in."""

    def __init__(
        self,
        database: str | None = None,
        *,
        tenant: str | None = None,
        name: str | None = None,
        version: str | None = None,
        preset: str | None = None,
        **settings: Any,
    ) -> None:
        given = {"database": database, "tenant": tenant, "preset": preset, **settings}
        self._given = {key: value for key, value in given.items() if value is not None}
        config.check(self._given)
        self.name = check_name(name, "app") if name is not None else "app"
        self._registry = Registry(code_version=version or os.environ.get("UNSTUCK_VERSION") or UNVERSIONED)
        self._drafts: dict[str, Draft] = {}
        self._settings: Settings | None = None
        self._opened: _Opened | None = None
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        # By process: a lock that another thread of the parent held during a fork stays locked in the child for ever.
        self._locks: dict[int, threading.Lock] = {}

    def __repr__(self) -> str:
        return f"<App {self.name}: {', '.join(self._drafts) or 'no workflows'}>"

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what it can run --------------------------------------------------------------------------------------

    @property
    def workflow(self) -> Decorator:
        """Decorate a function: `@app.workflow` or `@app.workflow(timeout=60, retries=5)`."""
        return Decorator(self, {})

    def middleware(self, function: Function) -> Function:
        """Decorate a generator function that takes the Context: it runs around every attempt, sync or async."""
        if inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function):
            raise InvalidInput(
                f"middleware {name_of(function)} must be a plain generator: it wraps sync handlers too"
            )
        try:
            inspect.signature(function).bind(object())
        except TypeError as problem:
            raise InvalidInput(
                f"middleware {name_of(function)} must take the Context alone, and yield once where the handler runs: "
                f"{problem}"
            ) from None
        wrapped: Callable[[Any], AbstractContextManager[object]] = (
            contextmanager(function) if inspect.isgeneratorfunction(function) else function
        )
        self._registry.middleware.append(wrapped)
        return function

    def on_executor_start(self, function: Function) -> Function:
        """Decorate what every executor process does before its first job: connections must not cross a fork."""
        self._registry.on_start.append(function)
        return function

    def on_executor_stop(self, function: Function) -> Function:
        self._registry.on_stop.append(function)
        return function

    def add(self, function: Callable[..., Any], options: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
        """What the decorator does; `names` are those its annotations may use besides the module's."""
        draft = Draft(function, options, names)
        if draft.name in self._drafts:
            raise InvalidInput(f"there are two workflows named {draft.name}; give one of them name=…")
        self._drafts[draft.name] = draft
        return Workflow(self, draft.name, function)

    @property
    def registry(self) -> Registry:
        """Everything that was decorated so far, with the settings applied."""
        for name, draft in list(self._drafts.items()):
            if name not in self._registry.handlers:
                self._registry.handlers[name] = draft.handler(self.settings)
        return self._registry

    @property
    def settings(self) -> Settings:
        """Read once, at first use: files and environment of that moment."""
        if self._settings is None:
            self._settings = config.load(app=self._given)
        return self._settings

    @property
    def given(self) -> dict[str, Any]:
        """The settings that stand in the code itself, as `App(…)` was called."""
        return dict(self._given)

    # --- jobs -------------------------------------------------------------------------------------------------

    def submit(
        self, workflow: str, calls: Sequence[tuple[Sequence[Any], Mapping[str, Any]]], options: Options
    ) -> list[Job[Any]]:
        """What `enqueue` does: check every call, then store them."""
        handler, arguments = self.registry.handler(workflow), self._drafts[workflow].resolved()
        payloads = [arguments.pack(args, kwargs) for args, kwargs in calls]
        submitter = Submitter(self.store, tenant=self.settings.tenant, max_timeout=self.settings.times.max_timeout)
        jobs = [submitter.job(handler, payload, options) for payload in payloads]
        return [
            Job(self, stored.id, job.tenant, returns=arguments.returns, is_new=stored.id == job.id)
            for job, stored in zip(jobs, submitter.submit(jobs), strict=True)
        ]

    def draft(self, workflow: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options) -> NewJob:
        """A checked call that somebody else will store; opens nothing."""
        handler, payload = self.registry.handler(workflow), self._drafts[workflow].resolved().pack(args, kwargs)
        no_store = cast("Store", None)
        submitter = Submitter(no_store, tenant=self.settings.tenant, max_timeout=self.settings.times.max_timeout)
        return submitter.job(handler, payload, options)

    def job(self, name: str, *, tenant: str | None = None) -> Job[Any]:
        """By id, or by as much of its beginning as names one job only."""
        return self._handle(self.lookup(tenant).job(name))

    def jobs(
        self,
        *,
        state: JobState | str | Iterable[JobState | str] = (),
        workflow: str | None = None,
        queue: str | None = None,
        error_type: str | None = None,
        target: str | None = None,
        tag: str | None = None,
        before: datetime | None = None,
        since: datetime | None = None,
        newest_first: bool = True,
        limit: int = 50,
        tenant: str | None = None,
    ) -> list[Job[Any]]:
        """The newest jobs, or those you ask for, each with the record that was `seen`."""
        page = self.lookup(tenant).jobs(
            state=state,
            workflow=workflow,
            queue=queue,
            error_type=error_type,
            target=target,
            tag=tag,
            before=before,
            since=since,
            newest_first=newest_first,
            limit=limit,
        )
        return [self._handle(record) for record in page.jobs]

    def why(self, job: Job[Any] | str, *, tenant: str | None = None) -> Why:
        """Why a job is not running: the verdict, every reason, who must act, and the command to type."""
        if isinstance(job, Job):
            return why(self.store, job.tenant, job.id, self.settings.times)
        lookup = self.lookup(tenant)
        return why(self.store, self.whose(tenant), lookup.job_id(job), self.settings.times)

    def signal(
        self,
        job: Job[Any] | str | None = None,
        event: str | None = None,
        payload: Any = None,
        *,
        topic: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> Signalled:
        """Send an event to a job, or to whoever waits on a topic. It answers one wait: one that is open, else one
        that begins within 24 hours. The payload may be what a result may be. NotWaiting for a job that has ended."""
        return signal(self, job, event, payload, topic=topic, tenant=tenant, by=by)

    async def asignal(
        self,
        job: Job[Any] | str | None = None,
        event: str | None = None,
        payload: Any = None,
        *,
        topic: str | None = None,
        tenant: str | None = None,
        by: str | None = None,
    ) -> Signalled:
        """`signal` for coroutines."""
        send = functools.partial(self.signal, job, event, payload, topic=topic, tenant=tenant, by=by)
        return await self.in_thread(send)

    @property
    def approvals(self) -> Approvals:
        """The questions that jobs ask of people: list, approve, reject."""
        return Approvals(self)

    def feed(
        self,
        after: str | None = None,
        *,
        tenant: str | None = None,
        kinds: str | Iterable[str] = (),
        job: Job[Any] | str | None = None,
        workflow: str | None = None,
        follow: bool = True,
    ) -> Feed:
        """Every committed event once, in one order: from the beginning of what is kept, from `after="now"`, or from
        an earlier event's cursor. For ever, or with `follow=False` up to the last there is. `tenant="*"`: of all."""
        from unstuck.app.feed import feed

        return feed(self, after, follow=follow, tenant=tenant, kinds=kinds, job=job, workflow=workflow)

    def afeed(
        self,
        after: str | None = None,
        *,
        tenant: str | None = None,
        kinds: str | Iterable[str] = (),
        job: Job[Any] | str | None = None,
        workflow: str | None = None,
        follow: bool = True,
    ) -> AsyncFeed:
        """`feed` for coroutines."""
        from unstuck.app.feed import AsyncFeed

        wanted = {"tenant": tenant, "kinds": kinds, "job": job, "workflow": workflow}
        return AsyncFeed(self, after, wanted, follow=follow)

    def stats(self, *, tenant: str | None = None) -> Stats:
        return self.lookup(tenant).stats()

    @property
    def workers(self) -> Workers:
        """Who runs the jobs, and what may be asked of them: list, recycle, drain."""
        return Workers(self)

    def workflows(self) -> list[WorkflowRecord]:
        """What workers have registered in this database, whoever's code it is."""
        return self.store.workflows()

    @property
    def order(self) -> Order:
        """Who runs next: targets, pauses, limits, weights."""
        return Order(self)

    @property
    def blacklist(self) -> Blacklist:
        """Workflows of which nothing is accepted or started: list, add, remove, history."""
        return Blacklist(self)

    @property
    def runtime(self) -> Runtime:
        """Settings that hold for every worker from the moment they change: list, get, set, reset."""
        return Runtime(self)

    @property
    def notifications(self) -> Notifications:
        """News for whoever runs the platform: list, ack."""
        return Notifications(self)

    @property
    def audit(self) -> Audit:
        """Who did what, and when."""
        return Audit(self)

    def lookup(self, tenant: str | None = None) -> Lookup:
        settings = self.settings
        return Lookup(self.store, tenant=self.whose(tenant), offline=settings.times.offline)

    def control(self, tenant: str | None = None) -> JobVerbs:
        return JobVerbs(self.store, tenant=self.whose(tenant), by=self.name)

    def flow(self, tenant: str | None = None) -> FlowVerbs:
        return FlowVerbs(self.store, tenant=self.whose(tenant), by=self.name)

    def whose(self, tenant: str | None) -> str:
        """The tenant that is meant."""
        return check_wording(tenant, "tenant") or self.settings.tenant

    def _handle(self, record: JobRecord) -> Job[Any]:
        job: Job[Any] = Job(self, record.id, record.tenant, returns=self._returns(record.workflow))
        job.seen = record
        return job

    def _returns(self, workflow: str) -> Any:
        """The annotated type of its results, as far as this process knows it."""
        try:
            return self._drafts[workflow].resolved().returns
        except (KeyError, Unresolved):
            return inspect.Parameter.empty

    # --- the store --------------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """This process's own; opened at first use, after a fork anew."""
        opened = self._opened
        if opened is not None and opened.pid == os.getpid():
            return opened.store
        with self._lock():
            return self._open()

    def close(self) -> None:
        """Let go of database and threads; the next use opens them again."""
        with self._lock():
            opened, self._opened = self._opened, None
            pool, self._pool = self._pool, None
        if pool is not None and pool[0] == os.getpid():
            pool[1].shutdown(wait=True)
        if opened is None:
            return
        if opened.pid == os.getpid():
            opened.store.close()
        else:
            _INHERITED.append(opened)

    async def in_thread(self, function: Callable[..., T], *args: Any) -> T:
        """Run a blocking call without holding up the loop, on threads of our own: the loop's default ones may all
        be busy with the program's own affairs."""
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(self._threads(), functools.partial(function, *args))

    def _open(self) -> Store:
        pid = os.getpid()
        if self._opened is not None:
            if self._opened.pid == pid:
                return self._opened.store
            _INHERITED.append(self._opened)
        from unstuck.assembly import open_store

        store = open_store(self.settings.database, self.settings.times, application=self.name)
        try:
            _prepare_schema(store, self.settings.database)
        except BaseException:
            store.close()
            raise
        self._opened = _Opened(pid, store)
        _IN_USE.add(self)
        return store

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock():
            if self._pool is None or self._pool[0] != os.getpid():
                from concurrent.futures import ThreadPoolExecutor

                self._pool = (os.getpid(), ThreadPoolExecutor(max_workers=8, thread_name_prefix="unstuck"))
            return self._pool[1]

    def _lock(self) -> threading.Lock:
        return self._locks.setdefault(os.getpid(), threading.Lock())


def _prepare_schema(store: Store, url: str) -> None:
    if not store.prepare_schema():
        raise SchemaMismatch(
            f"the schema of {config.masked(url)} is version {store.schema_version()}, this code needs "
            f"{store.shipped_version()}; run: unstuck db migrate"
        )
