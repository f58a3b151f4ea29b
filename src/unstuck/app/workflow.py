"""Workflow: a handler that can be asked for, and the decorator that makes one; typed by the handler's signature."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

from unstuck.executor.context import AsyncContext, Context
from unstuck.intake.submit import Options
from unstuck.model.errors import InvalidInput
from unstuck.records import dataclass

if TYPE_CHECKING:
    from unstuck.app.code import AppCode
    from unstuck.app.job import Job
    from unstuck.model.job import NewJob

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")
C = TypeVar("C", bound=Context)
A = TypeVar("A", bound=AsyncContext)

#: mypy takes this name for true, other type checkers do not. They need different words for the same rule, that
#: exactly a first parameter annotated Context or AsyncContext is not the caller's: mypy widens a self type's
#: Concatenate to any first parameter, and pyright lets `object` stand for a TypeVar bound to Context.
MYPY = False


class PolicyOptions(TypedDict, total=False):
    timeout: float | Literal["unlimited"]
    timeout_seconds: float | Literal["unlimited"]
    grace: float
    cancel_grace_seconds: float
    retries: int
    max_retries: int
    max_lost: int
    suspect_runs: int
    on_lost: Literal["retry", "fail", "pause"]
    on_drain_timeout: Literal["requeue", "pause", "expire"]
    on_failure: Literal["block", "continue"]
    on_blacklist: Literal["fail", "hold"]
    dead_letter: Literal["never", "exhausted"]
    retry_on_timeout: bool
    expires_after: float | None
    isolation: Literal["shared", "process"]
    backoff_base: float
    backoff_factor: float
    backoff_cap: float
    max_result: int
    wait_timeout: float
    approval_timeout: float
    gather_timeout: float
    budget: Mapping[str, float] | None
    budget_scope: Literal["job", "tree"]
    token_limit: int | None


class WorkflowOptions(PolicyOptions, total=False):
    name: str
    queue: str
    retry_on: type[BaseException] | tuple[type[BaseException], ...]
    target: str | None
    limit_key: str | None
    concurrency: int | None
    rate: str | None
    key_concurrency: int | None
    key_rate: str | None
    redact: Sequence[str]
    require_signature: bool
    schedule: str | float | Mapping[str, Any] | Sequence[str | float | Mapping[str, Any]]


class JobOptions(PolicyOptions, total=False):
    priority: int
    id: str | None
    key: str | None
    tenant: str
    queue: str
    delay: float | None
    at: datetime | None
    tags: str | Sequence[str]
    target: str | None
    limit_key: str | None
    hold: bool
    after: Job[Any] | str | Sequence[Job[Any] | str]
    after_failure: Literal["fail", "run"]


@dataclass(frozen=True, slots=True)
class Call:
    """One call among many, with positional and keyword arguments."""

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] | None = None


#: Positional and named arguments of each.
Calls = Sequence[tuple[Sequence[Any], Mapping[str, Any]]]
#: Stores these calls of a workflow, or none of them.
Submit = Callable[[Calls], "list[Job[Any]]"]


class Workflow(Generic[P, R]):
    """A handler that can be asked for. Called directly it is the plain function, run here and now."""

    def __init__(
        self, code: AppCode, name: str, function: Callable[..., Any], options: Options | None = None
    ) -> None:
        functools.update_wrapper(self, function)
        self._code = code
        self._function = function
        self._options = options or Options()
        self._prepared: Submit | None = None
        self.name = name

    def __repr__(self) -> str:
        return f"<Workflow {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    if TYPE_CHECKING:
        if MYPY:

            def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
            async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...

        else:

            @overload
            def enqueue(self: Workflow[Concatenate[Context, Q], R], *args: Q.args, **kwargs: Q.kwargs) -> Job[R]: ...
            @overload
            def enqueue(
                self: Workflow[Concatenate[AsyncContext, Q], R], *args: Q.args, **kwargs: Q.kwargs
            ) -> Job[R]: ...
            @overload
            def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
            def enqueue(self, *args: Any, **kwargs: Any) -> Any: ...

            @overload
            async def aenqueue(
                self: Workflow[Concatenate[Context, Q], R], *args: Q.args, **kwargs: Q.kwargs
            ) -> Job[R]: ...
            @overload
            async def aenqueue(
                self: Workflow[Concatenate[AsyncContext, Q], R], *args: Q.args, **kwargs: Q.kwargs
            ) -> Job[R]: ...
            @overload
            async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
            async def aenqueue(self, *args: Any, **kwargs: Any) -> Any: ...

    else:

        def enqueue(self, *args, **kwargs):
            """Make a durable job of this call; it is stored when this returns."""
            return self._submit([(args, kwargs)])[0]

        async def aenqueue(self, *args, **kwargs):
            """The same for coroutines: the loop goes on meanwhile."""
            return (await self._code.engine.in_thread(self._submit, [(args, kwargs)]))[0]

    def enqueue_many(self, calls: Iterable[Any]) -> list[Job[R]]:
        """One job per call: a tuple of positional arguments, a dict of named ones, a Call, or one single argument.
        All calls are checked before the first is stored; each thousand is stored whole or not at all."""
        return self._submit([_call(call) for call in calls])

    def using(self, **options: Unpack[JobOptions]) -> Workflow[P, R]:
        """The same workflow with other options for its jobs: priority, key, tenant, queue, delay, at, retries, target
        (None: of none), limit_key, hold (until released), after (other jobs have ended) …"""
        return Workflow(self._code, self.name, self._function, self._options.with_(**options))

    def draft(self, args: Sequence[Any], kwargs: Mapping[str, Any], tenant: str) -> NewJob:
        """The job that this call would be, for `ctx.spawn`: checked, and not stored. Of this tenant and no other."""
        given = self._options.tenant
        if given is not None and given != tenant:
            raise InvalidInput(f"a child belongs to its parent's tenant {tenant!r}, not to {given!r}")
        return self._code.draft(self.name, args, kwargs, self._options.with_(tenant=tenant))

    def _submit(self, calls: Calls) -> list[Job[R]]:
        if self._options.key is not None and len(calls) > 1:
            raise InvalidInput(f"key={self._options.key!r} would make one job of {len(calls)} calls")
        if self._prepared is None:
            self._prepared = self._code.prepared(self.name, self._options)
        return self._prepared(calls)


def _call(call: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    match call:
        case Call(args, kwargs):
            return args, kwargs or {}
        case tuple():
            return call, {}
        case dict():
            return (), call
        case _:
            return (call,), {}


class Decorator:
    """`@app.workflow` and `@app.workflow(timeout=…)`."""

    def __init__(self, code: AppCode, options: Mapping[str, Any]) -> None:
        self._code = code
        self._options = options

    if TYPE_CHECKING and MYPY:

        @overload
        def __call__(self, function: Callable[Concatenate[A, P], Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
        @overload
        def __call__(self, function: Callable[Concatenate[C, P], R], /) -> Workflow[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, R], /) -> Workflow[P, R]: ...
        @overload
        def __call__(self, /, **options: Unpack[WorkflowOptions]) -> Decorator: ...
        def __call__(self, function: Any = None, /, **options: Any) -> Any: ...

    elif TYPE_CHECKING:

        @overload
        def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Workflow[P, R]: ...
        @overload
        def __call__(self, function: Callable[P, R], /) -> Workflow[P, R]: ...
        @overload
        def __call__(self, /, **options: Unpack[WorkflowOptions]) -> Decorator: ...
        def __call__(self, function: Any = None, /, **options: Any) -> Any: ...

    else:

        def __call__(self, function=None, /, **options):
            merged = {**self._options, **options}
            if function is None:
                return Decorator(self._code, merged)
            return self._code.add(function, merged, sys._getframe(1).f_locals)
