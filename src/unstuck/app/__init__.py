"""App, Workflow and Job: what applications hold.

An App is inert: it collects handlers and opens nothing before its first use (`engine.py`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

from unstuck.app.draft import Draft, name_of
from unstuck.app.face import Face
from unstuck.app.job import Job
from unstuck.app.workflow import Call, Calls, Decorator, Submit, Workflow
from unstuck.chance import SystemChance
from unstuck.intake.arguments import Unresolved
from unstuck.intake.submit import Options, Submitter
from unstuck.model.errors import InvalidInput
from unstuck.model.job import NewJob
from unstuck.model.workflow import UNVERSIONED, Registry

if TYPE_CHECKING:
    from unstuck.store.port import Store

__all__ = ["App", "Call", "Decorator", "Job", "Workflow"]

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])

_CHANCE = SystemChance()


class App(Face):
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
        super().__init__(name, {"database": database, "tenant": tenant, "preset": preset, **settings})
        self._registry = Registry(code_version=version or os.environ.get("UNSTUCK_VERSION") or UNVERSIONED)
        self._drafts: dict[str, Draft] = {}

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
        if len(self._registry.handlers) < len(self._drafts):
            for name, draft in list(self._drafts.items()):
                if name not in self._registry.handlers:
                    self._registry.handlers[name] = draft.handler(self.config)
        return self._registry

    # --- jobs -------------------------------------------------------------------------------------------------

    def submit(self, workflow: str, calls: Calls, options: Options) -> list[Job[Any]]:
        """What `enqueue` does: check every call, then store them."""
        return self.prepared(workflow, options)(calls)

    def prepared(self, workflow: str, options: Options) -> Submit:
        """The same for many times: what the calls have in common is looked up and checked once."""
        submitter = self._submitter(None)
        pattern = submitter.pattern(self.registry.handler(workflow), options)
        arguments, tenant = self._drafts[workflow].resolved(), pattern.of_all.tenant

        def returns(_: str) -> Any:
            return arguments.returns

        def submit(calls: Calls) -> list[Job[Any]]:
            nonlocal submitter
            payloads = [arguments.pack(args, kwargs) for args, kwargs in calls]
            if submitter.store is not (store := self.store):  # opened since, or another process's
                submitter = self._submitter(store)
            jobs = submitter.jobs(pattern, payloads)
            return [
                Job(self, stored.id, tenant, returns=returns, is_new=stored.created)
                for stored in submitter.submit(jobs)
            ]

        return submit

    def _submitter(self, store: Store | None) -> Submitter:
        settings = self.config
        return Submitter(
            cast("Store", store), chance=_CHANCE, tenant=settings.tenant, max_timeout=settings.times.max_timeout
        )

    def draft(self, workflow: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options) -> NewJob:
        """A checked call that somebody else will store; opens nothing."""
        handler, payload = self.registry.handler(workflow), self._drafts[workflow].resolved().pack(args, kwargs)
        return self._submitter(None).job(handler, payload, options)

    def job(self, name: str, *, tenant: str | None = None) -> Job[Any]:
        """The handle of a job, by id or by as much of its beginning as names one job only. A whole id is taken as it
        is: UnknownJob is said by the first question."""
        look = self.lookup(tenant)
        return Job(self, look.job_id(name), look.owner(name), returns=self._returns)

    def _returns(self, workflow: str) -> Any:
        """The annotated type of its results, as far as this process knows it."""
        try:
            return self._drafts[workflow].resolved().returns
        except (KeyError, Unresolved):
            return inspect.Parameter.empty
