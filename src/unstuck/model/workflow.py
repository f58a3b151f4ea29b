"""Handler and Registry: name -> function, its policy and how its arguments travel. What an App collects."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import field
from typing import Any

from unstuck.model.ends import Follows
from unstuck.model.errors import InvalidInput, InvalidPolicy, UnknownWorkflowName
from unstuck.model.job import DEFAULT_QUEUE, WorkflowRecord
from unstuck.model.policy import Policy
from unstuck.model.schedules import DeclaredSchedule
from unstuck.records import dataclass

#: Wraps every attempt, sync or async: what it does before and after its yield runs beside the handler.
Middleware = Callable[[Any], AbstractContextManager[object]]
Hook = Callable[[], object]
#: Until the app's code was imported as a whole, and its digest is known.
UNVERSIONED = "unversioned"


@dataclass(frozen=True, slots=True)
class Handler:
    """A workflow as its own process knows it. `unpack` turns a payload into arguments, `pack` any value into JSON
    (that of a step, a part of the result), `pack_result` a result, checked against the type that the handler
    declares."""

    name: str
    call: Callable[..., Any]
    is_async: bool
    takes_context: bool
    unpack: Callable[[str], tuple[list[Any], dict[str, Any]]]
    pack: Callable[[Any], str]
    pack_result: Callable[[Any], str] | None = None
    policy: Policy = field(default_factory=Policy)
    #: Of the policy what the decorator says itself.
    said: dict[str, Any] = field(default_factory=dict)
    queue: str = DEFAULT_QUEUE
    target: str | None = None
    limit_key: str | None = None
    concurrency: int | None = None
    rate: str | None = None
    key_concurrency: int | None = None
    key_rate: str | None = None
    retry_on: tuple[type[BaseException], ...] | None = None
    schema: dict[str, Any] = field(default_factory=dict)
    doc: str | None = None
    redact: tuple[str, ...] = ()
    #: Nothing of it runs that nobody signed; see `signing.py`.
    require_signature: bool = False
    #: Its jobs are made of the ends of others; see `model/ends.py`.
    follows: Follows | None = None

    def record(
        self, code_version: str, base: Policy | None = None, max_timeout: float | None = None
    ) -> WorkflowRecord:
        """`base`: what its worker gives to jobs that say nothing; else as the app's own settings have it."""
        owner = f"workflow {self.name}"
        policy = self.policy if base is None else base.with_(owner, self.said)
        if max_timeout is not None and (problems := policy.problems(max_timeout)):
            raise InvalidPolicy(owner, problems)
        return WorkflowRecord(
            name=self.name,
            code_version=code_version,
            queue=self.queue,
            policy=policy,
            max_timeout=max_timeout,
            said=self.said,
            schema=self.schema,
            target=self.target,
            limit_key=self.limit_key,
            concurrency=self.concurrency,
            rate=self.rate,
            key_concurrency=self.key_concurrency,
            key_rate=self.key_rate,
            doc=self.doc,
            redact=self.redact,
            require_signature=self.require_signature,
            follows=self.follows,
        )


@dataclass(slots=True)
class Registry:
    """Everything an app has told us, in the order it told it."""

    code_version: str = UNVERSIONED
    handlers: dict[str, Handler] = field(default_factory=dict)
    middleware: list[Middleware] = field(default_factory=list)
    on_start: list[Hook] = field(default_factory=list)
    on_stop: list[Hook] = field(default_factory=list)
    #: What it runs by the clock, and the name by which that is its own; None: where it is imported from.
    schedules: list[DeclaredSchedule] = field(default_factory=list)
    app: str | None = None

    def add(self, handler: Handler) -> None:
        if handler.name in self.handlers:
            raise InvalidInput(f"there are two workflows named {handler.name}; give one of them name=…")
        self.handlers[handler.name] = handler

    def handler(self, name: str) -> Handler:
        try:
            return self.handlers[name]
        except KeyError:
            raise UnknownWorkflowName(name, self.handlers) from None

    def records(self, base: Policy | None = None, max_timeout: float | None = None) -> tuple[WorkflowRecord, ...]:
        return tuple(handler.record(self.code_version, base, max_timeout) for handler in self.handlers.values())
