"""Engine: what one process needs to ask operations: settings, a store, threads.

It is inert until its first use. Then it opens one store for its process. A fork opens its own and leaves its parent's
alone. `ask`, `wait` and `follow`, and their twins for coroutines, are all that nouns need of it; that of `remote.py`
asks a server.
"""

from __future__ import annotations

import atexit
import contextvars
import functools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

from unstuck import config
from unstuck.app.cancellable_clock import CancellableClock
from unstuck.config import Settings
from unstuck.machine import INCARNATION_TAG
from unstuck.model.errors import SchemaMismatch
from unstuck.model.payload import check_name, check_wording
from unstuck.observe.lookup import Lookup
from unstuck.sealing import Sealer
from unstuck.signing import SigningKeys

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from unstuck.app.code import AppCode
    from unstuck.app.reading import Reading
    from unstuck.app.workflow import Submit
    from unstuck.intake.submit import Options
    from unstuck.observe.stream import AsyncStream, Source, Stream
    from unstuck.operations.kinds import Duration
    from unstuck.operations.table import Caller, Operation
    from unstuck.store.port import Store
    from unstuck.views.jobs import JobView

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")


class _Opened(NamedTuple):
    """A store and the process it belongs to."""

    pid: int
    store: Store


#: Stores of a parent process. Closing one here would say goodbye on the parent's own connections, and so would
#: collecting it as garbage: they are kept and never touched.
_INHERITED: list[_Opened] = []

#: Engines with a store, for the end of the process; weakly, so that being listed keeps none of them alive.
_IN_USE: weakref.WeakSet[Engine] = weakref.WeakSet()


@atexit.register
def _close_at_exit() -> None:
    """Programs rarely close their App. In a fork this runs too; `close` leaves alone what is its parent's."""
    for engine in list(_IN_USE):
        engine.close()


class Engine:
    """What an App and its nouns, workflows and jobs share."""

    def __init__(self, name: str | None, given: dict[str, Any]) -> None:
        said = {key: value for key, value in given.items() if value is not None}
        self._given = {k: os.fspath(value) if isinstance(value, os.PathLike) else value for k, value in said.items()}
        config.check(self._given)
        self.name = check_name(name, "app") if name is not None else "app"
        self._settings: Settings | None = None
        self._keys: SigningKeys | None = None
        #: Names of workflows whose code says that nothing of them runs unsigned.
        self.required_by_code: Callable[[], Sequence[str]] = lambda: ()
        self._opened: _Opened | None = None
        self._pool: tuple[int, ThreadPoolExecutor] | None = None
        # By process: a lock that another thread of the parent held during a fork stays locked in the child for ever.
        self._locks: dict[int, threading.Lock] = {}

    @property
    def config(self) -> Settings:
        """Read once, at first use: files and environment of that moment."""
        if self._settings is None:
            self._settings = config.load(app=self._given)
        return self._settings

    @property
    def signing(self) -> SigningKeys:
        """The signing keys of this process, and where signatures are required. InvalidSettings if they cannot be
        read, or if one is required and there is none. A handler's process reads none: its supervisor keeps them, and
        signs what is spawned."""
        if self._keys is None:
            settings, is_handler = self.config, INCARNATION_TAG in os.environ
            source = None if is_handler else settings.signing_keys
            self._keys = SigningKeys.of(source, settings.require_signature, may_lack_keys=is_handler)
        names = self.required_by_code()
        return self._keys.also_requiring(names) if names else self._keys

    @property
    def given(self) -> dict[str, Any]:
        """The settings that stand in the code itself, as `App(…)` was called."""
        return dict(self._given)

    # --- ask --------------------------------------------------------------------------------------------------

    def ask(
        self, operation: Operation[P, V], tenant: str | None, by: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> V:
        return operation(self.caller(tenant, by), *args, **kwargs)

    async def aask(
        self, operation: Operation[P, V], tenant: str | None, by: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> V:
        return await self.in_thread(lambda: self.ask(operation, tenant, by, *args, **kwargs))

    def wait(self, operation: Operation[Any, JobView], tenant: str | None, job: str, *, timeout: Duration) -> JobView:
        """By looks of its own: a handler that waits still hears when its own job is asked to stop."""
        from unstuck.observe.wait import wait_for_end
        from unstuck.operations.kinds import patience

        def look(name: str) -> JobView:
            return self.ask(operation, tenant, None, name, timeout=0)

        most, ident = patience(timeout), look(job).id
        return wait_for_end(lambda: look(ident), most, CancellableClock()) or look(ident)

    async def await_(
        self, operation: Operation[Any, JobView], tenant: str | None, job: str, *, timeout: Duration
    ) -> JobView:
        """The same without holding a thread meanwhile: there are few."""
        from unstuck.observe.wait import await_end
        from unstuck.operations.kinds import patience

        async def look(name: str) -> JobView:
            return await self.aask(operation, tenant, None, name, timeout=0)

        most, ident = patience(timeout), (await look(job)).id
        return await await_end(lambda: look(ident), most) or await look(ident)

    def follow(
        self, operation: Operation[P, Source[V]], tenant: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> Stream[V]:
        from unstuck.observe.stream import Stream

        return Stream(operation(self.caller(tenant), *args, **kwargs), clock=CancellableClock())

    def afollow(
        self, operation: Operation[P, Source[V]], tenant: str | None, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncStream[V]:
        from unstuck.observe.stream import AsyncStream

        def open_() -> Source[V]:
            return operation(self.caller(tenant), *args, **kwargs)

        return AsyncStream(lambda: self.in_thread(open_), lambda source: self.in_thread(source.look))

    def caller(self, tenant: str | None = None, by: str | None = None) -> Caller:
        """This app, as operations know who asks."""
        from unstuck.operations.table import Caller

        settings = self.config
        own = settings.tenant if "tenant" in settings.origins else None
        where = config.masked(settings.database)
        base = Caller(
            self.store,
            self.name,
            own,
            settings.times,
            database=where,
            signing=lambda: self.signing,
            signs=True,
            sealer=self._sealer,
        )
        return base.about(tenant, by)

    def _sealer(self) -> Sealer:
        """A handler's process reads no keys."""
        return Sealer.of(None if INCARNATION_TAG in os.environ else self.config.sealing_keys)

    def reading(self, tenant: str) -> Reading:
        """What the handles of jobs read."""
        from unstuck.app.reading import StoreReading

        return StoreReading(self, tenant)

    def named(self, job: str, tenant: str | None) -> tuple[str, str]:
        """The whole id of a job, and whose it is. A whole one is taken as it is."""
        look = self.lookup(tenant)
        return look.job_id(job), look.owner(job)

    def prepared(self, code: AppCode, workflow: str, options: Options) -> Submit:
        """What stores the calls of a workflow with these options."""
        return code.stored_here(workflow, options)

    def check_database(self) -> None:
        """InvalidInput where there can be none."""

    def lookup(self, tenant: str | None = None) -> Lookup:
        settings = self.config
        return Lookup(self.store, tenant=self.whose(tenant), offline=settings.times.offline)

    def whose(self, tenant: str | None) -> str:
        """The tenant that is meant."""
        return check_wording(tenant, "tenant") or self.config.tenant

    # --- what it holds ----------------------------------------------------------------------------------------

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
        be busy with the program's own affairs. In the caller's contextvars: its trace is known by them."""
        import asyncio

        call = functools.partial(contextvars.copy_context().run, function, *args)
        return await asyncio.get_running_loop().run_in_executor(self._threads(), call)

    def _open(self) -> Store:
        pid = os.getpid()
        if self._opened is not None:
            if self._opened.pid == pid:
                return self._opened.store
            _INHERITED.append(self._opened)
        from unstuck.assembly.store import open_store

        store = open_store(self.config.database, self.config.times, application=self.name)
        try:
            _prepare_schema(store, self.config.database)
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
