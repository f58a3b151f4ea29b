"""App, Workflow and Job: what applications hold.

An App is inert: it collects handlers (`code.py`) and opens nothing before its first use (`engine.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from unstuck.app.code import AppCode
from unstuck.app.draft import name_of
from unstuck.app.ends import EndDecorator
from unstuck.app.engine import Engine
from unstuck.app.face import Face
from unstuck.app.job import Job
from unstuck.app.workflow import Call, Decorator, Workflow
from unstuck.model.errors import InvalidInput

if TYPE_CHECKING:
    from unstuck.app.schedules import AppSchedules
    from unstuck.config import Settings
    from unstuck.model.workflow import Registry
    from unstuck.server.api import Api
    from unstuck.server.who import Auth

__all__ = ["App", "Call", "Decorator", "Job", "Workflow"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _engine(name: str | None, given: dict[str, Any], key: str | None, allow_http: bool) -> Engine:
    if str(given["database"]).lower().startswith(("http://", "https://")):
        from unstuck.app.remote import RemoteEngine, Server

        return RemoteEngine(name, given, Server(given["database"], key, allow_http=allow_http))
    if key is not None:
        raise InvalidInput("key= is for a server, https://…; a database takes its password in its address")
    return Engine(name, given)


class App(Face):
    """What a program can run, and the database its jobs live in. Or a server (`https://…`, with a `key`): then jobs
    are enqueued and asked about over HTTP, and a worker runs elsewhere."""

    def __init__(
        self,
        database: str | None = None,
        *,
        tenant: str | None = None,
        name: str | None = None,
        version: str | None = None,
        preset: str | None = None,
        key: str | None = None,
        allow_http: bool = False,
        **settings: Any,
    ) -> None:
        given = {"database": database, "tenant": tenant, "preset": preset, **settings}
        self._engine = _engine(name, given, key, allow_http)
        self._code = AppCode(self._engine, version, name)

    def __repr__(self) -> str:
        return f"<App {self.name}: {', '.join(self._code.drafts) or 'no workflows'}>"

    def __enter__(self) -> App:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def name(self) -> str:
        """Who asks, for histories and the audit, where a call says no `by=`."""
        return self._engine.name

    @property
    def config(self) -> Settings:
        """How this process was configured. Read once, at first use: files and environment of that moment."""
        return self._engine.config

    def close(self) -> None:
        """Let go of database and threads; the next use opens them again."""
        self._engine.close()

    # --- what it can run --------------------------------------------------------------------------------------

    @property
    def workflow(self) -> Decorator:
        """Decorate a function: `@app.workflow` or `@app.workflow(timeout=60, retries=5)`."""
        return Decorator(self._code, {})

    @property
    def schedules(self) -> AppSchedules:
        """What runs by the clock; and `declare`, for what stands in the code itself."""
        from unstuck.app.schedules import AppSchedules

        return AppSchedules(self._code)

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
        self._code.decorated.middleware.append(wrapped)
        return function

    def on_executor_start(self, function: Function) -> Function:
        """Decorate what every executor process does before its first job: connections must not cross a fork."""
        self._code.decorated.on_start.append(function)
        return function

    def on_executor_stop(self, function: Function) -> Function:
        """Decorate what every executor process does after its last job."""
        self._code.decorated.on_stop.append(function)
        return function

    # --- what runs when jobs end ------------------------------------------------------------------------------

    @property
    def on_completed(self) -> EndDecorator:
        """Decorate what runs, as a job of its own, when a job has completed: `@app.on_completed` for every workflow,
        `@app.on_completed(charge, "refund", queue="small")` for some. It is given an `EndedJob`, once for each
        run."""
        return EndDecorator(self._code, "completed")

    @property
    def on_failed(self) -> EndDecorator:
        """The same when a job ended without success and nobody had asked for that: FAILED, TIMEOUT or DEAD, and so
        also every one that got stuck."""
        return EndDecorator(self._code, "failed")

    @property
    def on_stuck(self) -> EndDecorator:
        """The same when a job was convicted of being stuck. What is decorated by `on_failed` runs then, too."""
        return EndDecorator(self._code, "stuck")

    # --- its doors --------------------------------------------------------------------------------------------

    def asgi(self, *, auth: Auth | None = None) -> Api:
        """Everything over HTTP, to mount into a FastAPI or Starlette app: `api.mount("/unstuck", app.asgi())`.
        Whoever asks shows an API key; with `auth` your program says who it is, from the ASGI scope: `Who(by="anna",
        role="operator", tenant="acme")`, or None for nobody."""
        from unstuck.assembly.server import build_asgi

        self._engine.check_database()
        return build_asgi(self._engine.caller, auth)

    # --- jobs -------------------------------------------------------------------------------------------------

    def job(self, name: str, *, tenant: str | None = None) -> Job[Any]:
        """The handle of a job, by id or by as much of its beginning as names one job only. A whole id is taken as it
        is: UnknownJob is said by the first question."""
        ident, whose = self._engine.named(name, tenant)
        return Job(self._engine, ident, whose, returns=self._code.returns)

    # --- what the command line and a worker's processes ask of it ---------------------------------------------

    @property
    def _registry(self) -> Registry:
        return self._code.registry

    @property
    def _given(self) -> dict[str, Any]:
        """The settings that stand in the code itself, as `App(…)` was called."""
        return self._engine.given
